"""The tables of a report, and their Markdown.

A figure is bold if no other system is significantly better. The paper's published figures have separate columns:
they come from other models, other training data and another encoder.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cod3s.evaluate.paper import DISTINCT, DISTINCT_RELATION, DIVERSITY
from cod3s.evaluate.scores import Column
from cod3s.evaluate.summary import Figure, Interval, Summary
from cod3s.metrics.inference import InferenceScores
from cod3s.metrics.novelty import EQUIVALENCE_DISTANCE, PATIENCE
from cod3s.metrics.semantic import THRESHOLDS

ARROWS = {"effect": "C→E", "cause": "E→C"}
NOTHING = "–"
NEAR_BEST = (
    "no other system is significantly better (Wilcoxon signed-rank test over sources, p < .05, uncorrected)"
)
"""What bold print, or a star on the terminal, means in most tables."""


@dataclass(frozen=True)
class Part:
    """A figure as printed."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Cell:
    """One or several parts, printed with slashes in between, as in the paper."""

    parts: tuple[Part, ...]
    published: bool = False

    @property
    def text(self) -> str:
        return " / ".join(part.text for part in self.parts)


EMPTY = Cell((Part(NOTHING),))


@dataclass(frozen=True)
class Table:
    """A title, a note on how to read the table, and rows with a cell per column; `bold` says what bold marks."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    bold: str = NEAR_BEST

    @property
    def anchor(self) -> str:
        """The name of the table in links."""
        return "-".join(re.findall(r"\w+", self.title.lower()))


def table_row(*values: object) -> tuple[Cell, ...]:
    """The cells of a row: values that are not cells become plain text."""
    return tuple(value if isinstance(value, Cell) else Cell((Part(str(value)),)) for value in values)


def figure_text(value: float | None, form: str = "{:.3f}") -> str:
    """A figure as printed; a dash if there is none."""
    return NOTHING if value is None else form.format(value)


def interval_cell(figure: Interval | None, digits: int = 3) -> Cell:
    """A mean with its bootstrap interval, in bold if no other system is significantly better."""
    if figure is None:
        return EMPTY
    mean, low, high = (f"{value:.{digits}f}" for value in (figure.mean, figure.low, figure.high))
    return Cell((Part(f"{mean} ({low}–{high})", strong=isinstance(figure, Figure) and figure.near_best),))


def title_of(relation: str) -> str:
    """A relation as in the paper's tables."""
    return ARROWS.get(relation, relation)


def all_tables(summary: Summary) -> list[Table]:
    """Every table that the summary has figures for, the paper's first."""
    sizes = summary.settings["sets"]
    tables = [diversity_table(summary, size) for size in sizes]
    tables += [distinct_table(summary, relation) for relation in summary.relations]
    tables += [more_table(summary, size, relation) for size in sizes for relation in summary.relations]
    tables += [fidelity_table(summary), choice_table(summary), inference_table(summary)]
    return [table for table in tables if table.rows]


def diversity_table(summary: Summary, size: int) -> Table:
    """The paper's table 2 (3-sets) or 5 (10-sets): three diversities per relation, next to the published ones."""
    published = DIVERSITY.get(size, {})
    titles, columns = ["system"], [table_row(*summary.systems)]
    for relation in summary.relations:
        titles.append(title_of(relation))
        columns.append(tuple(_diversities(summary, system, relation, size) for system in summary.systems))
        figures = [published.get(system, {}).get(relation) for system in summary.systems]
        if any(figures):
            titles.append(f"paper {title_of(relation)}")
            columns.append(tuple(Cell((Part(text or NOTHING),), published=True) for text in figures))
    note = "100 - BLEU-1 / 100 - BLEU-2 / cosine distance; higher is more diverse."
    return Table(f"Diversity of {size}-sets", note, tuple(titles), tuple(zip(*columns, strict=True)))


COUNTS = (
    Column("effective", "relevance"),
    Column("effective", "backward_pmi"),
    Column("plausible", "critic"),
    Column("effective", "critic"),
)


def distinct_table(summary: Summary, relation: str) -> Table:
    """The lower part of the paper's table 2: distinct answers among ten by threshold; then effective counts."""
    titles = {Column("distinct", f"{threshold:g}"): f"{threshold:g}" for threshold in THRESHOLDS}
    titles |= {column: f"{column.group} ({column.metric})" for column in COUNTS if _has(summary, relation, column)}
    with_paper = relation == DISTINCT_RELATION and any(system in DISTINCT for system in summary.systems)
    rows = []
    for system in _systems_with(summary, relation):
        row: list[object] = [system]
        row += [_figure(summary, system, relation, column, "{:.2f}") for column in titles]
        if with_paper:
            counts = DISTINCT.get(system)
            figures = [f"{counts[f'{threshold:g}']:.2f}" for threshold in THRESHOLDS] if counts else [NOTHING]
            row.append(Cell(tuple(map(Part, figures)), published=True))
        rows.append(table_row(*row))
    columns = ("system", *titles.values(), *(["paper"] if with_paper else []))
    note = (
        "Answers among ten that are no closer than the threshold to an earlier answer, as completed statements. "
        "Effective: at threshold 0.1, only answers that score above the median wrong alternative of the "
        "questions, or that the critic finds plausible (probability above 0.5)."
    )
    return Table(f"Distinct answers, {title_of(relation)}", note, columns, tuple(rows))


MORE = (
    ("semantic2", "cosine (second encoder)", "{:.3f}"),
    ("vendi", "Vendi", "{:.2f}"),
    ("distinct1", "distinct-1", "{:.3f}"),
    ("distinct2", "distinct-2", "{:.3f}"),
    ("self_bleu", "self-BLEU", "{:.1f}"),
    ("classes", "classes", "{:.2f}"),
    ("utility", "utility", "{:.3f}"),
    ("relevance", "relevance", "{:.3f}"),
    ("likelihood", "log p(source)", "{:.2f}"),
    ("backward_pmi", "backward PMI", "{:.2f}"),
)


def more_table(summary: Summary, size: int, relation: str) -> Table:
    """Diversity by other measures, and quality: diversity alone is easy."""
    shown = [row for row in MORE if _has(summary, relation, Column(str(size), row[0]))]
    rows = [
        table_row(
            system,
            interval_cell(summary.figure(system, relation, Column(str(size), "semantic"))),
            *(_figure(summary, system, relation, Column(str(size), name), form) for name, _, form in shown),
        )
        for system in _systems_with(summary, relation)
    ]
    note = (
        "Cosine with its 95 % bootstrap interval. Self-BLEU: lower is more diverse. Classes: different things "
        f"said (answers are equivalent if the cosine of their statements is above {1 - EQUIVALENCE_DISTANCE:g}); "
        f"utility: new classes only, each later answer discounted by {PATIENCE:g}; both after NoveltyBench. "
        "Relevance: cosine of source and answer; log p(source): per token, given the answer, by the model of the "
        "opposite relation; PMI: the same minus that of the source alone."
    )
    columns = ("system", "cosine", *(name for _, name, _ in shown))
    return Table(f"More on {size}-sets, {title_of(relation)}", note, columns, tuple(rows))


def fidelity_table(summary: Summary) -> Table:
    """Whether answers are in the bins that they were written for."""
    rows = []
    for system, relations in summary.systems.items():
        for relation, scores in relations.items():
            if scores.control is None:
                continue
            whole, other = scores.control.whole, scores.control.other_hamming
            distances = f"{whole.hamming:.2f}", figure_text(other, "{:.2f}")
            shares = f"{whole.bits_right:.3f}", f"{whole.in_bin:.3f}"
            rows.append(table_row(system, title_of(relation), *distances, *shares, whole.requests))
    note = (
        "Hamming distance between the requested signature and that of the answer; `to others`: the same to the "
        "other answers of the set, which is what it would be without control."
    )
    columns = ("system", "relation", "Hamming", "to others", "bits right", "in the bin", "answers")
    return Table("Fidelity", note, columns, tuple(rows))


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
    return Table("Choosing the plausible alternative", note, columns, tuple(rows))


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
    return Table("Inferring the gold signature", note, columns, tuple(rows))


def markdown(table: Table) -> str:
    """The table with its title and note, strong figures in bold."""
    lines = [f"## {table.title}", "", table.note, "", _row(table.columns), _row(["---"] * len(table.columns))]
    lines += [_row(_marked(cell) for cell in row) for row in table.rows]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _marked(cell: Cell) -> str:
    shown = " / ".join(f"**{part.text}**" if part.strong else part.text for part in cell.parts)
    return f"*{shown}*" if cell.published and shown != NOTHING else shown


def _systems_with(summary: Summary, relation: str) -> list[str]:
    return [system for system, relations in summary.systems.items() if relation in relations]


def _has(summary: Summary, relation: str, column: Column) -> bool:
    return any(summary.figure(system, relation, column) for system in summary.systems)


def _diversities(summary: Summary, system: str, relation: str, size: int) -> Cell:
    shown = (("bleu1", "{:.1f}"), ("bleu2", "{:.1f}"), ("semantic", "{:.3f}"))
    cells = [_figure(summary, system, relation, Column(str(size), name), form) for name, form in shown]
    if EMPTY in cells:
        return EMPTY
    *bleu, semantic = (part for cell in cells for part in cell.parts)
    return Cell((*bleu, replace(semantic, text=semantic.text.lstrip("0"))))


def _figure(summary: Summary, system: str, relation: str, column: Column, form: str) -> Cell:
    figure = summary.figure(system, relation, column)
    return Cell((Part(form.format(figure.mean), figure.near_best),)) if figure else EMPTY


def _recalls(scores: InferenceScores, depth: int) -> str:
    recalls = [f"{recall.recall:.2f}" for recall in scores.recalls if recall.depth == depth]
    return " / ".join(recalls) or NOTHING
