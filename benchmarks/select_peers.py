"""Compare ways to keep k of many candidates: meanings covered, time per call, installed size; in one run.

    pip install pyversity semhash submodlib-py langchain-core packaging
    PYTHONPATH=tests python benchmarks/select_peers.py intents.tsv [--part test] [--draws 50]

Every way gets the same vectors and no scores. `intents` are rows of text and intent (CLINC150's test questions):
ten intents per draw, in four shapes of group sizes. The intents are split into two halves; nothing was ever
chosen on `--part test`. `few` are draws of as many as there are meanings from about ten rows. `paraphrases` are
the sets of tests/paraphrase_groups.py with one to three wordings per meaning. A way whose library is missing is
left out.
"""

import argparse
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from statistics import mean
from time import perf_counter, process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
from packaging.requirements import Requirement

import cod3s
from cod3s.encode import Encoder, Vectors, load_encoder
from cod3s.selection import METHODS
from cod3s.text import all_for_embedding
from paraphrase_groups import LATER_SETS, SETS, SETS_IN_OTHER_WORDS

SHAPES = {
    "falling": (24, 12, 8, 6, 5, 4, 3, 3, 2, 2),
    "equal": (8,) * 10,
    "one large": (30, *(3,) * 9),
    "mixed": (14, 12, 10, 9, 8, 7, 6, 4, 3, 2),
}
FEW = (
    (6, 1, 1, 1, 1),
    (4, 3, 1, 1, 1),
    (2, 2, 2, 2, 1, 1),
    (7, 2, 1),
    (5, 3, 2),
    (3, 1, 1, 1, 1, 1, 1, 1),
    (2, 1, 1, 1, 1, 1, 1, 1, 1),
    (4, 2, 2, 1, 1),
    (8, 1, 1),
    (3, 3, 2, 1, 1),
)
INTENTS = 10
_SPLIT_SEED = 3

Way = Callable[[Vectors, int], list[int]]


@dataclass(frozen=True, eq=False)
class Draw:
    """Candidates in random order, and the meaning of each."""

    vectors: Vectors
    meanings: npt.NDArray[np.int_]


def read_groups(path: Path, part: str) -> dict[str, list[str]]:
    """The texts of each intent of one half."""
    groups: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        text, intent = line.split("\t")
        groups.setdefault(intent, []).append(text)
    names = sorted(groups)
    random.Random(_SPLIT_SEED).shuffle(names)
    half = len(names) // 2
    return {name: groups[name] for name in (names[:half] if part == "dev" else names[half:])}


def draw_shapes(
    groups: dict[str, Vectors], shapes: tuple[tuple[int, ...], ...], draws: int, seed: int = 0
) -> Iterator[Draw]:
    """Draws of one meaning per number of a shape, with as many rows."""
    draw = random.Random(seed)
    for shape in shapes:
        for _ in range(draws):
            chosen = zip(draw.sample(sorted(groups), len(shape)), shape, strict=True)
            rows = [
                (groups[name][row], meaning)
                for meaning, (name, size) in enumerate(chosen)
                for row in draw.sample(range(len(groups[name])), size)
            ]
            draw.shuffle(rows)
            vectors, meanings = zip(*rows, strict=True)
            yield Draw(np.array(vectors), np.array(meanings))


def draw_paraphrases(encoder: Encoder, draws: int) -> Iterator[Draw]:
    """Draws of one to three wordings of each meaning of a set."""
    draw = random.Random(9)
    for paraphrases in (*SETS, *LATER_SETS, *SETS_IN_OTHER_WORDS):
        vectors = encoder.encode(all_for_embedding(paraphrases.candidates))
        for _ in range(draws):
            rows = [
                3 * meaning + wording
                for meaning in range(len(paraphrases.groups))
                for wording in draw.sample(range(3), draw.choice((1, 2, 3)))
            ]
            draw.shuffle(rows)
            yield Draw(vectors[rows], np.array(rows) // 3)


def ours(method: str) -> Way:
    return lambda vectors, k: cod3s.select(_texts(vectors), k, method=method, vectors=vectors).indices


def pyversity(strategy: str) -> Way:
    from pyversity import diversify

    def choose(vectors: Vectors, k: int) -> list[int]:
        result = diversify(embeddings=vectors, scores=np.ones(len(vectors)), k=k, strategy=strategy)
        return [int(index) for index in result.indices]

    return choose


def semhash() -> Way:
    from semhash import SemHash

    class Known:
        def encode(self, inputs: list[str], **_: object) -> Vectors:
            raise AssertionError("all vectors are given")

    def choose(vectors: Vectors, k: int) -> list[int]:
        texts = _texts(vectors)
        index = SemHash.from_embeddings(vectors, texts, Known(), ann_backend="basic")
        return [
            texts.index(text) for text in index.self_find_representative(k, candidate_limit=len(texts)).selected
        ]

    return choose


def submodlib(function: str, **options: Any) -> Way:
    import submodlib as library

    def choose(vectors: Vectors, k: int) -> list[int]:
        if len(vectors) <= k:
            return list(range(len(vectors)))
        kernel = (1 + vectors @ vectors.T) / 2
        objective = getattr(library, function)(n=len(vectors), mode="dense", sijs=kernel, **options)
        return [index for index, _ in objective.maximize(budget=k, show_progress=False)]

    return choose


def langchain() -> Way:
    from langchain_core.vectorstores.utils import maximal_marginal_relevance

    return lambda vectors, k: maximal_marginal_relevance(vectors.mean(axis=0), list(vectors), 0.5, k)


def ways() -> Iterator[tuple[str, Way]]:
    """Ours, and those whose libraries are installed."""
    draw = random.Random(7)
    yield "random", lambda vectors, k: draw.sample(range(len(vectors)), min(k, len(vectors)))
    for method in METHODS:
        if method != "auto":
            yield f"cod3s {method}", ours(method)
    peers: list[tuple[str, Callable[[], Way]]] = [
        *(
            (f"pyversity {name}", lambda name=name: pyversity(name))
            for name in ("mmr", "msd", "cover", "dpp", "ssd")
        ),
        ("semhash representative", semhash),
        ("submodlib facility location", lambda: submodlib("FacilityLocationFunction", separate_rep=False)),
        ("submodlib log determinant", lambda: submodlib("LogDeterminantFunction", lambdaVal=1)),
        ("submodlib disparity sum", lambda: submodlib("DisparitySumFunction")),
        ("langchain mmr", langchain),
    ]
    for name, make in peers:
        try:
            yield name, make()
        except ImportError as error:
            print(f"{name} is left out: {error}")


def coverage(way: Way, draws: list[Draw]) -> float:
    """The mean share of the meanings that are covered, k being their number."""
    shares = []
    for drawn in draws:
        k = len(set(drawn.meanings))
        shares.append(len(set(drawn.meanings[way(drawn.vectors, k)])) / k)
    return mean(shares)


def milliseconds(way: Way, draws: list[Draw]) -> float:
    """Processor time per call with 75 candidates or so, the best of five rounds."""
    rounds = []
    for _ in range(5):
        start = process_time()
        for drawn in draws:
            way(drawn.vectors, INTENTS)
        rounds.append(1000 * (process_time() - start) / len(draws))
    return min(rounds)


def installed_size(name: str) -> tuple[float, int]:
    """MiB of a distribution and what it requires, apart from NumPy; and how many distributions."""
    seen: set[str] = set()
    size, waiting = 0, [name]
    while waiting:
        current = waiting.pop()
        if current in seen or current == "numpy":
            continue
        try:
            found = distribution(current)
        except PackageNotFoundError:
            continue
        seen.add(current)
        paths = [Path(str(file.locate())) for file in found.files or ()]
        size += sum(path.stat().st_size for path in paths if path.is_file())
        for text in found.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name.lower())
    return size / 2**20, len(seen)


def _texts(vectors: Vectors) -> list[str]:
    return [f"text {row}" for row in range(len(vectors))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("intents", type=Path)
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--draws", type=int, default=50, help="per shape")
    parser.add_argument("--encoder", default="static")
    arguments = parser.parse_args()
    encoder = load_encoder(arguments.encoder)
    groups = {
        name: encoder.encode(all_for_embedding(texts))
        for name, texts in read_groups(arguments.intents, arguments.part).items()
    }
    shapes = {name: list(draw_shapes(groups, (shape,), arguments.draws)) for name, shape in SHAPES.items()}
    few = list(draw_shapes(groups, FEW, max(1, arguments.draws // 4)))
    paraphrases = list(draw_paraphrases(encoder, max(1, arguments.draws // 10)))
    timed = [drawn for draws in shapes.values() for drawn in draws[:10]]
    print(f"{arguments.encoder} | {arguments.part} half | {arguments.draws} draws per shape")
    print(
        f"| way | {' | '.join(shapes)} | **intents** | few | paraphrases | ms |\n|---|{'---|' * (len(shapes) + 4)}"
    )
    for name, way in ways():
        start = perf_counter()
        of_ten = [INTENTS * coverage(way, draws) for draws in shapes.values()]
        cells = [f"{figure:.2f}" for figure in (*of_ten, mean(of_ten))]
        cells += [f"{100 * coverage(way, draws):.1f} %" for draws in (few, paraphrases)]
        print(f"| {name} | {' | '.join(cells)} | {milliseconds(way, timed):.2f} |", flush=True)
        if perf_counter() - start > 600:
            print(f"{name} took more than ten minutes")
    for name in ("cod3s", "pyversity", "semhash", "submodlib-py", "langchain-core"):
        size, count = installed_size(name)
        if count:
            print(f"{name}: {size:.0f} MiB in {count} distributions, NumPy apart")


if __name__ == "__main__":
    main()
