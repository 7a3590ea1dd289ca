"""A bundle whose bins show the model's own sentences: counts stay, training sentences go."""

from pathlib import Path

import pytest

from cod3s.bins import open_bins
from cod3s.bundle import read_facts, verify
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError
from cod3s.export.reword import reword
from cod3s.signatures import load_code
from cod3s.signatures.signer import sign
from conftest import Run
from tiny_bundle import SOURCES, TinyBundle

EFFECTS = ["the baker slept in the garden at home", "the pilot cried with joy by the sea"]


@pytest.fixture(scope="module")
def reworded(tiny_bundle: TinyBundle, static: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("reworded") / "bundle"
    reword(tiny_bundle.small, output, {"effect": SOURCES, "cause": EFFECTS}, encoder=static)
    return output


def test_counts_stay_those_of_the_corpus(tiny_bundle: TinyBundle, reworded: Path) -> None:
    for relation in ("effect", "cause"):
        place = Path("bins") / f"{relation}.sqlite"
        with open_bins(tiny_bundle.small / place) as before, open_bins(reworded / place) as after:
            assert [(row.signature, row.count) for row in before.bins()] == [
                (row.signature, row.count) for row in after.bins()
            ]
            assert [(row.signature, row.count) for row in before.tree(5)] == [
                (row.signature, row.count) for row in after.tree(5)
            ]


def shared_bits(a: str, b: str) -> int:
    """How many bits two signatures have in common before they part."""
    return next((place for place in range(len(a)) if a[place] != b[place]), len(a))


def test_a_bin_shows_sentences_with_its_signature_or_those_of_a_node_above(
    reworded: Path, static: Encoder
) -> None:
    code, _ = load_code(reworded / "code")
    with open_bins(reworded / "bins" / "effect.sqlite") as bins:
        rows = list(bins.bins())
    filled = [row for row in rows if row.samples]
    assert len(filled) > 3
    texts = [text for row in filled for text in (row.medoid, *row.samples)]
    wanted = [row.signature for row in filled for _ in (row.medoid, *row.samples)]
    assert [one.signature for one in sign(texts, encoder=static, code=code).sentences] == wanted
    others = [row for row in rows if not row.samples]
    assert others, "the few sources here do not fill every bin"
    signed = sign([row.medoid for row in others], encoder=static, code=code).sentences
    shared = [shared_bits(row.signature, one.signature) for row, one in zip(others, signed, strict=True)]
    best = [max(shared_bits(row.signature, own.signature) for own in filled) for row in others]
    assert all(own >= wanted for own, wanted in zip(shared, best, strict=True)), "a node above, and the smallest"


def test_the_bundle_says_whose_sentences_it_shows(tiny_bundle: TinyBundle, reworded: Path) -> None:
    facts = read_facts(reworded)
    assert (read_facts(tiny_bundle.small).medoids, facts.medoids) == ("training", "model")
    verify(reworded, facts)


def test_a_relation_without_sources_is_an_error_and_writes_nothing(
    tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    with pytest.raises(Cod3sError, match="no sources for cause"):
        reword(tiny_bundle.small, tmp_path / "bundle", {"effect": SOURCES, "cause": []})
    assert not (tmp_path / "bundle").exists()


def test_the_command_rewords_a_bundle(cod3s: Run, tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    corpus = tiny_bundle.run.parent / "corpus"
    found = cod3s(
        "bins", "reword", tiny_bundle.small, "--corpus", corpus, "-o", tmp_path / "own", "--sources", "4"
    )
    assert found.returncode == 0, found.stderr
    assert "bins now show the model's sentences" in found.stderr
    assert read_facts(tmp_path / "own").medoids == "model"
