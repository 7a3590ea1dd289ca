"""The live line of a training run: steps, rate, loss and time left, on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cod3s.train.loop import Report


@contextmanager
def training_progress() -> Iterator[Report]:
    """What the training loop reports to; silent when stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[rate]:.0f} pairs/s, loss {task.fields[loss]:.3f}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=None, rate=0.0, loss=float("nan"))
        yield lambda step, last, rate, loss: bar.update(task, completed=step, total=last, rate=rate, loss=loss)
