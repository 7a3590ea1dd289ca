"""The baseline DPC: its search against brute force, and the system on a tiny trained bundle."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cod3s.decode.dpc import HELD, Constraint, constrained_search
from cod3s.decode.generator import Generator, load
from cod3s.decode.word_graph import open_word_graph
from cod3s.errors import BundleError, UsageError
from cod3s.models import RoleModel
from cod3s.records import Hypothesis, mean_log_prob
from cod3s.text import words
from conftest import Run
from fake_engine import FakeEngine
from tiny_bundle import SOURCES, TinyBundle

END = 0
STARTS_WORD = np.array([True, True, True, False, True, False])  # tokens 3 and 5 continue a word


class Words:
    """What the search needs of a vocabulary: nothing but the tag."""

    signature = None


def model_of(seed: int) -> RoleModel:
    return RoleModel(FakeEngine(seed), Words(), (99,))  # type: ignore[arg-type]


def brute_force(model: RoleModel, constraint: Constraint, length: int) -> Hypothesis | None:
    """The best of all texts up to a length that meet the constraint."""
    best: Hypothesis | None = None
    for size in range(1, length):
        for tokens in product(range(1, 6), repeat=size):
            state, total = (), 0.0
            for position, token in enumerate((*tokens, END)):
                request = model.request("a source", tokens[:position])
                total += float(model.engine.weigh([request], range(6))[0, token])
                state = constraint.next(state, token)
            if state == HELD:
                found = Hypothesis(tokens, total, size + 1)
                if best is None or mean_log_prob(found) > mean_log_prob(best):
                    best = found
    return best


CONSTRAINTS = [
    (((1,),), "a word of one token"),
    (((2, 3), (4,)), "two forms"),
    (((2,), (2, 3)), "a form that begins another"),
    (((1, 3, 5),), "a word of three tokens"),
]


@pytest.mark.parametrize(("alternatives", "why"), CONSTRAINTS, ids=[why for _, why in CONSTRAINTS])
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_beam_finds_what_brute_force_finds(
    alternatives: tuple[tuple[int, ...], ...], why: str, seed: int
) -> None:
    model, constraint = model_of(seed), Constraint(alternatives, STARTS_WORD)
    (found,) = constrained_search(model, "a source", [constraint], end=END, beam=4000, max_tokens=5)
    wanted = brute_force(model, constraint, 5)
    assert found is not None
    assert wanted is not None
    assert found.tokens == wanted.tokens, why
    assert found.log_prob == pytest.approx(wanted.log_prob)


def test_a_narrow_beam_meets_every_constraint_in_whole_words() -> None:
    constraints = [Constraint(alternatives, STARTS_WORD) for alternatives, _ in CONSTRAINTS]
    found = constrained_search(model_of(7), "a source", constraints, end=END, beam=3, max_tokens=8)
    for hypothesis, constraint in zip(found, constraints, strict=True):
        assert hypothesis is not None
        state: tuple[int, ...] = ()
        for token in (*hypothesis.tokens, END):
            state = constraint.next(state, token)
        assert state == HELD


def test_a_text_with_no_room_for_its_word_is_not_written() -> None:
    constraint = Constraint(((1, 3, 5),), STARTS_WORD)
    assert constrained_search(model_of(1), "a source", [constraint], end=END, beam=5, max_tokens=3) == [None]
    assert constrained_search(model_of(1), "a source", [], end=END, beam=5, max_tokens=3) == []


STATES = [
    ((), 2, (2,), "a form begins"),
    ((2,), 3, (2, 3), "it goes on"),
    ((2, 3), 1, HELD, "and the next token begins another word"),
    ((2, 3), 5, (), "a token that goes on with the word breaks it"),
    ((2,), 2, (2,), "it begins again"),
    (HELD, 1, HELD, "what is held stays held"),
]


@pytest.mark.parametrize(("state", "token", "wanted", "why"), STATES, ids=[row[3] for row in STATES])
def test_the_state_of_a_constraint(state: tuple[int, ...], token: int, wanted: tuple[int, ...], why: str) -> None:
    assert Constraint(((2, 3), (4,)), STARTS_WORD).next(state, token) == wanted, why


@pytest.fixture(scope="module")
def generator(tiny_bundle: TinyBundle) -> Generator:
    return load(tiny_bundle.exact)


@pytest.mark.parametrize("relation", ["effect", "cause"])
def test_every_answer_is_another_text_with_its_word(generator: Generator, relation: str) -> None:
    graph = open_word_graph(generator.folder / "words" / f"{relation}.npz")
    for answers in generator.generate(SOURCES, relation, k=4, system="dpc"):
        assert len({answer.text for answer in answers}) == len(answers) == 4
        forms = {word.base: word.forms for word in graph.related(answers.source, 99)}
        for answer in answers:
            assert set(forms[answer.constraint]) & set(words(answer.text)), answer
            assert answer.forward < 0


def test_there_is_no_answer_where_the_graph_knows_no_word(generator: Generator) -> None:
    answers = generator.generate("zebras yodel", "effect", k=3, system="dpc")
    assert answers.answers == ()
    assert any("only 0 of" in remark for remark in answers.remarks)


def test_a_bundle_without_a_graph_says_how_to_get_it(tiny_bundle: TinyBundle) -> None:
    generator = load(tiny_bundle.small)
    for ask in (generator.generate, lambda source, relation, system: generator.require_system(system, relation)):
        with pytest.raises(BundleError) as caught:
            ask(SOURCES[0], "effect", system="dpc")
        assert "--word-graph" in caught.value.hint


def test_a_graph_of_an_unknown_relation_is_refused(generator: Generator) -> None:
    with pytest.raises(UsageError, match="no relation"):
        generator.generate(SOURCES[0], "efect", system="dpc")


def test_the_command_line_runs_it(cod3s: Run, tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    done = cod3s(
        "generate", "effect", SOURCES[0], "-k", "2", "--bundle", tiny_bundle.exact, "--system", "dpc", "--json"
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["system"] == "dpc"
    assert all(answer["constraint"] for answer in record["answers"])
