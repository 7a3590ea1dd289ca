"""What the speed scripts share: two clocks, made-up sentences, and the comparison with an earlier run.

Ratios to a peer in the same run hardly depend on the machine, so one committed baseline works everywhere.
"""

import json
import os
import random
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from cod3s.options import SEED, changed_values

_WHO = ("the baker", "my neighbor", "a young nurse", "our old teacher", "the night guard", "she", "they", "I")
_DID = ("missed the bus", "found a wallet", "cooked too much rice", "fell asleep", "called the doctor", "won")
_WHERE = ("", "near the harbor", "at the end of a long and rather tiring week", "in spring", "by accident")
_WHY = ("", "and nobody noticed", "although the weather was fine and the road was clear", "so we went home")
_SYLLABLES = [
    "ka",
    "lo",
    "mi",
    "ren",
    "sto",
    "va",
    "du",
    "pel",
    "tor",
    "ni",
    "bra",
    "ze",
    "gul",
    "fi",
    "mas",
    "ro",
]
_STATE = ("load", "clock", "limit_gflops")
"""Settings that describe the state of the machine, not what was measured."""


class Clock:
    """Measures wall time and processor time from the moment it is made."""

    def __init__(self) -> None:
        self._since = perf_counter(), process_time()

    def lap(self) -> tuple[float, float]:
        """Seconds of wall time and of processor time since the last lap."""
        wall, processor = self._since
        self._since = perf_counter(), process_time()
        return self._since[0] - wall, self._since[1] - processor


def everyday_sentences(number: int) -> list[str]:
    """Sentences of 2 to about 25 common words, always the same."""
    draw = random.Random(SEED)
    parts = (_WHO, _DID, _WHERE, _WHY)
    texts = (" ".join(filter(None, (draw.choice(part) for part in parts))) for _ in range(number))
    return [f"{text[0].upper()}{text[1:]} {draw.randrange(1000)} times." for text in texts]


def made_up_sentences(number: int, seed: int) -> list[str]:
    """Sentences of five to nine words that do not exist: enough different ones for a large vocabulary."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(_SYLLABLES, k=draw.randint(1, 4))) for _ in range(8000)]
    return [" ".join(draw.choices(words, k=draw.randint(5, 9))) for _ in range(number)]


def parse_arguments(parser: ArgumentParser) -> Namespace:
    """The arguments of a script, with those for the comparison."""
    parser.add_argument("--against", type=Path, help="compare with the record of an earlier run, from --json")
    parser.add_argument("--allow", type=float, default=0.2, help="how far a ratio may fall, as a share of itself")
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    return parser.parse_args()


def machine_state(threads: int | None) -> dict[str, str | float]:
    """The load before the run, and the clock to trust: processor time if the machine has other work."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    busy = load + (threads or cores) > cores + 1
    return {"load": round(load, 2), "clock": "processor" if busy else "wall"}


def finish(record: Mapping[str, Any], arguments: Namespace) -> None:
    """Print the record as JSON or as Markdown, and compare its ratios with an earlier run; exit 1 if one fell."""
    if arguments.json:
        print(json.dumps(record))
    else:
        rows = record["rows"]
        print(f"| {' | '.join(rows[0])} |\n|{'---|' * len(rows[0])}")
        for row in rows:
            print(f"| {' | '.join(_cell(value) for value in row.values())} |")
        print("\n" + " | ".join(f"{name} {value}" for name, value in record["settings"].items()))
    if arguments.against:
        _compare(json.loads(arguments.against.read_text()), record, arguments)


def _compare(before: Mapping[str, Any], now: Mapping[str, Any], arguments: Namespace) -> None:
    """Compare processor time, unless the machine was idle in both runs; different settings are an error."""
    settings = [
        {name: value for name, value in run["settings"].items() if name not in _STATE} for run in (before, now)
    ]
    if differing := changed_values(*settings):
        raise SystemExit(f"{arguments.against} was measured with different settings: {'; '.join(differing)}")
    idle = before["settings"]["clock"] == now["settings"]["clock"] == "wall"
    ratio = "ratio" if idle else "processor_ratio"
    ratios = {row["name"]: row[ratio] for row in before["rows"]}
    fallen = []
    print(f"\nRatios of {'wall' if idle else 'processor'} time against {arguments.against}")
    for row in now["rows"]:
        if earlier := ratios.get(row["name"]):
            print(f"{row['name']}: {earlier:.2f} before, {row[ratio]:.2f} now ({row[ratio] / earlier - 1:+.0%})")
            fallen += [row["name"]] if row[ratio] < earlier * (1 - arguments.allow) else []
    if fallen:
        raise SystemExit(f"fell by more than {arguments.allow:.0%}: {', '.join(fallen)}")


def _cell(value: Any) -> str:
    return "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
