"""What commands share when they print: JSON on stdout, tables for people, progress on stderr."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from cod3s.errors import Progress

_FIGURE = re.compile(r"[-–]?[\d.,]*( .*)?$")


def print_json(record: Any) -> None:
    """One JSON object on one line of stdout."""
    sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[Any]], caption: str = "") -> None:
    """A table on stdout: as wide as a terminal, and never cut when stdout is a file or a pipe."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD)
    cells = [[str(value) for value in row] for row in rows]
    for number, name in enumerate(columns):
        figures = all(_FIGURE.match(row[number]) for row in cells)
        table.add_column(name, overflow="fold", justify="right" if figures else "left")
    for row in cells:
        table.add_row(*(Text(value) for value in row))
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(table)
    if caption:
        console.print(Text(caption, style="dim"))


def say(message: str) -> None:
    """A remark for the person at the terminal: stderr, so that pipes stay clean."""
    sys.stderr.write(message + "\n")


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Progress]:
    """A progress bar on stderr with rate and time left; silent when stderr is not a terminal."""
    with _bar() as bar:
        if bar is None:
            yield lambda _done: None
        else:
            task = bar.add_task(label, total=total)
            yield lambda done: bar.advance(task, done)


@contextmanager
def training_progress() -> Iterator[Callable[[int, int, float, float], None]]:
    """The live line of a training run: told step, last step, pairs a second and loss."""
    with _bar("{task.fields[rate]:.0f} pairs/s, loss {task.fields[loss]:.3f}") as bar:
        if bar is None:
            yield lambda *_: None
        else:
            task = bar.add_task("training", total=None, rate=0.0, loss=float("nan"))
            yield lambda step, last, rate, loss: bar.update(task, completed=step, total=last, rate=rate, loss=loss)


@contextmanager
def _bar(*more: str) -> Iterator[Any]:
    """A bar of the rich library with some more columns of text, or None when stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, *map(TextColumn, more), console=Console(stderr=True), transient=True) as bar:
        yield bar
