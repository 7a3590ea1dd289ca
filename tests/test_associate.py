"""What vectors say about answers: heads that infer signatures, associations, and the command that learns both."""

import json
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cod3s.bundle import read_facts, write_facts
from cod3s.critic.associating import PairVectors, learn_association, learn_associations
from cod3s.decode.association import Association, load_association, save_association
from cod3s.decode.decode_config import DecodeConfig
from cod3s.decode.generator import Generator, load
from cod3s.errors import BundleError, Cod3sError, UsageError
from cod3s.signatures.head import SignatureHead, fit_head, load_head, save_head, share_inferred
from conftest import Run
from tiny_bundle import SOURCES, TinyBundle

HEAD = DecodeConfig(k=3, signature_search="head", rerank_signatures="none", rerank_sentences="none", beam=4)


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@given(seed=st.integers(0, 99), number=st.integers(1, 40))
@settings(deadline=None, max_examples=20)
def test_the_likeliest_signatures_are_those_of_counting(seed: int, number: int) -> None:
    random = np.random.default_rng(seed)
    head = SignatureHead(random.normal(size=(6, 4 + 6 + 1)))
    vector = random.normal(size=4).astype(np.float32)

    def log_prob(bits: tuple[int, ...]) -> float:
        total = 0.0
        for bit, value in enumerate(bits):
            earlier = sum(head.weights[bit, 4 + b] * (1 if bits[b] else -1) for b in range(bit))
            log_odds = head.weights[bit, :4] @ vector + earlier + head.weights[bit, -1]
            total -= np.logaddexp(0, -log_odds if value else log_odds)
        return float(total)

    whole = {"".join(map(str, bits)): log_prob(bits) for bits in product((0, 1), repeat=6)}
    assert sum(map(np.exp, whole.values())) == pytest.approx(1)
    found = head.likeliest(vector, 64)
    assert dict(found) == pytest.approx(whole)
    few = head.likeliest(vector, number)
    assert [p for _, p in few] == sorted((p for _, p in few), reverse=True)
    assert few[0][1] == pytest.approx(max(whole.values()))


def test_a_head_learns_what_the_vector_and_earlier_bits_say() -> None:
    random = np.random.default_rng(1)
    vectors = unit(random.normal(size=(3000, 8)))
    bits = vectors[:, :3] > 0
    bits = np.column_stack([bits, bits[:, 0] ^ (random.random(3000) < 0.1)])  # the last one follows the first
    head = fit_head(vectors[:2500], bits[:2500])
    assert share_inferred(head, vectors[2500:], bits[2500:]) > 0.9
    assert head.weights[3, 8] > 1, "the first bit says most about the last"
    assert not np.triu(head.weights[:, 8:12]).any(), "no bit may look ahead"


def test_an_association_learns_what_goes_with_what() -> None:
    """Targets are rotated sources: their cosine says nothing."""
    random = np.random.default_rng(2)
    turned, _ = np.linalg.qr(random.normal(size=(16, 16)))
    sources = unit(random.normal(size=(2000, 16)))
    pairs = PairVectors(sources.astype(np.float16), unit(sources @ turned).astype(np.float16))
    association, figures = learn_association(pairs, seed=1, progress=lambda _: None)
    assert figures.right > 0.9
    assert figures.by_cosine < 0.7
    assert association(sources[:5], unit(sources[:5] @ turned)).min() > 0.5


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    head = SignatureHead(random.normal(size=(4, 3 + 4 + 1)))
    save_head(tmp_path / "head.npy", head)
    assert load_head(tmp_path / "head.npy", 4).weights == pytest.approx(head.weights, abs=1e-2)
    association = Association(*(random.normal(size=size).astype(np.float32) for size in (3, (2, 3), (2, 3))))
    save_association(tmp_path / "association.npy", association)
    read = load_association(tmp_path / "association.npy")
    assert read.scale.shape == (3,)
    assert read.down == pytest.approx(association.down, abs=1e-2)


@pytest.mark.parametrize(
    "rows",
    [np.zeros((3, 12)), np.zeros((4, 5)), np.full((4, 9), np.nan), np.zeros(4), np.array([{}], dtype=object)],
)
def test_other_numbers_are_no_head_and_no_association(rows: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "head.npy", rows, allow_pickle=True)
    with pytest.raises(BundleError):
        load_head(tmp_path / "head.npy", 4)
    np.save(tmp_path / "association.npy", rows[:2], allow_pickle=True)
    with pytest.raises(BundleError):
        load_association(tmp_path / "association.npy")


@pytest.fixture(scope="module")
def learned(tiny_bundle: TinyBundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny bundle after it has learned from its corpus."""
    folder = tmp_path_factory.mktemp("associate") / "bundle"
    shutil.copytree(tiny_bundle.exact, folder)
    figures = learn_associations(folder, tiny_bundle.run.parent / "corpus", [], limit=500)
    assert [*figures.heads] == ["effect", "cause"]
    assert [*figures.associations] == ["effect"], "its inverse reads it backwards"
    assert figures.heads["effect"].inferred > figures.heads["effect"].guessed
    return folder


@pytest.fixture(scope="module")
def generator(learned: Path) -> Generator:
    return load(learned)


def test_stage_one_needs_no_model_with_a_head(generator: Generator) -> None:
    answers = generator.generate(SOURCES[0], "effect", options=HEAD)
    assert len(answers.answers) == 3
    (vector,) = generator.signer.vectors([SOURCES[0]])
    head = generator.models.head("effect")
    assert head is not None
    assert answers.answers[0].signature == head.likeliest(vector, 1)[0][0]
    streamed = [*generator.stream(SOURCES[0], "effect", options=HEAD)][-1]
    assert [answer.text for answer in streamed.answers] == [answer.text for answer in answers.answers]


def test_signatures_of_a_head_can_be_reranked(generator: Generator) -> None:
    answers = generator.generate(SOURCES[0], "effect", options=HEAD.with_values(rerank_signatures="mmi"))
    assert all(answer.signature_backward is not None for answer in answers.answers)


def test_an_inverse_relation_reads_the_association_backwards(generator: Generator) -> None:
    first, second = generator.signer.vectors(["the pilot lost the key", "the pilot phoned a locksmith"])
    forward, backward = (generator.models.association(name) for name in ("effect", "cause"))
    assert forward is not None
    assert backward is not None
    assert forward(first[None], second[None]) == pytest.approx(backward(second[None], first[None]))


def test_without_a_head_the_search_is_an_error_with_the_way_out(tiny_bundle: TinyBundle) -> None:
    with pytest.raises(BundleError, match="no head") as caught:
        load(tiny_bundle.exact).generate(SOURCES[0], "effect", options=HEAD)
    assert "associate" in caught.value.hint


def test_a_head_of_another_encoder_is_a_clear_error(learned: Path, tmp_path: Path) -> None:
    shutil.copytree(learned, tmp_path / "bundle")
    save_head(tmp_path / "bundle" / "associations" / "head-effect.npy", SignatureHead(np.zeros((8, 5 + 8 + 1))))
    write_facts(tmp_path / "bundle", read_facts(tmp_path / "bundle"))
    with pytest.raises(BundleError, match="5 numbers"):
        load(tmp_path / "bundle").generate(SOURCES[0], "effect", options=HEAD)


def test_the_command_learns_from_answers_and_says_what_it_learned(
    here: Run, tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    shutil.copytree(tiny_bundle.small, tmp_path / "bundle")
    lines = [
        f"the {who} lost key {n}\teffect\tthe {who} slept outside {n}"
        for who in ("baker", "judge")
        for n in range(25)
    ]
    (tmp_path / "answers.tsv").write_text("\n".join(["source\trelation\ttarget", *lines]) + "\n")
    done = here("associate", "bundle", "--answers", "answers.tsv", "--json")
    record = json.loads(done.stdout)
    assert record["heads"]["effect"]["pairs"] == 50
    assert "cause" not in record["heads"]
    again = here("associate", "bundle", "--answers", "answers.tsv")
    assert again.returncode == 1
    assert "--force" in again.stderr
    shown = here("associate", "bundle", "--answers", "answers.tsv", "--force")
    assert "by the association" in shown.stdout
    assert here("bundle", "info", "bundle").returncode == 0
    asked = here("generate", "effect", SOURCES[0], "--bundle", "bundle", "--signature-search", "head", "-k", "2")
    assert "the baker" in asked.stdout


def test_too_few_pairs_are_refused_and_leave_the_bundle_alone(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    shutil.copytree(tiny_bundle.small, tmp_path / "bundle")
    with pytest.raises(UsageError, match="no pairs"):
        learn_associations(tmp_path / "bundle", None, [], limit=10)
    (tmp_path / "few.tsv").write_text("source\trelation\ttarget\nit rained\teffect\twe got wet\n")
    with pytest.raises(Cod3sError, match="too few"):
        learn_associations(tmp_path / "bundle", None, [tmp_path / "few.tsv"], limit=10)
    (tmp_path / "odd.tsv").write_text("source\trelation\ttarget\nit rained\treply\twe got wet\n")
    with pytest.raises(UsageError, match="reply"):
        learn_associations(tmp_path / "bundle", None, [tmp_path / "odd.tsv"], limit=10)
    assert not (tmp_path / "bundle" / "associations").exists()
