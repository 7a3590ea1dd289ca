"""Each text embedded once, however many systems wrote it. Texts in, rows of vectors out."""

from collections.abc import Iterable, Sequence

import numpy as np

from cod3s.encode import Encoder, Vectors
from cod3s.signatures.signer import encode_sentences


class Embedded:
    """The vectors of all `texts` by one encoder; `of` looks them up."""

    def __init__(self, encoder: Encoder, texts: Iterable[str]) -> None:
        self.encoder = encoder
        # In sorted order: which batch a text falls into, and so its last bits, depends on the texts alone.
        distinct = sorted(set(texts))
        self._rows = {text: row for row, text in enumerate(distinct)}
        blocks = [vectors for _, vectors in encode_sentences(encoder, distinct)]
        self._vectors = np.concatenate(blocks) if blocks else np.zeros((0, encoder.dim), np.float32)

    def of(self, texts: Sequence[str]) -> Vectors:
        """The vectors of these texts, (n, dim)."""
        found: Vectors = self._vectors[[self._rows[text] for text in texts]]
        return found
