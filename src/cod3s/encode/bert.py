"""Convert BERT-type sentence encoders for the engine, with numpy alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cod3s.encode.engine_spec import INT8_LEVELS, Weights, ctranslate2_specs, fill_linear, fill_norm, save_spec
from cod3s.errors import EncoderError

TABLE = "embeddings.word_embeddings.weight"
POSITIONS = "embeddings.position_embeddings.weight"
_TYPES = "embeddings.token_type_embeddings.weight"
# Position rows before the first real position (RoBERTa counts from its padding index + 1).
_POSITION_OFFSET = {"bert": 0, "roberta": 2, "xlm-roberta": 2}


def save_bert_engine(
    weights: Weights,
    config: Mapping[str, Any],
    folder: Path,
    *,
    quantization: str = "float32",
    levels: int = INT8_LEVELS,
) -> None:
    """Write the engine's model of an encoder into `folder`; names are those of a Hugging Face folder."""
    specs = ctranslate2_specs()
    encoder = specs.TransformerEncoderSpec(
        config["num_hidden_layers"],
        config["num_attention_heads"],
        pre_norm=False,
        activation=_activation(config.get("hidden_act", "gelu")),
        layernorm_embedding=True,
    )
    _fill(encoder, weights, _position_offset(config))
    spec = specs.TransformerEncoderModelSpec(encoder)
    spec.config.layer_norm_epsilon = config["layer_norm_eps"]
    # Callers pass token ids, so only the number of names matters: one per row.
    spec.register_vocabulary([str(row) for row in range(len(weights[TABLE]))])
    spec.config.unk_token = "0"
    save_spec(spec, folder, quantization=quantization, levels=levels)


def _fill(spec: Any, weights: Weights, offset: int) -> None:
    spec.scale_embeddings = False
    spec.embeddings[0].weight = weights[TABLE]
    # Every token is of type 0 here, so the type vector is another constant per position.
    spec.position_encodings.encodings = weights[POSITIONS][offset:] + weights[_TYPES][0]
    fill_norm(spec.layernorm_embedding, weights, "embeddings.LayerNorm")
    for number, layer in enumerate(spec.layer):
        name = f"encoder.layer.{number}"
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        fill_linear(layer.self_attention.linear[0], weights, parts)
        fill_linear(layer.self_attention.linear[1], weights, f"{name}.attention.output.dense")
        fill_norm(layer.self_attention.layer_norm, weights, f"{name}.attention.output.LayerNorm")
        fill_linear(layer.ffn.linear_0, weights, f"{name}.intermediate.dense")
        fill_linear(layer.ffn.linear_1, weights, f"{name}.output.dense")
        fill_norm(layer.ffn.layer_norm, weights, f"{name}.output.LayerNorm")


def _position_offset(config: Mapping[str, Any]) -> int:
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
