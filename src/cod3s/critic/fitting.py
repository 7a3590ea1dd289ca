"""Fit the critic's logistic model, and measure it by cross-validation: accuracy, AUC, calibration."""

from collections import Counter
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
_THOROUGHLY, _CHOOSING = ", thoroughly", ", choosing"
_FOLDS = 5
_VERDICTS_COUNT = 10.0
_SHRINK = 1.0  # the penalty on squared weights of features in units of their spread
_FLOOR = 0.25  # a third of known answers just above it are accepted (docs/measured/default-bundle.md)
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
    first of all, so they count as much as ten other sets. Sources that are known count as if they were not.
    Given pairs are judged by the features `thorough`, if any, whose weights come from all questions and from this
    many verdicts; the alternatives of questions by the same features, with weights that come from questions alone.
    """
    labels = np.array([example.plausible for example in examples], dtype=np.float64)
    if not 0 < labels.sum() < len(labels):
        raise Cod3sError(
            "a critic needs plausible and implausible pairs", hint="give --questions, or a corpus with dev pairs"
        )
    unfitted = Critic(dict.fromkeys(features, 0.0), 0.0, 0.0, signer.encoder.id)
    judge = Judge(unfitted, models, signer, leave_out=True)
    rows = judge.features([example.pair for example in examples])
    data = np.array([example.data for example in examples])
    folds = make_folds([example.question for example in examples], seed)
    held_out = _held_out(rows, labels, data, folds)
    weights, bias = fit_weights(rows, labels, data)
    critic = Critic(
        dict(zip(features, weights.tolist(), strict=True)),
        bias,
        floor=_FLOOR,
        encoder=signer.encoder.id,
        facts=facts or {},
    )
    measured = measure(examples, held_out)
    known = _known_verdicts(rows, data, features)
    if len({*labels[known].tolist()}) > 1:
        glanced = rows[known][:, [list(features).index(name) for name in GLANCED]]
        weights, bias = fit_weights(glanced, labels[known], data[known])
        glance = dict(zip(GLANCED, weights.tolist(), strict=True))
        critic = replace(critic, glance=glance, glance_bias=bias, written_floor=_WRITTEN_FLOOR)
        probabilities = _held_out(glanced, labels[known], data[known], folds[known])
        read = [replace(examples[row], data=GLANCE) for row in np.flatnonzero(known).tolist()]
        measured += measure(read, probabilities)
    if thorough:
        chosen = _some_verdicts(examples, thorough_verdicts, seed)
        pairs, asked = [examples[n].pair for n in chosen], replace(unfitted, weights=dict.fromkeys(thorough, 0.0))
        given = Judge(asked, models, signer, leave_out=True, likelihoods=True).features(pairs)
        critic, figures = _fit_for_given(
            critic, thorough, _Table([examples[n] for n in chosen], given, folds[chosen])
        )
        measured += figures
    return Fit(critic, measured, _reliability(held_out, labels))


def _fit_for_given(critic: Critic, features: Sequence[str], table: "_Table") -> tuple[Critic, list[Measured]]:
    """The critic with weights for given pairs and for the alternatives of questions, and their figures."""
    weights, bias, measured = table.fit(_THOROUGHLY)
    critic = replace(critic, thorough=dict(zip(features, weights, strict=True)), thorough_bias=bias)
    questions = table.without_verdicts()
    if len({*questions.labels.tolist()}) > 1:
        weights, bias, figures = questions.fit(_CHOOSING)
        critic = replace(critic, choosing=dict(zip(features, weights, strict=True)), choosing_bias=bias)
        measured += figures
    return critic, measured


@dataclass(frozen=True)
class _Table:
    """Examples with their features and folds."""

    examples: list[LabelledPair]
    rows: Numbers
    folds: npt.NDArray[np.int64]

    @property
    def labels(self) -> Numbers:
        return np.array([example.plausible for example in self.examples], dtype=np.float64)

    def without_verdicts(self) -> "_Table":
        kept = [number for number, example in enumerate(self.examples) if example.data != VERDICTS]
        return _Table([self.examples[number] for number in kept], self.rows[kept], self.folds[kept])

    def fit(self, remark: str) -> tuple[list[float], float, list[Measured]]:
        """Weights, bias, and figures by cross-validation; `remark` follows the names of the data."""
        data = np.array([example.data for example in self.examples])
        weights, bias = fit_weights(self.rows, self.labels, data)
        probabilities = _held_out(self.rows, self.labels, data, self.folds)
        named = [replace(example, data=example.data + remark) for example in self.examples]
        return weights.tolist(), bias, measure(named, probabilities)


def _some_verdicts(examples: Sequence[LabelledPair], number: int, seed: int) -> list[int]:
    """Rows of all examples that are not verdicts, and of so many verdicts: scoring each of them takes time."""
    verdicts = [row for row, example in enumerate(examples) if example.data == VERDICTS]
    drawn = np.random.default_rng(seed).permutation(verdicts)[:number].tolist()
    return sorted([*drawn, *(row for row, example in enumerate(examples) if example.data != VERDICTS)])


def _known_verdicts(rows: Numbers, data: npt.NDArray[np.str_], features: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which examples are verdicts on known answers; none if the features do not say what is known."""
    if not {*GLANCED} <= {*features}:
        return np.zeros(len(rows), dtype=bool)
    known: npt.NDArray[np.bool_] = (rows[:, list(features).index("known")] > 0) & (data == VERDICTS)
    return known


def _held_out(
    rows: Numbers,
    labels: Numbers,
    data: npt.NDArray[np.str_],
    folds: npt.NDArray[np.int64],
) -> Numbers:
    """The probability of each example, by a fit on the other folds."""
    probabilities = np.empty(len(rows))
    for fold in range(_FOLDS):
        apart = folds == fold
        if apart.any() and not apart.all():
            weights, bias = fit_weights(rows[~apart], labels[~apart], data[~apart])
            probabilities[apart] = logistic(rows[apart] @ weights + bias)
    return probabilities


def measure(examples: Sequence[LabelledPair], probabilities: Numbers) -> list[Measured]:
    """The figures of each set of data: all of it, and by relation."""
    figures = []
    for data in dict.fromkeys(example.data for example in examples):
        relations = sorted({example.pair.relation for example in examples if example.data == data})
        for relation in ("", *relations):
            chosen = [
                number
                for number, example in enumerate(examples)
                if example.data == data and relation in ("", example.pair.relation)
            ]
            figures.append(_measure(data, relation, [examples[n] for n in chosen], probabilities[chosen]))
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


def _shares(data: Sequence[str]) -> Numbers:
    """How much each example counts, 1 on average: equal in sum for every set of data, but more for verdicts."""
    counts = Counter(data)
    parts = {name: _VERDICTS_COUNT if name == VERDICTS else 1.0 for name in counts}
    scale = len(data) / sum(parts.values())
    return np.array([scale * parts[name] / counts[name] for name in data])


def fit_weights(rows: Numbers, labels: Numbers, data: npt.NDArray[np.str_]) -> tuple[Numbers, float]:
    """Weights and bias of a logistic regression, on standardised features.

    Every set of data has a bias of its own: half of all alternatives are right, but fewer answers. The critic gets
    the bias of the verdicts, or else the mean of all.
    """
    centre, spread = rows.mean(axis=0), rows.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    names = sorted(set(data.tolist()))
    sets = (data[:, None] == np.array(names)).astype(np.float64)  # (examples, sets)
    design = np.column_stack([(rows - centre) / spread, sets])
    penalty = np.array([*np.full(rows.shape[1], _SHRINK), *np.full(len(names), 1e-6)])
    weights = fit_logistic(design, labels, penalty, _shares(data.tolist()))
    scaled, biases = weights[: -len(names)] / spread, weights[-len(names) :]
    bias = biases[names.index(VERDICTS)] if VERDICTS in names else biases.mean()
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
