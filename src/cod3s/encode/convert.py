"""Convert a BERT-type encoder from safetensors to a CTranslate2 model, without torch."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from cod3s.encode.weights import Weights, read_weights
from cod3s.errors import EncoderError
from cod3s.files.disk import read_json, write_json

# Position rows before the first real one (RoBERTa counts from its padding index + 1).
_POSITION_OFFSET = {"bert": 0, "roberta": 2, "xlm-roberta": 2}


@cache
def ctranslate2_specs() -> Any:
    """The `ctranslate2.specs` module, which describes models to be converted.

    It imports torch where torch happens to be installed, only to convert torch tensors, which this project
    never hands to it: that costs seconds of start-up. Hiding torch for that one import avoids it.
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


def common_pieces(tokenizer: Path, texts: Iterable[str], number: int) -> list[int]:
    """The ids of up to `number` word pieces: those of `texts`, then those with the lowest ids, the commonest.

    Single characters and special tokens always stay, so any text can still be read, if in smaller pieces.
    """
    opened = Tokenizer.from_file(str(tokenizer))
    names: dict[str, int] = opened.get_vocab()
    kept = {id for name, id in names.items() if _is_basic(name)}
    used = Counter(id for encoding in opened.encode_batch_fast(list(texts)) for id in encoding.ids)
    others = [id for name, id in names.items() if not name.startswith("[unused") and id not in kept]
    others.sort(key=lambda id: (id not in used, id))
    return sorted([*kept, *others[: max(0, number - len(kept))]])


def _is_basic(name: str) -> bool:
    return len(name.removeprefix("##")) == 1 or name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def trim_tokenizer(tokenizer: Path, output: Path, pieces: Sequence[int]) -> None:
    """Write the tokenizer with only these pieces, numbered in their order."""
    content = read_json(tokenizer)
    numbers = {old: new for new, old in enumerate(pieces)}
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = {name: numbers[id] for name, id in vocabulary.items() if id in numbers}
    content["added_tokens"] = [
        {**token, "id": numbers[token["id"]]} for token in content["added_tokens"] if token["id"] in numbers
    ]
    for token in content["post_processor"]["special_tokens"].values():
        token["ids"] = [numbers[id] for id in token["ids"]]
    if content["padding"]:
        content["padding"]["pad_id"] = numbers[content["padding"]["pad_id"]]
    write_json(output, content)


def convert_encoder(
    folder: Path, output: Path, quantization: str | None = None, pieces: Sequence[int] | None = None
) -> None:
    """Write `folder`'s encoder into `output` as an engine model, its weights in float32 or `quantization`.

    With `pieces`, only those rows of its table are kept, for a tokenizer that `trim_tokenizer` wrote.
    """
    config = read_json(folder / "config.json")
    weights = read_weights(folder)
    if pieces is not None:
        table = "embeddings.word_embeddings.weight"
        weights = {**weights, table: weights[table][list(pieces)]}
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
    # Callers hand over token ids, so the names only have to be as many as the rows.
    spec.register_vocabulary([str(row) for row in range(len(weights["embeddings.word_embeddings.weight"]))])
    spec.config.unk_token = "0"
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(output))


def fill_bert_encoder(spec: Any, weights: Weights, config: dict[str, Any]) -> None:
    """Copy the weights of a BERT-type encoder into a CTranslate2 `TransformerEncoderSpec`."""
    offset = _position_offset(config)
    spec.scale_embeddings = False
    spec.embeddings[0].weight = weights["embeddings.word_embeddings.weight"]
    # Every token is of type 0 here, so the type vector is one more constant per position.
    positions = weights["embeddings.position_embeddings.weight"][offset:]
    spec.position_encodings.encodings = positions + weights["embeddings.token_type_embeddings.weight"][0]
    fill_norm(spec.layernorm_embedding, weights, "embeddings.LayerNorm")
    for number, layer in enumerate(spec.layer):
        name = f"encoder.layer.{number}"
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        projection = layer.self_attention.linear[0]
        projection.weight = np.concatenate([weights[f"{part}.weight"] for part in parts])
        projection.bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
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


def fill_norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]
