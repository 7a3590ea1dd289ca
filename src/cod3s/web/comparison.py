"""The two stages beside plain beam search: one question in, both sets of answers and what they say out."""

from collections.abc import Iterator
from dataclasses import dataclass

from cod3s.decode.config import DecodeConfig
from cod3s.decode.generator import Generator
from cod3s.encode import Encoder
from cod3s.metrics.semantic import PARAPHRASE, cosine_distances, distinct
from cod3s.records import AnswerSet
from cod3s.text import complete


@dataclass(frozen=True)
class Distinct:
    """How many answers of each system say something that none before it said, and what measured it."""

    cod3s: int
    s2s: int
    threshold: float
    encoder: str


@dataclass(frozen=True)
class Comparison:
    """The answers of the two stages and of one beam over sentences."""

    cod3s: AnswerSet
    s2s: AnswerSet
    distinct: Distinct


def compare(
    generator: Generator, text: str, relation: str, options: DecodeConfig, encoder: Encoder
) -> Iterator[Comparison | None]:
    """None after each step of the work, so that it can be stopped there, and the comparison at the end."""
    found: dict[str, AnswerSet] = {}
    for system in ("cod3s", "s2s"):
        own = options.with_values(search="beam") if system == "s2s" else options
        for event in generator.stream(text, relation, system=system, options=own):
            if isinstance(event, AnswerSet):
                found[system] = event
            yield None
    template = generator.facts.relations[relation]["template"]
    counts = {system: count_distinct(own, template, encoder) for system, own in found.items()}
    yield Comparison(**found, distinct=Distinct(**counts, threshold=PARAPHRASE, encoder=encoder.id))


def count_distinct(answers: AnswerSet, template: str, encoder: Encoder, threshold: float = PARAPHRASE) -> int:
    """How many of the completed statements are no paraphrase of one before them."""
    statements = [complete(template, answers.source, answer.text) for answer in answers]
    return len(distinct(cosine_distances(statements, encoder.encode(statements)), threshold)) if statements else 0
