"""The tables of a study's report: an analysis in, rows of cells out, the paper's table 4 first.

A figure is strong where no other system is significantly better. What the paper published stands in a column of
its own: other models, other raters.
"""

from collections.abc import Mapping, Sequence

from cod3s.evaluate.paper import PLAUSIBILITY, PLAUSIBILITY_OF_GOLD
from cod3s.evaluate.summary import Figure
from cod3s.evaluate.tables import ARROWS, NOTHING, Cell, Part, Table, plain_cell, title_of
from cod3s.judge.results.agreement import Agreement
from cod3s.judge.results.analysis import Analysis, GoldFigure, Results
from cod3s.judge.results.figures import FIGURES, HELD_OUT
from cod3s.judge.study.study import RIGHT, WRONG

PLAIN = tuple(name for name in FIGURES if not name.endswith(HELD_OUT))
GOLD_NAMES = {RIGHT: "gold: right", WRONG: "gold: wrong"}


def all_tables(analysis: Analysis) -> list[Table]:
    """Every table that the analysis has something for."""
    results = analysis.results
    tables = [plausibility_table(results, relation, counted(analysis)) for relation in results.relations]
    tables += [held_out_table(results, relation) for relation in results.relations]
    if analysis.excluded:
        everyone = analysis.everyone
        tables += [plausibility_table(everyone, relation, "all raters") for relation in everyone.relations]
    tables += [agreement_table(analysis), coverage_table(analysis), rater_table(analysis)]
    return [table for table in tables if table.rows]


def plausibility_table(results: Results, relation: str, raters: str) -> Table:
    """The paper's table 4: a row a system, then the gold lines; figures that no system has are left out."""
    systems = results.systems.get(relation, {})
    shown = [name for name in PLAIN if any(name in own.figures for own in systems.values())] or ["top1"]
    gold = results.gold.get(relation, {})
    published = relation in ARROWS and bool(gold or PLAUSIBILITY.keys() & systems.keys())
    rows = []
    for system, own in systems.items():
        row = [plain_cell(system), *(_interval(own.figures.get(name)) for name in shown)]
        row.append(plain_cell(str(max(own.sources.values(), default=0))))
        rows.append((*row, *([_published(PLAUSIBILITY.get(system, {}), relation, shown)] if published else [])))
    for label, figure in gold.items():
        row = [plain_cell(GOLD_NAMES[label]), _interval(figure), *([plain_cell("")] * (len(shown) - 1))]
        row.append(plain_cell(str(figure.items)))
        paper = (
            Cell((Part(f"{PLAUSIBILITY_OF_GOLD[label][relation]:.1f}"),), published=True) if published else None
        )
        rows.append((*row, *([paper] if paper else [])))
    columns = ("system", *(FIGURES[name] for name in shown), "sources", *(["paper"] if published else []))
    note = (
        "Mean scores with 95 % bootstrap intervals over sources. Top: by likelihood; max and best: by the ratings "
        "themselves, which flatters large sets (see the figures held out). Gold items are single statements."
    )
    if published:
        note += " Paper: the same figures in its table 4, in the order of the columns."
    return Table(f"Plausibility, {title_of(relation)}, {raters}", note, columns, tuple(rows))


def held_out_table(results: Results, relation: str) -> Table:
    """The maxima without their optimism."""
    names = [name for name in FIGURES if name.endswith(HELD_OUT)]
    rows = [
        (plain_cell(system), *(_interval(own.figures.get(name)) for name in names))
        for system, own in results.systems.get(relation, {}).items()
        if any(name in own.figures for name in names)
    ]
    columns = ("system", *(FIGURES[name] for name in names))
    note = "The best answers as all raters of an item but one choose them, scored by that one, each in turn."
    return Table(f"Chosen by some raters, scored by others, {title_of(relation)}", note, columns, tuple(rows))


def agreement_table(analysis: Analysis) -> Table:
    """Krippendorff's alpha, of the raters who count and of everyone."""
    groups: list[tuple[str, Mapping[str, Agreement]]] = [(counted(analysis), analysis.results.agreement)]
    if analysis.excluded:
        groups.append(("all raters", analysis.everyone.agreement))
    rows = [
        (
            plain_cell(raters),
            plain_cell(name),
            _alpha(own),
            plain_cell(str(own.items)),
            plain_cell(str(own.ratings)),
        )
        for raters, agreements in groups
        for name, own in agreements.items()
    ]
    note = (
        "Krippendorff's alpha for ordered scores, with its 95 % bootstrap interval over items: 1 is perfect, 0 "
        "chance, below 0 systematic disagreement. Items: those with two ratings or more."
    )
    return Table("Agreement of the raters", note, ("raters", "items of", "alpha", "items", "ratings"), tuple(rows))


def coverage_table(analysis: Analysis) -> Table:
    """How many items have how many ratings."""
    wanted = analysis.settings["raters_per_item"]
    counts = analysis.results.raters_per_item
    rows = [(plain_cell(str(raters)), plain_cell(str(items))) for raters, items in counts.items()]
    missing = sum(items for raters, items in counts.items() if raters < wanted)
    note = (
        f"{wanted} raters an item were planned; {missing} items have fewer. An item without a rating that counts "
        "takes its source out of the figures that need it; the column `sources` says how many are left."
    )
    return Table("Ratings an item", note, ("raters", "items"), tuple(rows))


def rater_table(analysis: Analysis) -> Table:
    """How each rater worked; the rule that excludes was fixed before collection."""
    rows = [
        (
            plain_cell(rater.name),
            plain_cell(str(rater.ratings)),
            plain_cell(_number(rater.mean, "{:.2f}")),
            plain_cell(_number(rater.median_seconds, "{:.1f} s")),
            plain_cell(f"{rater.total_seconds / 60:.1f} min" if rater.total_seconds else NOTHING),
            Cell((Part(f"{rater.failed_checks} of {rater.checks}", strong=rater.failed_checks > 0),)),
            plain_cell(_number(rater.gold_gap, "{:+.2f}")),
            plain_cell("; ".join(rater.reasons) or "no"),
        )
        for rater in analysis.raters
    ]
    columns = ("rater", "ratings", "mean", "median time", "whole time", "checks failed", "gold gap", "excluded")
    note = (
        f"{len(analysis.excluded)} of {len(rows)} raters are excluded by the rule that the study fixed before "
        "collection. Gold gap: mean score of right less that of wrong alternatives."
    )
    return Table("Raters", note, columns, tuple(rows))


def counted(analysis: Analysis) -> str:
    """Whose ratings the main figures are of."""
    return "raters who count" if analysis.excluded else "all raters"


def _interval(figure: Figure | GoldFigure | None) -> Cell:
    if figure is None:
        return plain_cell(NOTHING)
    strong = isinstance(figure, Figure) and figure.near_best
    return Cell((Part(f"{figure.mean:.2f} ({figure.low:.2f}–{figure.high:.2f})", strong),))


def _published(own: Mapping[str, Mapping[str, float]], relation: str, shown: Sequence[str]) -> Cell:
    figures = [f"{own[name][relation]:.1f}" if name in own else NOTHING for name in shown]
    return Cell(tuple(map(Part, figures if own else [NOTHING])), published=True)


def _alpha(own: Agreement) -> Cell:
    if own.alpha is None:
        return plain_cell(own.words)
    if own.low is None or own.high is None:
        return plain_cell(f"{own.alpha:.3f}")
    return plain_cell(f"{own.alpha:.3f} ({own.low:.3f} to {own.high:.3f})")


def _number(value: float | None, form: str) -> str:
    return NOTHING if value is None else form.format(value)
