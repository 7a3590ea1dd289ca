"""CSV files that are safe to open in a spreadsheet: rows in, a file out.

A cell that begins with =, +, -, @ or a control character may be run as a formula (CSV injection); an apostrophe
before it makes it text. Statements come from other people's models, so this is not far-fetched.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cod3s.files.disk import replaced_file

_FORMULA = re.compile(r"\s*[=+\-@\t\r\n＝＋－＠]")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """The rows under their header, atomically; texts that look like formulas are marked as texts."""
    with replaced_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows([safe_cell(value) for value in row] for row in rows)


def safe_cell(value: Any) -> Any:
    """The value itself; of a text that a spreadsheet would compute, one that it shows."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
