"""Write the report of a study: report.html, metrics.json, tables.md and figure.png.

The plot follows the paper's figure 2: a panel per relation, a row per system, likeliest answers in blue, best of
three in red, best of ten in purple, and the gold alternatives as bands across the panel. The same ratings and seed
give the same bytes. Raters appear by pseudonyms only.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cod3s.errors import require
from cod3s.evaluate.plots import INK, Plot, styled, svg_text
from cod3s.evaluate.report import METRICS, PAGE, TABLES, Page
from cod3s.evaluate.report_tables import markdown, title_of
from cod3s.evaluate.scores import Column
from cod3s.io.disk import replaced_file, write_json, write_text
from cod3s.metrics.significance import Comparison
from cod3s.study.plan.folder import RIGHT, WRONG
from cod3s.study.results.analysis import Analysis, GoldFigure, Results
from cod3s.study.results.figures import figure_labels
from cod3s.study.results.rating_tables import all_tables
from cod3s.text import settings_line

FIGURE = "figure.png"
SIMULATED_BANNER = "SIMULATED RATINGS: nobody rated anything here"
_SHOWN = ("study", "scale", "raters_per_item", "alpha", "bootstrap", "seed", "cod3s")
MARKS = {
    "top1": ("#1f5fa8", "o"),
    "top3": ("#7fb2e5", "s"),
    "max3": ("#c23b32", "^"),
    "max10": ("#6f4aa8", "^"),
    "best3of10": ("#b79be0", "D"),
}
_BANDS = {RIGHT: ("#3f8f4f", "right"), WRONG: ("#8a8a8a", "wrong")}
_ROW_INCHES, _PANEL_INCHES = 0.62, 5.2


def write_report(folder: Path, analysis: Analysis) -> Path:
    """Write the four files into `folder`, and return the path of the page."""
    banner = banner_of(analysis)
    tables = all_tables(analysis)
    title = f"Human plausibility: {analysis.settings['study']}"
    figure = draw(analysis.results, int(analysis.settings["scale"].split("–")[1]), banner)
    write_json(folder / METRICS, analysis.record())
    with replaced_file(folder / FIGURE) as partial:
        figure.savefig(partial, format="png", dpi=130, facecolor="white", metadata={"Software": None})
    line = report_line(analysis)
    head = [f"# {title}\n", *([f"**{banner}**\n"] if banner else [])]
    write_text(folder / TABLES, "\n".join([*head, *map(markdown, tables), f"{line}\n"]))
    page = Page(
        title=title,
        line=line,
        settings=analysis.settings,
        tables=tables,
        plots=[Plot("Mean scores by system", svg_text(figure))],
        comparisons=[
            (relation, _labelled(columns, analysis.results))
            for relation, columns in analysis.results.comparisons.items()
            if any(columns.values())
        ],
        banner=banner,
    )
    write_text(folder / PAGE, page.render())
    return folder / PAGE


def banner_of(analysis: Analysis) -> str:
    """A warning that readers must not miss, or nothing."""
    return SIMULATED_BANNER if analysis.simulated else ""


def report_line(analysis: Analysis) -> str:
    """The settings line under every table, with the numbers of raters and ratings."""
    results = analysis.results
    counts = {"raters": f"{results.raters} of {len(analysis.raters)}", "ratings": results.ratings}
    return settings_line({**{name: analysis.settings[name] for name in _SHOWN}, **counts})


def draw(results: Results, top: int, banner: str = "") -> Any:
    """The plot, with a panel per relation, and a banner above it if there is one."""
    relations = results.relations
    rows = max((len(results.systems.get(relation, {})) for relation in relations), default=0)
    figure = require("matplotlib.figure", "evaluate").Figure(
        figsize=(_PANEL_INCHES * len(relations), 1.9 + _ROW_INCHES * max(rows, 1)), layout="constrained"
    )
    panels = figure.subplots(1, len(relations), squeeze=False)[0]
    for axes, relation in zip(panels, relations, strict=True):
        _panel(axes, results, relation, top)
    measured = {name for systems in results.systems.values() for figures in systems.values() for name in figures}
    labels = figure_labels(results.most_answers)
    if handles := [_handle(name, labels[name]) for name in MARKS if name in measured]:
        figure.legend(
            handles=handles,
            loc="outside lower center",
            ncols=len(handles),
            frameon=False,
            labelcolor=INK,
            fontsize=9,
        )
    if banner:
        figure.suptitle(banner, color="#a3201d", fontweight="bold")
    return figure


def _panel(axes: Any, results: Results, relation: str, top: int) -> None:
    styled(axes, f"mean score (0–{top})", "")
    axes.set_title(title_of(relation), color=INK, fontsize=11, pad=18)
    axes.set_xlim(-0.1, top + 0.1)
    for label, gold in results.gold.get(relation, {}).items():
        _band(axes, gold, *_BANDS[label])
    systems = results.systems.get(relation, {})
    axes.set_yticks(range(len(systems)), systems)
    axes.set_ylim(len(systems) - 0.4, -0.6)
    for row, figures in enumerate(systems.values()):
        shown = [name for name in MARKS if name in figures]
        for number, name in enumerate(shown):
            score, (colour, mark) = figures[name], MARKS[name]
            height = row + (number - (len(shown) - 1) / 2) * 0.16
            axes.errorbar(
                [score.mean], [height], xerr=score.error, fmt=mark, color=colour, markersize=5, elinewidth=1.2
            )


def _band(axes: Any, gold: GoldFigure, colour: str, name: str) -> None:
    axes.axvspan(gold.low, gold.high, color=colour, alpha=0.18, linewidth=0)
    axes.axvline(gold.mean, color=colour, linewidth=1.2, linestyle="--")
    axes.annotate(
        name,
        (gold.mean, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        color=colour,
    )


def _handle(name: str, label: str) -> Any:
    colour, mark = MARKS[name]
    line = require("matplotlib.lines", "evaluate").Line2D
    return line([], [], color=colour, marker=mark, linestyle="", markersize=6, label=label)


def _labelled(columns: Mapping[str, list[Comparison]], results: Results) -> list[tuple[Column, Comparison]]:
    labels = figure_labels(results.most_answers)
    return [(Column("", labels[name]), row) for name, rows in columns.items() for row in rows]
