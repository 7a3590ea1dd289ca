"""Does int8 change the answers? Two bundles of one run, exported in int8 and in float32, side by side.

    python benchmarks/quantization.py INT8 FLOAT32 CORPUS [SOURCES]

The int8 one twice: computed in float32, which is the default, and in int8.

Scores: the log-probability a token of dev targets after their own signature. Answers: ten of each of dev's first
sources, by the default settings.
"""

import sys
from pathlib import Path

import numpy as np

from cod3s import load
from cod3s.decode.models import open_models
from cod3s.records import AnswerSet
from cod3s.train.pairs import read_rows

SCORED, ANSWERED = 500, 40


def token_scores(bundle: str, relation: str, corpus: Path, compute: str) -> np.ndarray:
    """Mean log-probability a token of each dev target, end included."""
    models = open_models(Path(bundle), compute=compute)
    model, words = models.sentence(relation), models.vocabulary
    rows = read_rows(corpus, relation, "dev").first(SCORED)
    requests = [
        model.request(source, words.encode_signature(signature))
        for source, signature in zip(rows.source, rows.signature, strict=True)
    ]
    scored = model.engine.score(requests, [words.encode_text(target) for target in rows.target])
    return np.array([one.log_prob / one.length for one in scored])


def same(ours: list[AnswerSet], theirs: list[AnswerSet]) -> tuple[float, float, float]:
    """Shares of the signatures and of the texts that both have, and of sources whose first answer is the same."""
    pairs = list(zip(ours, theirs, strict=True))
    signatures = [
        len({a.signature for a in one} & {a.signature for a in other}) / len(other) for one, other in pairs
    ]
    texts = [len({a.text for a in one} & {a.text for a in other}) / len(other) for one, other in pairs]
    first = [one.answers[0].text == other.answers[0].text for one, other in pairs]
    return float(np.mean(signatures)), float(np.mean(texts)), float(np.mean(first))


def main(int8: str, float32: str, corpus: str, answered: int = ANSWERED) -> None:
    print(
        "| relation | computed in | log-prob a token, int8 − float32: mean, mean of absolute, largest | same bins"
        " | same texts | same first answer |"
    )
    print("|---|---|---|---|---|---|")
    for relation in load(int8).facts.relations:
        exact = token_scores(float32, relation, Path(corpus), "float32")
        sources = read_rows(Path(corpus), relation, "dev").source[:answered]
        answers = load(float32).generate(sources, relation)
        for compute in ("float32", "int8"):
            moved = token_scores(int8, relation, Path(corpus), compute) - exact
            shares = same(load(int8, compute=compute).generate(sources, relation), answers)
            figures = f"{moved.mean():+.4f}, {abs(moved).mean():.4f}, {abs(moved).max():.3f}"
            cells = " | ".join(f"{100 * share:.0f} %" for share in shares)
            print(f"| {relation} | {compute} | {figures} | {cells} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], *map(int, sys.argv[4:5]))
