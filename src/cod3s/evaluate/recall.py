"""How well a bundle infers signatures: sources with gold targets in, recalls of each way to guess out."""

from collections.abc import Sequence
from pathlib import Path

from cod3s.bins import open_bins
from cod3s.bundle import bins_path
from cod3s.decode.check import Checker
from cod3s.decode.config import DecodeConfig
from cod3s.decode.players import Players
from cod3s.decode.rerank import mean_log_prob, rank, score_signatures_backward
from cod3s.decode.signatures import find_signatures, read_signature
from cod3s.evaluate.items import Item
from cod3s.metrics.inference import DEPTHS, Guess, InferenceScores, score_inference
from cod3s.text import for_modelling

MOST_FREQUENT = "most frequent"


def score_guessing(
    folder: Path, players: Players, checker: Checker, items: Sequence[Item], options: DecodeConfig
) -> dict[str, dict[str, InferenceScores]]:
    """Guesser → relation → figures, on the items whose gold target is known.

    The guessers: the model's likeliest signatures, the same ranked by MMI where the bundle can, and the largest
    bins of the training targets whatever the source.
    """
    found: dict[str, dict[str, InferenceScores]] = {}
    for relation in dict.fromkeys(item.relation for item in items):
        own = [item for item in items if item.relation == relation and item.target]
        gold = checker.sign([item.target for item in own])
        sources = [for_modelling(item.source) for item in own]
        guesses = _model_guesses(players, relation, sources, options)
        guesses[MOST_FREQUENT] = [_largest_bins(bins_path(folder, relation))] * len(own)
        for name, ranked in guesses.items():
            rows = [Guess(wanted, tuple(names)) for wanted, names in zip(gold, ranked, strict=True) if names]
            if scores := score_inference(rows):
                found.setdefault(name, {})[relation] = scores
    return found


def _model_guesses(
    players: Players, relation: str, sources: Sequence[str], options: DecodeConfig
) -> dict[str, list[list[str]]]:
    words = players.vocabulary
    found = find_signatures(
        players.signature(relation), words, sources, search=options.signature_search, best=max(DEPTHS)
    )
    names = [[read_signature(words, one.tokens) or "" for one in own] for own in found]
    guesses = {options.signature_search: names}
    inverse = players.inverse(relation)
    if inverse:
        backwards = score_signatures_backward(inverse, words, sources, found)
        ranked = [
            rank([mean_log_prob(one) for one in own], scores, options.signature_weight)
            for own, scores in zip(found, backwards, strict=True)
        ]
        guesses["mmi"] = [[own[row.place] for row in rows] for own, rows in zip(names, ranked, strict=True)]
    return guesses


def _largest_bins(path: Path) -> list[str]:
    if not path.is_file():
        return []
    with open_bins(path) as bins:
        return [one.signature for one in bins.largest(max(DEPTHS))]
