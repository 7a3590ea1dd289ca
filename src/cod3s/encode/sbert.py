"""The `sbert` encoder: any sentence-transformers model, by name or folder."""

from collections.abc import Sequence
from pathlib import Path

from cod3s.encode.protocol import Vectors, unit
from cod3s.encode.weights import NAME, SHA256, minilm_folder
from cod3s.errors import EncoderError, require
from cod3s.io.disk import sha256


class SbertEncoder:
    """A model run with sentence-transformers; without a name, all-MiniLM-L6-v2."""

    def __init__(self, name: str = "") -> None:
        library = require("sentence_transformers", "encode")
        require("transformers", "encode").utils.logging.disable_progress_bar()
        source = name or str(minilm_folder())
        try:
            self._model = library.SentenceTransformer(source, device="cpu")
        except (OSError, ValueError) as error:
            raise EncoderError(
                f"sentence-transformers cannot open {source!r}: {str(error).splitlines()[0]}",
                hint="give a model folder, or the name of a hub model while the hub can be reached",
            ) from error
        self.id = f"sbert:{_title(name)}"
        self.dim = int(self._model.get_embedding_dimension())

    def encode(self, sentences: Sequence[str]) -> Vectors:
        if not sentences:
            return unit(self._model.encode(["."])[:0])
        return unit(self._model.encode(list(sentences), show_progress_bar=False, convert_to_numpy=True))


def _title(name: str) -> str:
    """The part of the id that tells models apart: the name, and a digest of the weights if they are a file."""
    if not name:
        return f"{NAME}@{SHA256[:8]}"
    weights = Path(name) / "model.safetensors"
    return f"{Path(name).resolve().name}@{sha256(weights)[:8]}" if weights.is_file() else name
