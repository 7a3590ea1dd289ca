"""Encode sentences as unit-length float32 vectors; `load_encoder` opens an encoder by name."""

from pathlib import Path

from cod3s.encode.protocol import Encoder, Vectors
from cod3s.errors import UsageError, did_you_mean

__all__ = ["ENCODERS", "Encoder", "Vectors", "load_encoder"]

ENCODERS = {
    "static": "averaged word vectors, 256-d, in the base install, tens of thousands of sentences per second",
    "fast": "all-MiniLM-L6-v2 (or fast:FOLDER) on CTranslate2 in float32, with the same bits as sbert",
    "fast-int8": "the same in int8: faster, but some bits flip (see docs/encoders.md)",
    "sbert": "all-MiniLM-L6-v2 (or sbert:NAME, sbert:FOLDER) run with sentence-transformers",
}


def load_encoder(name: str = "fast") -> Encoder:
    """The encoder called `name`: one of ENCODERS, with `:FOLDER` or `:NAME` for your own model."""
    kind, _, model = name.partition(":")
    if kind == "static" and not model:
        from cod3s.encode.static import StaticEncoder

        return StaticEncoder()
    if kind in ("fast", "fast-int8"):
        from cod3s.encode.fast import open_fast_encoder

        return open_fast_encoder(Path(model) if model else None, "float32" if kind == "fast" else "int8")
    if kind == "sbert":
        from cod3s.encode.sbert import SbertEncoder

        return SbertEncoder(model)
    raise UsageError(f"no encoder is called {name!r}", hint=did_you_mean(name, ENCODERS))
