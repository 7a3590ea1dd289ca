"""Recall known answers: what answers a similar source well may also answer this one.

A bundle may carry a collection of sources with good answers. Of each source it keeps one bit per dimension of its
vector, which is enough to find the sources that are similar to a new one.
"""

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import pi
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cod3s.decode.retelling import neutral, retell
from cod3s.encode import Vectors
from cod3s.errors import BundleError
from cod3s.files.arrays import load_array
from cod3s.files.disk import replaced_folder
from cod3s.signatures import Packed, pack, unpack
from cod3s.signatures.signer import Signer
from cod3s.text import words

FOLDER = "known"
_ANSWERS, _SIGNS = "answers.jsonl.xz", "signs.npy"
_SOURCES = 12  # so many of the most similar sources are looked at
_SIMILAR = 0.5  # answers to less similar sources hardly ever fit
_NEGATIONS = frozenset(
    words("not never no none nobody nothing nowhere cannot without anymore longer stop stops stopped")
)
_MOST_BYTES = 1 << 28  # of the answers, unpacked, and of memory for unpacking them

Answers = Mapping[str, Mapping[str, Sequence[str]]]
"""Good answers by source and relation."""


@dataclass(frozen=True)
class KnownAnswer:
    """A good answer to another source, and how similar that source is: the estimated cosine of the two."""

    text: str
    source: str
    similarity: float


class KnownAnswers:
    """Sources with good answers to each; a line of JSON is read only when its source is recalled."""

    def __init__(self, lines: Sequence[str], signs: Packed) -> None:
        self._lines, self._signs = lines, signs

    def __len__(self) -> int:
        return len(self._lines)

    def recall(self, source: str, relation: str, signer: Signer) -> list[KnownAnswer]:
        """The known answers to the sources that are most similar to this one, told about its people, each once.

        Vectors hardly see negation, so sources that are negated where this one is not are passed over.
        """
        similarities = self._similarities(signer.vectors([neutral(source)])[0])
        recalled: dict[str, KnownAnswer] = {}
        for row in np.argsort(-similarities, kind="stable")[:_SOURCES].tolist():
            if (similarity := float(similarities[row])) < _SIMILAR:
                break
            similar, answers = _parse(self._lines[row], relation)
            if _is_negated(similar) == _is_negated(source):
                for text in retell(answers, similar, source):
                    recalled.setdefault(text, KnownAnswer(text, similar, similarity))
        return [*recalled.values()]

    def _similarities(self, vector: Vectors) -> npt.NDArray[np.float64]:
        """The estimated cosine of each source to the vector.

        The product of a unit vector with the signs of another one is on average their cosine times the root of
        2 dim / π.
        """
        signs = unpack(self._signs, len(vector)).astype(np.float32)  # 0 or 1
        sums = 2 * (signs @ vector) - vector.sum()
        similarities: npt.NDArray[np.float64] = np.minimum(sums / np.sqrt(2 * len(vector) / pi), 1.0)
        return similarities


def _parse(line: str, relation: str) -> tuple[str, list[str]]:
    """The source of a line, and the answers to it."""
    try:
        known = json.loads(line)
        source, answers = known["source"], known.get(relation, [])
        if (
            isinstance(source, str)
            and isinstance(answers, list)
            and all(isinstance(text, str) for text in answers)
        ):
            return source, answers
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise BundleError(
        "a line of the bundle's known answers is damaged", hint="make them again with `cod3s remember`"
    )


def _is_negated(text: str) -> bool:
    return any(word in _NEGATIONS or word.endswith("n't") for word in words(text))


def save_known(folder: Path, answers: Answers, signer: Signer) -> None:
    """Write a collection of answers; sources with equal beginnings come together, which makes it smaller."""
    sources = sorted(answers, key=str.casefold)
    lines = [
        json.dumps({"source": source, **answers[source]}, ensure_ascii=False, separators=(",", ":"))
        for source in sources
    ]
    with replaced_folder(folder) as partial:
        (partial / _ANSWERS).write_bytes(lzma.compress("\n".join(lines).encode(), preset=9))
        np.save(partial / _SIGNS, pack(signer.vectors([*map(neutral, sources)]) > 0), allow_pickle=False)


def load_known(folder: Path) -> KnownAnswers:
    """The collection in a folder; an error if it is damaged."""
    try:
        unpacker = lzma.LZMADecompressor(memlimit=_MOST_BYTES)
        text = unpacker.decompress((folder / _ANSWERS).read_bytes(), max_length=_MOST_BYTES)
        signs = load_array(folder / _SIGNS, np.uint8)
        lines = text.decode().split("\n")
        if not unpacker.eof or signs.ndim != 2 or len(signs) != len(lines):
            raise ValueError("its answers and its signs do not fit together")
    except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
        raise BundleError(
            f"{folder} does not hold known answers: {error}", hint="make them again with `cod3s remember`"
        ) from error
    return KnownAnswers(lines, signs)
