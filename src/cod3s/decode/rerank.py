"""Rank signatures and sentences by forward and backward scores (equations 1 and 2 of the paper).

| score | is |
|---|---|
| forward of a signature | mean log p(token given source, tokens before) over its tokens |
| backward of a signature | mean log p(source given signature) over the source's tokens and its end |
| forward of a sentence, `text` | mean log p over the sentence's tokens and its end, given source and signature |
| forward of a sentence, `original` | the same with the signature's tokens counted, in the sum and in the length |
| backward of a sentence | mean log p(source given sentence) over the source's tokens and its end |

MMI ranks by forward + weight x backward; `prior` ranks signatures by
log p(signature given source) - weight x log p(signature), both whole sums: how much likelier the source makes a
bin than its size does. It needs no backward model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from cod3s.models import RoleModel
from cod3s.records import Hypothesis, mean_log_prob


@dataclass(frozen=True)
class Ranked:
    """A hypothesis by its position in the list that was ranked, its score, and the parts of that score."""

    position: int
    score: float
    forward: float
    backward: float | None = None


def rank(forwards: Sequence[float], backwards: Sequence[float] | None = None, weight: float = 0.0) -> list[Ranked]:
    """Best first by forward + weight x backward; equal scores keep their order."""
    if backwards is None:
        rows = [Ranked(position, forward, forward) for position, forward in enumerate(forwards)]
    else:
        pairs = zip(forwards, backwards, strict=True)
        rows = [
            Ranked(position, forward + weight * backward, forward, backward)
            for position, (forward, backward) in enumerate(pairs)
        ]
    return sorted(rows, key=lambda row: -row.score)


def rank_against_prior(
    hypotheses: Sequence[Hypothesis], counts: Sequence[int], *, sentences: int, bits: int, weight: float
) -> list[Ranked]:
    """Best first by log p(s given x) - weight x log p(s); p(s) is its bin's share, with 1 added to every count."""

    def score(hypothesis: Hypothesis, count: int) -> float:
        return hypothesis.log_prob - weight * log((count + 1) / (sentences + 2**bits))

    rows = [
        Ranked(position, score(hypothesis, count), mean_log_prob(hypothesis))
        for position, (hypothesis, count) in enumerate(zip(hypotheses, counts, strict=True))
    ]
    return sorted(rows, key=lambda row: -row.score)


def score_texts(
    model: RoleModel,
    sources: Sequence[str | None],
    texts: Sequence[str],
    prefixes: Sequence[tuple[int, ...]] | None = None,
) -> list[float]:
    """The mean log p(text given source and prefix) of each row, in a single call; equal rows are scored once."""
    return [mean_log_prob(hypothesis) for hypothesis in model.score(sources, texts, prefixes)]


def score_signatures_backward(
    inverse: RoleModel, sources: Sequence[str], rows: Sequence[Sequence[Hypothesis]]
) -> list[list[float]]:
    """For each source and signature, the mean log p(source given signature)."""
    prefixes = [hypothesis.tokens for hypotheses in rows for hypothesis in hypotheses]
    texts = [source for source, hypotheses in zip(sources, rows, strict=True) for _ in hypotheses]
    scores = iter(score_texts(inverse, [None] * len(texts), texts, prefixes))
    return [[next(scores) for _ in hypotheses] for hypotheses in rows]
