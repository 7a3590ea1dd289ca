"""Recall known answers: what answers a similar source well may also answer this one.

A bundle may carry a collection of sources with good answers. Of each source it keeps one bit per dimension of its
vector, which is enough to find the sources that are similar to a new one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain
from math import pi
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cod3s.decode.retelling import neutral, retell
from cod3s.encode import Vectors
from cod3s.errors import BundleError, Cod3sError
from cod3s.io.arrays import load_array
from cod3s.io.disk import read_json, replaced_folder, write_json
from cod3s.io.packed_texts import load_texts, save_texts
from cod3s.signatures import Packed, pack, unpack
from cod3s.signatures.signer import Signer
from cod3s.text import content_stems, words
from cod3s.word_lists import word_groups, word_set

FOLDER = "known"
_TEXTS, _RELATIONS, _SIGNS = "texts.xz", "relations.json", "signs.npy"
_SEPARATOR = "\t"  # between the answers to a source
_SOURCES = 12  # how many of the most similar sources are used
_NEAREST = 32  # how many are found by their bits, and then compared by their whole vectors and their words
_OVERLAP = 0.45  # the weight of the content words in common, where the cosine has 1
_SIMILAR = 0.5  # answers to less similar sources, by their bits, hardly ever fit
_NEGATIONS = word_set("negations")
_SIDES = [*map(frozenset, word_groups("opposites"))]
_OPPOSITES = [*zip(_SIDES[::2], _SIDES[1::2], strict=True)]  # what raised prices do, cut ones do not
_SUPPORTERS = 2  # how many of the nearest known answers count
_COMPARED_TOGETHER = 1024  # vectors of sources
_ALL_BYTES = np.arange(256, dtype=np.uint8)[:, None]

Answers = Mapping[str, Mapping[str, Sequence[str]]]
"""Good answers by source and relation."""


@dataclass(frozen=True)
class KnownAnswer:
    """A good answer to another source, how similar that source is, and how relevant the answer is to both."""

    text: str
    source: str
    similarity: float  # the cosine of the two sources
    overlap: float  # of their content words, the share that both have in the same order
    relevance: float  # the cosine of the answer to the source that is asked
    known_relevance: float  # and to the one that it is known for


@dataclass(frozen=True, eq=False)
class Recalled:
    """Known answers to sources that are similar to a certain one, and the vector of each."""

    answers: Sequence[KnownAnswer]
    vectors: Vectors  # (answers, dim)
    plausibility: Sequence[float] = ()  # of each at a glance, if a critic has looked

    @cached_property
    def _by_text(self) -> dict[str, KnownAnswer]:
        return {answer.text: answer for answer in self.answers}

    @cached_property
    def _sources(self) -> npt.NDArray[np.str_]:
        return np.array([answer.source for answer in self.answers])

    def find(self, text: str) -> KnownAnswer | None:
        """The known answer with this text, if there is one."""
        return self._by_text.get(text)

    @cached_property
    def supports(self) -> list[float]:
        """The support of each answer."""
        return [
            self.support(answer.text, vector) for answer, vector in zip(self.answers, self.vectors, strict=True)
        ]

    def support(self, text: str, vector: Vectors) -> float:
        """How similar the text is to known answers to other sources: the mean cosine of the two nearest."""
        answer = self.find(text)
        others = self._sources != answer.source if answer else slice(None)
        return float(np.sort(self.vectors[others] @ vector)[-_SUPPORTERS:].sum() / _SUPPORTERS)


class KnownAnswers:
    """Sources with good answers to each.

    `texts` has all sources, and then, relation by relation, the answers to each of them.
    """

    def __init__(self, texts: Sequence[str], relations: Sequence[str], signs: Packed) -> None:
        self._texts, self._relations, self._signs = texts, relations, signs

    def __len__(self) -> int:
        return len(self._signs)

    def recall(self, source: str, relation: str, signer: Signer, *, leave_out: bool = False) -> Recalled:
        """The known answers to the sources that are most similar to this one, told about its people, each once.

        Vectors hardly see negation, so sources that are negated where this one is not are passed over, and so are
        those that say the opposite. `leave_out` also passes over the source itself.
        """
        vector, of_event = signer.vectors([source, neutral(source)])
        recalled: dict[str, _Similar] = {}
        for other in self._similar(source, relation, vector, of_event, signer)[:_SOURCES]:
            if leave_out and words(other.source) == words(source):
                continue
            if _is_negated(other.source) == _is_negated(source) and not are_opposites(other.source, source):
                for text in retell(other.answers, other.source, source, relation):
                    recalled.setdefault(text, other)
        vectors = signer.vectors([*recalled])
        answers = [
            KnownAnswer(
                text,
                other.source,
                other.similarity,
                other.overlap,
                relevance=float(answer @ vector),
                known_relevance=float(answer @ other.vector),
            )
            for (text, other), answer in zip(recalled.items(), vectors, strict=True)
        ]
        return Recalled(answers, vectors)

    def _answers(self, row: int, relation: str) -> list[str]:
        if relation not in self._relations:
            return []
        text = self._texts[(1 + self._relations.index(relation)) * len(self) + row]
        return text.split(_SEPARATOR) if text else []

    def _similar(
        self, asked: str, relation: str, vector: Vectors, of_event: Vectors, signer: Signer
    ) -> list["_Similar"]:
        """The sources that tell of a similar event, whoever it happens to, with the most similar one first."""
        similarities = self._similarities(of_event)
        nearest = np.argsort(-similarities, kind="stable")[:_NEAREST].tolist()
        rows = [row for row in nearest if similarities[row] >= _SIMILAR]
        sources = [self._texts[row] for row in rows]
        stems = _told_stems(asked)
        similar = [
            _Similar(
                source,
                self._answers(row, relation),
                other,
                float(other @ vector),
                _overlap(_told_stems(source), stems),
            )
            for row, source, other in zip(rows, sources, signer.vectors(sources), strict=True)
        ]
        return sorted(similar, key=lambda other: -(other.similarity + _OVERLAP * other.overlap))

    def _similarities(self, vector: Vectors) -> npt.NDArray[np.float64]:
        """The estimated cosine of each source to the vector.

        The product of a unit vector with the signs of another one is on average their cosine times the root of
        2 dim / π. Eight signs at a time are looked up: what each byte adds is computed once.
        """
        bits = unpack(_ALL_BYTES, 8).astype(np.float32)  # (256, 8)
        padded = np.pad(vector, (0, -len(vector) % 8))
        added = padded.reshape(-1, 8) @ bits.T  # (bytes, 256)
        if len(added) != self._signs.shape[1]:
            raise BundleError(
                "the known answers were made with another encoder", hint="make them again with `cod3s remember`"
            )
        positive = np.zeros(len(self), np.float32)
        for of_byte, column in zip(added, self._signs.T, strict=True):
            positive += of_byte[column]
        sums = 2 * positive - vector.sum()
        similarities: npt.NDArray[np.float64] = np.minimum(sums / np.sqrt(2 * len(vector) / pi), 1.0)
        return similarities


@dataclass(frozen=True, eq=False)
class _Similar:
    """A source that is similar to the one that was asked, and the answers to it."""

    source: str
    answers: Sequence[str]
    vector: Vectors
    similarity: float
    overlap: float


def _overlap(stems: Sequence[str], others: Sequence[str]) -> float:
    """Of the stems of two texts, the share that both have in the same order."""
    common = SequenceMatcher(None, stems, others, autojunk=False).get_matching_blocks()
    return sum(block.size for block in common) / max(1, len({*stems, *others}))


def _told_stems(text: str) -> list[str]:
    """The stems of a text's content words, negations aside."""
    return content_stems(" ".join(word for word in words(text) if not _negates(word)))


def _is_negated(text: str) -> bool:
    return any(map(_negates, words(text)))


def _negates(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")


def are_opposites(text: str, other: str) -> bool:
    """Whether one text has a word whose opposite the other one has, such as raised and cut."""
    told, others = {*words(text)}, {*words(other)}

    def sides(listed: set[str], left: frozenset[str], right: frozenset[str]) -> tuple[bool, bool]:
        return bool(left & listed), bool(right & listed)

    return any({sides(told, *pair), sides(others, *pair)} == {(True, False), (False, True)} for pair in _OPPOSITES)


def save_known(folder: Path, answers: Answers, signer: Signer, most_alike: float = 1.0) -> int:
    """Write a collection of answers, and return how many sources it has.

    Of sources whose vectors have a cosine above `most_alike`, the one with the most answers is kept. Sources and
    answers with equal beginnings come together, which makes the file smaller.
    """
    sources = sorted(answers, key=lambda source: -sum(map(len, answers[source].values())))
    vectors = signer.vectors([*map(neutral, sources)])
    kept = sorted(_rows_apart(vectors, most_alike), key=lambda row: sources[row].casefold())
    relations = sorted({relation for row in kept for relation in answers[sources[row]]})
    columns = [
        [_SEPARATOR.join(sorted(answers[sources[row]].get(relation, ()))) for row in kept]
        for relation in relations
    ]
    with replaced_folder(folder) as partial:
        save_texts(partial / _TEXTS, [*(sources[row] for row in kept), *chain.from_iterable(columns)])
        write_json(partial / _RELATIONS, relations)
        np.save(partial / _SIGNS, pack(vectors[kept] > 0), allow_pickle=False)
    return len(kept)


def _rows_apart(vectors: Vectors, most_alike: float) -> list[int]:
    """The rows, in order, that are not more alike than this to an earlier one that is kept."""
    if most_alike >= 1:
        return list(range(len(vectors)))
    kept: list[int] = []
    for start in range(0, len(vectors), _COMPARED_TOGETHER):
        block = vectors[start : start + _COMPARED_TOGETHER]
        alike = (block @ vectors[kept].T).max(axis=1, initial=-1.0)
        cosines = block @ block.T
        new: list[int] = []
        for row in range(len(block)):
            if max(alike[row], cosines[row, new].max(initial=-1.0)) <= most_alike:
                new.append(row)
        kept += [start + row for row in new]
    return kept


def load_known(folder: Path) -> KnownAnswers:
    """The collection in a folder; an error if it is damaged."""
    try:
        texts, relations = load_texts(folder / _TEXTS), read_json(folder / _RELATIONS)
        signs = load_array(folder / _SIGNS, np.uint8)
        if not isinstance(relations, list) or signs.ndim != 2 or len(texts) != (1 + len(relations)) * len(signs):
            raise ValueError("its texts, relations and signs do not fit together")
    except (OSError, ValueError, Cod3sError) as error:
        raise BundleError(
            f"{folder} does not hold known answers: {error}", hint="make them again with `cod3s remember`"
        ) from error
    return KnownAnswers(texts, relations, signs)
