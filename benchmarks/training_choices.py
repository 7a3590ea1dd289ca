"""Which choices of the warm preset carry its gain: each trained alone, with the same processor time on one core.

    OMP_NUM_THREADS=1 python benchmarks/training_choices.py CORPUS OUTPUT --minutes 10 [NAME ...]

CORPUS is a folder made by `cod3s prepare` with the relation `effect`. Time is processor time, so other work on the
machine costs a run little. One line of JSON a run on stdout; a run that is in OUTPUT already is not trained again.
"""

import argparse
import json
from pathlib import Path
from time import process_time
from typing import Any

from cod3s.files import read_json, write_json
from cod3s.train import PRESETS, train

BASE = PRESETS["default"].with_values(
    roles=("sentence",), shares=(), warmup_steps=100, epochs=20, evaluate_every=10**6
)
CHOICES: dict[str, dict[str, Any]] = {
    "default": {},
    "2048 tokens a batch": {"batch_tokens": 2048},
    "tuned encoder": {"freeze_encoder": False},
    "1 bit a token": {"bits_per_token": 1},
    "1 bit a token, shared by positions": {"bits_per_token": 1, "positional": False},
    "4 bits a token, shared by positions": {"positional": False},
    "16 bits a token": {"bits_per_token": 16},
    "random start": {"hyperplane_start": False},
    "from scratch": {"shape": "small", "hyperplane_start": False},
    "from scratch, 1 bit a token, shared by positions": {
        "shape": "small",
        "hyperplane_start": False,
        "bits_per_token": 1,
        "positional": False,
    },
}


def run(name: str, corpus: Path, output: Path, minutes: float) -> dict[str, float]:
    """The validation figures of one choice."""
    folder = output / name.replace(" ", "-").replace(",", "")
    known = folder / "choice.json"
    if not known.exists():
        config = BASE.with_values(**CHOICES[name])
        write_json(known, train(corpus, folder, config, seconds=60 * minutes, clock=process_time)["shared"])
    figures: dict[str, float] = read_json(known)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {'; '.join(CHOICES)}")
    parser.add_argument("--minutes", type=float, default=10.0)
    given = parser.parse_intermixed_args()
    for name in given.names or CHOICES:
        figures = run(name, given.corpus, given.output, given.minutes)
        print(json.dumps({"choice": name, "minutes": given.minutes, **figures}), flush=True)


if __name__ == "__main__":
    main()
