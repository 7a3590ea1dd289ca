"""Sweeps: what a decoding option does to diversity, fidelity and plausibility (appendix D of the paper).

Every setting becomes a point; those on the Pareto front of diversity and plausibility are marked. The first
bundle's encoder and models judge all points, so that they can be compared; only fidelity is measured with each
bundle's own encoder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from cod3s.decode.decode_config import DecodeConfig
from cod3s.errors import Stage, silent_stage
from cod3s.evaluate.evaluation import evaluate_outputs
from cod3s.evaluate.generation import Named, check_run, generate_outputs, require_system, run_record
from cod3s.evaluate.items import EvaluationData
from cod3s.evaluate.judges import OpenBundle
from cod3s.evaluate.plots import Plot, Series, lines
from cod3s.evaluate.report import OUTPUTS, Page, report_line
from cod3s.evaluate.report_tables import Table, figure_text, markdown, table_row
from cod3s.evaluate.scores import Column
from cod3s.evaluate.summary import Summary, rounded
from cod3s.io.disk import write_json, write_text
from cod3s.metrics.pair_scores import all_known
from cod3s.options import SEED

SYSTEM = "cod3s-mmi-mmi"
PAGE = "sweep.html"  # written last: it marks a finished sweep
FIGURES = ("semantic", "bleu2", "relevance", "backward_pmi", "in_bin", "hamming")

Axes = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Setting:
    """One bundle with some options changed; `axis` is the option that this point belongs to, "" in a grid."""

    bundle: str
    axis: str
    options: tuple[tuple[str, float], ...]
    is_base: bool = False  # every axis includes the base, which is decoded once

    @property
    def name(self) -> str:
        changed = ["base"] if self.is_base else [f"{name}={value:g}" for name, value in self.options]
        return "-".join([self.bundle, *changed])


@dataclass(frozen=True)
class Point:
    """A setting and its figures, means over relations; None for those that could not be measured."""

    setting: Setting
    figures: Mapping[str, float | None]
    on_front: bool = False


@dataclass(frozen=True)
class Sweep:
    """All points, and the settings that made them."""

    settings: Mapping[str, Any]
    line: str
    quality: str  # the figure that measures plausibility
    points: tuple[Point, ...]

    def record(self) -> dict[str, Any]:
        """The content of sweep.json."""
        rows = [
            {
                "bundle": point.setting.bundle,
                "options": dict(point.setting.options),
                **rounded(dict(point.figures)),
                "on_front": point.on_front,
            }
            for point in self.points
        ]
        return {"settings": dict(self.settings), "quality": self.quality, "points": rows}


def plan(bundles: Sequence[str], axes: Axes, base: DecodeConfig, grid: bool) -> list[Setting]:
    """The settings to try: each axis by itself around the base, or with `grid` all combinations."""
    if grid:
        combined = [tuple(zip(axes, values, strict=True)) for values in product(*axes.values())]
        return [Setting(bundle, "", options) for bundle in bundles for options in combined]
    return [
        Setting(bundle, name, ((name, value),), is_base=value == getattr(base, name))
        for bundle in bundles
        for name, values in axes.items()
        for value in sorted({*values, getattr(base, name)})
    ]


def sweep(
    bundles: Mapping[str, OpenBundle],
    data: EvaluationData,
    folder: Path,
    *,
    axes: Axes,
    base: DecodeConfig,
    grid: bool = False,
    seed: int = SEED,
    force: bool = False,
    stage: Stage = silent_stage,
) -> Sweep:
    """Generate with every setting, or read what exists, and score everything.

    `force` replaces outputs in `folder` that were made from different data, bundles or options.
    """
    judges = next(iter(bundles.values())).judges
    settings = plan(list(bundles), axes, base, grid)
    for opened in bundles.values():
        require_system(opened.generator, SYSTEM, data, base)
    scored: list[Point] = []
    summaries: list[Summary] = []
    for name, opened in bundles.items():
        of_bundle = [setting for setting in settings if setting.bundle == name]
        named = [Named(setting.name, SYSTEM, base.with_values(**_options(setting))) for setting in of_bundle]
        outputs = folder / OUTPUTS / name
        check_run(outputs, outputs, run_record(data, dict(opened.judges.settings), base), force=force)
        written = generate_outputs(opened.generator, data, named, outputs, stage=stage)
        signs_alike = opened.judges.encoder.id == judges.encoder.id
        judged = replace(judges, code=opened.judges.code if signs_alike else None)
        summaries.append(evaluate_outputs(written, data, judged, sizes=(base.k,), seed=seed, stage=stage))
        scored += [Point(setting, _figures(summaries[-1], setting.name, base.k)) for setting in of_bundle]
    first = summaries[0]
    quality = "backward_pmi" if all(point.figures["backward_pmi"] is not None for point in scored) else "relevance"
    front = pareto_front([(point.figures["semantic"] or 0.0, point.figures[quality] or 0.0) for point in scored])
    points = tuple(replace(point, on_front=position in front) for position, point in enumerate(scored))
    facts = {**first.settings, "systems": {"base": asdict(base)}}
    return Sweep(facts, report_line(first), quality, points)


def pareto_front(points: Sequence[tuple[float, float]]) -> set[int]:
    """The positions of the points that no other point beats, being as good in both and better in at least one."""
    return {
        position
        for position, point in enumerate(points)
        if not any(other[0] >= point[0] and other[1] >= point[1] and other != point for other in points)
    }


def write_sweep(folder: Path, swept: Sweep) -> None:
    """Write sweep.json, sweep.md and sweep.html with the curves."""
    table = sweep_table(swept)
    write_json(folder / "sweep.json", swept.record())
    page = Page("Sweep", swept.line, swept.settings, [table], sweep_plots(swept))
    write_text(folder / "sweep.md", f"# Sweep\n\n{markdown(table)}\n{swept.line}\n")
    write_text(folder / PAGE, page.render())


def sweep_table(swept: Sweep) -> Table:
    """A row per setting; the last column marks the Pareto front."""
    rows = []
    for point in swept.points:
        names = [", ".join(f"{name} {value:g}" for name, value in point.setting.options), point.setting.bundle]
        figures = [figure_text(point.figures[name]) for name in FIGURES]
        rows.append(table_row(*names, *figures, "front" if point.on_front else ""))
    note = (
        f"Means over relations of {swept.settings['sets'][-1]}-sets. Front: no other setting is as diverse (by "
        f"cosine) and as plausible ({swept.quality}), and better in at least one of them."
    )
    columns = ("setting", "bundle", "cosine", "100 - BLEU-2", "relevance", "backward PMI", "in the bin", "Hamming")
    return Table("Settings", note, (*columns, "Pareto"), tuple(rows))


def sweep_plots(swept: Sweep) -> list[Plot]:
    """Per axis, a curve of each figure against the option's value, with a line per bundle; none for a grid."""
    plots = []
    for axis in dict.fromkeys(point.setting.axis for point in swept.points if point.setting.axis):
        for figure in ("semantic", swept.quality, "in_bin"):
            series = _curves(swept, axis, figure)
            if series:
                drawn = lines(series, axis, figure, log=axis == "signature_weight")
                plots.append(Plot(f"{figure} by {axis}", drawn))
    return plots


def _curves(swept: Sweep, axis: str, figure: str) -> list[Series]:
    curves: dict[str, list[tuple[float, float]]] = {}
    for point in swept.points:
        value = point.figures[figure]
        if point.setting.axis == axis and value is not None:
            curves.setdefault(point.setting.bundle, []).append((point.setting.options[0][1], value))
    return [Series(bundle, *zip(*sorted(points), strict=True)) for bundle, points in curves.items()]


def _options(setting: Setting) -> dict[str, float]:
    return {name: int(value) if name == "min_hamming" else value for name, value in setting.options}


def _figures(summary: Summary, name: str, size: int) -> dict[str, float | None]:
    means: dict[str, float | None] = {}
    relations = summary.systems[name].values()
    for metric in ("semantic", "bleu2", "relevance", "backward_pmi"):
        figures = [scores.figures.get(Column(str(size), metric)) for scores in relations]
        means[metric] = _mean([figure.mean if figure else None for figure in figures])
    for metric in ("in_bin", "hamming"):
        controls = [scores.control for scores in relations]
        means[metric] = _mean([getattr(control.whole, metric) if control else None for control in controls])
    return means


def _mean(values: Sequence[float | None]) -> float | None:
    known = all_known(values)
    return sum(known) / len(known) if known else None
