"""What the answers turned out to mean: texts in, the signatures they have out, and how far from those wanted."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cod3s.decode.sentences import Candidate
from cod3s.encode import Encoder, Vectors
from cod3s.signatures import Code, from_text, load_code, to_text
from cod3s.text import clean, for_embedding


class Checker:
    """Signs texts as the bundle's training targets were signed."""

    def __init__(self, encoder: Encoder, code: Code) -> None:
        self._encoder, self._code = encoder, code

    def sign(self, texts: Sequence[str]) -> list[str]:
        """The signature of each text."""
        return to_text(self._code.sign(self._encode([clean(text) for text in texts])))

    def realise(self, bins: Sequence[Sequence[Candidate]], signatures: Sequence[str]) -> list[list[Candidate]]:
        """The candidates with their vectors, the signatures they realise and how far off those are.

        A text is encoded once.
        """
        texts = list(dict.fromkeys(candidate.text for own in bins for candidate in own))
        vectors = self._encode(texts)
        signed = to_text(self._code.sign(vectors))
        found = {text: (vector, own) for text, vector, own in zip(texts, vectors, signed, strict=True)}

        def realised(one: Candidate, wanted: str) -> Candidate:
            vector, signature = found[one.text]
            return replace(one, vector=vector, realised=signature, hamming=_distance(signature, wanted))

        return [[realised(one, wanted) for one in own] for own, wanted in zip(bins, signatures, strict=True)]

    def _encode(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self._encoder.dim), np.float32)
        return self._encoder.encode([for_embedding(text) for text in texts])


def open_checker(folder: Path, encoder: Encoder) -> Checker:
    """The checker of the bundle in `folder`; `encoder` is the one that the bundle names."""
    code, _ = load_code(folder / "code")
    return Checker(encoder, code)


def keep_faithful(own: Sequence[Candidate], *, mode: str, within: int) -> list[Candidate]:
    """One bin's candidates, best first, ranked or filtered by how near their own signatures are to the bin's."""
    if mode == "rerank":
        return sorted(own, key=lambda one: one.hamming or 0)
    if mode == "filter":
        return [one for one in own if (one.hamming or 0) <= within]
    return list(own)


def _distance(a: str, b: str) -> int:
    return int((from_text(a) != from_text(b)).sum())
