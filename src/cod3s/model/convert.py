"""Convert a trained model, in a Hugging Face folder, to the engine's format.

The architectures that training builds (`marian`, `llama`) need numpy alone; other causal language models go
through the engine's own converters.
"""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.encode.engine_spec import (
    INT8_LEVELS,
    Weights,
    ctranslate2_specs,
    fill_linear,
    fill_norm,
    save_spec,
)
from cod3s.encode.weights import read_weights
from cod3s.errors import Cod3sError, require
from cod3s.io.disk import read_json
from cod3s.model.llama import save_causal_engine
from cod3s.model.shape import LAYER_NORM_EPSILON
from cod3s.model.transformer import quiet_transformers
from cod3s.tokens.vocabulary import END, UNKNOWN

_LOADERS = {
    "gemma": "GemmaLoader",
    "gpt2": "GPT2Loader",
    "gpt_neox": "GPTNeoXLoader",
    "mistral": "MistralLoader",
    "qwen2": "Qwen2Loader",
    "qwen3": "Qwen3Loader",
}
"""The engine's converters of other families, by model type."""
CAUSAL_FAMILIES = ("llama", *_LOADERS)


def convert_causal(
    folder: Path, output: Path, tokens: Sequence[str], *, quantization: str, levels: int = INT8_LEVELS
) -> None:
    """Write the engine's model of the causal language model in `folder` into `output`."""
    config = read_json(folder / "config.json")
    family = config.get("model_type")
    if family == "llama":
        options: dict[str, Any] = {"quantization": quantization, "levels": levels}
        save_causal_engine(read_weights(folder), config, tokens, output, **options)
        return
    if family not in _LOADERS:
        raise Cod3sError(
            f"{folder} holds a {family!r} model, which the engine cannot run",
            hint=f"convert one of: {', '.join(CAUSAL_FAMILIES)}; others run as your own transformers model",
        )
    model = quiet_transformers().AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    if family == "gpt_neox":  # by the names that the engine's converter expects
        model.config.rotary_pct = model.config.rope_parameters["partial_rotary_factor"]
        model.embed_out = model.lm_head
    loader = getattr(require("ctranslate2.converters.transformers", "engine"), _LOADERS[family])()
    try:
        spec = loader.get_model_spec(model)
    except (AttributeError, KeyError, NotImplementedError, TypeError) as error:
        raise Cod3sError(
            f"the engine cannot convert the {family!r} model in {folder}: {error}",
            hint="another version of ctranslate2 or transformers may know it",
        ) from error
    spec.register_vocabulary(list(tokens))
    loader.set_config(
        spec.config, model, SimpleNamespace(bos_token=END, eos_token=END, unk_token=UNKNOWN, chat_template=None)
    )
    save_spec(spec, output, quantization=quantization, levels=levels)


def convert_marian(
    folder: Path, output: Path, tokens: Sequence[str], *, quantization: str, levels: int = INT8_LEVELS
) -> None:
    """Write the engine's model of the seq2seq Transformer in `folder` into `output`.

    No decoder start token is set: the first token of every target prefix, a role's tag, starts the decoder.
    """
    config = read_json(folder / "config.json")
    if config.get("model_type") != "marian":
        raise Cod3sError(
            f"{folder} holds a {config.get('model_type')!r} model, which is not a Transformer of cod3s",
            hint="train it with `cod3s train`",
        )
    spec = _marian_spec(read_weights(folder), config)
    spec.register_source_vocabulary(list(tokens))
    spec.register_target_vocabulary(list(tokens))
    spec.config.decoder_start_token = None
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.config.bos_token = spec.config.eos_token = END
    spec.config.unk_token = UNKNOWN
    spec.config.layer_norm_epsilon = LAYER_NORM_EPSILON
    save_spec(spec, output, quantization=quantization, levels=levels)


def _marian_spec(weights: Weights, config: dict[str, Any]) -> Any:
    specs = ctranslate2_specs()
    spec = specs.TransformerSpec.from_config(
        (config["encoder_layers"], config["decoder_layers"]),
        config["decoder_attention_heads"],
        pre_norm=False,
        activation=specs.Activation.RELU,
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


def _fill_layer(layer: Any, weights: Weights, name: str) -> None:
    attention, feed_forward = layer.self_attention, layer.ffn
    fill_linear(attention.linear[0], weights, [f"{name}.self_attn.{part}_proj" for part in "qkv"])
    fill_linear(attention.linear[1], weights, f"{name}.self_attn.out_proj")
    fill_norm(attention.layer_norm, weights, f"{name}.self_attn_layer_norm")
    fill_linear(feed_forward.linear_0, weights, f"{name}.fc1")
    fill_linear(feed_forward.linear_1, weights, f"{name}.fc2")
    fill_norm(feed_forward.layer_norm, weights, f"{name}.final_layer_norm")


def _fill_cross_attention(attention: Any, weights: Weights, name: str) -> None:
    fill_linear(attention.linear[0], weights, f"{name}.q_proj")
    fill_linear(attention.linear[1], weights, [f"{name}.k_proj", f"{name}.v_proj"])
    fill_linear(attention.linear[2], weights, f"{name}.out_proj")
    fill_norm(attention.layer_norm, weights, f"{name}_layer_norm")


def _sinusoids(rows: int, width: int) -> npt.NDArray[np.float32]:
    """Marian's fixed positions: all sines, then all cosines."""
    angles = np.arange(rows)[:, None] / 10_000 ** (np.arange(0, width, 2) / width)[None]
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
