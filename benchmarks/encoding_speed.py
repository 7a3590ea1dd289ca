"""Sentences per second of several encoders, side by side, and how far their vectors and bits agree with the first.

    python benchmarks/encoding_speed.py [-e sbert -e fast -e static] [-n 2000] [--against baselines/encoding.json]

The encoders take turns in short rounds, and each ratio is a median over rounds.
"""

from argparse import ArgumentParser

import numpy as np
from side_by_side import Clock, everyday_sentences, finish, machine_state, parse_arguments

from cod3s.encode import Vectors, load_encoder
from cod3s.options import BITS, SEED
from cod3s.signatures import random_code


def main() -> None:
    parser = ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("-e", "--encoder", action="append", help="repeatable; the first is the reference")
    parser.add_argument("-n", "--sentences", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parse_arguments(parser)
    sentences = everyday_sentences(arguments.sentences)
    encoders = [load_encoder(name) for name in arguments.encoder or ("sbert", "fast", "fast-int8", "static")]
    settings = {
        "sentences": len(sentences),
        "rounds": arguments.rounds,
        "bits": BITS,
        "seed": SEED,
        "reference": encoders[0].id,
        **machine_state(None),
    }
    vectors = [encoder.encode(sentences) for encoder in encoders]  # also a warm-up
    seconds = np.zeros((2, len(encoders), arguments.rounds))  # wall time, processor time
    for turn in range(arguments.rounds):
        for number, encoder in enumerate(encoders):
            clock = Clock()
            encoder.encode(sentences)
            seconds[:, number, turn] = clock.lap()
    ratios = np.median(seconds[:, :1] / seconds, axis=2)  # (2, encoders)
    rows = [
        {
            "name": encoder.id,
            "sentences_per_second": len(sentences) / float(np.median(seconds[0, number])),
            "ratio": float(ratios[0, number]),
            "processor_ratio": float(ratios[1, number]),
            **agreement(vectors[0], vectors[number]),
        }
        for number, encoder in enumerate(encoders)
    ]
    finish({"settings": settings, "rows": rows}, arguments)


def agreement(reference: Vectors, vectors: Vectors) -> dict[str, float | None]:
    """Cosines, and the shares of equal bits and signatures; None where the dimensions differ."""
    names = ("cosine_mean", "cosine_min", "equal_bits", "equal_signatures")
    if reference.shape != vectors.shape:
        return dict.fromkeys(names)
    cosines = np.einsum("nd,nd->n", reference, vectors)
    code = random_code(BITS, reference.shape[1])
    equal = code.sign(reference) == code.sign(vectors)
    figures = (cosines.mean(), cosines.min(), equal.mean(), equal.all(axis=1).mean())
    return dict(zip(names, map(float, figures), strict=True))


if __name__ == "__main__":
    main()
