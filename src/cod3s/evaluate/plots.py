"""The plots of a report as SVG text in the colors of the page.

The same summary gives the same bytes: no dates, and ids with a fixed salt.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cod3s.errors import require
from cod3s.evaluate.scores import Column
from cod3s.evaluate.summary import Figure, Summary

INK = "#010203"  # replaced by the text color of the page, light or dark


@dataclass(frozen=True)
class Plot:
    """A drawing with its title."""

    title: str
    svg: str


@dataclass(frozen=True)
class Series:
    """Named points, joined by a line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def report_plots(summary: Summary) -> list[Plot]:
    """Quality against diversity with a point per system; then fidelity by rank and by size of the bin."""
    size = str(max(summary.settings["sets"]))
    plots: list[Plot] = []
    for relation in summary.relations:
        for metric, name in (("relevance", "relevance (cosine to the source)"), ("backward_pmi", "backward PMI")):
            points = [
                (system, x, y)
                for system in summary.systems
                if (x := summary.figure(system, relation, Column(size, "semantic")))
                and (y := summary.figure(system, relation, Column(size, metric)))
            ]
            if points:
                title = f"Quality and diversity, {relation}, {size}-sets"
                plots.append(Plot(title, quality_diversity(points, f"cosine distance, {size}-sets", name)))
    return plots + _fidelity_plots(summary)


def _fidelity_plots(summary: Summary) -> list[Plot]:
    by_rank, by_bin_size = [], []
    for system, relations in summary.systems.items():
        for relation, scores in relations.items():
            if control := scores.control:
                ranks, sizes = (
                    {at: figures.hamming for at, figures in groups.items()}
                    for groups in (control.by_rank, control.by_bin_size)
                )
                by_rank.append(Series(f"{system}, {relation}", [rank + 1 for rank in ranks], [*ranks.values()]))
                by_bin_size.append(Series(f"{system}, {relation}", [*sizes], [*sizes.values()]))
    if not by_rank:
        return []
    distance = "Hamming distance from the request"
    return [
        Plot("Fidelity by rank", lines(by_rank, "rank of the answer", distance)),
        Plot(
            "Fidelity by size of the bin", lines(by_bin_size, "training sentences, at least", distance, log=True)
        ),
    ]


def quality_diversity(points: Sequence[tuple[str, Figure, Figure]], x_name: str, y_name: str) -> str:
    """One point per system with both bootstrap intervals: further up and to the right is better."""
    figure, axes = _axes(x_name, y_name)
    for number, (name, x, y) in enumerate(points):
        style = {"fmt": "o", "color": f"C{number % 10}", "elinewidth": 1, "alpha": 0.85}
        axes.errorbar([x.mean], [y.mean], xerr=x.error, yerr=y.error, **style)
        axes.annotate(name, (x.mean, y.mean), xytext=(6, 5), textcoords="offset points", fontsize=8, color=INK)
    return svg_text(figure)


def lines(series: Sequence[Series], x_name: str, y_name: str, log: bool = False) -> str:
    """A line per series, with a legend; `log` for x values of many magnitudes, including 0."""
    figure, axes = _axes(x_name, y_name)
    if log:
        axes.set_xscale("symlog", linthresh=1)
    for line in series:
        axes.plot(line.x, line.y, marker="o", markersize=3, label=line.name)
    axes.legend(fontsize=8, frameon=False, labelcolor=INK)
    return svg_text(figure)


def _axes(x_name: str, y_name: str) -> tuple[Any, Any]:
    figure = require("matplotlib.figure", "evaluate").Figure(figsize=(7.2, 4.4), layout="constrained")
    return figure, styled(figure.add_subplot(), x_name, y_name)


def styled(axes: Any, x_name: str, y_name: str) -> Any:
    """The axes in the report's style: no frame, a faint grid, the page's ink."""
    axes.patch.set_alpha(0)
    axes.set_xlabel(x_name, color=INK)
    axes.set_ylabel(y_name, color=INK)
    axes.tick_params(colors=INK)
    axes.grid(alpha=0.25)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)
    return axes


def svg_text(figure: Any) -> str:
    """A matplotlib figure as an SVG element in the colors of the page."""
    matplotlib = require("matplotlib", "evaluate")
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "cod3s", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    drawing = text.getvalue()
    return drawing[drawing.index("<svg") :].replace(INK, "currentColor")
