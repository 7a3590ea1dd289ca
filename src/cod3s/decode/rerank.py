"""Ranks hypotheses by forward and backward scores. Numbers in, an order out.

| score | is |
|---|---|
| forward of a signature | mean log p(token given source, tokens before) over its tokens |
| backward of a signature | mean log p(source given signature) over the source's tokens and its end |
| forward of a sentence, `text` | mean log p over the sentence's tokens and its end, given source and signature |
| forward of a sentence, `original` | the same with the signature's tokens counted, in the sum and in the length |
| backward of a sentence | mean log p(source given sentence) over the source's tokens and its end |

MMI ranks by forward + weight x backward (equations 1 and 2 of the paper); `prior` ranks signatures by
log p(signature given source) - weight x log p(signature), both whole sums: how much likelier the source makes a
bin than its size does. It needs no backward model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from cod3s.decode.players import Player
from cod3s.records import Hypothesis
from cod3s.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Ranked:
    """A hypothesis by its place in the list it was given in, what it was ranked by, and the parts of that."""

    place: int
    score: float
    forward: float
    backward: float | None = None


def mean_log_prob(hypothesis: Hypothesis) -> float:
    """The log-probability per token."""
    return hypothesis.log_prob / hypothesis.length


def rank(forwards: Sequence[float], backwards: Sequence[float] | None = None, weight: float = 0.0) -> list[Ranked]:
    """Best first by forward + weight x backward; equal ones stay in the order given."""
    if backwards is None:
        rows = [Ranked(place, forward, forward) for place, forward in enumerate(forwards)]
    else:
        pairs = zip(forwards, backwards, strict=True)
        rows = [Ranked(place, f + weight * b, f, b) for place, (f, b) in enumerate(pairs)]
    return sorted(rows, key=lambda row: -row.score)


def rank_against_prior(
    hypotheses: Sequence[Hypothesis], counts: Sequence[int], *, sentences: int, bits: int, weight: float
) -> list[Ranked]:
    """Best first by log p(s given x) - weight x log p(s); p(s) is its bin's share, one added to every bin."""
    rows = [
        Ranked(place, one.log_prob - weight * log((count + 1) / (sentences + 2**bits)), mean_log_prob(one))
        for place, (one, count) in enumerate(zip(hypotheses, counts, strict=True))
    ]
    return sorted(rows, key=lambda row: -row.score)


def score_signatures_backward(
    inverse: Player, vocabulary: Vocabulary, sources: Sequence[str], found: Sequence[Sequence[Hypothesis]]
) -> list[list[float]]:
    """For each source and signature, the mean log p(source given signature): one call for all."""
    requests = [inverse.request(None, one.tokens) for own in found for one in own]
    texts = [vocabulary.encode_text(source) for source in sources]
    continuations = [text for text, own in zip(texts, found, strict=True) for _ in own]
    scores = iter(inverse.engine.score(requests, continuations))
    return [[mean_log_prob(next(scores)) for _ in own] for own in found]


def score_sentences_backward(
    backward: Player, vocabulary: Vocabulary, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], float]:
    """For each (source, sentence), the mean log p(source given sentence): one call, each pair once."""
    unique = list(dict.fromkeys(pairs))
    texts = {source: vocabulary.encode_text(source) for source, _ in unique}
    requests = [backward.request(sentence) for _, sentence in unique]
    scores = backward.engine.score(requests, [texts[source] for source, _ in unique])
    return {pair: mean_log_prob(score) for pair, score in zip(unique, scores, strict=True)}
