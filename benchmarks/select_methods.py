"""Ways to keep k of many candidates, side by side: a bundle's own samples for COPA premises, one run.

    pip install semhash
    python benchmarks/select_methods.py BUNDLE copa-dev.xml [--sources 500] [--samples 100] [-k 10]

Every way gets the same candidates, scores and vectors (--encoder). What they keep is judged by another encoder
(--judge), so that none is measured by its own yardstick: distinct counts go down the list and keep an answer whose
completed statement is farther than a cosine distance from all kept ones (section 5 of the paper).
"""

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from semhash import SemHash

import cod3s
from cod3s.corpus.questions import read_questions
from cod3s.encode import Encoder, Vectors, load_encoder
from cod3s.text import for_embedding

THRESHOLDS = (0.1, 0.25, 0.5)


@dataclass(frozen=True)
class Pool:
    """The candidates of one source, best first, with vectors for choosing and vectors for judging."""

    texts: list[str]
    scores: list[float]
    vectors: Vectors
    judged: Vectors  # of the completed statements, by the other encoder


Way = Callable[[Pool, int], Sequence[int]]


class Given:
    """SemHash's encoder: the vectors that everyone gets."""

    def __init__(self, pool: Pool) -> None:
        self._rows = dict(zip(pool.texts, pool.vectors, strict=True))

    def encode(self, inputs: Sequence[str], **_: object) -> Vectors:
        return np.stack([self._rows[text] for text in inputs])


def semhash(threshold: float) -> Way:
    """What SemHash leaves after removing near duplicates, the best k of it; filled up by score."""

    def choose(pool: Pool, k: int) -> Sequence[int]:
        index = SemHash.from_embeddings(pool.vectors, pool.texts, Given(pool), ann_backend="basic")
        kept = {pool.texts.index(text) for text in index.self_deduplicate(threshold).selected}
        return (sorted(kept) + [row for row in range(len(pool.texts)) if row not in kept])[:k]

    return choose


def representative(pool: Pool, k: int) -> Sequence[int]:
    """SemHash's own choice of k, which knows no scores."""
    index = SemHash.from_embeddings(pool.vectors, pool.texts, Given(pool), ann_backend="basic")
    return [pool.texts.index(text) for text in index.self_find_representative(k).selected]


def at_random(share: float) -> Way:
    """k drawn from the better share of the candidates."""
    draw = random.Random(7)

    def choose(pool: Pool, k: int) -> Sequence[int]:
        return draw.sample(range(max(k, round(share * len(pool.texts)))), k)

    return choose


def selected(method: str, **options: float) -> Way:
    def choose(pool: Pool, k: int) -> Sequence[int]:
        found = cod3s.select(
            pool.texts,
            k,
            scores=pool.scores,
            method=method,
            vectors=pool.vectors,
            **options,  # type: ignore[arg-type]
        )
        return [one.index for one in found.selected]

    return choose


def ways() -> dict[str, Way]:
    found: dict[str, Way] = {"top k by score": lambda pool, k: range(k), "random": at_random(1.0)}
    found |= {f"random of the best {share:.0%}": at_random(share) for share in (0.2, 0.35, 0.5, 0.7)}
    found |= {f"semhash {threshold}": semhash(threshold) for threshold in (0.9, 0.8, 0.7, 0.6, 0.5)}
    found |= {"semhash representative": representative}
    found |= {
        f"signatures {bits}/{near}": selected("signatures", bits=bits, min_hamming=near) for bits, near in GRID
    }
    found |= {f"mmr {weight}": selected("mmr", score_weight=weight) for weight in (0.9, 0.7, 0.5, 0.3)}
    found |= {f"dpp {weight}": selected("dpp", score_weight=weight) for weight in (0.9, 0.7, 0.5, 0.3)}
    return found | {"kmedoids": selected("kmedoids")}


GRID = ((16, 2), (16, 3), (16, 4), (16, 5), (64, 8), (64, 12), (64, 16), (64, 20), (64, 24), (256, 32), (256, 48))
GRID += ((256, 64), (256, 80), (256, 96))


def write_candidates(arguments: argparse.Namespace) -> None:
    """Sample from the bundle; the file is what every later run chooses from."""
    generator = cod3s.load(arguments.bundle)
    questions = read_questions(arguments.questions)[: arguments.sources]
    with arguments.candidates.open("w", encoding="utf-8") as out:
        for direction, own in groupby(sorted(questions, key=attrgetter("direction")), attrgetter("direction")):
            template = generator.facts.relations[direction]["template"]
            premises = [question.premise for question in own]
            for answers in generator.generate_many(premises, direction, arguments.samples, system="s2s-rs"):
                rows = [(answer.text, answer.score) for answer in answers.answers]
                out.write(json.dumps({"source": answers.source, "template": template, "answers": rows}) + "\n")


def read_pools(arguments: argparse.Namespace) -> list[Pool]:
    chooser, judge = load_encoder(arguments.encoder), load_encoder(arguments.judge)
    lines = arguments.candidates.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [make_pool(record, chooser, judge) for record in records if len(record["answers"]) > arguments.k]


def make_pool(record: dict[str, Any], chooser: Encoder, judge: Encoder) -> Pool:
    texts, scores = map(list, zip(*record["answers"], strict=True))
    source, template = record["source"].rstrip("."), record["template"]
    statements = [template.format(source=source, target=text) for text in texts]
    return Pool(
        texts,
        scores,
        chooser.encode(list(map(for_embedding, texts))),
        judge.encode(list(map(for_embedding, statements))),
    )


def distinct(vectors: Vectors, threshold: float) -> int:
    kept: list[int] = []
    for row in range(len(vectors)):
        if not kept or (1 - vectors[kept] @ vectors[row]).min() > threshold:
            kept.append(row)
    return len(kept)


def judge(pool: Pool, rows: Sequence[int]) -> dict[str, float]:
    vectors = pool.judged[list(rows)]
    pairs = len(rows) * (len(rows) - 1)
    found = {"score": float(np.mean([pool.scores[row] for row in rows]))}
    found |= {f"distinct {threshold}": distinct(vectors, threshold) for threshold in THRESHOLDS}
    return found | {"diversity": 100 * float((1 - vectors @ vectors.T).sum()) / pairs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--sources", type=int, default=500)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--candidates", type=Path, default=Path("candidates.jsonl"), help="kept from run to run")
    parser.add_argument("--encoder", default="static")
    parser.add_argument("--judge", default="fast")
    arguments = parser.parse_args()
    start = perf_counter()
    if not arguments.candidates.exists():
        write_candidates(arguments)
    pools = read_pools(arguments)
    sizes = [len(pool.texts) for pool in pools]
    print(f"{len(pools)} sources, {np.mean(sizes):.1f} candidates each, {perf_counter() - start:.0f} s to make")
    print(
        f"{'way':28}{'score':>8}"
        + "".join(f"{f'dist {t}':>10}" for t in THRESHOLDS)
        + f"{'diversity':>11}{'ms':>8}"
    )
    for name, way in ways().items():
        figures: dict[str, list[float]] = defaultdict(list)
        start = perf_counter()
        chosen = [way(pool, arguments.k) for pool in pools]
        milliseconds = 1000 * (perf_counter() - start) / len(pools)
        for pool, rows in zip(pools, chosen, strict=True):
            for figure, value in judge(pool, rows).items():
                figures[figure].append(value)
        means = {figure: np.mean(values) for figure, values in figures.items()}
        cells = "".join(f"{means[f'distinct {t}']:10.2f}" for t in THRESHOLDS)
        print(f"{name:28}{means['score']:8.3f}{cells}{means['diversity']:11.2f}{milliseconds:8.2f}", flush=True)


if __name__ == "__main__":
    main()
