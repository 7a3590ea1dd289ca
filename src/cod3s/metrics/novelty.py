"""NoveltyBench's two figures (Zhang et al. 2025): distinct classes among k answers, and the utility of a set.

NoveltyBench trains a classifier to decide which answers are equivalent. Here, two answers are equivalent if the
cosine of their completed statements is above a bar, and an answer joins the class of the earliest answer that
it is equivalent to. So classes are transitive in order: if b is like a, and c like b, then c is in the class of a.
"""

from collections.abc import Sequence

from cod3s.metrics.semantic import Distances

EQUIVALENCE_DISTANCE = 0.1  # cosine above 0.9: the paper's bar for paraphrases (its appendix D)
PATIENCE = 0.8
"""The probability that a user who has read an answer goes on to the next: NoveltyBench's value."""


def equivalence_classes(distances: Distances, bar: float = EQUIVALENCE_DISTANCE) -> list[int]:
    """The class of each answer, numbered from 0 in order of appearance; `distances` is (n, n)."""
    classes: list[int] = []
    for position, row in enumerate(distances):
        equivalent = (classes[earlier] for earlier in range(position) if row[earlier] < bar)
        classes.append(next(equivalent, len(set(classes))))
    return classes


def distinct_classes(classes: Sequence[int]) -> int:
    """How many different things the answers say."""
    return len(set(classes))


def utility(classes: Sequence[int], k: int) -> float:
    """What a user gains from a list of k answers: later answers count less, and repeats count nothing.

    (1 - p) / (1 - p^k) times the sum of p^(i-1) over the answers i that are the first of their class: 1 if all k
    answers are new. Missing answers add nothing. NoveltyBench also weighs each answer by its quality.
    """
    firsts = [position for position, name in enumerate(classes[:k]) if name not in classes[:position]]
    return sum(PATIENCE**position for position in firsts) * (1.0 - PATIENCE) / (1.0 - PATIENCE**k)
