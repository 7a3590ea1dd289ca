"""Compare two reports: every figure of their metrics.json side by side."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cod3s.errors import FileFormatError
from cod3s.evaluate.report import METRICS
from cod3s.evaluate.report_tables import Cell, Part, Table, table_row
from cod3s.io.disk import read_json

_SKIPPED = ("intervals", "near_best", "by_rank", "by_bin_size")


def compare_reports(a: Path, b: Path) -> tuple[Table, dict[str, tuple[Any, Any]]]:
    """Every figure that both reports have, with the difference; and the settings in which they differ.

    Figures are bold if their intervals do not overlap. Figures made with different settings cannot be compared.
    """
    first, second = (_read(path) for path in (a, b))
    rows = []
    for path, left in _figures(first["systems"]):
        right = _find(second["systems"], path)
        if isinstance(right, int | float):
            apart = _apart(first["systems"], second["systems"], path)
            shown = (f"{left:.3f}", f"{right:.3f}", f"{right - left:+.3f}")
            cells = (Cell((Part(text, strong=apart),)) for text in shown)
            rows.append(table_row(*path[:2], " ".join(path[2:]), *cells))
    bold = "the bootstrap intervals of the two do not overlap"
    columns = ("system", "relation", "figure", a.name or str(a), b.name or str(b), "difference")
    return Table(f"{a} and {b}", f"Bold: {bold}.", columns, tuple(rows), bold), _differing(first, second)


def _read(path: Path) -> Any:
    content = read_json(path / METRICS if path.is_dir() else path)
    if not isinstance(content, dict) or not isinstance(content.get("systems"), dict):
        raise FileFormatError(f"{path} does not contain the figures of an evaluation")
    return content


def _figures(record: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, value in record.items():
        if isinstance(value, dict):
            if name not in _SKIPPED:
                yield from _figures(value, (*path, name))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*path, name), value


def _find(record: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        record = record.get(name) if isinstance(record, dict) else None
    return record


def _apart(first: Any, second: Any, path: tuple[str, ...]) -> bool:
    system, relation, *rest = path
    left, right = (_find(record, (system, relation, "intervals", *rest)) for record in (first, second))
    return bool(left and right and (left[0] > right[1] or right[0] > left[1]))


def _differing(first: Any, second: Any) -> dict[str, tuple[Any, Any]]:
    a, b = ({**report["settings"], "data": report.get("data")} for report in (first, second))
    names = dict.fromkeys([*a, *b])
    return {name: (a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name)}
