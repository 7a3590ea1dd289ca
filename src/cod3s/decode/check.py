"""What the answers turned out to mean: texts in, the signatures they have out, and how far from those wanted."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cod3s.decode.sentences import Candidate
from cod3s.encode import Encoder
from cod3s.lsh import Code, from_text, load_code
from cod3s.signing import sign


class Checker:
    """Signs texts as the bundle's training targets were signed."""

    def __init__(self, encoder: Encoder, code: Code) -> None:
        self._encoder, self._code = encoder, code

    def sign(self, texts: Sequence[str]) -> list[str]:
        """The signature of each text."""
        if not texts:
            return []
        signed = sign(texts, encoder=self._encoder, code=self._code, with_pairs=False)
        return [sentence.signature for sentence in signed.sentences]

    def realise(self, bins: Sequence[Sequence[Candidate]], signatures: Sequence[str]) -> list[list[Candidate]]:
        """The candidates with the signatures they realise and how far off those are; a text is signed once."""
        texts = list(dict.fromkeys(candidate.text for own in bins for candidate in own))
        realised = dict(zip(texts, self.sign(texts), strict=True))
        return [
            [
                replace(one, realised=realised[one.text], hamming=_distance(realised[one.text], wanted))
                for one in own
            ]
            for own, wanted in zip(bins, signatures, strict=True)
        ]


def open_checker(folder: Path, encoder: Encoder) -> Checker:
    """The checker of the bundle in `folder`; `encoder` is the one that the bundle names."""
    code, _ = load_code(folder / "code")
    return Checker(encoder, code)


def keep_faithful(own: Sequence[Candidate], *, mode: str, within: int) -> list[Candidate]:
    """One bin's candidates, best first, ranked or filtered by how near their own signatures are to the bin's."""
    if mode == "rerank":
        return sorted(own, key=lambda one: one.hamming or 0)
    return [one for one in own if (one.hamming or 0) <= within]


def _distance(a: str, b: str) -> int:
    return int((from_text(a) != from_text(b)).sum())
