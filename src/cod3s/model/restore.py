"""Read a Llama model back from the engine's files, so that a bundle can be trained further or adapted."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.encode.engine_file import EngineFile, read_engine_file
from cod3s.errors import Cod3sError, require
from cod3s.model.adapter import Change, opened_files
from cod3s.model.parts import model_files
from cod3s.model.transformer import quiet_transformers

# Where the engine keeps the linear layers of a Llama block: queries, keys and values are joined in one weight.
_JOINED = "self_attention/linear_0"
_LINEAR = {
    "self_attn.o_proj": "self_attention/linear_1",
    "mlp.gate_proj": "ffn/linear_0",
    "mlp.up_proj": "ffn/linear_0_noact",
    "mlp.down_proj": "ffn/linear_1",
}


def restore_llama(folder: Path, *, merged: bool = True) -> Any:
    """The causal language model of transformers whose engine model is in `folder`; its weights are rounded.

    Its own adapter is merged into them, or left out.
    """
    transformers, torch = quiet_transformers(), require("torch", "train")
    files = (opened_files(folder) if merged else None) or model_files(folder)
    file = read_engine_file(files["model.bin"], str(folder / "model.bin"))
    if "decoder/layer_0/ffn/linear_0_noact/weight" not in file.variables:
        raise Cod3sError(
            f"the model in {folder} is not of the Llama family",
            hint="start from the folder that it was trained from",
        )
    config = _llama_config(transformers, file, json.loads(files["config.json"])["layer_norm_epsilon"])
    model = transformers.LlamaForCausalLM(config)
    state = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in _weights(file, config).items()}
    missing = model.load_state_dict(state, strict=False).missing_keys
    if missing != ["lm_head.weight"]:  # which is the table of embeddings
        raise Cod3sError(f"the model in {folder} is missing {missing[0] if missing else 'its table'}")
    model.tie_weights()
    return model


def _llama_config(transformers: Any, file: EngineFile, epsilon: float) -> Any:
    first = "decoder/layer_0"
    pieces, width = file.array("decoder/embeddings/weight").shape
    return transformers.LlamaConfig(
        vocab_size=pieces,
        hidden_size=width,
        intermediate_size=len(file.array(f"{first}/ffn/linear_0/weight")),
        num_hidden_layers=len(
            {name.split("/")[1] for name in file.variables if name.endswith("ffn/linear_1/weight")}
        ),
        num_attention_heads=int(file.number("decoder/num_heads")),
        num_key_value_heads=int(file.number(f"{first}/self_attention/num_heads_kv")),
        rms_norm_eps=epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": file.number(f"{first}/self_attention/rotary_base")},
        tie_word_embeddings=True,
        attn_implementation="eager",
    )


def _weights(file: EngineFile, config: Any) -> dict[str, Any]:
    """The engine's weights by the names that transformers gives them."""
    first_rows = _first_rows(config)
    weights = {
        "model.embed_tokens.weight": file.array("decoder/embeddings/weight"),
        "model.norm.weight": file.array("decoder/layer_norm/gamma"),
    }
    for number in range(config.num_hidden_layers):
        engine, name = f"decoder/layer_{number}", f"model.layers.{number}"
        _, *starts = first_rows.values()
        parts = np.split(file.array(f"{engine}/{_JOINED}/weight"), starts)
        weights |= {f"{name}.{part}.weight": rows for part, rows in zip(first_rows, parts, strict=True)}
        weights |= {f"{name}.{part}.weight": file.array(f"{engine}/{at}/weight") for part, at in _LINEAR.items()}
        weights |= {
            f"{name}.input_layernorm.weight": file.array(f"{engine}/self_attention/layer_norm/gamma"),
            f"{name}.post_attention_layernorm.weight": file.array(f"{engine}/ffn/layer_norm/gamma"),
        }
    return weights


def _first_rows(config: Any) -> dict[str, int]:
    """The first row of queries, keys and values in their joined weight."""
    width, size = config.hidden_size, config.hidden_size // config.num_attention_heads
    values = width + config.num_key_value_heads * size
    return {"self_attn.q_proj": 0, "self_attn.k_proj": width, "self_attn.v_proj": values}


def lora_changes(decoder: Any) -> Iterator[Change]:
    """What LoRA adapters have learned on the layers of a Llama decoder, as changes of the engine's weights."""
    for weight, row, module in _adapted_layers(decoder):
        down, up = module.lora_A["default"].weight, module.lora_B["default"].weight
        scaled = up.detach().float() * module.scaling["default"]
        yield Change(weight, row, down.detach().float().numpy(), scaled.numpy())


def load_lora(decoder: Any, changes: Sequence[Change]) -> None:
    """Let LoRA adapters start from changes that were learned before; adapters of a higher rank have room for more.

    Raise a ValueError if they do not cover all changes.
    """
    torch = require("torch", "train")
    known = {(change.weight, change.row): change for change in changes}
    for weight, row, module in _adapted_layers(decoder):
        if change := known.pop((weight, row), None):
            down, up = module.lora_A["default"].weight, module.lora_B["default"].weight
            rank = len(change.down)
            # An adapter's file says nothing about the sizes of the two; unless they are alike, learning runs away.
            sizes = np.linalg.norm(change.down, axis=1), np.linalg.norm(change.up, axis=0) + 1e-12
            balance = np.sqrt(sizes[1] / sizes[0].clip(1e-12)).astype(np.float32)
            with torch.no_grad():
                down[:rank] = torch.from_numpy(change.down * balance[:, None])
                up[:, :rank] = torch.from_numpy(change.up / balance) / module.scaling["default"]
    if known:
        raise ValueError(f"{next(iter(known))[0]} has learned before, but is not adapted now")


def _adapted_layers(decoder: Any) -> Iterator[tuple[str, int, Any]]:
    """Each linear layer with an adapter: its weight in the engine, its first row there, the layer."""
    first_rows = _first_rows(decoder.config)
    for number, layer in enumerate(decoder.layers):
        for name in (*first_rows, *_LINEAR):
            if hasattr(module := layer.get_submodule(name), "lora_A"):
                yield f"layer_{number}/{_LINEAR.get(name, _JOINED)}", first_rows.get(name, 0), module
