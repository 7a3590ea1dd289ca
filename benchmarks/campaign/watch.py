"""The memory and the open files of a process while it works."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

_MORE_MEMORY = 1.05  # what counts as flat: allocators give back memory late
_MORE_HANDLES = 2  # connections that are just being closed


@dataclass(frozen=True)
class Sample:
    """What a process held at one moment; `second` counts from the first sample."""

    second: float
    memory_mb: float
    handles: int


@dataclass
class Watch:
    """The samples of a process, the earliest first."""

    samples: list[Sample] = field(default_factory=list)

    def part(self, start: float, end: float) -> Sample:
        """The medians between two shares of the time, such as 0.9 and 1.0."""
        last = self.samples[-1].second
        chosen = [sample for sample in self.samples if start * last <= sample.second <= end * last]
        return Sample(
            start * last,
            round(median(sample.memory_mb for sample in chosen), 1),
            round(median(sample.handles for sample in chosen)),
        )

    def growth(self, settled: float, width: float) -> str:
        """What grew between the time when the process had settled and the end, or nothing."""
        early, late = self.part(settled, settled + width), self.part(1 - width, 1)
        if late.memory_mb > early.memory_mb * _MORE_MEMORY:
            return f"memory grew from {early.memory_mb} to {late.memory_mb} MB"
        if late.handles > early.handles + _MORE_HANDLES:
            return f"open files grew from {early.handles} to {late.handles}"
        return ""


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


@contextmanager
def watched(pid: int, every: float = 1.0) -> Iterator[Watch]:
    """Sample a process every few seconds until the block ends or the process does."""
    watch, over, start = Watch(), threading.Event(), time.monotonic()

    def sample() -> None:
        while not over.is_set():
            try:
                handles = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
                watch.samples.append(Sample(time.monotonic() - start, memory_mb(pid), handles))
            except (OSError, IndexError):  # it has ended; a zombie has no memory
                return
            over.wait(every)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()
