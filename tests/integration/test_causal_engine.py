"""Causal language models: trimmed pieces, prompts, LoRA, export, and an engine that agrees with torch.

The models are tiny and random, saved to disk as the libraries save them: nothing is downloaded.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cod3s import load
from cod3s.bundle import open_vocabulary, read_facts
from cod3s.bundle.export import export
from cod3s.corpus import prepare
from cod3s.corpus.manifest import PrepareConfig
from cod3s.decode.config import DecodeConfig
from cod3s.errors import Cod3sError
from cod3s.io.disk import read_json
from cod3s.model.causal import Adaptation, bit_signs, build_causal, open_start
from cod3s.model.causal_engine import CausalEngine
from cod3s.model.engine import Draws, Request
from cod3s.model.reader import connective_pieces, open_reader
from cod3s.model.roles import tag
from cod3s.model.shape import SHAPES
from cod3s.tokens.trimming import trim_byte_pieces
from cod3s.tokens.vocabulary import END, SignatureTokens, Vocabulary
from cod3s.train import PRESETS, train
from tiny_bundle import SOURCES, grammar
from tiny_language_model import save_language_model

TEMPLATE = "{source}, so {target}"


@dataclass(frozen=True)
class Trained:
    start: Path
    corpus: Path
    run: Path
    bundle: Path


def make_trained(folder: Path, family: str, **options: Any) -> Trained:
    start = save_language_model(folder / "start", family)
    (folder / "pairs.tsv").write_text(grammar())
    config = PrepareConfig(
        relation="both", orders="all", filter="none", encoder="static", bits=8, dev=20, test=0, held_out=0.1
    )
    prepare([str(folder / "pairs.tsv")], str(folder / "corpus"), config)
    preset = (
        PRESETS["causal"]
        .with_values(
            init=str(start),
            lora_rank=0,  # all weights: random ones have nothing for LoRA to adapt
            precision="float32",
            shares=(),
            epochs=5,
            batch_tokens=256,
            learning_rate=5e-3,
            warmup_steps=5,
            evaluate_every=1000,
        )
        .with_values(**options)
    )
    train(folder / "corpus", folder / "run", preset)
    export(folder / "run", folder / "bundle", quantization="float32")
    return Trained(start, folder / "corpus", folder / "run", folder / "bundle")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return make_trained(tmp_path_factory.mktemp("llama"), "llama", dropped_layers=(1,))


@pytest.fixture(scope="module")
def vocabulary(trained: Trained) -> Vocabulary:
    return open_vocabulary(trained.bundle / "tokens.model", read_facts(trained.bundle))


@pytest.fixture(scope="module")
def engine(trained: Trained, vocabulary: Vocabulary) -> CausalEngine:
    reader = open_reader(SHAPES["causal"], vocabulary, TEMPLATE)
    readers = {vocabulary.id(tag("effect", role)): reader for role in ("plain", "sentence", "inverse")}
    return CausalEngine(trained.bundle / "models" / "shared", readers, vocabulary, positions=128, threads=1)


def request(vocabulary: Vocabulary, role: str, source: str | None, *ids: int) -> Request:
    return Request(source, (vocabulary.id(tag("effect", role)), *ids))


def test_training_teaches_the_grammar(trained: Trained) -> None:
    figures = json.loads((trained.run / "shared" / "figures.json").read_text())
    assert figures["sentence_nats"] < 40  # of 600 pieces: about 6.4 per token by guessing


def test_the_engine_scores_as_torch_does(trained: Trained, vocabulary: Vocabulary, engine: CausalEngine) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(trained.run / "shared" / "model").eval()
    asked = request(vocabulary, "plain", SOURCES[0])
    text = vocabulary.encode_text("the baker slept in the garden at home")
    prompt = [*open_reader(SHAPES["causal"], vocabulary, TEMPLATE).read(SOURCES[0]), asked.prefix[0]]
    row = torch.tensor([[*prompt, *text, vocabulary.end]])
    with torch.no_grad():
        log_probs = model(row).logits.log_softmax(-1)[0, :-1].gather(1, row[0, 1:, None])[:, 0]
    (scored,) = engine.score([asked], [text])
    assert scored.log_prob == pytest.approx(float(log_probs[len(prompt) - 1 :].sum()), abs=1e-3)
    assert scored.length == len(text) + 1


def test_score_reproduces_what_search_and_sample_reported(vocabulary: Vocabulary, engine: CausalEngine) -> None:
    requests = [request(vocabulary, "plain", source) for source in SOURCES]
    searched = engine.search(requests, beam=4, max_tokens=30)
    sampled = engine.sample(requests, Draws(samples=4, top_k=1000, temperature=1.0, max_tokens=30, seed=7))
    for asked, hypotheses in [*zip(requests, searched, strict=True), *zip(requests, sampled, strict=True)]:
        ended = [h for h in hypotheses if h.length == len(h.tokens) + 1]
        again = engine.score([asked] * len(ended), [h.tokens for h in ended])
        np.testing.assert_allclose([h.log_prob for h in ended], [h.log_prob for h in again], atol=0.02)


def test_a_batch_of_one_equals_a_batch_of_many(vocabulary: Vocabulary, engine: CausalEngine) -> None:
    requests = [request(vocabulary, "plain", source) for source in [*SOURCES, "it rained"]]
    together = engine.search(requests, beam=3, max_tokens=20)
    alone = [engine.search([asked], beam=3, max_tokens=20)[0] for asked in requests]
    assert [[h.tokens for h in row] for row in together] == [[h.tokens for h in row] for row in alone]


def test_a_score_in_int8_does_not_depend_on_its_neighbours(trained: Trained, vocabulary: Vocabulary) -> None:
    reader = open_reader(SHAPES["causal"], vocabulary, TEMPLATE)
    readers = {vocabulary.id(tag("effect", "plain")): reader}
    engine = CausalEngine(
        trained.bundle / "models" / "shared", readers, vocabulary, positions=128, threads=1, compute="int8"
    )
    targets = ["snow fell", "the baker slept", "the baker slept in the garden at home"]
    rows = [(request(vocabulary, "plain", source), text) for source in SOURCES for text in targets]
    requests, texts = [asked for asked, _ in rows], [vocabulary.encode_text(text) for _, text in rows]
    alone = [engine.score([asked], [text])[0] for asked, text in zip(requests, texts, strict=True)]
    assert engine.score(requests, texts) == alone


def test_two_workers_give_what_one_gives(trained: Trained, vocabulary: Vocabulary, engine: CausalEngine) -> None:
    """Prompts of several lengths, some alone with theirs: the workers take them in any order."""
    reader = open_reader(SHAPES["causal"], vocabulary, TEMPLATE)
    readers = {vocabulary.id(tag("effect", role)): reader for role in ("plain", "sentence", "inverse")}
    folder = trained.bundle / "models" / "shared"
    two = CausalEngine(folder, readers, vocabulary, positions=128, threads=2)
    kept = list(range(vocabulary.first_signature, vocabulary.first_signature + 16))
    requests = [request(vocabulary, "sentence", source) for source in [*SOURCES, "it rained", "it", *SOURCES]]
    requests += [request(vocabulary, "sentence", SOURCES[0], token) for token in kept]
    for beam in (1, 3):
        written = [some.search(requests, beam=beam, max_tokens=12) for some in (engine, two)]
        tokens, lengths, scores = (
            [[[getattr(h, name) for h in row] for row in rows] for rows in written]
            for name in ("tokens", "length", "log_prob")
        )
        assert tokens[0] == tokens[1]
        assert lengths[0] == lengths[1]
        np.testing.assert_allclose(scores[0], scores[1], atol=1e-3)
    np.testing.assert_allclose(engine.weigh(requests, kept), two.weigh(requests, kept), atol=1e-3)


def test_draws_repeat_with_their_seed_and_change_with_another(
    vocabulary: Vocabulary, engine: CausalEngine
) -> None:
    requests = [request(vocabulary, "plain", source) for source in SOURCES]

    def draw(seed: int) -> list[list[tuple[int, ...]]]:
        rows = engine.sample(requests, Draws(samples=5, top_k=50, temperature=1.5, max_tokens=12, seed=seed))
        return [[h.tokens for h in row] for row in rows]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_a_search_among_some_tokens_writes_only_those(vocabulary: Vocabulary, engine: CausalEngine) -> None:
    kept = range(vocabulary.first_signature, len(vocabulary))
    (hypotheses,) = engine.search([request(vocabulary, "sentence", SOURCES[0])], beam=5, max_tokens=2, only=kept)
    assert all(len(h.tokens) == 2 and set(h.tokens) <= set(kept) for h in hypotheses)


def test_weigh_agrees_with_a_search_among_the_same_tokens(vocabulary: Vocabulary, engine: CausalEngine) -> None:
    kept = list(range(vocabulary.first_signature, vocabulary.first_signature + 16))
    asked = request(vocabulary, "sentence", SOURCES[0])
    weights = engine.weigh([asked], kept)[0]
    (hypotheses,) = engine.search([asked], beam=16, max_tokens=1, only=kept)
    assert np.exp(weights).sum() == pytest.approx(1)
    by_token = {h.tokens[0]: h.log_prob for h in hypotheses}
    np.testing.assert_allclose([by_token[token] for token in kept], weights, atol=1e-3)


def test_every_system_runs_on_a_language_model(trained: Trained) -> None:
    model = load(trained.bundle, threads=1)
    for system in ("cod3s", "cod3s-mmi-mmi", "cod3s-mmi-mmi-rs", "s2s", "s2s-rs", "s2s-sigs"):
        answers = model.generate(SOURCES[0], "effect", 3, system=system)
        assert 1 <= len(answers) <= 3, system
        assert all("<" not in answer.text for answer in answers), system


def test_a_model_of_another_family_is_trained_and_exported_but_not_read_back(tmp_path: Path) -> None:
    trained = make_trained(tmp_path, "gpt2", epochs=1)
    assert load(trained.bundle, threads=1).generate(SOURCES[0], "effect", 2).answers
    again = PRESETS["causal"].with_values(init=str(trained.bundle), lora_rank=0, shares=(), max_steps=1)
    with pytest.raises(Cod3sError, match="not of the Llama family"):
        train(trained.corpus, tmp_path / "again", again)


def test_streamed_answers_end_with_the_whole_set(trained: Trained) -> None:
    model = load(trained.bundle, threads=1)
    *_, last = model.stream(SOURCES[1], "cause", 3)
    whole = model.generate(SOURCES[1], "cause", 3)  # scores may differ by rounding: batches are not the same
    assert [(a.text, a.signature) for a in last] == [(a.text, a.signature) for a in whole]


def test_a_long_source_is_cut_with_a_remark_and_keeps_its_connective(
    trained: Trained, vocabulary: Vocabulary
) -> None:
    reader = open_reader(SHAPES["causal"], vocabulary, TEMPLATE)
    long = " ".join(["the baker lost the key"] * 40)
    assert reader.read(long)[-1] == vocabulary.encode_text("x,")[-1]
    answers = load(trained.bundle, threads=1).generate(long, "effect", 1, options=DecodeConfig(beam=2))
    assert any("longer than the model can read" in remark for remark in answers.remarks)


def test_the_tag_stands_in_place_of_the_connectives_last_word(vocabulary: Vocabulary) -> None:
    pieces = connective_pieces(vocabulary, "{source} because {target}")
    assert vocabulary.decode_text(pieces) == "because"
    assert connective_pieces(vocabulary, "{source} {target}") == []


def test_trimming_keeps_bytes_and_every_text_readable(tmp_path: Path) -> None:
    start = save_language_model(tmp_path / "start")
    trim_byte_pieces(start, ["the baker lost the key"], tmp_path / "pieces.json", 330)
    vocabulary = Vocabulary(tmp_path / "pieces.json", [], SignatureTokens(8, 4, True))
    assert vocabulary.text_size <= 333
    for text in ("the baker lost the key", "Zoë fährt 17 km", "雨が降った", "naïve 🙂"):
        assert vocabulary.decode_text(vocabulary.encode_text(text)) == text
    assert len(vocabulary.encode_text("the baker")) < len(vocabulary.encode_text("zebra quiz"))


def test_signs_say_which_bits_a_token_writes() -> None:
    signs = bit_signs(SignatureTokens(4, 2, True))
    assert signs.shape == (8, 4)
    assert signs[1].tolist() == [-1, 1, 0, 0]  # <0:01>
    assert signs[6].tolist() == [0, 0, 1, -1]  # <1:10>


def test_a_killed_run_goes_on_and_ends_with_the_same_weights(trained: Trained, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    preset = PRESETS["causal"].with_values(
        init=str(trained.start), lora_rank=4, precision="float32", shares=(), max_steps=6, evaluate_every=2
    )
    train(trained.corpus, tmp_path / "whole", preset)
    ticks = iter(range(10_000))
    train(trained.corpus, tmp_path / "broken", preset, seconds=3, clock=lambda: float(next(ticks)))
    train(trained.corpus, tmp_path / "broken", preset, resume=True)
    whole, broken = (load_file(tmp_path / name / "shared/model/model.safetensors") for name in ("whole", "broken"))
    for name, tensor in whole.items():
        np.testing.assert_allclose(tensor, broken[name], atol=1e-6)


def test_a_bundle_can_be_trained_further(trained: Trained, tmp_path: Path) -> None:
    config = PRESETS["causal"].with_values(
        init=str(trained.bundle), lora_rank=0, precision="float32", shares=(), max_steps=1, learning_rate=1e-9
    )
    (before,) = (read_json(path) for path in trained.run.glob("*/figures.json"))
    (after,) = train(trained.corpus, tmp_path / "run", config).values()
    for name in ("plain_nats", "sentence_nats", "sentence_signature_nats", "inverse_nats"):
        assert after[name] == pytest.approx(before[name], abs=1e-2), name
    # What the model knows of words and tags stays if signatures are written differently, or mean other things.
    bundle = tmp_path / "bundle"
    shutil.copytree(trained.bundle, bundle)
    np.save(bundle / "code" / "hyperplanes.npy", -np.load(bundle / "code" / "hyperplanes.npy"))
    for number, change in enumerate(({"bits_per_token": 2}, {"init": str(bundle)})):
        (other,) = train(trained.corpus, tmp_path / f"other-{number}", config.with_values(**change)).values()
        assert other["plain_nats"] < 35  # new tokens compete at first; without knowing words, it is about 60
        assert other["sentence_signature_nats"] > before["sentence_signature_nats"] + 0.1


def test_a_bundle_can_learn_another_relation(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("source\ttarget\n" + "".join(grammar().splitlines(keepends=True)[1:]))
    prepared = PrepareConfig(
        relation="reply", template="{source} - {target}", filter="none", encoder="static", bits=6, dev=20, test=0
    )
    prepare([str(tmp_path / "pairs.tsv")], str(tmp_path / "corpus"), prepared)
    config = PRESETS["causal"].with_values(
        init=str(trained.bundle), lora_rank=4, precision="float32", shares=(), bits_per_token=3, max_steps=3
    )
    train(tmp_path / "corpus", tmp_path / "run", config)
    facts = export(tmp_path / "run", tmp_path / "bundle")
    assert [*facts.models] == ["reply"]
    assert load(tmp_path / "bundle", threads=1).generate(SOURCES[0], "reply", 2).answers


def test_folders_that_cannot_be_started_from_say_why(tmp_path: Path) -> None:
    start = save_language_model(tmp_path / "start")
    pieces = tmp_path / "pieces.json"
    trim_byte_pieces(start, ["the baker"], pieces, 400)
    vocabulary = Vocabulary(pieces, [], SignatureTokens(8, 4, True))

    def build(folder: Path, dropped: tuple[int, ...] = ()) -> None:
        build_causal(
            open_start(folder, vocabulary), vocabulary, Adaptation(dropped_layers=dropped), seed=1, tag_starts=[]
        )

    with pytest.raises(Cod3sError, match="3 layers, so 9"):
        build(start, (9,))
    untied = save_language_model(tmp_path / "untied", tie_word_embeddings=False)
    with pytest.raises(Cod3sError, match="separate tables"):
        build(untied)
    config = json.loads((start / "config.json").read_text())
    (start / "config.json").write_text(json.dumps({**config, "eos_token_id": None}))
    with pytest.raises(Cod3sError, match="no end token"):
        build(start)
    (start / "config.json").write_text(json.dumps({**config, "model_type": "rwkv"}))
    with pytest.raises(Cod3sError, match="'rwkv'"):
        build(start)
    (tmp_path / "words").mkdir()
    words = {"model": {"type": "WordPiece", "vocab": {END: 0}}, "pre_tokenizer": None}
    (tmp_path / "words" / "tokenizer.json").write_text(json.dumps(words))
    with pytest.raises(Cod3sError, match="not byte-level"):
        trim_byte_pieces(tmp_path / "words", ["the baker"], pieces, 400)
