"""Answers as they are made: a stream ends with the set that `generate` gives, and tells its parts before."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cod3s.decode.config import DecodeConfig
from cod3s.decode.generator import Generator, load
from cod3s.errors import Cod3sError, SentenceError
from cod3s.records import Answer, AnswerMade, AnswerSet, SignaturesChosen, StageStarted
from tiny_bundle import SOURCES, TinyBundle

QUICK = DecodeConfig(k=5, signature_beam=20, beam=6, samples=6, max_tokens=12, baseline_beam=6)


@pytest.fixture(scope="module")
def generator(tiny_bundle: TinyBundle) -> Generator:
    return load(tiny_bundle.exact)


def numbers(answers: tuple[Answer, ...]) -> list[float]:
    return [value for one in answers for value in (one.score, one.forward, one.backward or 0.0)]


def same(a: AnswerSet, b: AnswerSet) -> bool:
    """Equal in all but the rounding of scores."""

    def words(found: AnswerSet) -> list[tuple[str, str, str, int | None]]:
        return [(one.text, one.signature, one.realised, one.hamming) for one in found]

    equal = words(a) == words(b) and a.settings == b.settings and a.remarks == b.remarks
    return equal and np.allclose(numbers(a.answers), numbers(b.answers), atol=1e-3)


CASES = [
    (QUICK, "cod3s", "the defaults"),
    (QUICK.with_values(per_bin=3, min_hamming=0), "cod3s", "near bins find the same texts, which are given once"),
    (QUICK.with_values(beam=1), "cod3s", "bins that have nothing new stay empty, and a remark counts them"),
    (QUICK.with_values(check=True), "cod3s", "only what is chosen is signed"),
    (QUICK.with_values(bin_fit="weigh"), "cod3s", "the choice in a bin knows what others chose before"),
    (QUICK.with_values(bin_fit="rerank"), "cod3s", "all candidates are signed before the choice"),
    (QUICK.with_values(bin_fit="filter", bin_fit_within=1), "cod3s", "some bins lose all they have"),
    (QUICK.with_values(rerank_sentences="none", normalise="original"), "cod3s", "scores count the signature"),
    (QUICK.with_values(search="sample"), "cod3s", "samples are drawn all at once"),
    (QUICK.with_values(search="sample", k=2, signature_search="exact"), "cod3s", "exact signatures"),
    (QUICK, "s2s", "one stage has no signatures"),
    (QUICK, "s2s-sigs", "one stage that writes signatures chooses none before"),
]


@pytest.mark.parametrize(("options", "system", "why"), CASES, ids=[why for *_, why in CASES])
def test_a_stream_ends_with_what_generate_gives(
    options: DecodeConfig, system: str, why: str, generator: Generator
) -> None:
    first, *made, last = generator.stream(SOURCES[0], "effect", system=system, options=options, group=2)
    assert isinstance(last, AnswerSet)
    assert same(last, generator.generate(SOURCES[0], "effect", system=system, options=options))
    assert [(one.place, one.answer) for one in made if isinstance(one, AnswerMade)] == [*enumerate(last.answers)]
    assert isinstance(first, SignaturesChosen)
    chosen = [one.signature for one in first.signatures]
    if system == "cod3s":
        assert list(dict.fromkeys(one.signature for one in last)) == [
            one for one in chosen if one in {answer.signature for answer in last}
        ]
    else:
        assert chosen == []


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(group=st.integers(1, 9), k=st.integers(1, 7))
def test_the_size_of_the_groups_changes_no_answer(group: int, k: int, generator: Generator) -> None:
    *_, last = generator.stream(SOURCES[1], "cause", k, options=QUICK, group=group)
    assert isinstance(last, AnswerSet)
    assert same(last, generator.generate(SOURCES[1], "cause", k, options=QUICK))


def test_signatures_come_before_any_sentence_is_written(generator: Generator) -> None:
    """The first event is there although the sentences would be far too many to write."""
    long = QUICK.with_values(k=200, beam=100, signature_beam=200, max_tokens=40)
    first = next(generator.stream(SOURCES[0], "effect", options=long))
    assert isinstance(first, SignaturesChosen)
    assert len(first.signatures) > 100


SPARE = QUICK.with_values(k=2, bins_per_answer=2)
STAGES = [
    (
        QUICK.with_values(k=3),
        "cod3s",
        ["choosing bins", "writing in 2 bins", "choosing answers", "writing in 1 bin"],
    ),
    (SPARE, "cod3s", ["choosing bins", "writing in 4 bins", "choosing answers"]),
    (QUICK, "s2s", ["writing"]),
]


@pytest.mark.parametrize(("options", "system", "wanted"), STAGES, ids=["groups", "spare bins", "one stage"])
def test_each_stage_is_told_before_it_begins_to_those_who_ask(
    options: DecodeConfig, system: str, wanted: list[str], generator: Generator
) -> None:
    events = list(generator.stream(SOURCES[0], "effect", system=system, options=options, group=2, stages=True))
    stages = [str(event) for event in events if isinstance(event, StageStarted)]
    assert list(dict.fromkeys(stages)) == wanted
    assert isinstance(events[0], StageStarted)
    others = [event for event in events if not isinstance(event, StageStarted)]
    assert others == list(generator.stream(SOURCES[0], "effect", system=system, options=options, group=2))


def test_the_stages_of_spare_bins_come_before_the_signatures(generator: Generator) -> None:
    """Which bins give answers is known only at the end: until then, the stages are all there is."""
    names = [type(event) for event in generator.stream(SOURCES[0], "effect", options=SPARE, stages=True)]
    assert names[:4] == [StageStarted] * 3 + [SignaturesChosen]


def test_signatures_of_the_user_are_the_bins_of_the_stream(generator: Generator) -> None:
    wanted = ["01001110", "11110000"]
    first, *_, last = generator.stream(SOURCES[0], "effect", options=QUICK, signatures=wanted)
    assert isinstance(first, SignaturesChosen)
    assert [one.signature for one in first.signatures] == wanted
    assert isinstance(last, AnswerSet)
    assert [one.signature for one in last] == wanted


@pytest.mark.parametrize(
    ("source", "relation", "wanted"),
    [("", "effect", SentenceError), ("it rained", "efect", Cod3sError)],
    ids=["nothing to answer", "a relation that is not there"],
)
def test_a_stream_that_cannot_be_made_says_why(
    source: str, relation: str, wanted: type[Cod3sError], generator: Generator
) -> None:
    with pytest.raises(wanted):
        next(generator.stream(source, relation, options=QUICK))
