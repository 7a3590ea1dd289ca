"""Lessons: what one role of one relation is taught, pair by pair. Tables of pairs in, examples out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.model.roles import tag
from cod3s.tokens.vocabulary import Vocabulary
from cod3s.train.pairs import PairTable, Ragged

IGNORED = -100  # a label that torch's loss leaves out


@dataclass(frozen=True)
class Lesson:
    """The decoder is given the role's tag and `given`, and learns to write the columns of `written` and the end.

    The encoder reads `read`, or nothing.
    """

    tag: str
    read: Ragged | None
    given: Ragged | None
    written: tuple[Ragged, ...]
    shares: npt.NDArray[np.float64]  # how likely an epoch takes each pair

    def __len__(self) -> int:
        return len(self.written[0])


def lesson(
    relation: str,
    role: str,
    tables: Mapping[str, PairTable],
    inverses: Mapping[str, str],
    share: float = 1.0,
    *,
    hidden: bool = False,
) -> Lesson:
    """The lesson of a role from the pairs whose order matches its direction of inference (section 3 of the paper).

    So what comes before a given result is learned from the other relation's pairs, where the result is what the
    speaker began with: p(source given signature) of `effect` from "EFFECT because CAUSE". A relation without
    another one learns it from its own pairs.

    With the source `hidden`, the signature is all that is known of a target, so it must be read; and the plain
    role learns how likely a target is by itself.
    """
    name, own = tag(relation, role), tables[relation]
    read = None if hidden else own.read
    match role:
        case "plain":
            return Lesson(name, read, None, (own.target,), share * own.shares)
        case "signature":
            return Lesson(name, read, None, (own.signature,), share * own.shares)
        case "sentence":
            return Lesson(name, read, None, (own.signature, own.target), share * own.shares)
    other = tables.get(inverses.get(relation, ""))
    if other is None:
        return Lesson(name, None, own.signature, (own.source,), share * own.shares)
    return Lesson(name, None, other.source_signature, (other.target,), share * other.shares)


@dataclass(frozen=True)
class Example:
    """What the encoder reads, what the decoder is given, and what it learns to write (`IGNORED` where nothing)."""

    read: list[int]
    given: list[int]
    labels: list[int]


class Examples:
    """Every pair of every lesson, lesson after lesson, by number."""

    def __init__(self, lessons: Sequence[Lesson], vocabulary: Vocabulary, nothing: list[int]) -> None:
        self._lessons, self._words = list(lessons), vocabulary
        self._nothing = nothing  # what the encoder reads for an empty source
        self._starts = np.cumsum([0, *map(len, lessons)])
        self.lengths = np.concatenate([self._lengths(own) for own in lessons])
        self.shares = np.concatenate([own.shares for own in lessons])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, number: int) -> Example:
        place = int(np.searchsorted(self._starts, number, side="right")) - 1
        own, row = self._lessons[place], number - int(self._starts[place])
        given = [self._words.id(own.tag), *(own.given[row] if own.given else [])]
        written = [number for column in own.written for number in column[row]]
        labels = [IGNORED] * (len(given) - 1) + written + [self._words.end]
        return Example(own.read[row] if own.read else self._nothing, given + written, labels)

    def _lengths(self, own: Lesson) -> npt.NDArray[np.int64]:
        """Tokens read and tokens written of each example, in its order: (examples, 2)."""
        read = own.read.lengths if own.read else np.full(len(own), len(self._nothing))
        columns = [*own.written, own.given] if own.given else own.written
        written = np.sum([column.lengths for column in columns], axis=0) + 1  # the tag
        return np.stack([read, written], axis=1).astype(np.int64)
