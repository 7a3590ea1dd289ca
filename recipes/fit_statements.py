"""Fit the check of sources, English statement or not, and write it into src/cod3s/data.

    python recipes/fit_statements.py

The examples are in dataset/statements.tsv. The threshold is chosen by cross-validation over groups: the
translations of one sentence, and sentences that were sampled or written together, are never on both sides.
"""

from pathlib import Path

import numpy as np
from examples import FOLDS, folds_of, read_examples
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from cod3s.io.disk import write_json
from cod3s.trust.statements import BUCKETS, FORMS, SCALES, WEIGHTS, hashed_features
from cod3s.word_lists import DATA

EXAMPLES = Path(__file__).parent.parent / "dataset" / "statements.tsv"
PENALTY = 0.03  # on the square of each weight, against the summed loss
STEPS = 80
SHARE = 4.0  # how much an example counts that was written, and not sampled
SAMPLED = "sampled"  # groups that begin so are a random sample of the dataset's sources


def make_design(texts: list[str]) -> csr_matrix:
    """A row per text with the values of its features."""
    rows = [hashed_features(text) for text in texts]
    starts = np.concatenate([[0], np.cumsum([len(buckets) for buckets, _ in rows])])
    buckets = np.concatenate([buckets for buckets, _ in rows])
    values = np.concatenate([values for _, values in rows]).astype(np.float32)
    return csr_matrix((values, buckets, starts), shape=(len(rows), BUCKETS))


def fit_softmax(design: csr_matrix, labels: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weights (buckets, forms) and biases (forms,) that explain the labels best; `shares` weigh the rows."""
    wanted, cut = np.eye(len(FORMS))[labels], BUCKETS * len(FORMS)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat[:cut].reshape(BUCKETS, len(FORMS))
        log_odds = design @ weights + flat[cut:]
        log_odds -= log_odds.max(axis=1, keepdims=True)
        log_probs = log_odds - np.log(np.exp(log_odds).sum(axis=1, keepdims=True))
        error = (np.exp(log_probs) - wanted) * shares[:, None]
        slope = np.concatenate([(design.T @ error + PENALTY * weights).ravel(), error.sum(axis=0)])
        return -(shares * (log_probs * wanted).sum(axis=1)).sum() + PENALTY * (weights**2).sum() / 2, slope

    start = np.zeros(cut + len(FORMS))
    flat = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    return flat[:cut].reshape(BUCKETS, len(FORMS)), flat[cut:]


def probabilities(design: csr_matrix, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """The probability of each form: (rows, forms)."""
    log_odds = design @ weights + biases
    powers = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def main() -> None:
    texts, forms, groups = read_examples(EXAMPLES)
    labels, folds = np.array([FORMS.index(form) for form in forms]), folds_of(groups)
    sampled = np.array([group.startswith(SAMPLED) for group in groups])
    design, shares = make_design(texts), np.where(sampled, 1.0, SHARE)
    held_out = np.zeros((len(texts), len(FORMS)))
    for fold in range(FOLDS):
        test = folds == fold
        held_out[test] = probabilities(design[test], *fit_softmax(design[~test], labels[~test], shares[~test]))
    statement, odd = held_out[:, 0], (labels == 0) & ~sampled
    grid = np.linspace(0.05, 0.95, 91)
    errors = [max((statement[odd] < bound).mean(), (statement[labels > 0] >= bound).mean()) for bound in grid]
    threshold = round(float(grid[int(np.argmin(errors))]), 3)
    weights, biases = fit_softmax(design, labels, shares)
    scales = np.abs(weights).max(axis=0) / 127
    np.save(DATA / WEIGHTS, np.rint(weights / scales).astype(np.int8))
    noticed = statement < threshold
    shares_noticed = {f"{form} noticed": noticed[labels == number] for number, form in enumerate(FORMS) if number}
    shares_noticed |= {"sampled statements noticed": noticed[sampled], "odd statements noticed": noticed[odd]}
    facts = {
        "scales": dict(zip(FORMS, scales.tolist(), strict=True)),
        "biases": dict(zip(FORMS, biases.tolist(), strict=True)),
        "threshold": threshold,
        "measured": {name: round(float(share.mean()), 4) for name, share in shares_noticed.items()},
    }
    write_json(DATA / SCALES, facts)
    print(facts["threshold"], facts["measured"])


if __name__ == "__main__":
    main()
