"""What the pieces that a warm decoder writes with cost: its own, learned from a corpus, or its encoder's,
all of them or those that the corpus uses most.

    cod3s prepare pairs.tsv.gz -o corpus
    python benchmarks/target_pieces.py corpus

Pieces a target and what text they give back, on dev; the time of a training step (720 tokens, encoder frozen), the
three taking turns: each ratio is the median over the turns.
"""

import sys
import tempfile
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import pyarrow.parquet as pq
import torch

from cod3s.cli.output import print_table
from cod3s.encode.weights import minilm_folder
from cod3s.model.shape import SHAPES
from cod3s.model.transformer import build_transformer
from cod3s.text import for_modelling
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary, choose_pieces, copy_pieces, train_pieces

TURNS = 15
ROWS, READ = 36, 10  # with as many pieces written: 720 tokens


def targets(corpus: Path, split: str) -> list[str]:
    files = sorted(corpus.glob(f"*/{split}-*.parquet"))
    return [for_modelling(text) for file in files for text in pq.read_table(file)["target"].to_pylist()]


def step(model: Any, read: Any, written: Any) -> float:
    """Processor seconds of one step without the optimiser."""
    begun = process_time()
    model(input_ids=read, decoder_input_ids=written, labels=written).loss.backward()
    return process_time() - begun


def main() -> None:
    corpus, folder = Path(sys.argv[1]), Path(tempfile.mkdtemp())
    train_pieces(targets(corpus, "train"), folder / "own", SHAPES["warm"].pieces)
    tokenizer = minilm_folder() / "tokenizer.json"
    copy_pieces(tokenizer, folder / "encoder")
    choose_pieces(tokenizer, targets(corpus, "train"), folder / "common", SHAPES["warm"].pieces)
    shown = targets(corpus, "dev")
    rows, models = [], []
    for kind in ("own", "encoder", "common"):
        words = Vocabulary(folder / kind, [], SignatureTokens(16, 4, positional=True))
        ids = [words.encode_text(text) for text in shown]
        same = sum(words.decode_text(own) == text for own, text in zip(ids, shown, strict=True))
        rows.append((kind, len(words), f"{sum(map(len, ids)) / len(ids):.2f}", f"{100 * same / len(shown):.1f}"))
        model = build_transformer(SHAPES["warm"], words, seed=1)
        model.encoder.requires_grad_(False)
        models.append(model)
    read, written = torch.randint(1000, 8000, (ROWS, READ)), torch.randint(100, 8000, (ROWS, READ))
    turns = [[step(model, read, written) for model in models] for _ in range(TURNS)]
    ratios = [median(own[place] / own[0] for own in turns) for place in (1, 2)]
    columns = ("pieces", "vocabulary", "pieces a target", "targets given back, %")
    print_table("The target side", columns, rows, "a step takes {:.2f} and {:.2f} times as long".format(*ratios))


if __name__ == "__main__":
    main()
