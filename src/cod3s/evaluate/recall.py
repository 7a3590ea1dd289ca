"""How well a bundle infers the signature of the gold target: the recall of each way to guess it."""

from collections.abc import Sequence
from pathlib import Path

from cod3s.bins import open_bins
from cod3s.bundle import bins_path
from cod3s.decode.config import DecodeConfig
from cod3s.decode.players import Players
from cod3s.decode.rerank import mean_log_prob, rank, score_signatures_backward
from cod3s.decode.signatures import find_signatures, read_signature
from cod3s.evaluate.items import Item
from cod3s.evaluate.judges import OpenBundle
from cod3s.metrics.inference import DEPTHS, Guess, InferenceScores, score_inference
from cod3s.text import for_modelling

MOST_FREQUENT = "most frequent"


def score_recall(
    bundle: OpenBundle, items: Sequence[Item], options: DecodeConfig
) -> dict[str, dict[str, InferenceScores]]:
    """Guesser → relation → figures, on the items whose gold target is known.

    The guessers: the model's likeliest signatures, the same reranked by MMI if the bundle can, and the largest
    bins of the training targets whatever the source.
    """
    scores: dict[str, dict[str, InferenceScores]] = {}
    for relation in dict.fromkeys(item.relation for item in items):
        known = [item for item in items if item.relation == relation and item.target]
        if not known:
            continue
        gold = bundle.generator.checker.sign([item.target for item in known])
        sources = [for_modelling(item.source) for item in known]
        guesses = _model_guesses(bundle.players, relation, sources, options)
        guesses[MOST_FREQUENT] = [_largest_bins(bins_path(bundle.folder, relation))] * len(known)
        for name, ranked in guesses.items():
            rows = [Guess(target, tuple(names)) for target, names in zip(gold, ranked, strict=True) if names]
            if relation_scores := score_inference(rows):
                scores.setdefault(name, {})[relation] = relation_scores
    return scores


def _model_guesses(
    players: Players, relation: str, sources: Sequence[str], options: DecodeConfig
) -> dict[str, list[list[str]]]:
    words = players.vocabulary
    hypotheses = find_signatures(
        players.signature(relation), words, sources, search=options.signature_search, best=max(DEPTHS)
    )
    names = [[read_signature(words, hypothesis.tokens) or "" for hypothesis in row] for row in hypotheses]
    guesses = {options.signature_search: names}
    inverse = players.inverse(relation)
    if inverse:
        backwards = score_signatures_backward(inverse, words, sources, hypotheses)
        ranked = [
            rank([mean_log_prob(hypothesis) for hypothesis in row], scores, options.signature_weight)
            for row, scores in zip(hypotheses, backwards, strict=True)
        ]
        guesses["mmi"] = [[row[best.place] for best in order] for row, order in zip(names, ranked, strict=True)]
    return guesses


def _largest_bins(path: Path) -> list[str]:
    if not path.is_file():
        return []
    with open_bins(path) as bins:
        return [bin.signature for bin in bins.largest(max(DEPTHS))]
