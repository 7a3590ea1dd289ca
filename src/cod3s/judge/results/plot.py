"""The figure of a study: results in, a matplotlib figure out, in the manner of the paper's figure 2.

A panel a relation and a row a system: likeliest answers in blue, best of three in red, best of ten in purple; the
gold alternatives are bands across the panel.
"""

from pathlib import Path
from typing import Any

from cod3s.errors import require
from cod3s.evaluate.plots import INK, styled, svg_text
from cod3s.evaluate.tables import title_of
from cod3s.files.disk import replaced_file
from cod3s.judge.results.analysis import GoldFigure, Results
from cod3s.judge.results.figures import FIGURES
from cod3s.judge.study.study import RIGHT, WRONG

MARKS = {
    "top1": ("#1f5fa8", "o"),
    "top3": ("#7fb2e5", "s"),
    "max3": ("#c23b32", "^"),
    "max10": ("#6f4aa8", "^"),
    "best3of10": ("#b79be0", "D"),
}
_BANDS = {RIGHT: ("#3f8f4f", "right"), WRONG: ("#8a8a8a", "wrong")}
_ROW_INCHES, _PANEL_INCHES = 0.62, 5.2


def draw(results: Results, top: int, banner: str = "") -> Any:
    """The figure, as wide as it has relations; a banner stands above it."""
    relations = results.relations
    rows = max((len(results.systems.get(relation, {})) for relation in relations), default=0)
    figure = require("matplotlib.figure", "evaluate").Figure(
        figsize=(_PANEL_INCHES * len(relations), 1.9 + _ROW_INCHES * max(rows, 1)), layout="constrained"
    )
    panels = figure.subplots(1, len(relations), squeeze=False)[0]
    for axes, relation in zip(panels, relations, strict=True):
        _panel(axes, results, relation, top)
    shown = [name for name in MARKS if _shows(results, name)]
    handles = [_handle(name) for name in shown]
    if handles:
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


def write_png(figure: Any, path: Path) -> None:
    """The figure on white; the same bytes for the same figure."""
    with replaced_file(path) as partial:
        figure.savefig(partial, format="png", dpi=130, facecolor="white", metadata={"Software": None})


def page_drawing(figure: Any) -> str:
    """The figure for a page."""
    return svg_text(figure)


def _panel(axes: Any, results: Results, relation: str, top: int) -> None:
    styled(axes, f"mean score (0–{top})", "")
    axes.set_title(title_of(relation), color=INK, fontsize=11, pad=18)
    axes.set_xlim(-0.1, top + 0.1)
    for label, gold in results.gold.get(relation, {}).items():
        _band(axes, gold, *_BANDS[label])
    systems = list(results.systems.get(relation, {}))
    axes.set_yticks(range(len(systems)), systems)
    axes.set_ylim(len(systems) - 0.4, -0.6)
    for row, system in enumerate(systems):
        figures = results.systems[relation][system].figures
        shown = [name for name in MARKS if name in figures]
        for place, name in enumerate(shown):
            own, (colour, mark) = figures[name], MARKS[name]
            height = row + (place - (len(shown) - 1) / 2) * 0.16
            error = [[max(0.0, own.mean - own.low)], [max(0.0, own.high - own.mean)]]
            axes.errorbar([own.mean], [height], xerr=error, fmt=mark, color=colour, markersize=5, elinewidth=1.2)


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


def _shows(results: Results, name: str) -> bool:
    return any(name in own.figures for systems in results.systems.values() for own in systems.values())


def _handle(name: str) -> Any:
    colour, mark = MARKS[name]
    line = require("matplotlib.lines", "evaluate").Line2D
    return line([], [], color=colour, marker=mark, linestyle="", markersize=6, label=FIGURES[name])
