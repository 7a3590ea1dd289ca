"""Fit the critic's logistic model, and measure it by cross-validation: accuracy, AUC, calibration."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.critic.examples import VERDICTS, LabelledPair
from cod3s.critic.features import feature_rows
from cod3s.critic.judge import Critic, Judge
from cod3s.errors import Cod3sError
from cod3s.logistic import Numbers, area_under_curve, fit_logistic, logistic
from cod3s.metrics.pair_scores import choice_credits
from cod3s.models import BundleModels
from cod3s.signatures.signer import Signer

DEFAULT_FEATURES = (
    "verdict",
    "backward_verdict",
    "pmi",
    "pmi_per_token",
    "backward_pmi",
    "relevance",
    "words",
    "overlap",
)
"""What a critic weighs unless other features are named; verdicts only where the bundle's model gives them."""
_FOLDS = 5
_VERDICTS_COUNT = 10.0
_SHRINK = 1.0  # the penalty on squared weights of features in units of their spread
_FLOOR = 0.25  # of the answers just above it, a quarter are accepted
_CALIBRATION_BINS = 10


@dataclass(frozen=True)
class Measured:
    """How well probabilities tell right from wrong: on questions, pair by pair, and as probabilities."""

    data: str
    relation: str  # empty for all of them
    questions: int
    accuracy: float  # the share of questions whose right alternative gets the highest probability
    auc: float  # how often a right pair gets a higher probability than a wrong pair of any question
    calibration_error: float  # expected difference between probability and share of right pairs


@dataclass(frozen=True)
class Fit:
    """A critic, its figures by cross-validation, and the (probability, share right, pairs) rows of calibration."""

    critic: Critic
    measured: list[Measured]
    reliability: list[tuple[float, float, int]]


def fit_critic(
    examples: Sequence[LabelledPair],
    models: BundleModels,
    signer: Signer,
    *,
    features: Sequence[str] = (),
    seed: int = 0,
    facts: dict[str, Any] | None = None,
) -> Fit:
    """The critic that separates plausible from implausible examples best; figures come from held-out folds.

    Every set of data counts the same, however many examples it has, except for verdicts: a critic judges answers
    first of all, so they count as much as ten other sets.
    """
    if len({example.plausible for example in examples}) < 2:
        raise Cod3sError(
            "a critic needs plausible and implausible pairs", hint="give --questions, or a corpus with dev pairs"
        )
    names = features or [name for name in DEFAULT_FEATURES if models.facts.judges or "verdict" not in name]
    pairs = [example.pair for example in examples]
    unfitted = Critic(dict.fromkeys(names, 0.0), 0.0, _FLOOR, signer.encoder.id, facts or {})
    rows = feature_rows(names, pairs, Judge(unfitted, models, signer).scores(pairs))
    labels = np.array([example.plausible for example in examples], dtype=np.float64)
    data = np.array([example.data for example in examples])
    folds = make_folds([example.question for example in examples], seed)
    probabilities = np.empty(len(rows))
    for fold in range(_FOLDS):
        apart = folds == fold
        if apart.any() and not apart.all():
            weights, bias = fit_weights(rows[~apart], labels[~apart], data[~apart])
            probabilities[apart] = logistic(rows[apart] @ weights + bias)
    weights, bias = fit_weights(rows, labels, data)
    critic = replace(unfitted, weights=dict(zip(names, weights.tolist(), strict=True)), bias=bias)
    return Fit(critic, measure(examples, probabilities), _reliability(probabilities, labels))


def measure(examples: Sequence[LabelledPair], probabilities: Numbers) -> list[Measured]:
    """The figures of each set of data: all of it, and by relation."""
    figures = []
    for data in dict.fromkeys(example.data for example in examples):
        rows = [row for row, example in enumerate(examples) if example.data == data]
        for relation in ("", *sorted({examples[row].pair.relation for row in rows})):
            chosen = [row for row in rows if relation in ("", examples[row].pair.relation)]
            figures.append(_measure(data, relation, [examples[row] for row in chosen], probabilities[chosen]))
    return figures


def _measure(data: str, relation: str, examples: Sequence[LabelledPair], probabilities: Numbers) -> Measured:
    labels = np.array([example.plausible for example in examples], dtype=np.float64)
    questions: dict[tuple[str, str], list[int]] = {}
    for number, example in enumerate(examples):
        questions.setdefault((example.question, example.pair.source), []).append(number)
    whole = [rows for rows in questions.values() if labels[rows].sum() == 1 and len(rows) > 1]
    credits = choice_credits(
        [probabilities[rows].tolist() for rows in whole], [int(np.argmax(labels[rows])) for rows in whole]
    )
    gaps = [abs(p - share) * count for p, share, count in _reliability(probabilities, labels)]
    return Measured(
        data,
        relation,
        len(whole),
        float(np.mean(credits)) if credits else float("nan"),
        area_under_curve(probabilities, labels),
        sum(gaps) / len(examples),
    )


def make_folds(questions: Sequence[str], seed: int) -> npt.NDArray[np.int64]:
    """The fold of each example; all examples of a question are in the same fold."""
    distinct = sorted(set(questions))
    folds = np.random.default_rng(seed).permutation(len(distinct)) % _FOLDS
    by_question = dict(zip(distinct, folds.tolist(), strict=True))
    return np.array([by_question[question] for question in questions])


def fit_weights(rows: Numbers, labels: Numbers, data: npt.NDArray[np.str_]) -> tuple[Numbers, float]:
    """Weights and bias of a logistic regression, on standardised features.

    Every set of data counts the same in sum, but verdicts count more. Every set has a bias of its own: half of all
    alternatives are right, but fewer answers. The critic gets the bias of the verdicts, or else the mean of all.
    """
    centre, spread = rows.mean(axis=0), rows.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    names, numbers, sizes = np.unique(data, return_inverse=True, return_counts=True)
    counts = np.where(names == VERDICTS, _VERDICTS_COUNT, 1.0)  # of each set
    shares = (len(data) / counts.sum() * counts / sizes)[numbers]  # of each example, 1 on average
    design = np.column_stack([(rows - centre) / spread, np.eye(len(names))[numbers]])
    penalty = np.array([*np.full(rows.shape[1], _SHRINK), *np.full(len(names), 1e-6)])
    weights = fit_logistic(design, labels, penalty, shares)
    scaled, biases = weights[: -len(names)] / spread, weights[-len(names) :]
    bias = biases[names == VERDICTS].mean() if VERDICTS in names else biases.mean()
    return scaled, float(bias - scaled @ centre)


def _reliability(probabilities: Numbers, labels: Numbers) -> list[tuple[float, float, int]]:
    """Mean probability, share of right pairs and number of pairs of each tenth of the scale that has any."""
    numbers = np.minimum((probabilities * _CALIBRATION_BINS).astype(int), _CALIBRATION_BINS - 1)
    rows = []
    for number in range(_CALIBRATION_BINS):
        chosen = numbers == number
        if chosen.any():
            rows.append((float(probabilities[chosen].mean()), float(labels[chosen].mean()), int(chosen.sum())))
    return rows
