"""Encoders: real models, the same vectors in any batch, and clear errors."""

import json
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest

from cod3s.encode import Encoder, load_encoder
from cod3s.encode.fast import gains_from_avx512
from cod3s.encode.protocol import length_sorted_batches
from cod3s.encode.weights import SHA256, minilm_folder, verify_weights
from cod3s.errors import EncoderError, UsageError
from cod3s.signatures import random_code
from cod3s.signatures.signer import FRAGILE_MARGIN, sign
from conftest import Run
from made_sentences import made_sentences

SENTENCES = [
    "The lamp fell off the table.",
    "A light was knocked over.",
    "She bought three kilos of apples at the market before the rain began, and carried them home on foot.",
    "Il pleut à verse depuis ce matin.",
    "今日は雨が降っています。",
    "🙂🙂🙂",
    "a",
    "word " * 20_000,
]


@pytest.fixture(params=["static", "fast", "fast-int8", "sbert"])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    if request.param == "fast-int8":
        return load_encoder("fast-int8")
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def test_every_encoder_gives_unit_vectors_that_are_near_for_paraphrases(encoder: Encoder) -> None:
    vectors = encoder.encode(SENTENCES)
    assert vectors.shape == (len(SENTENCES), encoder.dim)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    alone = np.concatenate([encoder.encode([sentence]) for sentence in SENTENCES])
    assert (vectors * alone).sum(axis=1) == pytest.approx(1, abs=2e-3 if "int8" in encoder.id else 1e-5)
    a, b, c = encoder.encode(["He lost his keys.", "He could not find his keys.", "Snow fell on the hills."])
    assert a @ b > a @ c + 0.2
    assert encoder.encode([]).shape == (0, encoder.dim)


@pytest.mark.parametrize("name", ["static", "fast", "sbert"])
def test_a_signature_is_the_same_alone_and_in_any_batch(name: str, request: pytest.FixtureRequest) -> None:
    """Bits may differ only within the stated margin of a hyperplane."""
    encoder = request.getfixturevalue(name)
    texts = made_sentences(300)
    together = sign(texts, encoder=encoder, bits=64, with_pairs=False).sentences
    alone = [sign([text], encoder=encoder, bits=64).sentences[0] for text in texts[:60]]
    shuffled = sign(texts[::-1], encoder=encoder, bits=64, with_pairs=False).sentences[::-1]
    for other in (alone, shuffled):
        firm = [(a, b) for a, b in zip(together, other, strict=False) if a.margin > FRAGILE_MARGIN]
        assert len(firm) > 50
        assert all(a.signature == b.signature for a, b in firm)


def test_fast_gives_the_bits_of_the_reference(fast: Encoder, sbert: Encoder) -> None:
    texts = made_sentences(600) + SENTENCES
    code = random_code(256, 384)
    equal = code.sign(fast.encode(texts)) == code.sign(sbert.encode(texts))
    assert equal.mean() >= 0.999


def test_int8_flips_bits_and_says_so_in_its_id(fast: Encoder) -> None:
    quantised = load_encoder("fast-int8")
    texts = made_sentences(600)
    code = random_code(256, 384)
    equal = (code.sign(fast.encode(texts)) == code.sign(quantised.encode(texts))).mean()
    assert 0.9 < equal < 0.999
    assert quantised.id != fast.id


def test_ids_name_backend_model_and_weights(static: Encoder, fast: Encoder, sbert: Encoder) -> None:
    assert [static.id, fast.id, sbert.id] == [
        "static:wordllama-l2-supercat-256",
        "fast:all-MiniLM-L6-v2@53aa5117",
        "sbert:all-MiniLM-L6-v2@53aa5117",
    ]


def test_a_long_sentence_is_read_to_the_token_limit_and_no_further(fast: Encoder) -> None:
    cut, whole = fast.encode(["word " * 254, "word " * 20_000])  # 256 tokens with the two special ones
    assert cut @ whole == pytest.approx(1, abs=1e-6)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory as Linux tells it")
def test_sentences_are_not_remembered(static: Encoder) -> None:
    """The tokenizer would keep 2 KB of each, 20 MB here, until it has 10,000."""

    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    sentences = [f"on day {number} somebody looked for the key" for number in range(9_000)]
    static.encode(sentences[:10])
    before = resident_bytes()
    for start in range(0, len(sentences), 10):
        static.encode(sentences[start : start + 10])
    assert resident_bytes() - before < 5 * 2**20


def test_the_embedded_weights_are_the_published_ones() -> None:
    assert SHA256.startswith("53aa5117")
    assert SHA256.endswith("28d9db")
    assert (minilm_folder() / "model.safetensors").is_file()


def test_swapped_weights_are_refused(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"something else")
    with pytest.raises(EncoderError, match="not the published weights"):
        verify_weights(weights, SHA256)


def test_a_damaged_conversion_in_the_cache_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: Encoder
) -> None:
    monkeypatch.setenv("COD3S_CACHE", str(tmp_path))
    load_encoder("fast")
    (model,) = tmp_path.rglob("model.bin")
    model.write_bytes(model.read_bytes()[:-1000])
    again = load_encoder("fast").encode(SENTENCES[:2])
    assert again == pytest.approx(fast.encode(SENTENCES[:2]), abs=1e-5)


def test_an_unknown_encoder_suggests_the_nearest() -> None:
    for name, hint in [
        ("sbrt", "'sbert'"),
        ("fsat", "'fast'"),
        ("word2vec", "choose one of"),
        ("", "choose one of"),
    ]:
        with pytest.raises(UsageError) as caught:
            load_encoder(name)
        assert hint in caught.value.hint


def test_a_model_that_is_nowhere_is_a_clear_error(cod3s: Run) -> None:
    """In a process of its own: the hub's library reads this variable once, and retries for minutes without it."""
    done = cod3s("sign", "It rained.", "--encoder", "sbert:no-such-model-anywhere", HF_HUB_OFFLINE="1")
    assert done.returncode == 1
    assert "cannot open 'no-such-model-anywhere'" in done.stderr
    with pytest.raises(EncoderError, match="model folder"):
        load_encoder("fast:no-such-folder")


def test_batches_hold_every_index_once_and_stay_below_their_size() -> None:
    lengths = [5, 1, 9, 3, 3, 40, 2]
    batches = length_sorted_batches(lengths, 12)
    assert sorted(index for batch in batches for index in batch) == list(range(7))
    assert all(len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= 12 for batch in batches)
    assert length_sorted_batches([], 12) == []


@pytest.fixture(scope="module", params=["bert", "roberta"])
def tiny_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT-type model with its tokenizer, saved as users save theirs."""
    import torch
    from transformers import AutoConfig, AutoModel

    folder = tmp_path_factory.mktemp(request.param)
    torch.manual_seed(1)
    config = AutoConfig.for_model(
        request.param,
        vocab_size=30522,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=66,
        pad_token_id=0 if request.param == "bert" else 1,
    )
    AutoModel.from_config(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(minilm_folder() / name, folder / name)
    return folder


def test_a_model_of_ones_own_runs_the_same_on_both_backends(tiny_model: Path) -> None:
    own, reference = load_encoder(f"fast:{tiny_model}"), load_encoder(f"sbert:{tiny_model}")
    vectors = own.encode(SENTENCES[:4])
    assert vectors == pytest.approx(reference.encode(SENTENCES[:4]), abs=1e-4)
    assert own.id.startswith(f"fast:{tiny_model.name}@")
    assert own.id.split("@")[1] == reference.id.split("@")[1]


POOLINGS: list[tuple[dict[str, object], bool]] = [
    ({"pooling_mode_cls_token": True}, False),
    ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, True),
    ({"pooling_mode": "cls"}, False),  # as sentence-transformers writes it since version 6
    ({"pooling_mode": ["mean", "max"]}, False),
    ({"pooling_mode": "mean"}, True),
]


def test_a_recipe_that_the_fast_backend_lacks_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    dim = load_encoder(f"fast:{tiny_model}").dim  # so that a conversion of the same weights is in the cache
    folder = tmp_path / "pooled"
    shutil.copytree(tiny_model, folder)
    (folder / "1_Pooling").mkdir()
    modules = [{"type": f"sentence_transformers.models.{name}"} for name in ("Transformer", "Pooling")]
    (folder / "modules.json").write_text(json.dumps(modules))
    for pooling, is_known in POOLINGS:
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        if is_known:
            assert load_encoder(f"fast:{folder}").dim == dim
        else:
            with pytest.raises(EncoderError, match="pools by the mean"):
                load_encoder(f"fast:{folder}")


def test_the_same_weights_with_other_settings_are_converted_anew(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "short"
    shutil.copytree(tiny_model, folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 4}))
    text = "the ladder fell on the old bucket"
    long, short = (load_encoder(f"fast:{one}").encode([text]) for one in (tiny_model, folder))
    assert not np.allclose(long, short)


def test_damaged_or_pickled_weights_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(tiny_model, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(EncoderError, match="damaged"):
        load_encoder(f"fast:{folder}")
    weights.rename(folder / "pytorch_model.bin")
    with pytest.raises(EncoderError, match="safetensors"):
        load_encoder(f"fast:{folder}")


ALL_OF_AVX512 = "avx512f avx512dq avx512cd avx512bw avx512vl"


def test_only_amd_processors_with_all_of_avx512_are_told_to_use_it() -> None:
    for vendor, flags, gains in [
        ("AuthenticAMD", f"sse avx2 {ALL_OF_AVX512}", True),
        ("AuthenticAMD", "sse avx2 avx512f", False),  # the engine would refuse to start
        ("AuthenticAMD", "sse avx2", False),
        ("GenuineIntel", f"sse avx2 {ALL_OF_AVX512}", False),  # not measured: left to the engine
        ("", "", False),
    ]:
        processor = f"processor\t: 0\nvendor_id\t: {vendor}\nflags\t\t: {flags}\nbogomips\t: 5192"
        assert gains_from_avx512(f"{processor}\n\n{processor}\n") is gains
