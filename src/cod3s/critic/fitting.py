"""Fit the critic's logistic model, and measure it by cross-validation: accuracy, AUC, calibration."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.critic.examples import VERDICTS, LabelledPair
from cod3s.decode.models import BundleModels
from cod3s.decode.plausibility import GLANCED, Critic, Judge
from cod3s.errors import Cod3sError
from cod3s.logistic import Numbers, fit_logistic, logistic
from cod3s.metrics.pair_scores import choice_credits
from cod3s.signatures.signer import Signer

DEFAULT_FEATURES = ("pmi", "pmi_per_token", "target_alone", "backward_pmi", "relevance", "words", "overlap")
THOROUGH_FEATURES = ("plain_pmi", "plain_pmi_per_token", *DEFAULT_FEATURES[2:])
"""What the critic of given pairs weighs, besides what the bundle can give."""
GLANCE = "known answers, at a glance"
"""The name of the verdicts on known answers where no model is asked."""
_THOROUGHLY, _CHOOSING = "{}, thoroughly", "{}, choosing"  # the same for sets of data
_FOLDS = 5
_VERDICTS_COUNT = 10.0
_SHRINK = 1.0  # the penalty on squared weights of features in units of their spread
_FLOOR = 0.25  # a third of known answers just above it are accepted
_WRITTEN_FLOOR = 0.4  # a sixth of written answers just below it are accepted, and half of known ones
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
    features: Sequence[str] = DEFAULT_FEATURES,
    thorough: Sequence[str] = (),
    thorough_verdicts: int = 4000,
    seed: int = 0,
    facts: dict[str, Any] | None = None,
) -> Fit:
    """The critic that separates plausible from implausible examples best; figures come from held-out folds.

    Every set of data counts the same, however many examples it has, except for verdicts: a critic judges answers
    first of all, so they count as much as ten other sets. Known sources count as if they were unknown.
    Given pairs are judged by the features `thorough`, if any, whose weights come from all questions and from this
    many verdicts; the alternatives of questions by the same features, with weights that come from questions alone.
    """
    if len({example.plausible for example in examples}) < 2:
        raise Cod3sError(
            "a critic needs plausible and implausible pairs", hint="give --questions, or a corpus with dev pairs"
        )
    unfitted = Critic(dict.fromkeys(features, 0.0), 0.0, 0.0, signer.encoder.id)
    rows = Judge(unfitted, models, signer, leave_out=True).features([example.pair for example in examples])
    folds = make_folds([example.question for example in examples], seed)
    table = _Table(examples, features, rows, folds)
    weights, bias = table.fit()
    critic = Critic(weights, bias, _FLOOR, signer.encoder.id, facts or {})
    probabilities = table.held_out()
    measured = measure(examples, probabilities)
    if {*GLANCED} <= {*features} and (known := table.glanced()).is_mixed:
        weights, bias = known.fit()
        critic = replace(critic, glance=weights, glance_bias=bias, written_floor=_WRITTEN_FLOOR)
        measured += known.measured(GLANCE)
    if thorough:
        chosen = _some_verdicts(examples, thorough_verdicts, seed)
        examples = [examples[row] for row in chosen]
        unfitted = replace(unfitted, weights=dict.fromkeys(thorough, 0.0))
        judge = Judge(unfitted, models, signer, leave_out=True, likelihoods=True)
        rows = judge.features([example.pair for example in examples])
        critic, figures = _fit_for_given(critic, _Table(examples, thorough, rows, folds[chosen]))
        measured += figures
    return Fit(critic, measured, _reliability(probabilities, table.labels))


def _fit_for_given(critic: Critic, table: "_Table") -> tuple[Critic, list[Measured]]:
    """The critic with weights for given pairs and for the alternatives of questions, and their figures."""
    weights, bias = table.fit()
    critic, measured = replace(critic, thorough=weights, thorough_bias=bias), table.measured(_THOROUGHLY)
    questions = table.part(table.data != VERDICTS)
    if questions.is_mixed:
        weights, bias = questions.fit()
        critic = replace(critic, choosing=weights, choosing_bias=bias)
        measured += questions.measured(_CHOOSING)
    return critic, measured


@dataclass(frozen=True)
class _Table:
    """Examples with their folds and features."""

    examples: Sequence[LabelledPair]
    names: Sequence[str]  # of the features
    rows: Numbers  # (examples, features)
    folds: npt.NDArray[np.int64]

    @property
    def labels(self) -> Numbers:
        return np.array([example.plausible for example in self.examples], dtype=np.float64)

    @property
    def data(self) -> npt.NDArray[np.str_]:
        return np.array([example.data for example in self.examples])

    @property
    def is_mixed(self) -> bool:
        """Whether some examples are plausible and others are not."""
        return len({example.plausible for example in self.examples}) > 1

    def part(self, chosen: npt.NDArray[np.bool_]) -> "_Table":
        examples = [self.examples[row] for row in np.flatnonzero(chosen).tolist()]
        return _Table(examples, self.names, self.rows[chosen], self.folds[chosen])

    def glanced(self) -> "_Table":
        """The verdicts on known answers, with the features that need no model."""
        columns = {name: number for number, name in enumerate(self.names)}
        known = self.part((self.rows[:, columns["known"]] > 0) & (self.data == VERDICTS))
        return replace(known, names=GLANCED, rows=known.rows[:, [columns[name] for name in GLANCED]])

    def fit(self) -> tuple[dict[str, float], float]:
        """The weight of each feature, and the bias."""
        weights, bias = fit_weights(self.rows, self.labels, self.data)
        return dict(zip(self.names, weights.tolist(), strict=True)), bias

    def held_out(self) -> Numbers:
        """The probability of each example, by a fit on the other folds."""
        labels, data, probabilities = self.labels, self.data, np.empty(len(self.rows))
        for fold in range(_FOLDS):
            apart = self.folds == fold
            if apart.any() and not apart.all():
                weights, bias = fit_weights(self.rows[~apart], labels[~apart], data[~apart])
                probabilities[apart] = logistic(self.rows[apart] @ weights + bias)
        return probabilities

    def measured(self, name: str) -> list[Measured]:
        """The figures by cross-validation; `name` says how the sets of data are called in them."""
        renamed = [replace(example, data=name.format(example.data)) for example in self.examples]
        return measure(renamed, self.held_out())


def _some_verdicts(examples: Sequence[LabelledPair], number: int, seed: int) -> list[int]:
    """Rows of all examples that are not verdicts, and of so many verdicts: scoring each of them takes time."""
    verdicts = [row for row, example in enumerate(examples) if example.data == VERDICTS]
    drawn = np.random.default_rng(seed).permutation(verdicts)[:number].tolist()
    return sorted([*drawn, *(row for row, example in enumerate(examples) if example.data != VERDICTS)])


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


def area_under_curve(probabilities: Numbers, labels: Numbers) -> float:
    """The share of (right, wrong) couples that are in order; ties count half."""
    right, wrong = np.sort(probabilities[labels == 1]), np.sort(probabilities[labels == 0])
    if not len(right) or not len(wrong):
        return float("nan")
    below = np.searchsorted(wrong, right, side="left") + np.searchsorted(wrong, right, side="right")
    return float(below.sum() / 2 / len(right) / len(wrong))
