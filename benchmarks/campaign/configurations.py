"""Numbers: random decoding configurations on the tiny bundle.

    PYTHONPATH=benchmarks:tests python -m campaign.configurations --cases 500 --seconds 600

Each gives k answers that obey the Hamming rule or a remark that says why not; a batch of one equals a batch of
many, what is streamed equals the whole, one thread equals two, and neither remembering nor opening the bundle (in
int8) again changes anything.
"""

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any

from campaign.material import material
from campaign.tally import Budget, Tally, budget_of, parser, print_all
from cod3s.decode.config import DecodeConfig
from cod3s.decode.generator import Generator
from cod3s.encode import load_encoder
from cod3s.errors import Cod3sError
from cod3s.records import Answer, AnswerSet

SOURCES = (
    "the baker lost the key at home",
    "the pilot won a prize by the sea",
    "the judge caught a cold in town",
    "the waiter missed the bus near the lake",
)
_ROUNDING = 1e-4  # by which scores of another batch or thread may differ
_CHOICES: dict[str, Sequence[Any]] = {
    "k": (1, 2, 3, 5, 8),
    "signature_search": ("beam", "exact"),
    "signature_beam": (8, 20, 40),
    "rerank_signatures": ("none", "mmi", "prior"),
    "min_hamming": (0, 1, 2, 3),
    "if_too_few": ("relax", "refill", "strict"),
    "search": ("beam", "sample"),
    "beam": (1, 3, 5),
    "samples": (1, 4),
    "top_k": (1, 5, 50),
    "temperature": (0.5, 1.0),
    "rerank_sentences": ("none", "mmi"),
    "normalise": ("text", "original"),
    "allow_repeats": (False, True),
    "max_tokens": (4, 12, 24),
    "bins_per_answer": (1.0, 2.0),
    "check": (False, True),
    "bin_fit": ("none", "weigh", "rerank", "filter"),
    "share_candidates": ("on", "off"),
    "unfiltered": (False, True),
    "seed": (0, 7, 1234),
}


def random_config(draw: random.Random) -> DecodeConfig | None:
    """A configuration with some options changed; None if the options do not go together."""
    names = [name for name in _CHOICES if draw.random() < 0.5]
    try:
        return DecodeConfig().with_values(**{name: draw.choice(_CHOICES[name]) for name in names})
    except Cod3sError:
        return None


class Generators:
    """The same bundle opened in the ways that must not matter."""

    def __init__(self, bundle: Path) -> None:
        encoder = load_encoder("static")
        self.open_again = partial(Generator, bundle, encoder=encoder, threads=1)
        self.plain = self.open_again()
        self.threaded = Generator(bundle, encoder=encoder, threads=2)
        self.remembering = Generator(bundle, encoder=encoder, threads=1, cache=10_000)

    def try_config(self, config: DecodeConfig, relation: str) -> str:
        """What is wrong with the answers under a configuration, or nothing."""
        whole = list(self.plain.generate_many(SOURCES, relation, options=config))
        if fault := next((fault for answers in whole if (fault := _broken_rule(answers, config))), ""):
            return fault
        others: dict[str, Callable[[], list[AnswerSet]]] = {
            "two threads": lambda: list(self.threaded.generate_many(SOURCES, relation, options=config)),
            "opened again": lambda: list(self.open_again().generate_many(SOURCES, relation, options=config)),
            "remembering": lambda: list(self.remembering.generate_many(SOURCES, relation, options=config)),
            "remembered": lambda: list(self.remembering.generate_many(SOURCES, relation, options=config)),
        }
        if config.search == "beam":  # samples depend on what was drawn before them in the batch
            others["one by one"] = lambda: [
                self.plain.generate(text, relation, options=config) for text in SOURCES
            ]
            others["streamed"] = lambda: [self._streamed(text, relation, config) for text in SOURCES]
        for name, ask in others.items():
            if fault := _difference(whole, ask()):
                return f"{name}: {fault}"
        return ""

    def _streamed(self, source: str, relation: str, config: DecodeConfig) -> AnswerSet:
        *_, last = self.plain.stream(source, relation, options=config)
        assert isinstance(last, AnswerSet)
        return last


def _broken_rule(answers: AnswerSet, config: DecodeConfig) -> str:
    signatures = [answer.signature for answer in answers.answers]
    for one, other in combinations(signatures, 2):
        distance = sum(a != b for a, b in zip(one, other, strict=True))
        # `refill` asks for the best of the rest, however near they are.
        if distance <= config.min_hamming and config.if_too_few != "refill" and not answers.remarks:
            return f"{one} and {other} differ in {distance} bits, and no remark says so"
    if len(signatures) < config.k and not answers.remarks:
        return f"{len(signatures)} answers instead of {config.k}, and no remark says why"
    return "more answers than asked for" if len(signatures) > config.k else ""


def _difference(left: Sequence[AnswerSet], right: Sequence[AnswerSet]) -> str:
    for a, b in zip(left, right, strict=True):
        for answer, other in zip_longest(a.answers, b.answers):
            if not (answer and other and _is_same(answer, other)):
                return f"{a.source!r}: {answer} and {other}"[:500]
    return ""


def _is_same(answer: Answer, other: Answer) -> bool:
    same_words = (answer.text, answer.signature) == (other.text, other.signature)
    return same_words and abs(answer.score - other.score) < _ROUNDING


def try_configs(bundle: Path, budget: Budget) -> Tally:
    tally = Tally("numbers: random configurations")
    generators = Generators(bundle)
    for number in budget.numbers():
        draw = budget.draw("configuration", number)
        config = random_config(draw)
        if config is None:
            continue
        relation = draw.choice(("cause", "effect"))
        try:
            finding = generators.try_config(config, relation)
        except Cod3sError as error:
            finding = "" if error.message else "an error without a message"
        tally.count(f"case {number}", finding)
    return tally


def campaign(options: argparse.Namespace) -> Iterator[Tally]:
    yield try_configs(material() / "small", budget_of(options))


if __name__ == "__main__":
    sys.exit(print_all(campaign(parser(__doc__, cases=500, seconds=600).parse_args())))
