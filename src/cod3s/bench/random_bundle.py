"""A bundle with random weights of any shape, for benchmarks: learned weights take just as long."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cod3s.bundle import BundleFacts, open_vocabulary, write_facts
from cod3s.model.convert import convert_transformer
from cod3s.model.reader import Reader, open_reader
from cod3s.model.shape import FROM_SCRATCH, SHAPES
from cod3s.model.transformer import build_transformer
from cod3s.options import BITS, SEED, find_name
from cod3s.tokens.vocabulary import Vocabulary, train_pieces

RELATION, INVERSE = "effect", "cause"
_MODELS = {
    RELATION: {"signature": "signature", "sentence": "sentence", "inverse": "inverse"},
    INVERSE: {"plain": "backward"},
}
_NAMES = [name for roles in _MODELS.values() for name in roles.values()]
# Parts of made-up words.
_PARTS = ("ka", "lo", "mi", "ren", "sto", "va", "du", "pel", "tor", "ni", "bra", "ze", "gul", "fi", "mas", "ro")


@dataclass(frozen=True)
class RandomBundle:
    """The torch models by name, the engine's bundles by quantization, and the vocabulary and reader of both."""

    models: dict[str, Any]
    folders: dict[str, Path]
    vocabulary: Vocabulary
    reader: Reader


def make_random_bundle(folder: Path, shape: str, *, bits: int = BITS) -> RandomBundle:
    """A model per role, as in the paper: a bit per token, the same two tokens at every position."""
    find_name("shape of random weights", shape, FROM_SCRATCH)
    pieces = folder / "tokens.model"
    train_pieces(made_sentences(2 * SHAPES[shape].pieces, SEED), pieces, SHAPES[shape].pieces)
    facts = {
        quantization: BundleFacts(
            name=f"random {shape} {quantization}",
            encoder="none",
            bits=bits,
            bits_per_token=1,
            positional=False,
            shape=shape,
            quantization=quantization,
            relations={
                RELATION: {"template": "{source}, so {target}", "inverse": INVERSE},
                INVERSE: {"template": "{source} because {target}", "inverse": RELATION},
            },
            models=_MODELS,
        )
        for quantization in ("int8", "float32")
    }
    vocabulary = open_vocabulary(pieces, facts["int8"])
    reader = open_reader(SHAPES[shape], vocabulary, Path())
    models: dict[str, Any] = {}
    for number, name in enumerate(_NAMES):
        models[name] = build_transformer(SHAPES[shape], vocabulary, seed=SEED + number).eval()
        models[name].save_pretrained(folder / "torch" / name)
    folders = {quantization: folder / quantization for quantization in facts}
    for quantization, output in folders.items():
        _write(folder, output, facts[quantization], vocabulary, reader)
    return RandomBundle(models, folders, vocabulary, reader)


def made_sentences(number: int, seed: int) -> list[str]:
    """Sentences of five to nine made-up words."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(_PARTS, k=draw.randint(1, 4))) for _ in range(8000)]
    return [" ".join(draw.choices(words, k=draw.randint(5, 9))) for _ in range(number)]


def _write(folder: Path, output: Path, facts: BundleFacts, vocabulary: Vocabulary, reader: Reader) -> None:
    for name in _NAMES:
        (output / "models" / name).mkdir(parents=True)
        convert_transformer(
            folder / "torch" / name,
            output / "models" / name,
            source_tokens=reader.tokens,
            target_tokens=vocabulary.tokens,
            quantization=facts.quantization,
        )
    (output / "tokens.model").write_bytes((folder / "tokens.model").read_bytes())
    write_facts(output, facts)
