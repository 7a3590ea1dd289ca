"""Lexical diversity of a set of answers: pairwise BLEU, distinct-n, self-BLEU.

Degenerate sets have values: fewer than two answers have no diversity (0; self-BLEU 100), and two equal texts
are at distance 0 whatever their length (without smoothing, BLEU-2 of a single word with itself is 0, so the
original counts it as 100 apart).
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import permutations
from typing import Any

from cod3s.errors import require

SELF_BLEU_ORDER = 4


@lru_cache(maxsize=500_000)  # systems share answers, and 3-sets are part of 10-sets
def bleu(text: str, reference: str, order: int) -> float:
    """Sentence BLEU of `order` n-grams as the paper's toolkit computed it: 13a, cased, no smoothing; 0 to 100."""
    score: float = _pair_bleu(order).corpus_score([text], [[reference]]).score
    return min(score, 100.0)  # exp(log(100)) is slightly above 100


def bleu_diversity(texts: Sequence[str], order: int) -> float:
    """The paper's lexical diversity: the mean of 100 - BLEU over ordered pairs; 0 to 100.

    The paper's sum omits y = y'; here, equal texts add nothing to it but count in its |Y| (|Y| - 1).
    """
    pairs = list(permutations(texts, 2))
    distances = [0.0 if text == other else 100.0 - bleu(text, other, order) for text, other in pairs]
    return sum(distances) / len(pairs) if pairs else 0.0


def distinct_ngrams(texts: Sequence[str], order: int) -> float:
    """Distinct-n (Li et al. 2016): the share of different n-grams among all n-grams of the set; 0 without any."""
    ngrams = [
        tuple(tokens[start : start + order])
        for tokens in (_pair_bleu(1).tokenizer(text).split() for text in texts)
        for start in range(len(tokens) - order + 1)
    ]
    return len(set(ngrams)) / len(ngrams) if ngrams else 0.0


def self_bleu(texts: Sequence[str]) -> float:
    """Self-BLEU (Zhu et al. 2018): the mean BLEU-4 of each answer against all others; 100 if all are equal.

    Smoothed (`exp`) with effective order, as sacrebleu advises for sentences: most answers have no 4-grams in
    common, and short ones have none at all.
    """
    if len(texts) < 2:
        return 100.0
    scorer = _self_bleu_scorer()
    scores = [
        scorer.sentence_score(text, [*texts[:position], *texts[position + 1 :]]).score
        for position, text in enumerate(texts)
    ]
    return float(min(sum(scores) / len(scores), 100.0))


def lexical_settings() -> dict[str, str]:
    """The settings of the lexical figures, as sacrebleu's signatures."""
    return {"bleu": _signature(_pair_bleu(2)), "self_bleu": _signature(_self_bleu_scorer())}


def _signature(scorer: Any) -> str:
    scorer.corpus_score(["a"], [["a"]])  # the signature needs the number of references, known after a first score
    return str(scorer.get_signature().format(short=False))


@cache
def _pair_bleu(order: int) -> Any:
    library = require("sacrebleu.metrics", "evaluate")
    # Without effective order: BLEU-2 needs a bigram, as in the original. Scoring a corpus of a single sentence
    # avoids the advice that `sentence_score` logs each time.
    return library.BLEU(tokenize="13a", smooth_method="none", max_ngram_order=order, effective_order=False)


@cache
def _self_bleu_scorer() -> Any:
    library = require("sacrebleu.metrics", "evaluate")
    return library.BLEU(tokenize="13a", smooth_method="exp", max_ngram_order=SELF_BLEU_ORDER, effective_order=True)
