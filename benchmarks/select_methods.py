"""Compare ways to keep k of many candidates, on a bundle's own samples for COPA premises, in one run.

    pip install semhash
    python benchmarks/select_methods.py BUNDLE copa-dev.xml [--sources 500] [--samples 100] [-k 10]

Every way gets the same candidates, scores and vectors (--encoder). What they keep is judged by another encoder
(--judge), so that none is measured by its own yardstick: distinct counts go down the list and keep an answer whose
completed statement is at least a cosine distance from all kept ones (section 5 of the paper).
"""

import argparse
import json
import random
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
from cod3s.metrics.semantic import distinct, mean_distance
from cod3s.selection import BITS
from cod3s.text import for_embedding

THRESHOLDS = (0.1, 0.25, 0.5)
FIGURES = (*(f"distinct {threshold}" for threshold in THRESHOLDS), "diversity")


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


def selected(method: str, **options: Any) -> Way:
    def choose(pool: Pool, k: int) -> Sequence[int]:
        selection = cod3s.select(
            pool.texts,
            k,
            scores=pool.scores,
            method=method,
            vectors=pool.vectors,
            **options,
        )
        return [candidate.index for candidate in selection]

    return choose


def families() -> dict[str, dict[str, Way]]:
    """Each way at several settings, from the one that heeds scores most to the one that heeds them least."""
    weights = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)
    near = (BITS // 4, 38, 42, 46, 50, 54)
    return {
        "top k by score": {"": lambda pool, k: range(k)},
        "random": {f"of the best {share:.0%}": at_random(share) for share in (0.2, 0.5, 1.0)},
        "semhash": {str(threshold): semhash(threshold) for threshold in (0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1)},
        "semhash representative": {"": representative},
        "signatures": {f"{BITS}/{t}": selected("signatures", min_hamming=t) for t in near},
        "mmr": {str(weight): selected("mmr", score_weight=weight) for weight in weights},
        "dpp": {str(weight): selected("dpp", score_weight=weight) for weight in weights},
        "kmedoids": {"": selected("kmedoids")},
        "auto": {
            "": selected("auto"),
            **{str(weight): selected("auto", score_weight=weight) for weight in weights},
        },
    }


def write_candidates(arguments: argparse.Namespace) -> None:
    """Sample from the bundle; the file is what every later run chooses from."""
    generator = cod3s.load(arguments.bundle)
    questions = read_questions(arguments.questions)[: arguments.sources]
    with arguments.candidates.open("w", encoding="utf-8") as out:
        for direction, group in groupby(sorted(questions, key=attrgetter("direction")), attrgetter("direction")):
            template = generator.facts.relations[direction]["template"]
            premises = [question.premise for question in group]
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


def judge(pool: Pool, rows: Sequence[int]) -> dict[str, float]:
    vectors = pool.judged[list(rows)].astype(np.float64)
    distances = 1 - vectors @ vectors.T
    figures = {"score": float(np.mean([pool.scores[row] for row in rows]))}
    figures |= {f"distinct {threshold}": len(distinct(distances, threshold)) for threshold in THRESHOLDS}
    return figures | {"diversity": 100 * mean_distance(distances)}


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
    if not arguments.candidates.exists():
        write_candidates(arguments)
    pools = read_pools(arguments)
    sizes = [len(pool.texts) for pool in pools]
    print(f"{len(pools)} sources, {np.mean(sizes):.1f} different candidates each")
    print(f"{'way':36}{'score':>8}{''.join(f'{name:>15}' for name in FIGURES)}{'ms':>8}")
    curves = {
        family: [measure(f"{family} {name}", way, pools, arguments.k) for name, way in ways.items()]
        for family, ways in families().items()
    }
    compare(curves)


def measure(name: str, way: Way, pools: Sequence[Pool], k: int) -> dict[str, float]:
    """Mean figures of one way over all pools, printed as a row."""
    start = perf_counter()
    chosen = [way(pool, k) for pool in pools]
    milliseconds = 1000 * (perf_counter() - start) / len(pools)
    rows = [judge(pool, kept) for pool, kept in zip(pools, chosen, strict=True)]
    means = {figure: float(np.mean([row[figure] for row in rows])) for figure in rows[0]}
    cells = "".join(f"{means[figure]:15.2f}" for figure in FIGURES)
    print(f"{name:36}{means['score']:8.3f}{cells}{milliseconds:8.2f}", flush=True)
    return means


def compare(curves: dict[str, list[dict[str, float]]]) -> None:
    """What each method would reach at the mean score of each rival, between the settings that were run."""
    methods = ("signatures", "mmr", "dpp", "auto")
    for figure in FIGURES:
        print(f"\n{figure} at equal mean score")
        print(f"{'rival':28}{'score':>8}{'its own':>12}" + "".join(f"{method:>12}" for method in methods))
        for rival in ("random", "semhash", "semhash representative"):
            for point in curves[rival]:
                cells = [at_score(curves[method], point["score"], figure) for method in methods]
                print(
                    f"{rival:28}{point['score']:8.3f}{point[figure]:12.2f}"
                    + "".join(f"{cell:>12}" for cell in cells)
                )


def at_score(curve: list[dict[str, float]], score: float, figure: str) -> str:
    points = sorted(curve, key=lambda point: point["score"])
    scores = [point["score"] for point in points]
    if not scores[0] <= score <= scores[-1]:
        return "–"
    return f"{np.interp(score, scores, [point[figure] for point in points]):.2f}"


if __name__ == "__main__":
    main()
