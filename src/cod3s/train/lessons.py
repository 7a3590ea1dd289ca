"""What each role of a relation learns, pair by pair."""

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

    For the inverse role, those are the pairs of the other relation, where the speaker starts with the result:
    p(source given signature) of `effect` is learned from "EFFECT because CAUSE". A relation without an inverse
    uses only its pairs.

    With the source `hidden`, the signature is all that is known about a target, so it must be used; and the plain
    role learns how likely a target is by itself.
    """
    name, pairs = tag(relation, role), tables[relation]
    if role == "inverse":
        if (other := tables.get(inverses.get(relation, ""))) is not None:
            return Lesson(name, None, other.source_signature, (other.target,), share * other.shares)
        return Lesson(name, None, pairs.signature, (pairs.source,), share * pairs.shares)
    written = {
        "plain": (pairs.target,),
        "signature": (pairs.signature,),
        "sentence": (pairs.signature, pairs.target),
    }
    return Lesson(name, None if hidden else pairs.read, None, written[role], share * pairs.shares)


@dataclass(frozen=True)
class Example:
    """What the encoder reads, what the decoder is given, and what it learns to write (`IGNORED` where nothing)."""

    read: list[int]
    given: list[int]
    labels: list[int]


class Examples:
    """Every pair of every lesson, lesson after lesson, by number."""

    def __init__(self, lessons: Sequence[Lesson], vocabulary: Vocabulary, nothing: list[int]) -> None:
        self._lessons, self._words = lessons, vocabulary
        self._nothing = nothing  # what the encoder reads for an empty source
        self._starts = np.cumsum([0, *map(len, lessons)])
        self.lengths = np.concatenate([self._lengths(lesson) for lesson in lessons])
        self.shares = np.concatenate([lesson.shares for lesson in lessons])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, number: int) -> Example:
        index = int(np.searchsorted(self._starts, number, side="right")) - 1
        lesson, row = self._lessons[index], number - int(self._starts[index])
        given = [self._words.id(lesson.tag), *(lesson.given[row] if lesson.given else [])]
        written = [number for column in lesson.written for number in column[row]]
        labels = [IGNORED] * (len(given) - 1) + written + [self._words.end]
        return Example(lesson.read[row] if lesson.read else self._nothing, given + written, labels)

    def _lengths(self, lesson: Lesson) -> npt.NDArray[np.int64]:
        """Tokens read and tokens written of each example, in its order: (examples, 2)."""
        read = lesson.read.lengths if lesson.read else np.full(len(lesson), len(self._nothing))
        columns = [*lesson.written, lesson.given] if lesson.given else lesson.written
        written = np.sum([column.lengths for column in columns], axis=0) + 1  # the tag
        return np.stack([read, written], axis=1).astype(np.int64)
