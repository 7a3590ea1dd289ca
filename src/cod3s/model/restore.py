"""Read a Llama model back from the engine's files, so that a bundle can be trained further."""

from pathlib import Path
from typing import Any

import numpy as np

from cod3s.errors import Cod3sError, require
from cod3s.io.disk import read_json
from cod3s.io.parts import read_whole
from cod3s.model.engine_file import EngineFile, read_engine_file
from cod3s.model.transformer import quiet_transformers

# Where the engine keeps the linear layers of a Llama block; queries, keys and values are joined in one weight.
_LINEAR = {
    "self_attn.o_proj": "self_attention/linear_1",
    "mlp.gate_proj": "ffn/linear_0",
    "mlp.up_proj": "ffn/linear_0_noact",
    "mlp.down_proj": "ffn/linear_1",
}


def restore_llama(folder: Path) -> Any:
    """The causal language model of transformers whose engine model is in `folder`; its weights are rounded."""
    transformers, torch = quiet_transformers(), require("torch", "train")
    path = folder / "model.bin"
    file = read_engine_file(read_whole(path), str(path))
    if "decoder/layer_0/ffn/linear_0_noact/weight" not in file.variables:
        raise Cod3sError(
            f"the model in {folder} is not of the Llama family",
            hint="start from the folder that it was trained from",
        )
    config = _llama_config(transformers, file, read_json(folder / "config.json")["layer_norm_epsilon"])
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
    size = config.hidden_size // config.num_attention_heads
    starts = [config.hidden_size, config.hidden_size + config.num_key_value_heads * size]  # of keys and values
    weights = {
        "model.embed_tokens.weight": file.array("decoder/embeddings/weight"),
        "model.norm.weight": file.array("decoder/layer_norm/gamma"),
    }
    for number in range(config.num_hidden_layers):
        engine, name = f"decoder/layer_{number}", f"model.layers.{number}"
        parts = np.split(file.array(f"{engine}/self_attention/linear_0/weight"), starts)
        weights |= {f"{name}.self_attn.{part}_proj.weight": rows for part, rows in zip("qkv", parts, strict=True)}
        weights |= {f"{name}.{part}.weight": file.array(f"{engine}/{at}/weight") for part, at in _LINEAR.items()}
        weights |= {
            f"{name}.input_layernorm.weight": file.array(f"{engine}/self_attention/layer_norm/gamma"),
            f"{name}.post_attention_layernorm.weight": file.array(f"{engine}/ffn/layer_norm/gamma"),
        }
    return weights
