"""Threshold mode: keep every candidate that is not too similar to a better one that was kept."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors
from cod3s.errors import Progress, UsageError
from cod3s.selection.candidates import Rows, Scores, Source, rank
from cod3s.selection.neighbors import CELL, MOST_CELLS, ROUNDING, SignatureIndex, VectorFile
from cod3s.signatures import Packed, pack
from cod3s.text import is_visible

_BLOCK = 1_024  # candidates compared together


@dataclass(frozen=True, eq=False)
class Owned:
    """Candidates that were left out: their positions, of which row each is a duplicate, and the cosine."""

    positions: Rows
    owners: Rows  # positions of kept candidates; for leaks, positions in the other texts
    similarity: npt.NDArray[np.float32]

    def by_owner(self) -> dict[int, list[tuple[int, float | None]]]:
        """The positions and cosines of each owner's duplicates, in the order of the list."""
        grouped: dict[int, list[tuple[int, float | None]]] = {}
        order = np.argsort(self.positions)
        for position, owner, similarity in zip(
            self.positions[order].tolist(),
            self.owners[order].tolist(),
            self.similarity[order].astype(np.float64).round(4).tolist(),
            strict=True,
        ):
            grouped.setdefault(owner, []).append((position, similarity))
        return grouped


@dataclass(frozen=True, eq=False)
class Distinct:
    """What is left of the candidates, as positions in rank order: three numbers per candidate, no texts."""

    source: Source
    scores: Scores | None
    threshold: float
    seed: int
    kept: Rows
    packed: Packed  # signatures of the kept ones
    dropped: Owned
    leaks: Owned
    blank: Rows

    def raised(self, threshold: float) -> "Distinct":
        """The same with a higher threshold, without another pass: only what is free again is encoded once more.

        A duplicate is free if no kept candidate is as similar as that; the free ones are then compared among
        themselves. So no two kept ones reach the threshold, and each dropped one has a kept one that does.
        """
        if not self.threshold <= threshold <= 1:
            raise UsageError(
                f"the threshold can be raised from {self.threshold:g} to at most 1, not changed to {threshold:g}",
                hint="for a lower threshold, select again",
            )
        free = self.dropped.similarity < threshold - ROUNDING
        again = _keep_distinct(self.source, self.dropped.positions[free], threshold, self.seed)
        kept = np.concatenate([self.kept, again.kept])
        order = _in_rank_order(kept, self.scores)
        return Distinct(
            self.source,
            self.scores,
            threshold,
            self.seed,
            kept[order],
            np.concatenate([self.packed, again.packed])[order],
            Owned(
                np.concatenate([self.dropped.positions[~free], again.dropped.positions]),
                np.concatenate([self.dropped.owners[~free], again.dropped.owners]),
                np.concatenate([self.dropped.similarity[~free], again.dropped.similarity]),
            ),
            self.leaks,
            self.blank,
        )


@dataclass(frozen=True, eq=False)
class _Pass:
    kept: Rows
    packed: Packed
    dropped: Owned


def find_distinct(
    source: Source,
    scores: Scores | None,
    threshold: float,
    *,
    against: Iterable[str] | None = None,
    seed: int,
    progress: Progress = lambda _done: None,
) -> Distinct:
    """Drop the candidates that are as similar as `threshold` to a better one, or to a text in `against`."""
    if not 0 <= threshold <= 1:
        raise UsageError(f"the threshold is {threshold}", hint="it is a cosine, from 0 to 1; try 0.9")
    positions, blank = rank(source.texts, scores)
    leaks = Owned(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0, np.float32))
    if against is not None:
        leaks = _find_leaks(source, positions, threshold, against, seed)
        positions = positions[~np.isin(positions, leaks.positions)]
    result = _keep_distinct(source, positions, threshold, seed, progress)
    return Distinct(source, scores, threshold, seed, result.kept, result.packed, result.dropped, leaks, blank)


def _keep_distinct(
    source: Source, positions: Rows, threshold: float, seed: int, progress: Progress = lambda _done: None
) -> _Pass:
    """Two passes: the first keeps or drops each row, the second finds the most similar kept row of the dropped."""
    rows = len(positions)
    kept = np.empty(rows, np.intp)  # rows by number in the index
    owner = np.full(rows, -1)
    similarity = np.zeros(rows, np.float32)
    packed = np.empty((rows, (source.code.bits + 7) // 8), np.uint8)
    unknown: dict[str, int] = {}  # texts without a vector are the same only if they are equal
    count = 0
    with ExitStack() as stack:
        file = None if source.given is not None else stack.enter_context(VectorFile(source.code.dim))

        def stored(numbers: Rows) -> Vectors:
            return source.vectors(positions[kept[numbers]]) if file is None else file[numbers]

        index = SignatureIndex(_pivots(source, positions, seed), threshold, stored, seed)
        for start in range(0, rows, _BLOCK):
            block = np.arange(start, min(start + _BLOCK, rows))
            vectors = source.vectors(positions[block])
            number, cosine = index.nearest(vectors)
            known = number >= 0
            owner[block[known]], similarity[block[known]] = kept[number[known]], cosine[known]
            fresh = np.flatnonzero(~known)
            stays = _keep_within(vectors, block, fresh, threshold, owner, similarity)
            for row in stays[~vectors[stays].any(axis=1)]:
                form = source.forms(positions[block[[row]]])[0]
                first = unknown.setdefault(form, int(block[row]))
                if first != block[row]:
                    owner[block[row]], similarity[block[row]] = first, 1
            stays = stays[owner[block[stays]] < 0]
            numbers = np.arange(count, count + len(stays))
            kept[numbers] = block[stays]
            packed[numbers] = pack(source.code.sign(vectors[stays]))
            count += len(stays)
            if file is not None:
                file.append(vectors[stays])
            index.add(numbers, vectors[stays])
            progress(len(block))
        dropped = np.flatnonzero(owner >= 0)
        for start in range(0, len(dropped), _BLOCK):
            block = dropped[start : start + _BLOCK]
            number, cosine = index.nearest(source.vectors(positions[block]))
            better = cosine > similarity[block]
            owner[block[better]], similarity[block[better]] = kept[number[better]], cosine[better]
    return _Pass(
        positions[kept[:count]],
        packed[:count],
        Owned(positions[dropped], positions[owner[dropped]], similarity[dropped]),
    )


def _keep_within(
    vectors: Vectors,
    block: Rows,
    fresh: Rows,
    threshold: float,
    owner: Rows,
    similarity: npt.NDArray[np.float32],
) -> Rows:
    """The rows of a block that stay when they are compared with each other, best first."""
    cosines = vectors[fresh] @ vectors[fresh].T
    near = np.tril(cosines >= threshold - ROUNDING, -1)
    stays = np.ones(len(fresh), bool)
    for row in np.flatnonzero(near.any(axis=1)):
        earlier = np.flatnonzero(near[row] & stays)
        if len(earlier):
            best = earlier[cosines[row, earlier].argmax()]
            owner[block[fresh[row]]] = block[fresh[best]]
            similarity[block[fresh[row]]] = min(1.0, float(cosines[row, best]))
            stays[row] = False
    return fresh[stays]


def _find_leaks(source: Source, positions: Rows, threshold: float, against: Iterable[str], seed: int) -> Owned:
    """The candidates that are as similar as `threshold` to one of the other texts, which may be any number."""
    with VectorFile(source.code.dim) as file:
        index = SignatureIndex(_pivots(source, positions, seed), threshold, file.__getitem__, seed)
        numbers: list[int] = []  # places of the visible texts
        for first, texts in _blocks(against):
            visible = [place for place, text in enumerate(texts) if is_visible(text)]
            vectors = source.embed([texts[place] for place in visible])
            file.append(vectors)
            index.add(np.arange(len(numbers), len(numbers) + len(visible)), vectors)
            numbers += [first + place for place in visible]
        found = [
            (block, *index.nearest(source.vectors(block)))
            for block in (positions[start : start + _BLOCK] for start in range(0, len(positions), _BLOCK))
        ]
    if not found:
        return Owned(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0, np.float32))
    places, number, cosine = (np.concatenate(parts) for parts in zip(*found, strict=True))
    leaked = number >= 0
    return Owned(places[leaked], np.array(numbers, np.intp)[number[leaked]], cosine[leaked])


def _blocks(texts: Iterable[str]) -> Iterator[tuple[int, Sequence[str]]]:
    stream, first = iter(texts), 0
    while block := list(islice(stream, _BLOCK)):
        yield first, block
        first += len(block)


def _pivots(source: Source, positions: Rows, seed: int) -> Vectors:
    """Vectors of a sample of the candidates, a cell around each."""
    cells = min(max(1, len(positions) // CELL), MOST_CELLS)
    if not len(positions):
        return np.zeros((1, source.code.dim), np.float32)
    return source.vectors(np.random.default_rng(seed).choice(positions, cells, replace=False))


def _in_rank_order(positions: Rows, scores: Scores | None) -> Rows:
    if scores is None:
        return np.argsort(positions, kind="stable")
    return np.lexsort((positions, -scores[positions]))
