"""Simulated raters with known true scores, to rehearse a study and to test its analysis.

Every statement has a true plausibility: the level of its system plus an offset of its source and an offset of the
answer. A rater adds a personal bias and, each time, noise, and gives the nearest score; careless raters answer at
random. From this, the expected agreement of the raters can be computed, and the analysis must find it.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.errors import Cod3sError, require
from cod3s.options import SEED
from cod3s.study.figures import ordinal_alpha
from cod3s.study.folder import CHECK, RIGHT, WRONG, Item, Study
from cod3s.study.raters import Rating

_LEVELS = (0.35, 0.7)  # true levels of the worst and of the best system, as parts of the scale
_GOLD = {RIGHT: 0.86, WRONG: 0.3}
_SOURCE_SPREAD, _ANSWER_SPREAD = 0.1, 0.16  # as parts of the scale
_SECONDS, _CARELESS_SECONDS = 7.0, 1.5  # medians

Array = npt.NDArray[np.float64]
Plan = list[tuple[Item, list[int]]]
"""Every item with the numbers of its raters."""


@dataclass(frozen=True)
class Crowd:
    """The raters: how many, how noisy, how differently they use the scale, and how many are careless."""

    raters: int = 8
    noise: float = 0.8  # standard deviation of a rating, in scores
    bias: float = 0.4  # standard deviation between raters
    careless: int = 0  # the first so many
    seed: int = SEED


@dataclass(frozen=True)
class Truth:
    """The figures behind simulated ratings, which an analysis should find."""

    levels: Mapping[str, float]  # by system, the worst first
    alpha: float | None  # expected over all items but checks, all raters; None with a single rater per item


@dataclass(frozen=True)
class Simulation:
    """Simulated ratings, and the truth behind them."""

    raters: tuple[str, ...]
    ratings: tuple[Rating, ...]
    scores: Mapping[str, float]  # the true score by item; checks have none
    truth: Truth

    @property
    def names(self) -> dict[str, str]:
        """The name of every rater by their id, which is the same."""
        return {rater: rater for rater in self.raters}


def simulate_ratings(study: Study, items: Sequence[Item], crowd: Crowd) -> Simulation:
    """Ratings of every item by as many raters as the study asks for; the same for the same seed."""
    if crowd.raters < 1 or not 0 <= crowd.careless <= crowd.raters or min(crowd.noise, crowd.bias) < 0:
        raise Cod3sError(
            f"cannot simulate {crowd.raters} raters, {crowd.careless} of them careless, with noise "
            f"{crowd.noise:g} and bias {crowd.bias:g}",
            hint="use at least 1 rater, no more careless raters than raters, and no negative noise or bias",
        )
    top = study.top_score
    systems = sorted({credit.system for item in items for credit in item.credits})
    levels = dict(zip(systems, (top * np.linspace(*_LEVELS, len(systems))).tolist(), strict=True))
    scores = _true_scores(items, levels, top, crowd.seed)
    raters = tuple(f"simulated-{number + 1}" for number in range(crowd.raters))
    generator = np.random.default_rng(crowd.seed + 1)
    biases = generator.normal(0, crowd.bias, size=crowd.raters)
    plan = _plan(study, items, crowd)
    ratings: list[Rating] = []
    for item, numbers in plan:
        for number in numbers:
            seconds = _SECONDS
            if number < crowd.careless:
                score, seconds = int(generator.integers(0, top + 1)), _CARELESS_SECONDS
            elif item.kind == CHECK:
                score = item.expected[0]
            else:
                impression = scores[item.id] + biases[number] + generator.normal(0, crowd.noise)
                score = int(np.clip(np.floor(impression + 0.5), 0, top))
            seconds = round(seconds * float(generator.lognormal(0, 0.5)), 2)
            ratings.append(Rating(raters[number], item.id, score, seconds, at=f"{len(ratings):09}"))
    truth = Truth(levels, _expected_alpha(plan, scores, biases, crowd, top))
    return Simulation(raters, tuple(ratings), scores, truth)


def score_probabilities(centers: Array, noise: float, top: int) -> Array:
    """The probability of each score for a rater whose impression is centered there: (centers, scores)."""
    borders = np.arange(top) + 0.5
    if noise == 0:
        below = (centers[:, None] < borders).astype(np.float64)
    else:
        below = require("scipy.special", "study").ndtr((borders - centers[:, None]) / noise)
    ends = np.ones((len(centers), 1))
    probabilities: Array = np.diff(np.hstack([0 * ends, below, ends]), axis=1)
    return probabilities


def _true_scores(items: Sequence[Item], levels: Mapping[str, float], top: int, seed: int) -> dict[str, float]:
    """The true plausibility of every item but checks; an item of several systems gets the mean of their levels."""
    generator = np.random.default_rng(seed)
    sources: dict[tuple[str, str], float] = {}
    scores = {}
    for item in sorted(items, key=lambda item: item.id):
        if item.kind == CHECK:
            continue
        offset = float(generator.normal(0, _ANSWER_SPREAD * top))
        if item.label:
            scores[item.id] = _GOLD[item.label] * top + offset / 2
            continue
        source = (item.relation, item.source)
        sources.setdefault(source, float(generator.normal(0, _SOURCE_SPREAD * top)))
        level = float(np.mean([levels[credit.system] for credit in item.credits]))
        scores[item.id] = level + sources[source] + offset
    return scores


def _expected_alpha(
    plan: Plan, scores: Mapping[str, float], biases: Array, crowd: Crowd, top: int
) -> float | None:
    """Alpha of the coincidences that these raters are expected to produce."""
    expected = np.zeros((top + 1, top + 1))
    for item, numbers in plan:
        if item.kind == CHECK or len(numbers) < 2:
            continue
        chances = score_probabilities(scores[item.id] + biases[numbers], crowd.noise, top)  # (raters, scores)
        chances[np.array(numbers) < crowd.careless] = 1 / (top + 1)
        total = chances.sum(axis=0)
        expected += (np.outer(total, total) - chances.T @ chances) / (len(numbers) - 1)
    alpha = float(ordinal_alpha(expected)) if expected.any() else float("nan")
    return None if np.isnan(alpha) else alpha


def _plan(study: Study, items: Sequence[Item], crowd: Crowd) -> Plan:
    """Who rates what: everybody rates the checks; the other items, in random order, go to the raters in turn."""
    share = min(study.raters_per_item, crowd.raters)
    plan, turn = [], 0
    for item in random.Random(f"{crowd.seed} plan").sample(items, len(items)):
        if item.kind == CHECK:
            plan.append((item, list(range(crowd.raters))))
        else:
            plan.append((item, [(turn + step) % crowd.raters for step in range(share)]))
            turn += share
    return plan
