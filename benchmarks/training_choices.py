"""Which choices of the warm preset carry its gain: each trained alone, with the same processor time on one core.

    OMP_NUM_THREADS=1 python benchmarks/training_choices.py CORPUS OUTPUT --minutes 10 [NAME ...]

CORPUS is a folder made by `cod3s prepare` with the relation `effect`. Time is processor time, so other work on the
machine costs a run little. One line of JSON a run on stdout; a run that is in OUTPUT already is not trained again.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

from cod3s.files.disk import read_json, write_json
from cod3s.model.shape import SHAPES
from cod3s.tokens.pieces import open_pieces
from cod3s.train import PRESETS, train
from cod3s.train.pairs import read_rows

BASE = PRESETS["frozen"].with_values(
    roles=("sentence",), shares=(), pieces="own", warmup_steps=100, epochs=20, evaluate_every=10**6
)
SHAPES["two-layers"] = replace(SHAPES["warm"], decoder_layers=2)
CHOICES: dict[str, dict[str, Any]] = {
    "default": {},
    "2 decoder layers": {"shape": "two-layers"},
    "2048 tokens a batch": {"batch_tokens": 2048},
    "tuned encoder": {"freeze_encoder": False},
    "half the learning rate": {"learning_rate": 5e-4},
    "label smoothing 0.1": {"label_smoothing": 0.1},
    "the encoder's pieces": {"pieces": "encoder"},
    "the encoder's commonest pieces": {"pieces": "common"},
    "1 bit a token": {"bits_per_token": 1},
    # Tokens that mean another hyperplane at every position cannot start from one.
    "1 bit a token, shared by positions": {"bits_per_token": 1, "positional": False, "hyperplane_start": False},
    "4 bits a token, shared by positions": {"positional": False, "hyperplane_start": False},
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
        figures = train(corpus, folder, config, seconds=60 * minutes, clock=process_time)["shared"]
        per_word = figures["sentence_text_loss"] * pieces_a_word(corpus, folder / "tokens.model")
        write_json(known, {**figures, "text_loss_per_word": per_word})
    return dict(read_json(known))


def pieces_a_word(corpus: Path, pieces: Path) -> float:
    """Pieces and ends a word of the dev targets: losses of different pieces compare only by the word."""
    texts = read_rows(corpus, "effect", "dev").target
    split = open_pieces(pieces)
    return sum(len(split.encode(text)) + 1 for text in texts) / sum(len(text.split()) for text in texts)


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
