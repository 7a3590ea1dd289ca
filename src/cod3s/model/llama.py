"""Write a causal language model of the Llama architecture for the engine, with numpy alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cod3s.encode.engine_spec import INT8_LEVELS, Weights, ctranslate2_specs, fill_linear, fill_norm, save_spec
from cod3s.errors import Cod3sError
from cod3s.tokens.vocabulary import END, UNKNOWN


def save_causal_engine(
    weights: Weights,
    config: Mapping[str, Any],
    tokens: Sequence[str],
    folder: Path,
    *,
    quantization: str = "int8",
    levels: int = INT8_LEVELS,
) -> None:
    """Write the engine's model into `folder`.

    `weights` and `config` are named as in a Hugging Face folder (`model.layers.0.self_attn.q_proj.weight`,
    `num_hidden_layers`), `tokens[i]` is the name of id i. `levels` limits the values of a row in int8.
    """
    table = weights.get("model.embed_tokens.weight")
    if table is None or len(table) != len(tokens):
        rows = "no table of tokens" if table is None else f"a table of {len(table)} tokens"
        raise Cod3sError(f"the model has {rows}, but the vocabulary has {len(tokens)}")
    try:
        spec = _filled_spec(weights, config)
    except KeyError as error:
        raise Cod3sError(
            f"the model lacks {error}, which the Llama architecture needs", hint="save the model again"
        ) from error
    spec.register_vocabulary(list(tokens))
    spec.config.bos_token = spec.config.eos_token = END
    spec.config.unk_token = UNKNOWN
    spec.config.layer_norm_epsilon = config["rms_norm_eps"]
    folder.mkdir(parents=True, exist_ok=True)
    save_spec(spec, folder, quantization=quantization, levels=levels)


def _filled_spec(weights: Weights, config: Mapping[str, Any]) -> Any:
    specs = ctranslate2_specs()
    heads, width = config["num_attention_heads"], config["hidden_size"]
    groups, head_width = config.get("num_key_value_heads") or heads, config.get("head_dim") or width // heads
    spec = specs.TransformerDecoderModelSpec.from_config(
        config["num_hidden_layers"],
        heads,
        activation=specs.Activation.SWISH,
        pre_norm=True,
        ffn_glu=True,
        rms_norm=True,
        rotary_dim=0,  # of whole heads
        rotary_interleave=False,
        rotary_base=_rotary_base(config),
        num_heads_kv=None if groups == heads else groups,
        head_dim=None if head_width * heads == width else head_width,
    )
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = weights["model.embed_tokens.weight"]
    decoder.projection.weight = weights.get("lm_head.weight", decoder.embeddings.weight)
    if config.get("tie_word_embeddings"):
        decoder.projection.weight = decoder.embeddings.weight
    fill_norm(decoder.layer_norm, weights, "model.norm")
    for number, layer in enumerate(decoder.layer):
        name = f"model.layers.{number}"
        fill_norm(layer.self_attention.layer_norm, weights, f"{name}.input_layernorm")
        fill_linear(layer.self_attention.linear[0], weights, [f"{name}.self_attn.{part}_proj" for part in "qkv"])
        fill_linear(layer.self_attention.linear[1], weights, f"{name}.self_attn.o_proj")
        fill_norm(layer.ffn.layer_norm, weights, f"{name}.post_attention_layernorm")
        fill_linear(layer.ffn.linear_0, weights, f"{name}.mlp.gate_proj")
        fill_linear(layer.ffn.linear_0_noact, weights, f"{name}.mlp.up_proj")
        fill_linear(layer.ffn.linear_1, weights, f"{name}.mlp.down_proj")
    return spec


def _rotary_base(config: Mapping[str, Any]) -> float:
    """The base of the rotary positions; scaled positions are an error."""
    rotary = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rotary.get("rope_type") or rotary.get("type") or "default"
    if kind != "default":
        raise Cod3sError(
            f"the model scales its positions by {kind!r}, which this converter does not know",
            hint="use a model with ordinary rotary positions, such as SmolLM2",
        )
    return float(rotary.get("rope_theta") or config.get("rope_theta") or 10_000)
