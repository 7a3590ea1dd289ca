"""Where the time of an evaluation goes: seconds and processor seconds of each system and of each other stage.

    python benchmarks/evaluation_stages.py copa-dev.xml [--limit 1] [--systems all] [--preset quick]

Processor time says the same on a busy machine; on an idle one, twice the seconds means that two cores worked.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from side_by_side import Clock

from cod3s.errors import Progress
from cod3s.evaluate import evaluate


@contextmanager
def clocked(label: str, _total: int | None) -> Iterator[Progress]:
    """A stage that prints what it took."""
    clock = Clock()
    yield lambda _done: None
    print_row(label, clock)


def print_row(label: str, clock: Clock) -> None:
    wall, processor = clock.lap()
    print(f"| {label} | {wall:.1f} | {processor:.1f} |", flush=True)


def main(data: str, limit: int, systems: str, preset: str) -> None:
    clock = Clock()
    print("| stage | seconds | processor seconds |\n|---|---|---|")
    evaluate(data, limit=limit, systems=systems.split(",") if systems else (), preset=preset, stage=clocked)
    print_row("all, with opening", clock)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--limit", type=int, default=1)
    parser.add_argument("--systems", default="")
    parser.add_argument("--preset", default="")
    arguments = parser.parse_args()
    main(arguments.data, arguments.limit, arguments.systems, arguments.preset)
