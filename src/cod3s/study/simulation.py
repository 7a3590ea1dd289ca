"""Simulated raters with known true scores, to rehearse a study and to test its analysis.

Every statement has a true plausibility: the level of its system plus an offset of its source and an offset of the
answer. A rater adds a personal bias and, each time, noise, and gives the nearest score; careless raters answer at
random.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cod3s.errors import Cod3sError
from cod3s.options import SEED
from cod3s.study.folder import CHECK, RIGHT, WRONG, Item, Study
from cod3s.study.raters import Rating

_LEVELS = (0.35, 0.7)  # true levels of the worst and of the best system, as parts of the scale
_GOLD = {RIGHT: 0.86, WRONG: 0.3}
_SOURCE_SPREAD, _ANSWER_SPREAD = 0.1, 0.16  # as parts of the scale
_SECONDS, _CARELESS_SECONDS = 7.0, 1.5  # medians


@dataclass(frozen=True)
class Crowd:
    """The raters: how many, how noisy, how differently they use the scale, and how many are careless."""

    raters: int = 8
    noise: float = 0.8  # standard deviation of a rating, in scores
    bias: float = 0.4  # standard deviation between raters
    careless: int = 0  # the first so many
    seed: int = SEED


@dataclass(frozen=True)
class Simulation:
    """Simulated ratings, and the truth behind them, which an analysis should find."""

    raters: tuple[str, ...]
    ratings: tuple[Rating, ...]
    scores: Mapping[str, float]  # the true score by item; checks have none
    levels: Mapping[str, float]  # the true level by system, the worst first

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
    ratings: list[Rating] = []
    for item, numbers in _plan(study, items, crowd):
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
    return Simulation(raters, tuple(ratings), scores, levels)


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


def _plan(study: Study, items: Sequence[Item], crowd: Crowd) -> Iterator[tuple[Item, list[int]]]:
    """Who rates what: everybody rates the checks; the other items, in random order, go to the raters in turn."""
    share, turn = min(study.raters_per_item, crowd.raters), 0
    for item in random.Random(f"{crowd.seed} plan").sample(items, len(items)):
        if item.kind == CHECK:
            yield item, list(range(crowd.raters))
        else:
            yield item, [(turn + step) % crowd.raters for step in range(share)]
            turn += share
