"""The tables of a study's report, the paper's table 4 first.

A figure is bold if no other system is significantly better. The paper's figures are in a separate column,
because they come from other models and other raters.
"""

from collections.abc import Mapping, Sequence

from cod3s.evaluate.paper import PLAUSIBILITY, PLAUSIBILITY_OF_GOLD
from cod3s.evaluate.report_tables import (
    ARROWS,
    NOTHING,
    Cell,
    Part,
    Table,
    figure_text,
    interval_cell,
    table_row,
    title_of,
)
from cod3s.study.plan.folder import RIGHT, WRONG
from cod3s.study.results.agreement import Agreement
from cod3s.study.results.analysis import Analysis, Results
from cod3s.study.results.figures import FIGURES, HELD_OUT, figure_labels

PLAIN = tuple(name for name in FIGURES if not name.endswith(HELD_OUT))
GOLD_NAMES = {RIGHT: "gold: right", WRONG: "gold: wrong"}


def all_tables(analysis: Analysis) -> list[Table]:
    """Every table that has rows."""
    results = analysis.results
    tables = [plausibility_table(results, relation, counted(analysis)) for relation in results.relations]
    tables += [held_out_table(results, relation) for relation in results.relations]
    if analysis.excluded:
        everyone = analysis.everyone
        tables += [plausibility_table(everyone, relation, "all raters") for relation in everyone.relations]
    tables += [agreement_table(analysis), coverage_table(analysis), rater_table(analysis)]
    return [table for table in tables if table.rows]


def plausibility_table(results: Results, relation: str, raters: str) -> Table:
    """The paper's table 4: a row per system, then the gold rows; without figures that no system has."""
    systems = results.systems.get(relation, {})
    shown = [name for name in PLAIN if any(name in figures for figures in systems.values())] or ["top1"]
    gold = results.gold.get(relation, {})
    published = relation in ARROWS and bool(gold or PLAUSIBILITY.keys() & systems.keys())
    rows = []
    for name, figures in systems.items():
        cells = [interval_cell(figures.get(figure), 2) for figure in shown]
        sources = max((figure.sources for figure in figures.values()), default=0)
        paper = [_published(PLAUSIBILITY.get(name, {}), relation, shown)] if published else []
        rows.append(table_row(name, *cells, sources, *paper))
    for label, figure in gold.items():
        blanks = [""] * (len(shown) - 1)
        paper = (
            [Cell((Part(f"{PLAUSIBILITY_OF_GOLD[label][relation]:.1f}"),), published=True)] if published else []
        )
        rows.append(table_row(GOLD_NAMES[label], interval_cell(figure, 2), *blanks, figure.items, *paper))
    labels = figure_labels(results.most_answers)
    columns = ("system", *(labels[name] for name in shown), "sources", *(["paper"] if published else []))
    note = (
        "Mean scores with 95 % bootstrap intervals over sources. Top: by likelihood; max and best: by the ratings "
        "themselves, which flatters large sets (see the held-out figures). Gold items are single statements."
    )
    if published:
        note += " Paper: the figures of its table 4 (sets of 3 and 10), in the order of the columns."
    return Table(f"Plausibility, {title_of(relation)}, {raters}", note, columns, tuple(rows))


def held_out_table(results: Results, relation: str) -> Table:
    """The maxima without their optimistic bias."""
    names = [name for name in FIGURES if name.endswith(HELD_OUT)]
    rows = [
        table_row(name, *(interval_cell(figures.get(figure), 2) for figure in names))
        for name, figures in results.systems.get(relation, {}).items()
        if any(figure in figures for figure in names)
    ]
    labels = figure_labels(results.most_answers)
    columns = ("system", *(labels[name] for name in names))
    note = (
        "All raters of an item except one choose the best answers, and that one scores them; each rater in turn."
    )
    return Table(f"Chosen by some raters, scored by others, {title_of(relation)}", note, columns, tuple(rows))


def agreement_table(analysis: Analysis) -> Table:
    """Krippendorff's alpha without excluded raters, and of everyone."""
    groups: list[tuple[str, Mapping[str, Agreement]]] = [(counted(analysis), analysis.results.agreement)]
    if analysis.excluded:
        groups.append(("all raters", analysis.everyone.agreement))
    rows = [
        table_row(raters, name, _alpha(agreement), agreement.items, agreement.ratings)
        for raters, agreements in groups
        for name, agreement in agreements.items()
    ]
    note = (
        "Krippendorff's alpha for ordered scores, with its 95 % bootstrap interval over items: 1 is perfect, 0 "
        "is chance, below 0 is systematic disagreement. Items: those with at least two ratings."
    )
    return Table("Agreement of the raters", note, ("raters", "items of", "alpha", "items", "ratings"), tuple(rows))


def coverage_table(analysis: Analysis) -> Table:
    """The number of items by their number of ratings."""
    wanted = analysis.settings["raters_per_item"]
    counts = analysis.results.raters_per_item
    rows = [table_row(raters, items) for raters, items in counts.items()]
    missing = sum(items for raters, items in counts.items() if raters < wanted)
    note = (
        f"{wanted} raters per item were planned; {missing} items have fewer. If an item has no rating that "
        "counts, its source is missing from the figures that need it; the column `sources` says how many are left."
    )
    return Table("Ratings per item", note, ("raters", "items"), tuple(rows))


def rater_table(analysis: Analysis) -> Table:
    """How each rater worked; the rule for exclusion was fixed before collection."""
    rows = [
        table_row(
            rater.name,
            rater.ratings,
            figure_text(rater.mean, "{:.2f}"),
            figure_text(rater.median_seconds, "{:.1f} s"),
            f"{rater.total_seconds / 60:.1f} min" if rater.total_seconds else NOTHING,
            Cell((Part(f"{rater.failed_checks} of {rater.checks}", strong=rater.failed_checks > 0),)),
            figure_text(rater.gold_gap, "{:+.2f}"),
            "; ".join(rater.reasons) or "no",
        )
        for rater in analysis.raters
    ]
    columns = ("rater", "ratings", "mean", "median time", "total time", "checks failed", "gold gap", "excluded")
    note = (
        f"{len(analysis.excluded)} of {len(rows)} raters are excluded by the rule that the study fixed before "
        "collection. Gold gap: mean score of right minus wrong alternatives. Bold: failed checks."
    )
    return Table("Raters", note, columns, tuple(rows), bold="failed attention checks")


def counted(analysis: Analysis) -> str:
    """The raters behind the main figures."""
    return "without excluded raters" if analysis.excluded else "all raters"


def _published(scores: Mapping[str, Mapping[str, float]], relation: str, shown: Sequence[str]) -> Cell:
    figures = [f"{scores[name][relation]:.1f}" if name in scores else NOTHING for name in shown]
    return Cell(tuple(map(Part, figures if scores else [NOTHING])), published=True)


def _alpha(agreement: Agreement) -> str:
    if agreement.alpha is None:
        return agreement.words
    if agreement.low is None or agreement.high is None:
        return f"{agreement.alpha:.3f}"
    return f"{agreement.alpha:.3f} ({agreement.low:.3f} to {agreement.high:.3f})"
