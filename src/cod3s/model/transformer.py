"""The Transformer that is trained from scratch, with Marian's architecture, from a shape and a vocabulary.

Needs the extra `train`.
"""

import warnings
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError, require
from cod3s.io.disk import existing_file
from cod3s.model.shape import Shape
from cod3s.tokens.vocabulary import Vocabulary


def quiet_transformers() -> Any:
    """The transformers library, with its progress bars and messages switched off."""
    transformers = require("transformers", "train")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    # We give decoder inputs as well as labels, because a role's tag comes before them.
    warnings.filterwarnings("ignore", message="Version v4.12.0 introduces", category=FutureWarning)
    return transformers


def build_transformer(shape: Shape, vocabulary: Vocabulary, *, seed: int) -> Any:
    """A new model for `vocabulary`: post-norm, ReLU, sinusoidal positions, one table of tokens for everything."""
    require("torch", "train").manual_seed(seed)
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


def special_tokens(vocabulary: Vocabulary) -> dict[str, int]:
    """The tag starts the decoder, so the start token of the config only fills the slot."""
    return {
        "pad_token_id": vocabulary.pad,
        "eos_token_id": vocabulary.end,
        "bos_token_id": vocabulary.end,
        "decoder_start_token_id": vocabulary.pad,
        "forced_eos_token_id": None,  # type: ignore[dict-item]
    }


def load_weights(model: Any, folder: Path) -> None:
    """Give `model` the weights that were saved in `folder`, which must match it exactly."""
    path = existing_file(folder / "model.safetensors")
    try:
        missing, unknown = require("safetensors.torch", "train").load_model(model, path, strict=False)
    except (RuntimeError, require("safetensors", "train").SafetensorError) as error:
        missing, unknown = [str(error)], []
    positions = {name for name, weights in model.named_parameters() if not weights.requires_grad}  # not saved
    if unknown or set(missing) - positions:
        raise Cod3sError(
            f"the weights in {folder} do not fit this model", hint="use the same shape, roles and signature tokens"
        )
