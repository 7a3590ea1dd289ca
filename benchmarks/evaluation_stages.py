"""Where the time of an evaluation goes: processor seconds of each system and of each other stage.

    python benchmarks/evaluation_stages.py copa-dev.xml [--limit 1] [--systems all] [--preset quick]

Processor time, because it says the same on a busy machine.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cod3s.errors import Progress
from cod3s.evaluate import evaluate


@contextmanager
def clocked(label: str, _total: int | None) -> Iterator[Progress]:
    """A stage that prints what it took."""
    start = time.process_time()
    yield lambda _done: None
    print(f"| {label} | {time.process_time() - start:.1f} |", flush=True)


def main(data: str, limit: int, systems: str, preset: str) -> None:
    print("| stage | processor seconds |\n|---|---|")
    evaluate(data, limit=limit, systems=systems.split(",") if systems else (), preset=preset, stage=clocked)
    print(f"| all, with imports and opening | {time.process_time():.1f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--limit", type=int, default=1)
    parser.add_argument("--systems", default="")
    parser.add_argument("--preset", default="")
    arguments = parser.parse_args()
    main(arguments.data, arguments.limit, arguments.systems, arguments.preset)
