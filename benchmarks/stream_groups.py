"""What the size of a stream's groups costs: processor seconds until the first answer and until the last.

    python benchmarks/stream_groups.py [BUNDLE]

Processor time, because it says the same on a busy machine. The best of three runs.
"""

import sys
import time

from cod3s.decode.generator import Generator, load
from cod3s.records import AnswerMade

SOURCE = "the power went out during dinner"
SIZES = (1, 2, 4, 5, 10)


def measure(model: Generator, group: int) -> tuple[float, float]:
    """Processor seconds to the first and to the last of ten answers."""
    start, first = time.process_time(), 0.0
    for event in model.stream(SOURCE, "effect", 10, group=group):
        if isinstance(event, AnswerMade) and not first:
            first = time.process_time() - start
    return first, time.process_time() - start


def main() -> None:
    model = load(sys.argv[1] if len(sys.argv) > 1 else None)
    measure(model, 10)
    rounds = [{size: measure(model, size) for size in SIZES} for _ in range(3)]
    print("| bins written together |", " | ".join(map(str, SIZES)), "|")
    print("|---" * (len(SIZES) + 1) + "|")
    for place, name in enumerate(("until the first answer", "until the last")):
        best = [min(one[size][place] for one in rounds) for size in SIZES]
        print(f"| {name} |", " | ".join(f"{seconds:.2f}" for seconds in best), "|")


if __name__ == "__main__":
    main()
