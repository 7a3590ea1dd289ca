"""Write the report of a study: report.html, report.md, metrics.json and figure.png.

A figure in a table is bold if no other system is significantly better. The plot follows the paper's figure 2: a
panel per relation, a row per system, and the gold alternatives as bands across the panel. Raters appear by
pseudonyms only. The same ratings and seed give the same bytes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cod3s.errors import require
from cod3s.evaluate.paper import PLAUSIBILITY, PLAUSIBILITY_OF_GOLD
from cod3s.evaluate.plots import INK, Plot, styled, svg_text
from cod3s.evaluate.report import MARKDOWN, METRICS, PAGE, Page
from cod3s.evaluate.tables import (
    NOTHING,
    PUBLISHED,
    Cell,
    Table,
    figure_text,
    interval_cell,
    table_row,
    title_of,
)
from cod3s.io.disk import replaced_file, write_json
from cod3s.study.analysis import Analysis, Results
from cod3s.study.figures import FIGURES, HELD_OUT, Agreement, figure_labels
from cod3s.study.folder import RIGHT, WRONG
from cod3s.text import settings_line

FIGURE = "figure.png"
SIMULATED_BANNER = "SIMULATED RATINGS: nobody rated anything here"
_SHOWN = ("study", "scale", "raters_per_item", "alpha", "bootstrap", "seed", "cod3s")
_PLAIN = tuple(name for name in FIGURES if not name.endswith(HELD_OUT))
_HELD_OUT = tuple(name for name in FIGURES if name.endswith(HELD_OUT))
_MARKS = {  # likeliest answers in blue, best of three in red, best of ten in purple
    "top1": ("#1f5fa8", "o"),
    "top3": ("#7fb2e5", "s"),
    "max3": ("#c23b32", "^"),
    "max10": ("#6f4aa8", "^"),
    "best3of10": ("#b79be0", "D"),
}
_BANDS = {RIGHT: "#3f8f4f", WRONG: "#8a8a8a"}
_ROW_INCHES, _PANEL_INCHES = 0.62, 5.2


def write_report(folder: Path, analysis: Analysis) -> Path:
    """Write the four files into `folder`, and return the path of the page."""
    results, banner = analysis.results, banner_of(analysis)
    figure = draw(results, int(analysis.settings["scale"].split("–")[1]), banner)
    write_json(folder / METRICS, analysis.record())
    with replaced_file(folder / FIGURE) as partial:
        figure.savefig(partial, format="png", dpi=130, facecolor="white", metadata={"Software": None})
    labels = figure_labels(results.most_answers)
    page = Page(
        title=f"Human plausibility: {analysis.settings['study']}",
        line=report_line(analysis),
        settings=analysis.settings,
        tables=all_tables(analysis),
        plots=[Plot("Mean scores by system", svg_text(figure))],
        comparisons=[
            (relation, [(labels[name], row) for name, rows in figures.items() for row in rows])
            for relation, figures in results.comparisons.items()
            if any(figures.values())
        ],
        banner=banner,
    )
    page.write(folder / MARKDOWN, folder / PAGE)
    return folder / PAGE


def banner_of(analysis: Analysis) -> str:
    """A warning that readers must not miss, or nothing."""
    return SIMULATED_BANNER if analysis.simulated else ""


def report_line(analysis: Analysis) -> str:
    """The settings line of the report, with the numbers of raters and ratings."""
    results = analysis.results
    counts = {"raters": f"{results.raters} of {len(analysis.raters)}", "ratings": results.ratings}
    return settings_line({**{name: analysis.settings[name] for name in _SHOWN}, **counts})


def all_tables(analysis: Analysis) -> list[Table]:
    """Every table that has rows, the paper's table 4 first."""
    results, everyone = analysis.results, analysis.everyone
    tables = [plausibility_table(results, relation, counted(analysis)) for relation in results.relations]
    tables += [held_out_table(results, relation) for relation in results.relations]
    if analysis.excluded:
        tables += [plausibility_table(everyone, relation, "all raters") for relation in everyone.relations]
    tables += [agreement_table(analysis), coverage_table(analysis), rater_table(analysis)]
    return [table for table in tables if table.rows]


def counted(analysis: Analysis) -> str:
    """The raters behind the main figures."""
    return "without excluded raters" if analysis.excluded else "all raters"


def plausibility_table(results: Results, relation: str, raters: str) -> Table:
    """The paper's table 4: a row per system, then the gold rows; without figures that no system has.

    The paper's figures have a column of their own if the sources are of COPA dev: they come from other models and
    other raters.
    """
    systems, gold = results.systems.get(relation, {}), results.gold.get(relation, {})
    shown = [name for name in _PLAIN if any(name in figures for figures in systems.values())] or ["top1"]
    published = results.is_copa_dev and bool(gold or PLAUSIBILITY.keys() & systems.keys())
    rows = []
    for system, figures in systems.items():
        cells = [interval_cell(figures.get(name), 2) for name in shown]
        sources = max((figure.sources for figure in figures.values()), default=0)
        means = PLAUSIBILITY.get(system, {}) if published else {}
        paper = [f"{means[name][relation]:.1f}" if name in means else NOTHING for name in shown] if means else []
        rows.append(table_row(system, *cells, sources, *_published(paper, published)))
    for label, figure in gold.items():
        blanks = [""] * (len(shown) - 1)
        paper = [f"{PLAUSIBILITY_OF_GOLD[label][relation]:.1f}"] if published else []
        mean = interval_cell(figure, 2)
        rows.append(table_row(f"gold: {label}", mean, *blanks, figure.items, *_published(paper, published)))
    labels = figure_labels(results.most_answers)
    columns = ("system", *(labels[name] for name in shown), "sources", *([PUBLISHED] if published else []))
    note = (
        "Mean scores with 95 % bootstrap intervals over sources. Top: by likelihood; max and best: by the ratings "
        "themselves, which flatters large sets (see the held-out figures). Gold items are single statements."
    )
    if published:
        note += " Paper: the figures of its table 4 (sets of 3 and 10), in the order of the columns."
    title = f"Plausibility, {title_of(relation)}, {raters}"
    return Table(title, "Paper: section 4 (Human Evaluation), figure 2, table 4.", note, columns, tuple(rows))


def _published(figures: Sequence[str], shown: bool) -> list[Cell]:
    return [Cell(" / ".join(figures) or NOTHING)] if shown else []


def held_out_table(results: Results, relation: str) -> Table:
    """The maxima without their optimistic bias."""
    rows = [
        table_row(system, *(interval_cell(figures.get(name), 2) for name in _HELD_OUT))
        for system, figures in results.systems.get(relation, {}).items()
        if any(name in figures for name in _HELD_OUT)
    ]
    labels = figure_labels(results.most_answers)
    columns = ("system", *(labels[name] for name in _HELD_OUT))
    note = (
        "All raters of an item except one choose the best answers, and that one scores them; each rater in turn."
    )
    title = f"Chosen by some raters, scored by others, {title_of(relation)}"
    return Table(title, "Not in the paper.", note, columns, tuple(rows))


def agreement_table(analysis: Analysis) -> Table:
    """Krippendorff's alpha without excluded raters, and of everyone."""
    groups = [(counted(analysis), analysis.results.agreement)]
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
    columns = ("raters", "items of", "alpha", "items", "ratings")
    return Table("Agreement of the raters", "Not in the paper.", note, columns, tuple(rows))


def _alpha(agreement: Agreement) -> str:
    if agreement.alpha is None:
        return agreement.words
    if agreement.low is None or agreement.high is None:
        return f"{agreement.alpha:.3f}"
    return f"{agreement.alpha:.3f} ({agreement.low:.3f} to {agreement.high:.3f})"


def coverage_table(analysis: Analysis) -> Table:
    """The number of items by their number of ratings."""
    wanted, counts = analysis.settings["raters_per_item"], analysis.results.raters_per_item
    missing = sum(items for raters, items in counts.items() if raters < wanted)
    note = (
        f"{wanted} raters per item were planned; {missing} items have fewer. If an item has no rating that "
        "counts, its source is missing from the figures that need it; the column `sources` says how many are left."
    )
    rows = tuple(table_row(raters, items) for raters, items in counts.items())
    return Table("Ratings per item", "Paper: appendix F.", note, ("raters", "items"), rows)


def rater_table(analysis: Analysis) -> Table:
    """How each rater worked; the rule for exclusion was fixed before collection."""
    rows = [
        table_row(
            rater.name,
            rater.ratings,
            figure_text(rater.mean, "{:.2f}"),
            figure_text(rater.median_seconds, "{:.1f} s"),
            f"{rater.total_seconds / 60:.1f} min" if rater.total_seconds else NOTHING,
            Cell(f"{rater.failed_checks} of {rater.checks}", strong=rater.failed_checks > 0),
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
    return Table("Raters", "Paper: appendix F.", note, columns, tuple(rows), bold="failed attention checks")


def draw(results: Results, top: int, banner: str = "") -> Any:
    """The plot, with a panel per relation, and a banner above it if there is one."""
    rows = max((len(results.systems.get(relation, {})) for relation in results.relations), default=0)
    size = (_PANEL_INCHES * len(results.relations), 1.9 + _ROW_INCHES * max(rows, 1))
    figure = require("matplotlib.figure", "study").Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(results.relations), squeeze=False)[0]
    for axes, relation in zip(panels, results.relations, strict=True):
        _panel(axes, results, relation, top)
    line = require("matplotlib.lines", "study").Line2D
    measured = {name for systems in results.systems.values() for figures in systems.values() for name in figures}
    labels = figure_labels(results.most_answers)
    handles = [
        line([], [], color=color, marker=mark, linestyle="", markersize=6, label=labels[name])
        for name, (color, mark) in _MARKS.items()
        if name in measured
    ]
    if handles:
        style = {"ncols": len(handles), "frameon": False, "labelcolor": INK, "fontsize": 9}
        figure.legend(handles=handles, loc="outside lower center", **style)
    if banner:
        figure.suptitle(banner, color="#a3201d", fontweight="bold")
    return figure


def _panel(axes: Any, results: Results, relation: str, top: int) -> None:
    styled(axes, f"mean score (0–{top})", "")
    axes.set_title(title_of(relation), color=INK, fontsize=11, pad=18)
    axes.set_xlim(-0.1, top + 0.1)
    for label, gold in results.gold.get(relation, {}).items():
        color = _BANDS[label]
        axes.axvspan(gold.low, gold.high, color=color, alpha=0.18, linewidth=0)
        axes.axvline(gold.mean, color=color, linewidth=1.2, linestyle="--")
        above = {"xycoords": ("data", "axes fraction"), "xytext": (0, 4), "textcoords": "offset points"}
        axes.annotate(label, (gold.mean, 1), ha="center", fontsize=8, color=color, **above)
    systems = results.systems.get(relation, {})
    axes.set_yticks(range(len(systems)), systems)
    axes.set_ylim(len(systems) - 0.4, -0.6)
    for row, figures in enumerate(systems.values()):
        shown = [name for name in _MARKS if name in figures]
        for number, name in enumerate(shown):
            height = row + (number - (len(shown) - 1) / 2) * 0.16
            score, (color, mark) = figures[name], _MARKS[name]
            style = {"fmt": mark, "color": color, "markersize": 5, "elinewidth": 1.2}
            axes.errorbar([score.mean], [height], xerr=score.error, **style)
