"""The shape of a Transformer: how deep, how wide, and whether its encoder is pretrained. Values only."""

from dataclasses import dataclass

# One layer-norm epsilon serves both sides in the engine; MiniLM was trained with 1e-12, which is no different.
LAYER_NORM_EPSILON = 1e-5


@dataclass(frozen=True)
class Shape:
    """`warm` models read with a pretrained sentence encoder, whose width they share; others read from scratch.

    A `pretrained` model brings its own sizes.
    """

    encoder_layers: int = 0
    decoder_layers: int = 0
    width: int = 0
    feed_forward: int = 0
    heads: int = 0
    pieces: int = 0  # text pieces of the decoder; of both sides where the encoder is from scratch
    warm: bool = False
    pretrained: bool = False
    causal: bool = False  # a language model without an encoder: it reads the source as the start of its text
    dropout: float = 0.1
    max_tokens: int = 128  # positions of the decoder; of both sides where the encoder is from scratch


SHAPES = {
    # transformer_iwslt_de_en: 36.6M parameters with 10k pieces (appendix B of the paper).
    "paper": Shape(encoder_layers=6, decoder_layers=6, width=512, feed_forward=1024, heads=4, pieces=10_000),
    # all-MiniLM-L6-v2 reads (6 layers, 384 wide); only the decoder starts from scratch.
    "warm": Shape(
        encoder_layers=6, decoder_layers=3, width=384, feed_forward=1536, heads=6, pieces=8_000, warm=True
    ),
    "small": Shape(encoder_layers=3, decoder_layers=3, width=256, feed_forward=1024, heads=4, pieces=8_000),
    # What --init names: a Hugging Face seq2seq model.
    "pretrained": Shape(pretrained=True),
    # What --init names: a Hugging Face causal language model, trained further with LoRA.
    "causal": Shape(pieces=10_000, pretrained=True, causal=True),
    # Seconds on any machine, for tests.
    "tiny": Shape(encoder_layers=1, decoder_layers=1, width=64, feed_forward=128, heads=2, pieces=400),
    "tiny-warm": Shape(
        encoder_layers=6, decoder_layers=1, width=384, feed_forward=256, heads=4, pieces=400, warm=True
    ),
}
