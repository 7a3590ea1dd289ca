"""Bundles of earlier versions, which must still open: a small decoder on the sentence encoder that signs.

They can no longer be trained, so one is made with random weights for the decoder.
"""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from cod3s.bundle import open_vocabulary, read_facts, write_facts
from cod3s.encode.weights import (
    ctranslate2_specs,
    fill_bert_encoder,
    fill_joined,
    fill_linear,
    fill_norm,
    minilm_folder,
    read_weights,
)
from cod3s.io.disk import read_json, write_json
from cod3s.model.reader import open_reader
from cod3s.model.shape import LAYER_NORM_EPSILON, SHAPES
from cod3s.model.transformer import quiet_transformers, special_tokens
from cod3s.tokens.vocabulary import END, PAD, UNKNOWN, Vocabulary

WIDTH, LAYERS, HEADS = 384, 1, 4


def build_earlier(vocabulary: Vocabulary, *, seed: int) -> Any:
    """All-MiniLM-L6-v2 with a new decoder on top, as transformers knows it."""
    import torch

    torch.manual_seed(seed)
    transformers = quiet_transformers()
    encoder = transformers.BertModel.from_pretrained(
        minilm_folder(), add_pooling_layer=False, layer_norm_eps=LAYER_NORM_EPSILON
    )
    config = transformers.MBartConfig(
        vocab_size=len(vocabulary),
        d_model=WIDTH,
        decoder_layers=LAYERS,
        decoder_ffn_dim=256,
        decoder_attention_heads=HEADS,
        scale_embedding=False,
        init_std=WIDTH**-0.5,
        max_position_embeddings=128,
        is_decoder=True,
        add_cross_attention=True,
        tie_word_embeddings=True,
        **special_tokens(vocabulary),
    )
    model = transformers.EncoderDecoderModel(encoder=encoder, decoder=transformers.MBartForCausalLM(config))
    for name, value in special_tokens(vocabulary).items():
        setattr(model.config, name, value)
    return model.eval()


def make_earlier(bundle: Path, output: Path) -> Path:
    """A copy of a bundle with such a model in place of its own, which also signs the answers."""
    shutil.copytree(bundle, output)
    shutil.copyfile(minilm_folder() / "tokenizer.json", output / "source.json")
    _write_word_pieces(output / "tokens.model")
    facts = replace(read_facts(bundle), shape="warm", quantization="int8", own_encoder="shared")
    vocabulary = open_vocabulary(output / "tokens.model", facts)
    build_earlier(vocabulary, seed=1).save_pretrained(output / "torch" / "shared")
    shutil.rmtree(output / "models" / "shared")
    (output / "models" / "shared").mkdir()
    reader = open_reader(SHAPES["warm"], vocabulary, output / "source.json")
    spec = _spec(output / "torch" / "shared")
    spec.register_source_vocabulary(reader.tokens)
    spec.register_target_vocabulary(vocabulary.tokens)
    spec.config.decoder_start_token = None
    spec.config.bos_token = spec.config.eos_token = END
    spec.config.unk_token = UNKNOWN
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.config.layer_norm_epsilon = LAYER_NORM_EPSILON
    spec.validate()
    spec.optimize(quantization="int8")
    spec.save(str(output / "models" / "shared"))
    write_facts(output, facts)
    return output


def _write_word_pieces(path: Path) -> None:
    """The encoder's pieces, with our names for the special ones."""
    content = read_json(minilm_folder() / "tokenizer.json")
    ours = {"[UNK]": UNKNOWN, "[SEP]": END, "[PAD]": PAD}
    pieces = {ours.get(name, name): number for name, number in content["model"]["vocab"].items()}
    for token in content["added_tokens"]:
        token["content"] = ours.get(token["content"], token["content"])
    content["model"] |= {"vocab": pieces, "unk_token": UNKNOWN}
    write_json(path, content | {"post_processor": None, "padding": None, "truncation": None})


def _spec(folder: Path) -> Any:
    specs, weights = ctranslate2_specs(), read_weights(folder)
    shared = {"activation": specs.Activation.GELU, "layernorm_embedding": True}
    encoder = specs.TransformerEncoderSpec(6, 12, pre_norm=False, **shared)
    inner = {name.removeprefix("encoder."): value for name, value in weights.items()}
    fill_bert_encoder(encoder, inner, {"model_type": "bert"})
    decoder = specs.TransformerDecoderSpec(LAYERS, HEADS, pre_norm=True, **shared)
    name = "decoder.model.decoder"
    decoder.scale_embeddings = False
    decoder.embeddings.weight = decoder.projection.weight = weights[f"{name}.embed_tokens.weight"]
    decoder.position_encodings.encodings = weights[f"{name}.embed_positions.weight"][2:]
    fill_norm(decoder.layernorm_embedding, weights, f"{name}.layernorm_embedding")
    fill_norm(decoder.layer_norm, weights, f"{name}.layer_norm")
    for number, layer in enumerate(decoder.layer):
        part = f"{name}.layers.{number}"
        fill_joined(layer.self_attention.linear[0], weights, [f"{part}.self_attn.{side}_proj" for side in "qkv"])
        fill_linear(layer.self_attention.linear[1], weights, f"{part}.self_attn.out_proj")
        fill_norm(layer.self_attention.layer_norm, weights, f"{part}.self_attn_layer_norm")
        fill_linear(layer.attention.linear[0], weights, f"{part}.encoder_attn.q_proj")
        fill_joined(layer.attention.linear[1], weights, [f"{part}.encoder_attn.{side}_proj" for side in "kv"])
        fill_linear(layer.attention.linear[2], weights, f"{part}.encoder_attn.out_proj")
        fill_norm(layer.attention.layer_norm, weights, f"{part}.encoder_attn_layer_norm")
        fill_linear(layer.ffn.linear_0, weights, f"{part}.fc1")
        fill_linear(layer.ffn.linear_1, weights, f"{part}.fc2")
        fill_norm(layer.ffn.layer_norm, weights, f"{part}.final_layer_norm")
    return specs.TransformerSpec(encoder, decoder)
