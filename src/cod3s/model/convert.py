"""Convert a trained Transformer (a Hugging Face folder) to the engine's format.

`marian` (from scratch) with numpy alone; `bart`, `t5` and causal language models, which are always pretrained, by
the engine's converters.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.encode.weights import (
    Weights,
    ctranslate2_specs,
    fill_joined,
    fill_linear,
    fill_norm,
    nearest_levels,
    read_weights,
)
from cod3s.errors import Cod3sError, require
from cod3s.io.disk import read_json
from cod3s.model.parts import split_weights
from cod3s.model.shape import LAYER_NORM_EPSILON
from cod3s.model.transformer import quiet_transformers
from cod3s.tokens.vocabulary import END, UNKNOWN

_SIX_BITS = 31  # levels on either side of zero


def convert_transformer(
    folder: Path, output: Path, *, source_tokens: Sequence[str], target_tokens: Sequence[str], quantization: str
) -> None:
    """Write the engine's model into `output`; `quantization` is float32 or int8.

    No decoder start token is set: the first token of every target prefix, a role's tag, starts the decoder.
    """
    config = read_json(folder / "config.json")
    match config.get("model_type"):
        case "marian":
            spec = _marian_spec(folder, config)
        case "bart":
            spec = _pretrained_spec(folder, "Bart")
        case "t5":
            spec = _pretrained_spec(folder, "T5")
        case other:
            raise Cod3sError(f"{folder} holds a {other!r} model, which cannot be exported")
    spec.register_source_vocabulary(list(source_tokens))
    spec.register_target_vocabulary(list(target_tokens))
    spec.config.decoder_start_token = None
    spec.config.add_source_bos = spec.config.add_source_eos = False
    _save(spec, output, config.get("layer_norm_epsilon", LAYER_NORM_EPSILON), quantization)


def convert_causal(folder: Path, output: Path, *, tokens: Sequence[str], quantization: str) -> None:
    """Write the engine's model of a causal language model into `output`; large weights are kept in parts.

    `quantization` is float32, int8, or int6: int8 with three of four levels left out, as fast and smaller on disk.
    """
    model = quiet_transformers().AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    if quantization == "int6":
        _round_to_six_bits(model)
        quantization = "int8"
    loaders = require("ctranslate2.converters.transformers", "train")
    if model.config.model_type == "llama":
        loader, epsilon = loaders.LlamaLoader(), model.config.rms_norm_eps
    else:
        loader, epsilon = loaders.GPT2Loader(), model.config.layer_norm_epsilon
    spec = loader.get_model_spec(model)
    spec.register_vocabulary(list(tokens))
    _save(spec, output, epsilon, quantization)
    split_weights(output)


def _save(spec: Any, output: Path, epsilon: float, quantization: str) -> None:
    spec.config.bos_token = spec.config.eos_token = END
    spec.config.unk_token = UNKNOWN
    spec.config.layer_norm_epsilon = epsilon
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    spec.save(str(output))


def _round_to_six_bits(model: Any) -> None:
    """Round every matrix to 63 levels per output, cut off where that costs the least squared error."""
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if weight is not None and weight.dim() == 2:
            inputs = 0 if type(module).__name__ == "Conv1D" else 1  # GPT-2 keeps its matrices transposed
            weight.data = weight.data.new_tensor(nearest_levels(weight.detach().numpy(), _SIX_BITS, inputs))


def _marian_spec(folder: Path, config: dict[str, Any]) -> Any:
    specs, weights = ctranslate2_specs(), read_weights(folder)
    activations = {"relu": specs.Activation.RELU, "swish": specs.Activation.SWISH, "gelu": specs.Activation.GELU}
    spec = specs.TransformerSpec.from_config(
        (config["encoder_layers"], config["decoder_layers"]),
        config["decoder_attention_heads"],
        pre_norm=False,
        activation=activations[config["activation_function"]],
    )
    table = weights["model.shared.weight"]
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = spec.decoder.projection.weight = table
    spec.decoder.projection.bias = weights["final_logits_bias"].reshape(-1)
    positions = _sinusoids(config["max_position_embeddings"], config["d_model"])
    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        stack.position_encodings.encodings = positions
        for number, layer in enumerate(stack.layer):
            name = f"model.{side}.layers.{number}"
            _fill_layer(layer, weights, name)
            if side == "decoder":
                _fill_cross_attention(layer.attention, weights, f"{name}.encoder_attn")
    return spec


def _pretrained_spec(folder: Path, family: str) -> Any:
    model = getattr(quiet_transformers(), f"{family}ForConditionalGeneration").from_pretrained(folder)
    model.config.normalize_before = False  # BART's converter asks for it; BART has no other way
    loaders = require("ctranslate2.converters.transformers", "train")
    return getattr(loaders, f"{family}Loader")().get_model_spec(model)


def _fill_layer(layer: Any, weights: Weights, name: str) -> None:
    attention, feed_forward = layer.self_attention, layer.ffn
    fill_joined(attention.linear[0], weights, [f"{name}.self_attn.{part}_proj" for part in "qkv"])
    fill_linear(attention.linear[1], weights, f"{name}.self_attn.out_proj")
    fill_norm(attention.layer_norm, weights, f"{name}.self_attn_layer_norm")
    fill_linear(feed_forward.linear_0, weights, f"{name}.fc1")
    fill_linear(feed_forward.linear_1, weights, f"{name}.fc2")
    fill_norm(feed_forward.layer_norm, weights, f"{name}.final_layer_norm")


def _fill_cross_attention(attention: Any, weights: Weights, name: str) -> None:
    fill_linear(attention.linear[0], weights, f"{name}.q_proj")
    fill_joined(attention.linear[1], weights, [f"{name}.k_proj", f"{name}.v_proj"])
    fill_linear(attention.linear[2], weights, f"{name}.out_proj")
    fill_norm(attention.layer_norm, weights, f"{name}_layer_norm")


def _sinusoids(rows: int, width: int) -> npt.NDArray[np.float32]:
    """Marian's fixed positions: all sines, then all cosines."""
    angles = np.arange(rows)[:, None] / 10_000 ** (np.arange(0, width, 2) / width)[None]
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
