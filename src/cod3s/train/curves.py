"""The log of a run: figures by step in a CSV file, and a picture of them."""

import csv
from collections.abc import Mapping
from pathlib import Path

from cod3s.errors import require
from cod3s.io.disk import replaced_file

_HEADER = ("step", "figure", "value")


class Log:
    """`log.csv` of a model: a row per step and figure."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, step: int, figures: Mapping[str, float]) -> None:
        new = not self._path.exists()
        with self._path.open("a", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            if new:
                writer.writerow(_HEADER)
            writer.writerows([step, name, value] for name, value in figures.items())

    def cut(self, step: int) -> None:
        """Forget what came after `step`: a resumed run goes through those steps again.

        A run that was killed may have left half of a row, or a file without a header.
        """
        if not self._path.exists():
            return
        with self._path.open(newline="", encoding="utf-8") as stream:
            rows = [row for row in csv.reader(stream) if len(row) == len(_HEADER) and row[0].isdecimal()]
        with replaced_file(self._path) as partial, partial.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([_HEADER, *(row for row in rows if int(row[0]) <= step)])

    def series(self) -> dict[str, list[tuple[int, float]]]:
        """Each figure's values by step."""
        points: dict[str, list[tuple[int, float]]] = {}
        with self._path.open(newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                points.setdefault(row["figure"], []).append((int(row["step"]), float(row["value"])))
        return points


def plot_curves(log: Log, path: Path, title: str) -> None:
    """A PNG with the losses above; below, the shares of bits and of verdicts that are right."""
    figure = require("matplotlib.figure", "train").Figure(figsize=(8, 7), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for name, points in sorted(log.series().items()):
        axes = below if name.endswith(("bit_accuracy", "auc")) else above
        if name == "loss" or name.startswith("eval_"):
            axes.plot(*zip(*points, strict=True), marker="." if name != "loss" else "", label=name)
    above.set(ylabel="nats: loss per token, others per sentence", title=title)
    below.set(ylabel="bits right, area under the curve", xlabel="step")
    for axes in (above, below):
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize=8)
    with replaced_file(path) as partial:
        figure.savefig(partial, format="png", dpi=100)
