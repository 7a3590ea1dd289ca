"""The `static` encoder: averaged word vectors (WordLlama, 256 dimensions), small and fast."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.encode.protocol import Vectors, length_sorted_batches, unit
from cod3s.errors import EncoderError

_MAX_TOKENS = 512  # per sentence; the rest is cut off
_BATCH_TOKENS = 8192


class StaticEncoder:
    """The mean of the tokens' vectors, whatever their order; the weights come with the package."""

    id = "static:wordllama-l2-supercat-256"
    dim = 256

    def __init__(self) -> None:
        from wordllama import WordLlama

        spec = find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise EncoderError(
                "the weights of wordllama are not on disk", hint="pip install --force-reinstall wordllama"
            )
        # The package's folder serves as the cache, so the installed weights are used and nothing is downloaded.
        self._model = WordLlama.load(cache_dir=Path(spec.origin).parent, disable_download=True)
        self._model.tokenizer.no_padding()
        self._model.tokenizer.enable_truncation(_MAX_TOKENS)
        _remember_nothing(self._model.tokenizer)

    def encode(self, sentences: Sequence[str]) -> Vectors:
        table = self._model.embedding
        tokens = self._model.tokenizer.encode_batch_fast(list(sentences), add_special_tokens=False)
        ids = [np.minimum(encoding.ids, len(table) - 1) for encoding in tokens]
        vectors = np.zeros((len(ids), self.dim), np.float32)
        lengths = [len(row) for row in ids]
        for batch in length_sorted_batches(lengths, _BATCH_TOKENS):
            counts = np.array([lengths[index] for index in batch])
            filled = counts > 0
            if not filled.any():
                continue
            flat = table[np.concatenate([ids[index] for index in batch]).astype(np.intp)]
            starts = np.concatenate([[0], np.cumsum(counts[filled])[:-1]])
            rows = np.array(batch)[filled]
            # In double precision, a sum does not depend on the other sentences of the batch.
            vectors[rows] = np.add.reduceat(flat.astype(np.float64), starts, axis=0)
        return unit(vectors)


def _remember_nothing(tokenizer: Any) -> None:
    """Switch off the memory of the last 10,000 words.

    This tokenizer does not split sentences into words, so it would remember whole sentences, at some 2 KB each.
    """
    if hasattr(tokenizer.model, "_resize_cache"):  # tokenizers 0.20.0 has no such method
        tokenizer.model._resize_cache(0)
