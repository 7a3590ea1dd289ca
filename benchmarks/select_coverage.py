"""How many meanings do ways to keep k candidates cover? Sets of paraphrases, in random order and without scores.

    pip install semhash
    PYTHONPATH=benchmarks:tests python benchmarks/select_coverage.py

For each way: the mean share of the groups that are covered, and the share of the draws in which all are.
"""

import random
from collections.abc import Iterator, Sequence

import numpy as np
from select_methods import Pool, Way, representative, semhash

import cod3s
from cod3s.encode import Encoder, Vectors, load_encoder
from cod3s.text import for_embedding
from paraphrase_groups import LATER_SETS, SETS, SETS_IN_OTHER_WORDS, ParaphraseSet

DRAWS = 10  # per set
COLUMNS: dict[str, tuple[Sequence[ParaphraseSet], tuple[int, ...]]] = {  # sets, and how large their groups may be
    "first seven": (SETS, (3,)),
    "later five": (LATER_SETS, (3,)),
    "last eight": (SETS_IN_OTHER_WORDS, (3,)),
    "uneven": ((*SETS, *LATER_SETS, *SETS_IN_OTHER_WORDS), (1, 2, 3)),
}


def ways() -> dict[str, Way]:
    own = {method: without_scores(method) for method in ("auto", "dpp", "mmr", "kmedoids", "signatures")}
    thresholds = {f"semhash {threshold}": semhash(threshold) for threshold in (0.9, 0.5, 0.3, 0.2, 0.1)}
    return {**own, "semhash representative": representative, **thresholds}


def without_scores(method: str) -> Way:
    def choose(pool: Pool, k: int) -> Sequence[int]:
        return [candidate.index for candidate in cod3s.select(pool.texts, k, method=method, vectors=pool.vectors)]

    return choose


def draws(sets: Sequence[ParaphraseSet], sizes: tuple[int, ...]) -> Iterator[tuple[ParaphraseSet, list[int]]]:
    """Positions of candidates in random order: from each group as many as one of `sizes`."""
    draw = random.Random(9)
    for paraphrases in sets:
        for _ in range(DRAWS):
            drawn = [
                3 * group + wording
                for group in range(len(paraphrases.groups))
                for wording in draw.sample(range(3), draw.choice(sizes))
            ]
            draw.shuffle(drawn)
            yield paraphrases, drawn


def coverage(way: Way, sets: Sequence[ParaphraseSet], sizes: tuple[int, ...], encoder: Encoder) -> str:
    vectors = {paraphrases.topic: embed(paraphrases, encoder) for paraphrases in sets}
    shares = []
    for paraphrases, drawn in draws(sets, sizes):
        texts, rows = [paraphrases.candidates[place] for place in drawn], vectors[paraphrases.topic][drawn]
        kept = way(Pool(texts, [0.0] * len(texts), rows, rows), len(paraphrases.groups))
        shares.append(len(paraphrases.covered([drawn[index] for index in kept])) / len(paraphrases.groups))
    return f"{np.mean(shares):.2f}, {np.mean(np.array(shares) == 1):.2f}"


def embed(paraphrases: ParaphraseSet, encoder: Encoder) -> Vectors:
    return encoder.encode([for_embedding(text) for text in paraphrases.candidates])


def main() -> None:
    encoder = load_encoder("static")
    print(f"| method | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}")
    for name, way in ways().items():
        cells = [coverage(way, sets, sizes, encoder) for sets, sizes in COLUMNS.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
