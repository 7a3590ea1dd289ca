"""Causal language models of all families, converted for the engine: it scores as transformers does."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cod3s.encode.engine_spec import check_levels, nearest_levels
from cod3s.errors import Cod3sError, UsageError
from cod3s.model.causal import Adaptation, build_causal, open_start
from cod3s.model.convert import CAUSAL_FAMILIES, convert_causal
from cod3s.model.llama import save_causal_engine
from cod3s.model.roles import tag
from cod3s.tokens.trimming import trim_byte_pieces
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary
from tiny_language_model import save_language_model

TEXT = "the baker missed the bus, so"
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    """Pieces trimmed from a byte-level tokenizer, tags, and signature tokens."""
    folder = tmp_path_factory.mktemp("pieces")
    trim_byte_pieces(save_language_model(folder / "start"), [TEXT], folder / "tokens.model", 400)
    tags = [tag("effect", role) for role in ("plain", "sentence")]
    return Vocabulary(folder / "tokens.model", tags, SignatureTokens(16, 4, positional=True))


def tiny_model(family: str, vocabulary: Vocabulary, **changes: Any) -> Any:
    """A random model of a family; its initial weights are large, so that its scores differ."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    changes.setdefault("vocab_size", len(vocabulary))
    sizes = {**SIZES, **({"head_dim": 16} if family.startswith(("gemma", "qwen3")) else {}), **changes}
    if family == "gpt_neox":
        sizes.pop("num_key_value_heads")
    config = AutoConfig.for_model(family, initializer_range=0.3, bos_token_id=1, eos_token_id=1, **sizes)
    torch.manual_seed(1)
    return AutoModelForCausalLM.from_config(config).eval()


def row_of(vocabulary: Vocabulary) -> list[int]:
    signature = vocabulary.encode_signature("0110011001011100")
    return [*vocabulary.encode_text(TEXT), vocabulary.id("<effect:sentence>"), *signature]


def torch_scores(model: Any, row: list[int]) -> np.ndarray:
    import torch

    with torch.no_grad():
        log_probs = model(torch.tensor([row])).logits[0].log_softmax(-1)
    return np.array([float(log_probs[place, token]) for place, token in enumerate(row[1:])])


def engine_scores(folder: Path, vocabulary: Vocabulary, row: list[int], compute: str = "float32") -> np.ndarray:
    import ctranslate2

    engine = ctranslate2.Generator(str(folder), compute_type=compute)
    (scored,) = engine.score_batch([[vocabulary.tokens[number] for number in row]])
    return np.array(scored.log_probs)


def arrays_of(model: Any) -> dict[str, np.ndarray]:
    return {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize(
    "changes",
    [
        {"tie_word_embeddings": True},
        {"tie_word_embeddings": False},
        {"num_key_value_heads": 4, "attention_bias": True, "mlp_bias": True},
        {"head_dim": 24, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
    ],
    ids=" ".join,
)
def test_a_llama_written_by_numpy_scores_as_torch_does(
    changes: Mapping[str, Any], vocabulary: Vocabulary, tmp_path: Path
) -> None:
    model, row = tiny_model("llama", vocabulary, **changes), row_of(vocabulary)
    save_causal_engine(
        arrays_of(model), model.config.to_dict(), vocabulary.tokens, tmp_path, quantization="float32"
    )
    assert engine_scores(tmp_path, vocabulary, row) == pytest.approx(torch_scores(model, row), abs=1e-3)


@pytest.mark.parametrize("family", CAUSAL_FAMILIES)
def test_every_family_scores_as_torch_does(family: str, vocabulary: Vocabulary, tmp_path: Path) -> None:
    model, row = tiny_model(family, vocabulary), row_of(vocabulary)
    model.save_pretrained(tmp_path / "model")
    (tmp_path / "engine").mkdir()
    convert_causal(tmp_path / "model", tmp_path / "engine", vocabulary.tokens, quantization="float32")
    assert engine_scores(tmp_path / "engine", vocabulary, row) == pytest.approx(torch_scores(model, row), abs=5e-3)


@pytest.mark.parametrize("family", CAUSAL_FAMILIES)
def test_every_family_can_be_adapted_and_exported(family: str, vocabulary: Vocabulary, tmp_path: Path) -> None:
    """Its table is trimmed to the vocabulary, LoRA has a gradient, and the engine runs what is saved."""
    import torch
    from transformers import AutoModelForCausalLM

    start = save_language_model(tmp_path / "start")
    names = json.loads((start / "tokenizer.json").read_text())["model"]["vocab"]
    tiny_model(family, vocabulary, tie_word_embeddings=True, vocab_size=len(names)).save_pretrained(start)
    adaptation = Adaptation(lora_rank=4, precision="float32")
    model = build_causal(open_start(start, vocabulary), vocabulary, adaptation, seed=1, tag_starts=[None, None])
    row = torch.tensor([row_of(vocabulary)])
    trunk = torch.zeros_like(row)  # one visit, and nothing branches
    model(
        input_ids=row, positions=torch.arange(row.shape[1])[None], visits=trunk, branches=trunk, labels=row
    ).loss.backward()
    adapters = [parameter for name, parameter in model.named_parameters() if "lora_B" in name]
    assert adapters
    assert all(parameter.grad.abs().sum() > 0 for parameter in adapters)
    model.save_pretrained(tmp_path / "model")
    (tmp_path / "engine").mkdir()
    convert_causal(tmp_path / "model", tmp_path / "engine", vocabulary.tokens, quantization="float32")
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "model").eval()
    scores = engine_scores(tmp_path / "engine", vocabulary, row_of(vocabulary))
    assert scores == pytest.approx(torch_scores(saved, row_of(vocabulary)), abs=5e-3)


def test_fewer_levels_compress_better_and_cost_little(vocabulary: Vocabulary, tmp_path: Path) -> None:
    """SmolLM2 needs 7.2 bits per weight with 255 levels, and 5.5 with 63, at a squared error of .1 %."""
    model, row = tiny_model("llama", vocabulary, hidden_size=256, intermediate_size=512), row_of(vocabulary)
    exact = torch_scores(model, row)
    sizes, cosines = {}, {}
    for levels in (255, 63):
        folder = tmp_path / str(levels)
        save_causal_engine(arrays_of(model), model.config.to_dict(), vocabulary.tokens, folder, levels=levels)
        content = (folder / "model.bin").read_bytes()
        sizes[levels] = len(gzip.compress(content, 6)) / len(content)
        scores = engine_scores(folder, vocabulary, row, "int8")
        cosines[levels] = float(scores @ exact / np.linalg.norm(scores) / np.linalg.norm(exact))
    assert sizes[63] < 0.8 * sizes[255]
    assert min(cosines.values()) > 0.98


def test_rows_have_at_most_their_levels_and_the_nearest_scale() -> None:
    matrix = np.random.default_rng(1).normal(size=(50, 300)).astype(np.float32)
    matrix[3] = 0
    for levels in (255, 63, 7):
        numbers, scales = nearest_levels(matrix, levels)
        assert np.abs(numbers).max() == levels // 2
        restored = numbers / scales[:, None]
        whole_range = np.abs(matrix).max(axis=1, keepdims=True) / (levels // 2)
        plain = np.rint(matrix / np.maximum(whole_range, 1e-9)) * whole_range
        assert np.square(restored - matrix).sum() <= np.square(plain - matrix).sum() + 1e-6
    for levels in (5, 64, 257):
        with pytest.raises(UsageError, match="levels"):
            check_levels(levels)


def test_models_that_cannot_be_written_say_why(vocabulary: Vocabulary, tmp_path: Path) -> None:
    model = tiny_model("llama", vocabulary)
    weights, config = arrays_of(model), model.config.to_dict()
    scaled = {**config, "rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}
    missing = {name: rows for name, rows in weights.items() if "up_proj" not in name}
    for case, message in [
        ((weights, config, vocabulary.tokens[:-1]), "vocabulary has"),
        ((missing, config, vocabulary.tokens), "lacks 'model.layers.0.mlp.up_proj.weight'"),
        ((weights, scaled, vocabulary.tokens), "'llama3'"),
    ]:
        with pytest.raises(Cod3sError, match=message):
            save_causal_engine(*case, tmp_path)
