"""Measure encoders side by side in the same run: rates as ratios, and agreement with a reference.

The machine is noisy, so the encoders take turns in short rounds and each ratio is a median over rounds.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cod3s.bench.clock import Clock
from cod3s.encode import Encoder, Vectors
from cod3s.errors import Progress
from cod3s.options import BITS, SEED
from cod3s.signatures import random_code

_WHO = ("the baker", "my neighbour", "a young nurse", "our old teacher", "the night guard", "she", "they", "I")
_DID = ("missed the bus", "found a wallet", "cooked too much rice", "fell asleep", "called the doctor", "won")
_WHERE = ("", "near the harbour", "at the end of a long and rather tiring week", "in spring", "by accident")
_WHY = ("", "and nobody noticed", "although the weather was fine and the road was clear", "so we went home")


@dataclass(frozen=True)
class EncoderSpeed:
    """One encoder's rate, its ratio to the reference, and how far its vectors and bits agree with it."""

    encoder: str
    sentences_per_second: float
    ratio: float
    processor_ratio: float
    cosine_mean: float | None  # None where the dimensions differ, so that nothing can be compared
    cosine_min: float | None
    equal_bits: float | None
    equal_signatures: float | None


def bench_sentences(number: int) -> list[str]:
    """Made-up sentences of 2 to about 25 words, always the same."""
    draw = random.Random(SEED)
    parts = (_WHO, _DID, _WHERE, _WHY)
    texts = (" ".join(filter(None, (draw.choice(part) for part in parts))) for _ in range(number))
    return [f"{text[0].upper()}{text[1:]} {draw.randrange(1000)} times." for text in texts]


def bench_encoders(
    encoders: Sequence[Encoder], sentences: Sequence[str], *, rounds: int = 5, bits: int = BITS, progress: Progress
) -> list[EncoderSpeed]:
    """Speed and agreement of each encoder; the first is the reference."""
    seconds = np.zeros((2, len(encoders), rounds))  # of wall time, of processor time
    vectors: list[Vectors] = [encoder.encode(sentences) for encoder in encoders]  # also warms up
    for turn in range(rounds):
        for number, encoder in enumerate(encoders):
            clock = Clock()
            encoder.encode(sentences)
            seconds[:, number, turn] = clock.lap()
            progress(1)
    rates = len(sentences) / np.median(seconds[0], axis=1)
    ratios = np.median(seconds[:, :1] / seconds, axis=2)  # (2, encoders)
    speeds = np.column_stack([rates, *ratios]).tolist()
    return [
        EncoderSpeed(encoder.id, *speed, *_agreement(vectors[0], encoded, bits))
        for encoder, speed, encoded in zip(encoders, speeds, vectors, strict=True)
    ]


def _agreement(reference: Vectors, vectors: Vectors, bits: int) -> tuple[float | None, ...]:
    if reference.shape != vectors.shape:
        return None, None, None, None
    cosines = np.einsum("nd,nd->n", reference, vectors)
    code = random_code(bits, reference.shape[1])
    equal = code.sign(reference) == code.sign(vectors)
    return float(cosines.mean()), float(cosines.min()), float(equal.mean()), float(equal.all(axis=1).mean())
