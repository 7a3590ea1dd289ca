"""The tables of a report, and their Markdown.

A figure is bold if no other system is significantly better. The paper's published figures have a column of their
own, and only where the data is the paper's: they come from other models, other training data and another encoder.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cod3s.evaluate.grading import numbered
from cod3s.evaluate.paper import DISTINCT, DISTINCT_RELATION, DIVERSITY
from cod3s.evaluate.scores import COUNTED, Column, distinct_group
from cod3s.evaluate.summary import Figure, Interval, RelationScores, Summary
from cod3s.metrics.inference import InferenceScores
from cod3s.metrics.novelty import EQUIVALENCE_DISTANCE, PATIENCE
from cod3s.metrics.semantic import PARAPHRASE, THRESHOLDS

ARROWS = {"effect": "C→E", "cause": "E→C"}
NOTHING = "–"
PUBLISHED = "paper"
"""The column of published figures."""
NEAR_BEST = (
    "no other system is significantly better (Wilcoxon signed-rank test over sources, p < .05, uncorrected)"
)
"""What bold print, or a star on the terminal, means in most tables."""
OWN_GRADES = "† by the same model or critic that chose these answers, which flatters them (--grader names another)"


@dataclass(frozen=True)
class Cell:
    """A figure or a name as printed."""

    text: str
    strong: bool = False


EMPTY = Cell(NOTHING)


@dataclass(frozen=True)
class Table:
    """A title, where the paper has it, a note on how to read it, and rows with a cell per column."""

    title: str
    paper: str  # the section and the table of the paper
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    bold: str = NEAR_BEST  # what bold marks

    @property
    def anchor(self) -> str:
        """The name of the table in links."""
        return "-".join(re.findall(r"\w+", self.title.lower()))

    def markdown(self) -> str:
        """The table with its title and note, strong figures in bold, published ones in italics."""
        lines = [f"## {self.title}", "", f"{self.note} {self.paper}".strip(), ""]
        lines += [_line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line(map(_marked, self.columns, row)) for row in self.rows]
        return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |"


def _marked(column: str, cell: Cell) -> str:
    if column == PUBLISHED and cell.text != NOTHING:
        return f"*{cell.text}*"
    return f"**{cell.text}**" if cell.strong else cell.text


def table_row(*values: object) -> tuple[Cell, ...]:
    """The cells of a row: values that are not cells become plain text."""
    return tuple(value if isinstance(value, Cell) else Cell(str(value)) for value in values)


def figure_text(value: float | None, form: str = "{:.3f}") -> str:
    """A figure as printed; a dash if there is none."""
    return NOTHING if value is None else form.format(value)


def interval_cell(figure: Interval | None, digits: int = 3) -> Cell:
    """A mean with its bootstrap interval, in bold if no other system is significantly better."""
    if figure is None:
        return EMPTY
    mean, low, high = (f"{value:.{digits}f}" for value in (figure.mean, figure.low, figure.high))
    return Cell(f"{mean} ({low}–{high})", strong=isinstance(figure, Figure) and figure.near_best)


def title_of(relation: str) -> str:
    """A relation as in the paper's tables."""
    return ARROWS.get(relation, relation)


def all_tables(summary: Summary) -> list[Table]:
    """Every table that the summary has figures for, the paper's first."""
    sizes = summary.settings["sets"]
    tables = [diversity_table(summary, size, relation) for size in sizes for relation in summary.relations]
    tables += [distinct_table(summary, relation) for relation in summary.relations]
    tables += [plausibility_table(summary, relation) for relation in summary.relations]
    tables += [more_table(summary, size, relation) for size in sizes for relation in summary.relations]
    tables += [fidelity_table(summary), choice_table(summary), inference_table(summary)]
    return [table for table in tables if table.rows and len(table.columns) > 1]


Shown = list[tuple[Column, str, str]]
"""Columns with their titles and the forms of their figures."""


def diversity_table(summary: Summary, size: int, relation: str) -> Table:
    """The diversities of the paper's table 2 (3-sets) or 5 (10-sets), and the semantic one by further encoders."""
    group = str(size)
    shown: Shown = [
        (Column(group, "bleu1"), "100 - BLEU-1", "{:.1f}"),
        (Column(group, "bleu2"), "100 - BLEU-2", "{:.1f}"),
        *_by_encoder(summary, group, "semantic", "cosine", "{:.3f}"),
    ]
    paper = {3: "Paper: section 4, table 2 (upper).", 10: "Paper: appendix C, table 5 (10-sets)."}.get(
        size, "Paper: the measures of section 4, table 2."
    )
    published = {system: figures.get(relation) for system, figures in DIVERSITY.get(size, {}).items()}
    return Table(
        f"Diversity of {size}-sets, {title_of(relation)}",
        paper,
        "Mean distances between the answers of a set, in words (BLEU) and in meaning (cosine distance); higher is "
        "more diverse.",
        *_figure_rows(summary, relation, shown, {name: text for name, text in published.items() if text}),
    )


def distinct_table(summary: Summary, relation: str) -> Table:
    """Distinct answers among ten by threshold; by further encoders at the paper's threshold for paraphrases."""
    shown: Shown = []
    for number, encoder in enumerate(_encoders(summary), 1):
        for threshold in THRESHOLDS:
            if number == 1 or threshold == PARAPHRASE:
                title = f"{threshold:g}" if number == 1 else f"{threshold:g} ({encoder})"
                shown.append((Column(distinct_group(number), f"{threshold:g}"), title, "{:.2f}"))
    published = {
        system: " / ".join(f"{counts[f'{threshold:g}']:.2f}" for threshold in THRESHOLDS)
        for system, counts in (DISTINCT if relation == DISTINCT_RELATION else {}).items()
    }
    return Table(
        f"Distinct answers, {title_of(relation)}",
        "Paper: section 4, table 2 (lower), and appendix D.",
        f"Answers among {COUNTED} whose completed statement is no closer than the threshold to an earlier one.",
        *_figure_rows(summary, relation, shown, published),
    )


def plausibility_table(summary: Summary, relation: str) -> Table:
    """How well answers fit their source, without people; diversity alone is easy."""
    size = str(max(summary.settings["sets"]))
    shown: Shown = [
        *_by_encoder(summary, size, "relevance", "relevance", "{:.3f}"),
        (Column(size, "likelihood"), "log p(source)", "{:.2f}"),
        (Column(size, "backward_pmi"), "backward PMI", "{:.2f}"),
        (Column("plausible", "critic"), "plausible (critic)", "{:.2f}"),
        (Column("effective", "critic"), "effective (critic)", "{:.2f}"),
        (Column("effective", "backward_pmi"), "effective (PMI)", "{:.2f}"),
        (Column("effective", "relevance"), "effective (relevance)", "{:.2f}"),
    ]
    note = (
        f"Of {size}-sets: relevance, the cosine of source and answer; log p(source) per token, given the answer; "
        f"PMI, the same minus that of the source alone. Among {COUNTED} answers: those that the critic finds "
        "plausible (probability above 0.5), and, as effective, the distinct ones (at 0.1) of those that score "
        "above the median wrong alternative of the data's questions."
    )
    if any(
        by_relation[relation].own_grades for by_relation in summary.systems.values() if relation in by_relation
    ):
        note += f" {OWN_GRADES}."
    return Table(
        f"Plausibility, {title_of(relation)}",
        "Not in the paper, which asked people (section 4, figure 2).",
        note,
        *_figure_rows(summary, relation, shown),
    )


def more_table(summary: Summary, size: int, relation: str) -> Table:
    """Diversity by other measures."""
    group = str(size)
    shown: Shown = [
        (Column(group, "vendi"), "Vendi", "{:.2f}"),
        (Column(group, "distinct1"), "distinct-1", "{:.3f}"),
        (Column(group, "distinct2"), "distinct-2", "{:.3f}"),
        (Column(group, "self_bleu"), "self-BLEU", "{:.1f}"),
        (Column(group, "classes"), "classes", "{:.2f}"),
        (Column(group, "utility"), "utility", "{:.3f}"),
    ]
    columns, rows = _figure_rows(summary, relation, shown)
    intervals = [interval_cell(summary.figure(row[0].text, relation, Column(group, "semantic"))) for row in rows]
    note = (
        "Cosine distance with its 95 % bootstrap interval. Self-BLEU: lower is more diverse. Classes: different "
        f"things said (answers are equivalent if the cosine of their statements is above "
        f"{1 - EQUIVALENCE_DISTANCE:g}); utility: new classes only, each later answer discounted by {PATIENCE:g}; "
        "both after NoveltyBench."
    )
    return Table(
        f"More on {size}-sets, {title_of(relation)}",
        "Not in the paper.",
        note,
        (columns[0], "cosine distance", *columns[1:]),
        tuple((row[0], interval, *row[1:]) for row, interval in zip(rows, intervals, strict=True)),
    )


def fidelity_table(summary: Summary) -> Table:
    """Whether answers are in the bins that they were written for."""
    rows = []
    for system, relations in summary.systems.items():
        for relation, scores in relations.items():
            if scores.control:
                whole, other = scores.control.whole, scores.control.other_hamming
                distances = f"{whole.hamming:.2f}", figure_text(other, "{:.2f}")
                shares = f"{whole.bits_right:.3f}", f"{whole.in_bin:.3f}"
                rows.append(table_row(system, title_of(relation), *distances, *shares, whole.requests))
    note = (
        "Hamming distance between the requested signature and that of the answer; `to others`: the same to the "
        "other answers of the set, which is what it would be without control."
    )
    columns = ("system", "relation", "Hamming", "to others", "bits right", "in the bin", "answers")
    return Table("Fidelity", "Not in the paper; on its section 3.", note, columns, tuple(rows))


def choice_table(summary: Summary) -> Table:
    """How often each scorer finds the right alternative."""
    rows = [
        table_row(
            choice.data,
            title_of(choice.relation),
            choice.scorer,
            f"{100 * choice.accuracy:.1f} %",
            f"{100 * choice.low:.1f}–{100 * choice.high:.1f} %",
            choice.questions,
        )
        for choice in summary.choices
    ]
    note = "Share of questions whose right alternative scores highest; 50 % is chance."
    columns = ("data", "relation", "scorer", "right", "95 % interval", "questions")
    return Table("Choosing the plausible alternative", "Not in the paper.", note, columns, tuple(rows))


def inference_table(summary: Summary) -> Table:
    """The rank of the gold target's signature among the inferred ones."""
    guesses = [
        (guesser, relation, scores)
        for guesser, relations in summary.inference.items()
        for relation, scores in relations.items()
    ]
    depths = list(dict.fromkeys(recall.depth for _, _, scores in guesses for recall in scores.recalls))
    rows = [
        table_row(
            guesser,
            title_of(relation),
            *(_recalls(scores, depth) for depth in depths),
            f"{scores.median_rank:g}",
            scores.sources,
        )
        for guesser, relation, scores in guesses
    ]
    note = (
        "Share of sources with any of the first k inferred signatures within 0 / 1 / 2 / 3 bits of the gold "
        "target's; `most frequent` always guesses the largest bins. The median rank counts missing ones as last."
    )
    columns = ("guesses", "relation", *(f"k = {depth}" for depth in depths), "median rank", "sources")
    paper = "Not in the paper, whose section 4 (Human Evaluation) calls this step difficult."
    return Table("Inferring the gold signature", paper, note, columns, tuple(rows))


def _figure_rows(
    summary: Summary, relation: str, shown: Shown, published: dict[str, str] | None = None
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """The titles and the rows of the figures that any system has, beside those that the paper published."""
    systems = {name: scores[relation] for name, scores in summary.systems.items() if relation in scores}
    shown = [row for row in shown if any(row[0] in scores.figures for scores in systems.values())]
    titles = ["system", *(title for _, title, _ in shown)]
    rows = [
        [Cell(name), *(_figure_cell(scores, column, form) for column, _, form in shown)]
        for name, scores in systems.items()
    ]
    if summary.data.get("is_copa_dev") and published and published.keys() & systems.keys():
        titles.append(PUBLISHED)
        for row in rows:
            row.append(Cell(published.get(row[0].text, NOTHING)))
    return tuple(titles), tuple(map(tuple, rows))


def _figure_cell(scores: RelationScores, column: Column, form: str) -> Cell:
    if (figure := scores.figures.get(column)) is None:
        return EMPTY
    mark = "†" if column.metric in scores.own_grades else ""
    return Cell(form.format(figure.mean) + mark, figure.near_best)


def _by_encoder(summary: Summary, group: str, metric: str, title: str, form: str) -> Shown:
    return [
        (Column(group, numbered(metric, number)), f"{title} ({encoder})", form)
        for number, encoder in enumerate(_encoders(summary), 1)
    ]


def _encoders(summary: Summary) -> list[str]:
    """Short names of the encoders: the kind, and the model if several are of one kind."""
    ids = [summary.settings["encoder"], *summary.settings["other_encoders"]]
    kinds = [id.partition(":")[0] for id in ids]
    return [kind if kinds.count(kind) == 1 else id.partition("@")[0] for id, kind in zip(ids, kinds, strict=True)]


def _recalls(scores: InferenceScores, depth: int) -> str:
    recalls = [f"{recall.recall:.2f}" for recall in scores.recalls if recall.depth == depth]
    return " / ".join(recalls) or NOTHING
