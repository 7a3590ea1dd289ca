"""How well a bundle infers signatures: the recall of the gold target's signature for each way to guess."""

from collections.abc import Sequence
from pathlib import Path

from cod3s.bins import open_bins
from cod3s.bundle import bins_path
from cod3s.decode.config import DecodeConfig
from cod3s.decode.models import BundleModels
from cod3s.decode.signatures import find_signatures, rank_signatures
from cod3s.evaluate.items import Item
from cod3s.metrics.inference import DEPTHS, Guess, InferenceScores, score_inference
from cod3s.signatures.signer import Signer
from cod3s.text import for_modelling

MOST_FREQUENT = "most frequent"


def score_guessing(
    folder: Path, models: BundleModels, signer: Signer, items: Sequence[Item], options: DecodeConfig
) -> dict[str, dict[str, InferenceScores]]:
    """Guesser → relation → figures, on the items whose gold target is known.

    The guessers: the model's likeliest signatures, the same ranked by MMI where the bundle can, and the largest
    bins of the training targets whatever the source.
    """
    found: dict[str, dict[str, InferenceScores]] = {}
    for relation in dict.fromkeys(item.relation for item in items):
        own = [item for item in items if item.relation == relation and item.target]
        gold = signer.signatures([item.target for item in own])
        sources = [for_modelling(item.source) for item in own]
        guesses = _model_guesses(models, relation, sources, options)
        guesses[MOST_FREQUENT] = [_largest_bins(bins_path(folder, relation))] * len(own)
        for name, ranked in guesses.items():
            rows = [Guess(wanted, tuple(names)) for wanted, names in zip(gold, ranked, strict=True) if names]
            if scores := score_inference(rows):
                found.setdefault(name, {})[relation] = scores
    return found


def _model_guesses(
    models: BundleModels, relation: str, sources: Sequence[str], options: DecodeConfig
) -> dict[str, list[list[str]]]:
    """By name of the guesser, the signatures of each source, best first."""
    deep = options.with_values(k=max(DEPTHS), signature_beam=max(DEPTHS))
    found = find_signatures(models.signature(relation), sources, deep)
    rerankers: dict[str, str] = {options.signature_search: "none"}
    if models.inverse(relation):
        rerankers["mmi"] = "mmi"
    guesses = {}
    for name, reranker in rerankers.items():
        config = deep.with_values(rerank_signatures=reranker)
        rankings = rank_signatures(models, relation, sources, found, config)
        guesses[name] = [[chosen.signature for chosen in ranking] for ranking in rankings]
    return guesses


def _largest_bins(path: Path) -> list[str]:
    if not path.is_file():
        return []
    with open_bins(path) as bins:
        return [one.signature for one in bins.largest(max(DEPTHS))]
