"""The systems `dbs` and `dpc` by name, on a tiny trained bundle: what a user of `generate` meets."""

import json
from pathlib import Path

import pytest

from cod3s.bundle.export import export
from cod3s.decode.baselines.word_graph import open_word_graph
from cod3s.decode.config import DEFAULT
from cod3s.decode.generator import Generator, load
from cod3s.errors import BundleError, Cod3sError
from cod3s.text import words
from conftest import Run
from tiny_bundle import SOURCES, TinyBundle


@pytest.fixture(scope="module")
def bundle(tiny_bundle: TinyBundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torch") / "bundle"
    corpus = tiny_bundle.run.parent / "corpus"
    export(tiny_bundle.run, folder, quantization="float32", with_torch=True, word_graph=corpus)
    return folder


@pytest.fixture(scope="module")
def generator(bundle: Path) -> Generator:
    return load(bundle)


@pytest.mark.parametrize("system", ["dbs", "dpc"])
@pytest.mark.parametrize("relation", ["effect", "cause"])
def test_answers_are_different_texts(generator: Generator, system: str, relation: str) -> None:
    for found in generator.generate(SOURCES, relation, k=4, system=system):
        texts = [answer.text for answer in found.answers]
        assert len(texts) == len(set(texts)) == 4
        assert all(answer.forward < 0 for answer in found.answers)


def test_every_answer_of_dpc_holds_its_word(generator: Generator, bundle: Path) -> None:
    graph = open_word_graph(bundle / "words" / "effect.sqlite")
    for found in generator.generate(SOURCES, "effect", k=5, system="dpc"):
        forms = {word.base: word.forms for word in graph.related(found.source, 99)}
        for answer in found.answers:
            assert set(forms[answer.constraint]) & set(words(answer.text)), answer


def test_dbs_in_one_group_is_the_engines_beam(generator: Generator) -> None:
    """The same weights in float16; both divide by the text's length and its end."""
    diverse = generator.generate(SOURCES, "effect", k=1, system="dbs")
    plain = generator.generate(SOURCES, "effect", k=1, system="s2s")
    for one, other in zip(diverse, plain, strict=True):
        assert one.answers[0].text == other.answers[0].text
        assert one.answers[0].forward == pytest.approx(other.answers[0].forward, abs=0.01)


def test_a_penalty_makes_answers_differ_from_the_first_word(generator: Generator) -> None:
    def first_words(penalty: float) -> int:
        options = DEFAULT.with_values(diversity_penalty=penalty)
        (found,) = generator.generate(SOURCES[:1], "effect", k=4, system="dbs", options=options)
        return len({answer.text.split()[0] for answer in found.answers})

    assert first_words(50.0) > first_words(0.0)


@pytest.mark.parametrize("system", ["dbs", "dpc"])
def test_a_batch_answers_as_its_sources_alone(generator: Generator, system: str) -> None:
    together = generator.generate(SOURCES, "effect", k=3, system=system)
    alone = [generator.generate(source, "effect", k=3, system=system) for source in SOURCES]
    assert [[a.text for a in found] for found in together] == [[a.text for a in found] for found in alone]


def test_dpc_has_no_answer_where_the_graph_knows_no_word(generator: Generator) -> None:
    found = generator.generate("zebras yodel", "effect", k=3, system="dpc")
    assert found.answers == ()
    assert any("only 0 of" in remark for remark in found.remarks)


@pytest.mark.parametrize(
    ("system", "hint"), [("dbs", "--with-torch"), ("dpc", "--word-graph")], ids=["no weights", "no graph"]
)
def test_a_bundle_that_lacks_something_says_how_to_get_it(tiny_bundle: TinyBundle, system: str, hint: str) -> None:
    with pytest.raises(BundleError) as caught:
        load(tiny_bundle.small).generate(SOURCES[0], "effect", system=system)
    assert hint in caught.value.hint


def test_the_graph_must_be_of_the_runs_corpus(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(Cod3sError, match="was not trained on"):
        export(tiny_bundle.run, tmp_path / "bundle", word_graph=tmp_path)
    assert not (tmp_path / "bundle").exists()


def test_the_command_line_runs_them(bundle: Path, cod3s: Run) -> None:
    done = cod3s("generate", "effect", SOURCES[0], "-k", "2", "--bundle", bundle, "--system", "dpc", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["system"] == "dpc"
    assert all(answer["constraint"] for answer in record["answers"])
