"""The bundle inside the package: whole, small, quick, and its answers differ."""

import time

import pytest

import cod3s
from cod3s.bins import open_bins
from cod3s.bundle import default_bundle, read_facts, sizes, verify
from cod3s.decode.config import DecodeConfig
from cod3s.encode import Encoder
from conftest import Run

OWN = [
    "the power went out during dinner",
    "my neighbour bought a dog",
    "the child ate too many cherries",
    "she forgot her umbrella at work",
    "the bridge was closed for repairs",
]


def test_it_is_whole_and_small_enough_to_ship() -> None:
    folder = default_bundle()
    facts = read_facts(folder)
    verify(folder, facts)
    assert sum(sizes(folder, facts).values()) < 120e6
    assert max(sizes(folder, facts).values()) < 95e6, "some hosts take no larger files"
    assert facts.critic
    assert set(facts.models) == {"effect", "cause"}
    assert facts.bits == 16


def test_its_bins_show_no_training_sentences_but_the_models_own() -> None:
    folder = default_bundle()
    assert read_facts(folder).medoids == "model"
    for relation in ("effect", "cause"):
        with open_bins(folder / "bins" / f"{relation}.sqlite") as bins:
            rows = list(bins.bins())
        assert sum(row.count for row in rows) > 60_000, "counts are those of the training corpus"
        assert all(row.medoid for row in rows)
        assert sum(bool(row.samples) for row in rows) > 1000


def test_its_card_names_data_and_licence() -> None:
    card = (default_bundle() / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "CC BY-NC 4.0" in card
    assert "all-MiniLM-L6-v2 (Apache-2.0)" in card
    assert "SmolLM2-135M-Instruct (Apache-2.0)" in card


@pytest.mark.parametrize("relation", ["effect", "cause"])
def test_it_gives_ten_different_answers_to_sentences_of_our_own(relation: str) -> None:
    for found in cod3s.load().generate(OWN, relation):
        texts = [answer.text for answer in found.answers]
        assert len(texts) == 10, found.source
        assert len({text.casefold() for text in texts}) == 10, found.source
        assert all(len(text.split()) > 1 for text in texts), texts


def test_most_bits_come_out_as_they_were_asked_for(fast: Encoder) -> None:
    """Chance is a half; docs/measured/default-bundle.md has the figure on more sources."""
    model = cod3s.load(encoder=fast)
    options = DecodeConfig(check=True, beam=10)
    answers = [one for found in model.generate(OWN, "effect", options=options) for one in found.answers]
    right = 1 - sum(one.hamming or 0 for one in answers) / (16 * len(answers))
    assert right > 0.7


def test_its_answers_depend_on_the_source() -> None:
    found = cod3s.load().generate(OWN, "effect")
    first, second = ({answer.text for answer in own.answers} for own in found[:2])
    assert len(first & second) < 3


def test_a_second_call_is_quick() -> None:
    model = cod3s.load()
    model.generate(OWN[0], "effect")
    start = time.perf_counter()
    model.generate(OWN[1], "effect")
    assert time.perf_counter() - start < 20, "a bound for a busy machine; docs/measured/speed.md has the figures"


def test_the_command_line_describes_it(cod3s: Run) -> None:
    done = cod3s("info")
    assert done.returncode == 0, done.stderr
    assert "written by the model" in done.stdout
    assert "by itself" in done.stdout
    assert "checksums hold" in done.stdout
