"""Fit the gate on sensitive sources, and write it into a bundle.

    python recipes/fit_gate.py BUNDLE

The examples are in dataset/sensitive.tsv. Thresholds are chosen on groups of examples that the fit did not see:
sentences of one author's template are never on both sides.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from examples import folds_of, read_examples
from scipy.linalg import cholesky, solve_triangular

from cod3s.bundle.facts import read_facts, write_facts
from cod3s.encode import load_encoder
from cod3s.logistic import logistic
from cod3s.trust.gate import FOLDER, KINDS, REFUSED, Gate, GateFacts, rounded, save_gate, similarities

Floats = npt.NDArray[np.float64]
EXAMPLES = Path(__file__).parent.parent / "dataset" / "sensitive.tsv"
REFERENCES = 2000
WIDTH = 2.0
PENALTY = 0.03
STEPS = 40
EVERYDAY = "everyday"  # groups that begin so are a random sample of the dataset's sources that look harmless
SAMPLED = "sampled"  # groups that begin so are all that looked doubtful among 30,000 sources
DOUBTFUL = 0.06  # the share of those
STOPPED = 0.015  # the share of harmless sources that may be refused
CAREFUL = 0.05  # the share that may be answered with care, or refused
CHECKED = 2  # folds that thresholds are chosen on, with a fit to the others
SEED = 1234


@dataclass(frozen=True)
class Examples:
    """Sentences with the numbers of their kinds and folds."""

    texts: list[str]
    labels: npt.NDArray[np.int64]
    folds: npt.NDArray[np.int64]
    everyday: npt.NDArray[np.bool_]
    sampled: npt.NDArray[np.bool_]

    def rows(self, chosen: npt.NDArray[np.bool_]) -> "Examples":
        texts = [text for text, wanted in zip(self.texts, chosen, strict=True) if wanted]
        return Examples(
            texts, self.labels[chosen], self.folds[chosen], self.everyday[chosen], self.sampled[chosen]
        )


def read_sentences() -> Examples:
    texts, kinds, groups = read_examples(EXAMPLES)
    labels = np.array([KINDS.index(kind) for kind in kinds])
    everyday, sampled = (np.array([group.startswith(name) for group in groups]) for name in (EVERYDAY, SAMPLED))
    return Examples(texts, labels, folds_of(groups), everyday, sampled)


def choose_references(everyday: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Rows of examples: a tenth are everyday sentences, the rest were written or chosen as difficult."""
    generator = np.random.default_rng(SEED)
    difficult, easy = np.flatnonzero(~everyday), np.flatnonzero(everyday)
    many, few = REFERENCES * 9 // 10, REFERENCES // 10
    return np.sort(np.concatenate([generator.choice(difficult, many, False), generator.choice(easy, few, False)]))


def fit(design: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> Floats:
    """The weights (columns, kinds): of anything sensitive, and of each sensitive kind against the rest.

    The curvature of a logistic loss is at most a quarter of the product of the design with itself, so steps
    by its inverse never go too far; it is computed once for all kinds.
    """
    targets = np.column_stack([labels > 0, *(labels == number for number in range(1, len(KINDS)))])
    curvature = (design.T @ design).astype(np.float64) / 4 + PENALTY * np.eye(design.shape[1])
    inverse = np.linalg.inv(curvature)
    weights = np.zeros((design.shape[1], len(KINDS)))
    for _ in range(STEPS):
        p = logistic((design @ weights.astype(np.float32)).astype(np.float64))
        gradient = (design.T @ (p - targets).astype(np.float32)).astype(np.float64) + PENALTY * weights
        weights -= inverse @ gradient
    return weights


def choose_threshold(sensitive: Floats, chosen: npt.NDArray[np.bool_], examples: Examples, rate: float) -> float:
    """The lowest threshold at which few of the dataset's harmless sources are among the `chosen`.

    The everyday sentences stand for the sources that an earlier gate found harmless, the sampled ones for the
    rest.
    """
    sampled = examples.sampled & (examples.labels == 0)
    for threshold in np.arange(0.02, 0.98, 0.01):
        above = (sensitive >= threshold) & chosen
        if (1 - DOUBTFUL) * above[examples.everyday].mean() + DOUBTFUL * above[sampled].mean() <= rate:
            break
    return round(float(threshold), 2)


def measure(above: npt.NDArray[np.bool_], examples: Examples) -> dict[str, float]:
    """The shares of held-out sentences that are above a threshold."""
    harmless = examples.labels == 0
    shares = {kind: above[examples.labels == number] for number, kind in enumerate(KINDS) if number}
    shares["harmless neighbors"] = above[harmless & ~examples.everyday & ~examples.sampled]
    shares["doubtful sources"] = above[harmless & examples.sampled]
    shares["everyday sources"] = above[harmless & examples.everyday]
    return {name: round(float(share.mean()), 4) for name, share in shares.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    options = parser.parse_args()
    examples, encoder = read_sentences(), load_encoder("fast")
    vectors = encoder.encode(examples.texts)
    references = rounded(vectors[choose_references(examples.everyday)])
    # In these coordinates a penalty on weights is that of kernel regression; a last column holds the bias.
    root = cholesky(similarities(references, references, WIDTH) + 1e-3 * np.eye(REFERENCES, dtype=np.float32)).T
    similar = similarities(vectors, references, WIDTH)
    ones = np.ones((len(vectors), 1), np.float32)
    design = np.hstack([solve_triangular(root, similar.T, lower=True).T.astype(np.float32), ones])
    test = examples.folds < CHECKED
    held_out = design[test] @ fit(design[~test], examples.labels[~test])
    checked, sensitive = examples.rows(test), logistic(held_out[:, 0])
    likeliest = np.array(KINDS[1:])[held_out[:, 1:].argmax(axis=1)]
    thresholds = {
        kind: choose_threshold(sensitive, likeliest == kind, checked, STOPPED / len(REFUSED)) for kind in REFUSED
    }
    doubtful = min(choose_threshold(sensitive, likeliest != "", checked, CAREFUL), *thresholds.values())
    measured = measure(sensitive >= doubtful, checked)
    print(doubtful, thresholds, measured, flush=True)
    weights = fit(design, examples.labels)
    biases = dict(zip(KINDS, np.round(weights[-1], 5).tolist(), strict=True))
    measured = {"examples": len(examples.texts), **measured}
    facts = GateFacts(encoder.id, WIDTH, doubtful, thresholds, biases, measured)
    folded = solve_triangular(root.T, weights[:-1]).astype(np.float32)
    save_gate(Gate(facts, references, folded), options.bundle / FOLDER)
    write_facts(options.bundle, read_facts(options.bundle))  # with the checksums of the gate
    print(facts)


if __name__ == "__main__":
    main()
