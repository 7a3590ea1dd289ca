"""Where the time of an answer goes: processor seconds, engine calls, rows and tokens of each stage.

    python benchmarks/stages.py [BUNDLE] [--rounds 3] [--writing 14]

The first table is about opening a bundle with a causal language model, the second about answering, per source, in
the best of the rounds. With `--writing`, the sources are as many of docs/measured/reading.tsv for which answers
have to be written, because too few are known. Processor time, because it says the same on a busy machine. A row is
a prompt that the engine reads or a text that it scores. Tokens read are those of prompts and scored texts; tokens
written are the steps of a search times its beams.
"""

import argparse
import random
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reading import Asked, read_asked

from cod3s.decode.generator import Generator, load
from cod3s.encode import Vectors

SOURCES = (
    ("the power went out during dinner", "effect"),
    ("the bus was late again", "effect"),
    ("she forgot to water the plants on the balcony for two weeks", "effect"),
    ("the baby would not stop crying", "cause"),
    ("the shop closed early", "cause"),
    ("he decided to sell the old car before the winter", "cause"),
)


@dataclass
class Cost:
    """What one stage took."""

    seconds: float = 0.0
    calls: int = 0
    rows: int = 0
    read: int = 0
    written: int = 0


Costs = defaultdict[str, Cost]


@contextmanager
def clocked(cost: Cost) -> Iterator[None]:
    start = time.process_time()
    yield
    cost.seconds += time.process_time() - start
    cost.calls += 1


class CountingModel:
    """A model of the engine that counts what it is asked to do."""

    def __init__(self, model: Any, costs: Costs) -> None:
        self._model, self._costs = model, costs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def generate_batch(self, prompts: Sequence[Sequence[str]], **options: Any) -> Any:
        cost = self._costs["signatures" if options.get("suppress_sequences") else "sentences"]
        with clocked(cost):
            pending = self._model.generate_batch(prompts, **options)
            results = [waiting.result() for waiting in pending]
        cost.rows += len(prompts)
        cost.read += sum(map(len, prompts))
        for result in results:
            steps = max(map(len, result.sequences_ids))
            cost.written += 1 + (steps - 1) * options["beam_size"]  # beams widen after the first step
        return pending

    def score_batch(self, texts: Sequence[Sequence[str]], **options: Any) -> Any:
        cost = self._costs["critic"]
        with clocked(cost):
            pending = self._model.score_batch(texts, **options)
            for waiting in pending:
                waiting.result()
        cost.rows += len(texts)
        cost.read += sum(map(len, texts))
        return pending


class CountingEncoder:
    """A sentence encoder that counts the texts it is given."""

    def __init__(self, encoder: Any, costs: Costs) -> None:
        self._encoder, self._costs = encoder, costs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(self, sentences: Sequence[str]) -> Vectors:
        cost = self._costs["vectors"]
        with clocked(cost):
            vectors: Vectors = self._encoder.encode(sentences)
        cost.rows += len(sentences)
        return vectors


def count(generator: Generator, costs: Costs) -> None:
    """Make the generator's models count into `costs`."""
    engine: Any = generator.models.sentence(SOURCES[0][1]).engine
    engine._model = CountingModel(engine._model, costs)
    signer: Any = generator.signer
    signer.encoder = CountingEncoder(signer.encoder, costs)


def sources_to_write_for(generator: Generator, costs: Costs, number: int) -> list[Asked]:
    """The first sources of the reading, in a fixed random order, for which sentences are written."""
    asked = read_asked()
    random.Random(1).shuffle(asked)
    chosen: list[Asked] = []
    for source, relation in asked:
        costs.clear()
        generator.generate(source, relation)
        if costs["sentences"].rows:
            chosen.append((source, relation))
        if len(chosen) == number:
            break
    return chosen


def measure(generator: Generator, costs: Costs, sources: Sequence[Asked]) -> Costs:
    """The costs of all sources, one after the other."""
    costs.clear()
    start = time.process_time()
    for source, relation in sources:
        generator.generate(source, relation)
    total = time.process_time() - start
    costs["everything else"].seconds = total - sum(cost.seconds for cost in costs.values())
    costs["all"].seconds = total
    return defaultdict(Cost, costs)


def opened(bundle: Path | None) -> Generator:
    """The generator, after a table of what opening its parts and a first source took."""
    steps: dict[str, Callable[[Generator], object]] = {
        "open the language model": lambda generator: generator.models.sentence(SOURCES[0][1]),
        "open the encoder and the critic": lambda generator: generator.judge,
        "first source": lambda generator: generator.generate(*SOURCES[0]),
        "the same source again": lambda generator: generator.generate(*SOURCES[0]),
    }
    print("| step | processor seconds | peak memory so far, MB |\n|---|---|---|")
    print(f"| start Python and import | {time.process_time():.2f} | {peak_mb():.0f} |")
    generator = load(bundle)
    for name, step in steps.items():
        cost = Cost()
        with clocked(cost):
            step(generator)
        print(f"| {name} | {cost.seconds:.2f} | {peak_mb():.0f} |")
    return generator


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts in KB


def main(bundle: Path | None, rounds: int, writing: int) -> None:
    costs: Costs = defaultdict(Cost)
    generator = opened(bundle)
    count(generator, costs)
    sources = sources_to_write_for(generator, costs, writing) if writing else SOURCES
    best = min((measure(generator, costs, sources) for _ in range(rounds)), key=lambda costs: costs["all"].seconds)
    print(
        "\n| stage | processor seconds | calls | rows | tokens read | tokens written |\n|---|---|---|---|---|---|"
    )
    for stage in ("signatures", "sentences", "vectors", "critic", "everything else", "all"):
        cost = best[stage]
        counts = [cost.calls, cost.rows, cost.read, cost.written]
        numbers = [f"{number / len(sources):.0f}" if number else "" for number in counts]
        print(f"| {stage} | {cost.seconds / len(sources):.2f} |", " | ".join(numbers), "|")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--writing", type=int, default=0)
    arguments = parser.parse_args()
    main(arguments.bundle, arguments.rounds, arguments.writing)
