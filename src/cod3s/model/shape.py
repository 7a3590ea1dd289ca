"""The shape of a Transformer: how deep and how wide it is."""

from dataclasses import dataclass

LAYER_NORM_EPSILON = 1e-5


@dataclass(frozen=True)
class Shape:
    """How a model is built; a causal one is pretrained and brings its own sizes."""

    encoder_layers: int = 0
    decoder_layers: int = 0
    width: int = 0
    feed_forward: int = 0
    heads: int = 0
    pieces: int = 0  # text pieces of both sides
    causal: bool = False  # a language model without an encoder: it reads the source as the start of its text
    dropout: float = 0.1
    max_tokens: int = 128  # positions of both sides


SHAPES = {
    # transformer_iwslt_de_en: 36.6M parameters with 10k pieces (appendix B of the paper).
    "paper": Shape(encoder_layers=6, decoder_layers=6, width=512, feed_forward=1024, heads=4, pieces=10_000),
    "small": Shape(encoder_layers=3, decoder_layers=3, width=256, feed_forward=1024, heads=4, pieces=8_000),
    # What --init names: a Hugging Face causal language model.
    "causal": Shape(pieces=12_288, causal=True),
    # Seconds on any machine, for tests.
    "tiny": Shape(encoder_layers=1, decoder_layers=1, width=64, feed_forward=128, heads=2, pieces=400),
}
