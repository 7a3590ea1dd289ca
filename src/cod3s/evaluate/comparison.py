"""Two reports side by side: the metrics.json of each → a table of what moved."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cod3s.errors import FileFormatError
from cod3s.evaluate.report import METRICS
from cod3s.evaluate.tables import Cell, Part, Table
from cod3s.files.disk import read_json

_SKIPPED = ("intervals", "near_best", "by_rank", "by_bin_size")


def compare_reports(a: Path, b: Path) -> tuple[Table, dict[str, tuple[Any, Any]]]:
    """Every figure that both have, with the difference; strong where the intervals do not meet.

    Beside it, the settings in which the two differ: figures of other settings are other figures.
    """
    first, second = (_read(path) for path in (a, b))
    rows = []
    for place, left in _figures(first["systems"]):
        right = _find(second["systems"], place)
        if isinstance(right, int | float):
            apart = _apart(first["systems"], second["systems"], place)
            shown = (f"{left:.3f}", f"{right:.3f}", f"{right - left:+.3f}")
            cells = [Cell((Part(name),)) for name in (*place[:2], " ".join(place[2:]))]
            cells += [Cell((Part(text, strong=apart),)) for text in shown]
            rows.append(tuple(cells))
    note = "Strong: the bootstrap intervals of the two do not meet."
    columns = ("system", "relation", "figure", a.name or str(a), b.name or str(b), "difference")
    return Table(f"{a} and {b}", note, columns, tuple(rows)), _differing(first, second)


def _read(path: Path) -> Any:
    content = read_json(path / METRICS if path.is_dir() else path)
    if not isinstance(content, dict) or not isinstance(content.get("systems"), dict):
        raise FileFormatError(f"{path} does not hold the figures of an evaluation")
    return content


def _figures(record: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, value in record.items():
        if isinstance(value, dict):
            if name not in _SKIPPED:
                yield from _figures(value, (*place, name))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*place, name), value


def _find(record: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        record = record.get(name) if isinstance(record, dict) else None
    return record


def _apart(first: Any, second: Any, place: tuple[str, ...]) -> bool:
    system, relation, *rest = place
    left, right = (_find(record, (system, relation, "intervals", *rest)) for record in (first, second))
    return bool(left and right and (left[0] > right[1] or right[0] > left[1]))


def _differing(first: Any, second: Any) -> dict[str, tuple[Any, Any]]:
    a, b = ({**own["settings"], "data": own.get("data")} for own in (first, second))
    names = dict.fromkeys([*a, *b])
    return {name: (a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name)}
