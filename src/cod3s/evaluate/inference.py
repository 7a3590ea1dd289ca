"""How well a bundle infers the signature of the gold target: the guesses of each way to infer it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cod3s.bins import open_bins
from cod3s.bundle import bins_path
from cod3s.decode.config import DecodeConfig
from cod3s.decode.generator import Generator
from cod3s.decode.signatures import find_signatures, rank_signatures
from cod3s.evaluate.items import Item
from cod3s.metrics.inference import DEPTHS, Guess
from cod3s.text import for_modelling

MOST_FREQUENT = "most frequent"

Guesses = Callable[[Sequence[Item]], Iterator[tuple[str, str, Guess]]]
"""From items to (guesser, relation, guess)."""


def guess_gold(
    generator: Generator, items: Sequence[Item], options: DecodeConfig
) -> Iterator[tuple[str, str, Guess]]:
    """(guesser, relation, guess) for every item whose gold target is known, and every guesser.

    The guessers: the model's likeliest signatures, the same reranked by MMI if the bundle can, and the largest
    bins of the training targets whatever the source. Signatures that systems have searched are not searched again.
    """
    for relation in dict.fromkeys(item.relation for item in items if item.target):
        known = [item for item in items if item.relation == relation and item.target]
        gold = generator.signer.signatures([item.target for item in known])
        guesses = _model_guesses(generator, relation, [for_modelling(item.source) for item in known], options)
        guesses[MOST_FREQUENT] = [_largest_bins(bins_path(generator.folder, relation))] * len(known)
        for name, ranked in guesses.items():
            for target, signatures in zip(gold, ranked, strict=True):
                if signatures:
                    yield name, relation, Guess(target, tuple(signatures))


def _model_guesses(
    generator: Generator, relation: str, sources: Sequence[str], options: DecodeConfig
) -> dict[str, list[list[str]]]:
    """By name of the guesser, the signatures of each source, best first."""
    models = generator.models
    deep = options.with_values(k=max(DEPTHS), signature_beam=max(DEPTHS))
    rankings: dict[str, DecodeConfig] = {deep.signature_search: deep.with_values(rerank_signatures="none")}
    if models.inverse(relation):
        rankings["mmi"] = deep.with_values(rerank_signatures="mmi")
    inferred = find_signatures(models.signature(relation), sources, deep)
    return {
        name: [
            [chosen.signature for chosen in ranking]
            for ranking in rank_signatures(models, relation, sources, inferred, config)
        ]
        for name, config in rankings.items()
    }


def _largest_bins(path: Path) -> list[str]:
    if not path.is_file():
        return []
    with open_bins(path) as bins:
        return [bin.signature for bin in bins.largest(max(DEPTHS))]
