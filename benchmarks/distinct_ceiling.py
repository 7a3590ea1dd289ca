"""How many distinct answers ten unrelated sentences would count: random targets behind real sources.

    python benchmarks/distinct_ceiling.py COPA_XML CORPUS

Completed statements share their source, so a threshold of cosine distance bounds what any system can reach.
"""

import random
import sys
from pathlib import Path

import numpy as np

from cod3s.corpus.questions import read_questions
from cod3s.corpus.relations import TEMPLATES
from cod3s.encode import load_encoder
from cod3s.metrics.semantic import cosine_distances, distinct
from cod3s.text import complete
from cod3s.train.pairs import read_rows

SOURCES, ANSWERS, THRESHOLDS = 100, 10, (0.1, 0.25, 0.5)


def main(questions: str, corpus: str) -> None:
    encoder, draw = load_encoder("fast"), random.Random(1)
    for relation, template in TEMPLATES.items():
        own = [one for one in read_questions(Path(questions)) if one.direction == relation][:SOURCES]
        targets = read_rows(Path(corpus), relation, "test").target
        counts = []
        for question in own:
            statements = [
                complete(template, question.premise.rstrip("."), target)
                for target in draw.sample(targets, ANSWERS)
            ]
            distances = cosine_distances(statements, encoder.encode(statements))
            counts.append([len(distinct(distances, threshold)) for threshold in THRESHOLDS])
        means = ", ".join(
            f"{mean:.2f} at {at}" for mean, at in zip(np.mean(counts, axis=0), THRESHOLDS, strict=True)
        )
        print(f"{relation}: {means}")


if __name__ == "__main__":
    main(*sys.argv[1:])
