"""Sweeps: what a decoding option does to diversity, fidelity and plausibility (appendix C of the paper).

The Hamming threshold and the weights of MMI vary one at a time around the base. The first bundle's encoder and
models measure all points, so that they can be compared; only fidelity is measured with each bundle's own encoder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from cod3s.decode.config import DecodeConfig, find_preset
from cod3s.errors import Stage, UsageError, silent_stage
from cod3s.evaluate.config import EvaluateConfig, SweepConfig
from cod3s.evaluate.evaluation import score_blocks
from cod3s.evaluate.generation import Named, TimeLimit, answered_blocks, check_run, require_system, run_record
from cod3s.evaluate.grading import load_generator, open_grader
from cod3s.evaluate.items import read_data
from cod3s.evaluate.plots import Plot, Series, lines
from cod3s.evaluate.report import OUTPUTS, Page, report_line
from cod3s.evaluate.scores import Column
from cod3s.evaluate.summary import Summary, rounded
from cod3s.evaluate.tables import Table, figure_text, table_row
from cod3s.io.disk import write_json
from cod3s.io.lock import sole_writer
from cod3s.metrics.pair_scores import all_known

SYSTEM = "cod3s-mmi-mmi"
PAGE = "sweep.html"  # written last: it marks a finished sweep
FIGURES = {
    "semantic": "cosine",
    "bleu2": "100 - BLEU-2",
    "relevance": "relevance",
    "backward_pmi": "backward PMI",
    "in_bin": "in the bin",
    "hamming": "Hamming",
}
"""The figures of a point, with their titles."""


@dataclass(frozen=True)
class Point:
    """A bundle with one option changed; every axis includes the base, which is decoded once.

    The figures are means over relations, None where they could not be measured.
    """

    bundle: str
    axis: str
    value: int | float
    is_base: bool = False
    figures: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.bundle}-base" if self.is_base else f"{self.bundle}-{self.axis}={self.value:g}"


@dataclass(frozen=True)
class Sweep:
    """All points, and the settings that made them."""

    settings: Mapping[str, Any]
    line: str
    points: tuple[Point, ...]
    remarks: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """The content of sweep.json."""
        rows = [
            {"bundle": point.bundle, "options": {point.axis: point.value}, **rounded(dict(point.figures))}
            for point in self.points
        ]
        return {"settings": dict(self.settings), "points": rows, "remarks": list(self.remarks)}

    def table(self) -> Table:
        """A row per setting."""
        rows = [
            table_row(
                f"{point.axis} {point.value:g}",
                point.bundle,
                *(figure_text(point.figures[name]) for name in FIGURES),
            )
            for point in self.points
        ]
        note = f"Means over relations of {self.settings['sets'][-1]}-sets."
        columns = ("setting", "bundle", *FIGURES.values())
        return Table(
            "Settings", "Paper: section 3 (Hamming Distance Threshold) and appendix C.", note, columns, tuple(rows)
        )

    def plots(self) -> list[Plot]:
        """Per axis, a curve of diversity, plausibility and fidelity against the value, with a line per bundle."""
        plots = []
        for axis in dict.fromkeys(point.axis for point in self.points):
            for figure in ("semantic", "backward_pmi", "relevance", "in_bin"):
                if series := self._curves(axis, figure):
                    drawing = lines(series, axis, FIGURES[figure], log=axis == "signature_weight")
                    plots.append(Plot(f"{FIGURES[figure]} by {axis}", drawing))
        return plots

    def _curves(self, axis: str, figure: str) -> list[Series]:
        curves: dict[str, list[tuple[float, float]]] = {}
        for point in self.points:
            value = point.figures[figure]
            if point.axis == axis and value is not None:
                curves.setdefault(point.bundle, []).append((point.value, value))
        return [Series(bundle, *zip(*sorted(points), strict=True)) for bundle, points in curves.items()]

    def write(self, folder: Path) -> None:
        """Write sweep.json, sweep.md and sweep.html with the curves."""
        write_json(folder / "sweep.json", self.record())
        page = Page("Sweep", self.line, self.settings, [self.table()], self.plots(), remarks=self.remarks)
        page.write(folder / "sweep.md", folder / PAGE)


def plan(bundle: str, config: SweepConfig, base: DecodeConfig) -> list[Point]:
    """The points to measure: each axis by itself around the base."""
    return [
        Point(bundle, name, value, is_base=value == getattr(base, name))
        for name, values in config.axes.items()
        for value in sorted({*values, getattr(base, name)})
    ]


def sweep(
    data: str | Path,
    output: str | Path,
    *,
    bundles: Sequence[str | Path],
    config: SweepConfig | None = None,
    force: bool = False,
    stage: Stage = silent_stage,
) -> Sweep:
    """Generate with every setting, or read what exists, score everything, and write the report.

    `force` replaces outputs in the folder that were made from different data, bundles or options.
    """
    config = config or SweepConfig()
    limit = TimeLimit(config.max_minutes)
    folder = Path(output)
    items = read_data(Path(data), config.relation).first(config.limit)
    base = find_preset(config.preset).with_values(k=config.k, seed=config.seed)
    generators = {Path(path).resolve().name: load_generator(Path(path)) for path in bundles}
    if len(generators) < len(bundles):
        raise UsageError(
            "two bundles have folders of the same name", hint="rename a folder: the names label the curves"
        )
    for generator in generators.values():
        require_system(generator, SYSTEM, items, base)
    first, *_ = generators.values()
    points: list[Point] = []
    remarks: dict[str, None] = {}
    with sole_writer(folder):
        for name, generator in generators.items():
            planned = plan(name, config, base)
            named = {
                row.name: Named(row.name, SYSTEM, base.with_values(**{row.axis: row.value})) for row in planned
            }
            outputs = folder / OUTPUTS / name
            check_run(outputs, outputs, run_record(items, generator, base), force=force)
            summary, _ = score_blocks(
                answered_blocks(
                    generator, items.items, list(named.values()), outputs, limited=config.max_minutes is not None
                ),
                items,
                open_grader(config.encoders, first, signer=generator.signer),
                EvaluateConfig(sets=(config.k,), seed=config.seed),
                limit=limit,
                stage=stage,
            )
            points += [replace(point, figures=_figures(summary, point.name, config.k)) for point in planned]
            remarks |= dict.fromkeys(summary.remarks)
        facts = {**summary.settings, "systems": {"base": asdict(base)}}
        swept = Sweep(facts, report_line(summary), tuple(points), tuple(remarks))
        swept.write(folder)
    return swept


def _figures(summary: Summary, name: str, size: int) -> dict[str, float | None]:
    """The means over relations."""
    scores = summary.systems[name].values()
    figures: dict[str, list[float | None]] = {}
    for metric in FIGURES:
        if metric in ("in_bin", "hamming"):
            figures[metric] = [getattr(row.control.whole, metric) if row.control else None for row in scores]
        else:
            means = [row.figures.get(Column(str(size), metric)) for row in scores]
            figures[metric] = [figure.mean if figure else None for figure in means]
    return {name: sum(known) / len(known) if (known := all_known(row)) else None for name, row in figures.items()}
