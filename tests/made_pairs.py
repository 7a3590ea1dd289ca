"""Made-up pairs in any number, and what `cod3s prepare` needs for them in time and memory.

    python tests/made_pairs.py 100000 1000000 10000000

prints the figures of docs/measured/corpus.md: filtering, de-duplicating and splitting, without an encoder.
"""

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_WHO = ("the baker", "my neighbour", "an old sailor", "the new teacher", "our cat", "a young driver", "his aunt")
_DID = ("lost", "found", "painted", "forgot", "repaired", "sold", "broke", "cleaned", "borrowed", "hid", "counted")
_WHAT = ("the keys", "a lamp", "two chairs", "the boat", "her letter", "a bicycle", "the map", "some bread")
_WHEN = ("in the morning", "before lunch", "after the storm", "at the market", "near the river", "last winter")
_SYLLABLES = (
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
    "ma",
    "ros",
)


def made_pairs(number: int, seed: int = 1) -> Iterator[tuple[str, str, str]]:
    """(cause, effect, order): mostly new, one in fifty seen before, one in fifty seen but for its case."""
    draw = random.Random(seed)
    kept: list[tuple[str, str, str]] = []
    for count in range(number):
        if kept and count % 50 == 0:
            yield draw.choice(kept)
        elif kept and count % 50 == 1:
            cause, effect, order = draw.choice(kept)
            yield cause.upper(), effect + "!", order
        else:
            pair = _sentence(draw), _sentence(draw), ("so", "because", "")[count % 3]
            if count % 100 == 2:
                kept.append(pair)
            yield pair


def write_pairs(path: Path, number: int, seed: int = 1) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.write("cause\teffect\torder\n")
        file.writelines("\t".join(pair) + "\n" for pair in made_pairs(number, seed))
    return path


def _sentence(draw: random.Random) -> str:
    name = "".join(draw.choices(_SYLLABLES, k=4))  # makes most sentences unlike all others
    return f"{draw.choice(_WHO)} {name} {draw.choice(_DID)} {draw.choice(_WHAT)} {draw.choice(_WHEN)}"


def _measure(rows: int) -> None:
    """One row of the table. Processor time grows with the work, whatever else the machine does meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = write_pairs(Path(folder) / "pairs.tsv", rows)
        command = [sys.executable, "-m", "cod3s", "prepare", str(pairs), "-o", f"{folder}/corpus"]
        started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*command, "--relation", "effect", "--encoder", "none"], check=True, stdout=subprocess.DEVNULL
        )
        seconds, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = after.ru_maxrss / 2**20  # of the largest run so far: give the sizes in ascending order
    print(
        f"| {rows:,} | {seconds:.0f} | {processor:.0f} | {1e6 * processor / rows:.0f} | {peak:.2f} |", flush=True
    )


if __name__ == "__main__":
    print("| pairs | seconds | processor seconds | µs a pair | peak GiB |\n|---|---|---|---|---|", flush=True)
    for argument in sys.argv[1:]:
        _measure(int(argument))
