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
    heads, groups = config.num_attention_heads, config.num_key_value_heads
    size = config.hidden_size // heads
    weights = {
        "model.embed_tokens.weight": file.array("decoder/embeddings/weight"),
        "model.norm.weight": file.array("decoder/layer_norm/gamma"),
    }
    for number in range(config.num_hidden_layers):
        engine, name = f"decoder/layer_{number}", f"model.layers.{number}"
        joined = file.array(f"{engine}/self_attention/linear_0/weight")
        query, key, value = np.split(joined, [heads * size, (heads + groups) * size])
        weights |= {
            f"{name}.self_attn.q_proj.weight": query,
            f"{name}.self_attn.k_proj.weight": key,
            f"{name}.self_attn.v_proj.weight": value,
            f"{name}.self_attn.o_proj.weight": file.array(f"{engine}/self_attention/linear_1/weight"),
            f"{name}.mlp.gate_proj.weight": file.array(f"{engine}/ffn/linear_0/weight"),
            f"{name}.mlp.up_proj.weight": file.array(f"{engine}/ffn/linear_0_noact/weight"),
            f"{name}.mlp.down_proj.weight": file.array(f"{engine}/ffn/linear_1/weight"),
            f"{name}.input_layernorm.weight": file.array(f"{engine}/self_attention/layer_norm/gamma"),
            f"{name}.post_attention_layernorm.weight": file.array(f"{engine}/ffn/layer_norm/gamma"),
        }
    return weights


# Where the engine keeps each linear layer of a Llama block. It joins queries, keys and values in one weight.
_LINEAR = {
    "q_proj": "self_attention/linear_0",
    "k_proj": "self_attention/linear_0",
    "v_proj": "self_attention/linear_0",
    "o_proj": "self_attention/linear_1",
    "gate_proj": "ffn/linear_0",
    "up_proj": "ffn/linear_0_noact",
    "down_proj": "ffn/linear_1",
}


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
    heads, groups = decoder.config.num_attention_heads, decoder.config.num_key_value_heads
    size = decoder.config.hidden_size // heads
    first_rows = {"k_proj": heads * size, "v_proj": (heads + groups) * size}
    for number, layer in enumerate(decoder.layers):
        for name, module in (*layer.self_attn.named_children(), *layer.mlp.named_children()):
            if name in _LINEAR and hasattr(module, "lora_A"):
                yield f"layer_{number}/{_LINEAR[name]}", first_rows.get(name, 0), module
