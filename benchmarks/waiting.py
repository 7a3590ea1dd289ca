"""How long people wait for the embedded bundle: cold shell, opening, first and later calls, first streamed answer.

    python benchmarks/waiting.py

Later calls are made once for each source of docs/measured/reading.tsv; the first streamed answer is timed in the
same call as the last one.
"""

import subprocess
import sys
import time
from statistics import mean, median

from reading import read_asked

from cod3s.decode.generator import Generator, load
from cod3s.records import AnswerMade


def time_shell() -> float:
    """Seconds of `cod3s generate` from a cold shell."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "cod3s", "generate", "effect", "the harbour froze"]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def time_stream(model: Generator, source: str, relation: str) -> tuple[float, float, int]:
    """Seconds to the first and to the last answer, and how many of the answers were recalled."""
    start, first = time.perf_counter(), 0.0
    recalled = 0
    for event in model.stream(source, relation):
        if isinstance(event, AnswerMade):
            first = first or time.perf_counter() - start
            recalled += bool(event.answer.known_for)
    return first, time.perf_counter() - start, recalled


def main() -> None:
    print(f"cold shell, ten answers: {min(time_shell() for _ in range(3)):.2f} s, the best of three")
    start = time.perf_counter()
    model = load()
    opened = time.perf_counter()
    model.generate("the harbour froze", "effect")
    print(f"open: {opened - start:.2f} s; first call: {time.perf_counter() - opened:.2f} s")
    rows = [time_stream(model, source, relation) for source, relation in read_asked()]
    known = [row for row in rows if row[2] == 10]
    for name, group in (("all", rows), ("ten known answers", known), ("others", [*{*rows} - {*known}])):
        firsts, alls, _ = zip(*group, strict=True)
        print(f"{name}: {len(group)} sources, {mean(alls):.2f} s on average, slowest {max(alls):.2f} s; ", end="")
        print(f"first streamed answer {mean(firsts):.2f} s on average, median {median(firsts):.2f} s")


if __name__ == "__main__":
    main()
