"""The bundle inside the package: whole, small, quick, and its answers differ."""

import time

import pytest

import cod3s
from cod3s.bins import open_bins
from cod3s.bundle import default_bundle, read_facts, sizes, verify
from cod3s.errors import BundleError
from conftest import Run

SOURCES = {
    "effect": ["the power went out during dinner", "my neighbour bought a dog"],
    "cause": ["the child ate too many cherries"],
}


def test_it_is_whole_and_small_enough_to_ship() -> None:
    folder = default_bundle()
    facts = read_facts(folder)
    verify(folder, facts)
    assert sum(sizes(folder, facts).values()) < 120e6
    assert max(sizes(folder, facts).values()) < 95e6, "some hosts take no larger files"
    assert facts.critic
    assert set(facts.models) == {"effect", "cause"}
    assert facts.bits == 16


def test_its_bins_are_there() -> None:
    for relation in ("effect", "cause"):
        with open_bins(default_bundle() / "bins" / f"{relation}.sqlite") as bins:
            rows = list(bins.bins())
        assert sum(row.count for row in rows) > 30_000, "counts are those of the training corpus"
        assert all(row.medoid for row in rows)


def test_its_card_names_data_and_licence() -> None:
    card = (default_bundle() / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "CC BY-NC 4.0" in card
    assert "all-MiniLM-L6-v2 (Apache-2.0)" in card
    assert "SmolLM2-135M-Instruct (Apache-2.0)" in card


@pytest.fixture(scope="module")
def model() -> cod3s.Generator:
    return cod3s.load()


@pytest.fixture(scope="module")
def answered(model: cod3s.Generator) -> dict[str, list[cod3s.AnswerSet]]:
    """The answers to sources of our own, by relation."""
    return {relation: model.generate(sources, relation) for relation, sources in SOURCES.items()}


@pytest.mark.parametrize("relation", ["effect", "cause"])
def test_it_gives_about_ten_different_answers_to_sentences_of_our_own(
    relation: str, answered: dict[str, list[cod3s.AnswerSet]]
) -> None:
    for answers in answered[relation]:
        assert 3 <= len(answers) <= 10, "implausible ones are left out"
        assert len({text.casefold() for text in answers.texts}) == len(answers), answers.source
        assert all(len(text.split()) > 1 for text in answers.texts), answers.texts


def test_most_bits_come_out_as_they_were_asked_for(answered: dict[str, list[cod3s.AnswerSet]]) -> None:
    """Chance is a half."""
    answers = [answer for sets in answered.values() for answer_set in sets for answer in answer_set]
    right = 1 - sum(answer.hamming or 0 for answer in answers) / (16 * len(answers))
    assert right > 0.8


def test_its_answers_depend_on_the_source(answered: dict[str, list[cod3s.AnswerSet]]) -> None:
    first, second = (set(answers.texts) for answers in answered["effect"])
    assert len(first & second) < 3


def test_its_critic_prefers_what_makes_sense(model: cod3s.Generator) -> None:
    sensible, absurd = model.plausibility(
        "the pipes froze during the night", "effect", ["we had no water in the morning", "the cat liked jazz"]
    )
    assert sensible > absurd


def test_dpc_needs_a_word_graph_that_it_does_not_have_yet(model: cod3s.Generator) -> None:
    with pytest.raises(BundleError, match="there is no word graph"):
        model.generate(SOURCES["effect"][0], "effect", system="dpc")


def test_a_second_call_is_quick(model: cod3s.Generator) -> None:
    start = time.process_time()  # of all threads: a busy machine does not count
    model.generate(SOURCES["effect"][1], "effect")
    assert time.process_time() - start < 20


def test_the_command_line_describes_it(cod3s: Run) -> None:
    done = cod3s("bundle", "info")
    assert done.returncode == 0, done.stderr
    assert "by itself" in done.stdout
    assert "checksums hold" in done.stdout
    assert "with its critic" in done.stdout
