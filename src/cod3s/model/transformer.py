"""The Transformer that is trained: Marian's architecture from scratch, or a small decoder on a sentence encoder.

Builds a torch module from a shape and a vocabulary. Needs the extra `train`.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.encode.weights import minilm_folder
from cod3s.errors import Cod3sError, require
from cod3s.files.disk import existing_file
from cod3s.model.shape import LAYER_NORM_EPSILON, Shape
from cod3s.signatures import Code
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary


def build_transformer(shape: Shape, vocabulary: Vocabulary, *, seed: int, encoder: Path | None = None) -> Any:
    """A new model for `vocabulary`; warm shapes read with the pretrained encoder at `encoder` (default MiniLM)."""
    torch = require("torch", "train")
    torch.manual_seed(seed)
    return _warm(shape, vocabulary, encoder or minilm_folder()) if shape.warm else _scratch(shape, vocabulary)


def quiet_transformers() -> Any:
    """The transformers library, with its progress bars and messages switched off."""
    transformers = require("transformers", "train")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    # We give decoder inputs as well as labels, because a role's tag comes before them.
    warnings.filterwarnings("ignore", message="Version v4.12.0 introduces", category=FutureWarning)
    return transformers


def _scratch(shape: Shape, vocabulary: Vocabulary) -> Any:
    """Marian: post-norm, ReLU, sinusoidal positions, the same embedding for source, target and output."""
    transformers = quiet_transformers()
    config = transformers.MarianConfig(
        vocab_size=len(vocabulary),
        decoder_vocab_size=len(vocabulary),
        share_encoder_decoder_embeddings=True,
        d_model=shape.width,
        encoder_layers=shape.encoder_layers,
        decoder_layers=shape.decoder_layers,
        encoder_ffn_dim=shape.feed_forward,
        decoder_ffn_dim=shape.feed_forward,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        activation_function="relu",
        dropout=shape.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        scale_embedding=True,
        init_std=shape.width**-0.5,
        max_position_embeddings=shape.max_tokens,
        **special_tokens(vocabulary),
    )
    return transformers.MarianMTModel(config)


def _warm(shape: Shape, vocabulary: Vocabulary, folder: Path) -> Any:
    """A pretrained BERT-type encoder with a new pre-norm decoder (MBart's) on top."""
    transformers = quiet_transformers()
    encoder = transformers.BertModel.from_pretrained(
        folder, add_pooling_layer=False, layer_norm_eps=LAYER_NORM_EPSILON
    )
    if encoder.config.hidden_size != shape.width or encoder.config.num_hidden_layers != shape.encoder_layers:
        size = f"{encoder.config.num_hidden_layers} layers of {encoder.config.hidden_size}"
        raise Cod3sError(
            f"the encoder in {folder} has {size}, but the shape has {shape.encoder_layers} of {shape.width}"
        )
    config = transformers.MBartConfig(
        vocab_size=len(vocabulary),
        d_model=shape.width,
        decoder_layers=shape.decoder_layers,
        decoder_ffn_dim=shape.feed_forward,
        decoder_attention_heads=shape.heads,
        activation_function="gelu",
        dropout=shape.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        scale_embedding=False,
        init_std=shape.width**-0.5,  # not the 0.02 of models twice as wide: learns faster (docs/training.md)
        max_position_embeddings=shape.max_tokens,
        is_decoder=True,
        add_cross_attention=True,
        tie_word_embeddings=True,
        **special_tokens(vocabulary),
    )
    decoder = transformers.MBartForCausalLM(config)
    model = transformers.EncoderDecoderModel(encoder=encoder, decoder=decoder)
    for name, value in special_tokens(vocabulary).items():
        setattr(model.config, name, value)
    return model


def special_tokens(vocabulary: Vocabulary) -> dict[str, int]:
    """The tag starts the decoder, so the start token of the config only fills the slot."""
    return {
        "pad_token_id": vocabulary.pad,
        "eos_token_id": vocabulary.end,
        "bos_token_id": vocabulary.end,
        "decoder_start_token_id": vocabulary.pad,
        "forced_eos_token_id": None,  # type: ignore[dict-item]
    }


def freeze(module: Any) -> None:
    """Leave a part of a model as it is: no gradients, and no dropout, which would only add noise."""
    torch = require("torch", "train")
    module.requires_grad_(False)
    for part in module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0


def start_from_encoder(model: Any, vocabulary: Vocabulary, tokenizer: Any) -> None:
    """Start each text piece of a warm decoder as the mean of the encoder's word pieces for the same letters."""
    torch = require("torch", "train")
    table = model.encoder.get_input_embeddings().weight
    embedding = model.decoder.get_input_embeddings().weight
    scale = embedding.std() / table.std()
    with torch.no_grad():
        for number, piece in enumerate(vocabulary.tokens[: vocabulary.text_size]):
            same = tokenizer.token_to_id(piece)  # the encoder's pieces start as they are, ## and all
            letters = piece.replace("▁", " ").strip()
            ids = [same] if same else tokenizer.encode(letters, add_special_tokens=False).ids
            if ids:
                embedding[number] = scale * table[ids].mean(dim=0)


def start_from_hyperplanes(model: Any, vocabulary: Vocabulary, code: Code) -> None:
    """Start each signature token as the signed sum of its bits' hyperplanes: a sketch of the target's vector.

    Only where tokens are positional (tokens shared by positions have no hyperplanes) and the decoder is
    as wide as the vectors that were signed.
    """
    torch = require("torch", "train")
    embedding = model.get_decoder().get_input_embeddings().weight
    if not vocabulary.signature.positional or embedding.shape[1] != code.dim:
        raise Cod3sError(
            "signature tokens can start from hyperplanes only if they are positional and as wide as the vectors",
            hint="add --no-hyperplane-start",
        )
    rows = torch.from_numpy(signature_sketches(vocabulary.signature, code)).to(embedding)
    with torch.no_grad():
        embedding[vocabulary.first_signature :] = embedding.std() * rows / rows.std()


def signature_sketches(tokens: SignatureTokens, code: Code) -> npt.NDArray[np.float64]:
    """For each token of `tokens.names()`, the sum of its hyperplanes, each with the sign of its bit."""
    rows = []
    for signs in bit_signs(tokens).astype(np.float64):
        written = np.flatnonzero(signs)  # the bits of this token
        rows.append(signs[written] @ code.planes[written])
    return np.array(rows)


def bit_signs(tokens: SignatureTokens) -> npt.NDArray[np.float32]:
    """For each token of `tokens.names()`, +1 or -1 for the bits that it writes, 0 elsewhere: (tokens, bits)."""
    rows = []
    start = 0
    for width in tokens.groups:
        for value in range(2**width):
            row = np.zeros(tokens.bits, np.float32)
            row[start : start + width] = [1 if value >> (width - 1 - bit) & 1 else -1 for bit in range(width)]
            rows.append(row)
        start += width
    return np.array(rows)


def load_weights(model: Any, folder: Path) -> None:
    """Give `model` the weights that were saved in `folder`, which must match it exactly."""
    path = existing_file(folder / "model.safetensors")
    try:
        missing, unknown = require("safetensors.torch", "train").load_model(model, path, strict=False)
    except (RuntimeError, require("safetensors", "train").SafetensorError) as error:
        missing, unknown = [str(error)], []
    fixed = {
        name for name, weights in model.named_parameters() if not weights.requires_grad
    }  # positions, not saved
    if unknown or set(missing) - fixed:
        raise Cod3sError(
            f"the weights in {folder} do not fit this model", hint="use the same shape, roles and signature tokens"
        )


def count_parameters(model: Any) -> int:
    """Parameters that training changes; fixed position tables are not among them."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
