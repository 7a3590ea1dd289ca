"""Simulated raters with known true scores, to rehearse a study and to test its analysis.

Every statement has a true plausibility: the level of its system plus an offset of its source and an offset of the
answer. A rater adds a personal bias and, each time, noise, and gives the nearest score; careless raters answer at
random. From this, the expected agreement of the raters can be computed, and the analysis must find it.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import numpy as np
import numpy.typing as npt

from cod3s.errors import Cod3sError, require
from cod3s.options import SEED
from cod3s.study.plan.folder import CHECK, RIGHT, WRONG, Item, Rater, Rating, Study
from cod3s.study.plan.identities import SIMULATED, as_text
from cod3s.study.results.agreement import ordinal_alpha

_LEVELS = (0.35, 0.7)  # true levels of the worst and of the best system, as parts of the scale
_GOLD = {RIGHT: 0.86, WRONG: 0.3}
_SOURCE_SPREAD, _ANSWER_SPREAD = 0.1, 0.16  # as parts of the scale
_SECONDS, _CARELESS_SECONDS = 7.0, 1.5  # medians
_EPOCH = datetime(2000, 1, 1, tzinfo=timezone.utc)

Array = npt.NDArray[np.float64]
Plan = list[tuple[Item, list[int]]]
"""Every item with the numbers of its raters."""


@dataclass(frozen=True)
class Crowd:
    """The raters: how many, how noisy, how differently they use the scale, and how many are careless."""

    raters: int = 8
    noise: float = 0.8  # standard deviation of a rating, in scores
    bias: float = 0.4  # standard deviation between raters
    careless: int = 0
    seed: int = SEED


@dataclass(frozen=True)
class Simulation:
    """The simulated ratings, and what an analysis of them should find."""

    raters: tuple[Rater, ...]
    ratings: tuple[Rating, ...]
    truths: Mapping[str, float]  # by item; checks have none
    levels: Mapping[str, float]  # by system, the worst first
    alpha: float | None  # expected over all items but checks, all raters; None with a single rater per item


def simulate(study: Study, items: Sequence[Item], crowd: Crowd) -> Simulation:
    """Ratings of every item by as many raters as the study asks for; the same for the same seed."""
    if crowd.raters < 1 or min(crowd.noise, crowd.bias) < 0 or not 0 <= crowd.careless <= crowd.raters:
        raise Cod3sError(
            f"cannot simulate {crowd.raters} raters, {crowd.careless} of them careless, with noise "
            f"{crowd.noise:g} and bias {crowd.bias:g}",
            hint="use at least 1 rater, no more careless raters than raters, and no negative noise or bias",
        )
    top = len(study.scale) - 1
    levels = system_levels(items, top=top)
    truths = true_scores(items, levels, top=top, seed=crowd.seed)
    return rate(study, items, truths, levels, crowd)


def system_levels(items: Sequence[Item], *, top: int) -> dict[str, float]:
    """The true levels of the systems, evenly spaced and ascending by name."""
    systems = sorted({credit.system for item in items for credit in item.of})
    levels = np.linspace(_LEVELS[0] * top, _LEVELS[1] * top, len(systems))
    return {name: float(level) for name, level in zip(systems, levels, strict=True)}


def true_scores(items: Sequence[Item], levels: Mapping[str, float], *, top: int, seed: int) -> dict[str, float]:
    """The true plausibility of every item but checks; an item of several systems gets the mean of their levels."""
    generator = np.random.default_rng(seed)
    sources: dict[tuple[str, str], float] = {}
    truths = {}
    for item in sorted(items, key=lambda item: item.id):
        if item.kind == CHECK:
            continue
        offset = float(generator.normal(0, _ANSWER_SPREAD * top))
        if item.label:
            truths[item.id] = _GOLD[item.label] * top + offset / 2
            continue
        source = (item.relation, item.source)
        sources.setdefault(source, float(generator.normal(0, _SOURCE_SPREAD * top)))
        level = float(np.mean([levels[credit.system] for credit in item.of]))
        truths[item.id] = level + sources[source] + offset
    return truths


def rate(
    study: Study, items: Sequence[Item], truths: Mapping[str, float], levels: Mapping[str, float], crowd: Crowd
) -> Simulation:
    """Ratings by the crowd of items with these true scores."""
    generator = np.random.default_rng(crowd.seed + 1)
    top = len(study.scale) - 1
    biases = generator.normal(0, crowd.bias, size=crowd.raters)
    raters = tuple(_rater(number, crowd) for number in range(crowd.raters))
    ratings: list[Rating] = []
    plan = _plan(study, items, crowd)
    for item, numbers in plan:
        for number in numbers:
            if number < crowd.careless:
                score, pace = int(generator.integers(0, top + 1)), _CARELESS_SECONDS
            elif item.kind == CHECK:
                score, pace = item.expected[0], _SECONDS
            else:
                impression = truths[item.id] + biases[number] + generator.normal(0, crowd.noise)
                score, pace = int(np.clip(np.floor(impression + 0.5), 0, top)), _SECONDS
            seconds = round(pace * float(generator.lognormal(0, 0.5)), 2)
            key = f"{SIMULATED}-{item.id}"
            ratings.append(Rating(raters[number].id, item.id, score, seconds, _time(len(ratings)), key=key))
    return Simulation(raters, tuple(ratings), truths, levels, _implied(plan, truths, biases, crowd, top))


def score_probabilities(centres: Array, noise: float, top: int) -> Array:
    """The probability of each score for a rater whose impression is centred there: (centres, scores)."""
    borders = np.arange(top) + 0.5
    if noise == 0:
        below = (centres[:, None] < borders).astype(np.float64)
    else:
        below = require("scipy.special", "evaluate").ndtr((borders - centres[:, None]) / noise)
    ends = np.ones((len(centres), 1))
    probabilities: Array = np.diff(np.hstack([0 * ends, below, ends]), axis=1)
    return probabilities


def _implied(plan: Plan, truths: Mapping[str, float], biases: Array, crowd: Crowd, top: int) -> float | None:
    """Alpha of the coincidences that these raters are expected to produce."""
    expected = np.zeros((top + 1, top + 1))
    for item, numbers in plan:
        if item.kind == CHECK or len(numbers) < 2:
            continue
        scores = score_probabilities(truths[item.id] + biases[numbers], crowd.noise, top)  # (raters, scores)
        scores[np.array(numbers) < crowd.careless] = 1 / (top + 1)
        total = scores.sum(axis=0)
        expected += (np.outer(total, total) - scores.T @ scores) / (len(numbers) - 1)
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


def _rater(number: int, crowd: Crowd) -> Rater:
    name = f"{SIMULATED}-{crowd.seed}-{number + 1}"
    return Rater(id=name, origin=SIMULATED, created=_time(number), external=name, finished=_time(number))


def _time(seconds: float) -> str:
    return as_text(_EPOCH + timedelta(seconds=seconds))
