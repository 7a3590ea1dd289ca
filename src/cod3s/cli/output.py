"""How commands print: JSON and tables on stdout, remarks and progress on stderr."""

import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from cod3s.errors import Progress

if TYPE_CHECKING:
    from rich.console import Console

_FIGURE = re.compile(r"[-–]?[\d.,]*\*?( .*)?$")
_PIPE_COLUMNS = 200
OPENING = "opening the model …"
EVERY_SECONDS = 60  # between lines of progress; a stage that takes as long gets a line at its end
_MANY_COLUMNS = 5  # a table with fewer stays a table, however narrow the terminal


def print_json(record: Any) -> None:
    """Print a JSON object on a single line of stdout."""
    sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")


def print_table(
    title: str,
    columns: Iterable[str],
    rows: Iterable[Iterable[Any]],
    caption: str = "",
    whole: Collection[str] = (),
) -> None:
    """A table on stdout, as wide as the terminal; long cells wrap, except in the columns named in `whole`.

    If many columns do not fit without breaking words, they are stacked: a line per cell.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = open_console()
    table = Table(box=box.SIMPLE_HEAD)
    names, cells = list(columns), [[str(value) for value in row] for row in rows]
    if len(names) >= _MANY_COLUMNS and _narrowest(names, cells) > console.width:
        names, cells = _stacked(names, cells)
    for number, name in enumerate(names):
        figures = all(_FIGURE.match(row[number]) for row in cells)
        table.add_column(name, overflow="fold", justify="right" if figures else "left", no_wrap=name in whole)
    for row in cells:
        table.add_row(*(Text(value) for value in row))
    console.print(Text(title, style="italic"))
    console.print(table)
    if caption:
        console.print(Text(caption, style="dim"))


def on_terminal() -> bool:
    """Whether stdout is a terminal, or is to be treated as one, which rich is told by TTY_COMPATIBLE=1."""
    return sys.stdout.isatty() or os.environ.get("TTY_COMPATIBLE") == "1"


def open_console() -> "Console":
    """Stdout as rich prints to it; a file or a pipe without COLUMNS is as wide as a table needs, within reason."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or os.environ.get("COLUMNS") else _PIPE_COLUMNS)


def shortened(text: str, most: int = 200) -> str:
    """A text for a title or a message: its beginning, if it is longer than `most` characters."""
    return text if len(text) <= most else f"{text[:most].rstrip()} … ({len(text):,} characters)"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is 1."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _narrowest(names: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    """The width below which a table breaks words: the longest word of each column and the space around it."""
    from rich.cells import cell_len

    texts_by_column = zip(names, *cells, strict=True)
    words = (max(map(cell_len, " ".join(texts).split()), default=0) for texts in texts_by_column)
    return sum(width + 3 for width in words) + 1


def _stacked(names: Sequence[str], cells: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """The same cells below each other: the first cell of each row, then a line per other column."""
    rows = [
        ["" if number else head, name, text]
        for head, *rest in cells
        for number, (name, text) in enumerate(zip(names[1:], rest, strict=True))
    ]
    return [names[0], "", ""], rows


def say(message: str) -> None:
    """A remark for the person at the terminal: stderr, so that pipes stay clean."""
    sys.stderr.write(message + "\n")


@contextmanager
def live_text(text: str) -> Iterator[Callable[[str], None]]:
    """Text on stderr that a call replaces and that disappears at the end; nothing if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda _text: None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(Text(text), console=Console(stderr=True), transient=True, auto_refresh=False) as live:
        yield lambda text: live.update(Text(text), refresh=True)


@contextmanager
def progress(label: str, total: int | None, unit: int = 1) -> Iterator[Progress]:
    """A progress bar on stderr that counts in units of `unit` items; lines for long work without a terminal."""
    with _bar() as bar:
        if bar is None:
            lines = ProgressLines(label, total)
            yield lambda done: lines.show(lines.done + done / unit)
            lines.end()
        else:
            task = bar.add_task(label, total=total)
            yield lambda done: bar.advance(task, done / unit)


@contextmanager
def training_progress() -> Iterator[Callable[[int, int, float, float], None]]:
    """The live line of a training run: called with step, last step, pairs per second and loss."""
    with _bar("{task.fields[rate]:.0f} pairs/s, loss {task.fields[loss]:.3f}") as bar:
        if bar is None:
            lines = ProgressLines("training", None)
            yield lambda step, last, rate, loss: lines.show(step, last, f", {rate:.0f} pairs/s, loss {loss:.3f}")
            lines.end()
        else:
            task = bar.add_task("training", total=None, rate=0.0, loss=float("nan"))
            yield lambda step, last, rate, loss: bar.update(task, completed=step, total=last, rate=rate, loss=loss)


class ProgressLines:
    """Lines on stderr about long work that no bar shows: one every minute, and one at the end of its stage."""

    def __init__(self, label: str, total: float | None) -> None:
        self._label, self._total, self.done = label, total, 0.0
        self._start = self._shown = monotonic()

    def show(self, done: float, total: float | None = None, more: str = "") -> None:
        """Note how much is done, and say it if a minute has passed since the last line."""
        self.done, self._total, now = done, total or self._total, monotonic()
        if now - self._shown >= EVERY_SECONDS and done != self._total:
            self._shown = now
            left = ""
            if self._total and done:
                left = f" of {self._total:.0f}, {_duration((now - self._start) * (self._total / done - 1))} left"
            say(f"{self._label}: {done:.0f}{left}{more}")

    def end(self) -> None:
        """Say how long a stage took; quick ones are not worth a line."""
        seconds = monotonic() - self._start
        if seconds >= EVERY_SECONDS:
            say(f"{self._label}: done in {_duration(seconds)}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


@contextmanager
def _bar(*more: str) -> Iterator[Any]:
    """A progress bar from rich with extra columns of text, or None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, *map(TextColumn, more), console=Console(stderr=True), transient=True) as bar:
        yield bar
