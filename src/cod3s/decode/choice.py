"""Choose the answers among the candidates: suitable, faithful to their bin, fresh, and without repeated texts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cod3s.decode.decode_config import DecodeConfig
from cod3s.decode.sentences import Bins, Candidate
from cod3s.encode import Vectors
from cod3s.errors import Cod3sError
from cod3s.records import Answer
from cod3s.signatures import bits_off, hamming, pack_texts
from cod3s.signatures.signer import Signer
from cod3s.text import content_stems
from cod3s.unsuitable import is_unsuitable

Written = TypeVar("Written", Candidate, Answer)
Numbers = npt.NDArray[np.float64]

SUITABLE = "fit to be shown (the option unfiltered gives them, too)"


class Taken:
    """The answers to one source so far: their texts and vectors."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._vectors: list[Vectors] = []

    def __contains__(self, candidate: Candidate) -> bool:
        """Whether its text was taken; upper and lower case are the same."""
        return candidate.text.casefold() in self._texts

    def add(self, candidate: Candidate) -> None:
        self._texts.add(candidate.text.casefold())
        if candidate.vector is not None:
            self._vectors.append(candidate.vector)

    def nearness(self, candidates: Sequence[Candidate]) -> Numbers:
        """The cosine of each candidate to the nearest answer so far; 0 while there are no answers."""
        if not self._vectors:
            return np.zeros(len(candidates))
        vectors = np.array([candidate.vector for candidate in candidates])
        cosines = vectors @ np.array(self._vectors).T  # (candidates, answers)
        nearest: Numbers = cosines.max(axis=1).astype(np.float64)
        return nearest


@dataclass(frozen=True)
class Weights:
    """What a candidate loses: for each bit off its bin, by nearness to an earlier answer, and as a free sample."""

    bit: float
    nearness: float
    free: float = 0.0

    def values(self, candidates: Sequence[Candidate], taken: Taken) -> Numbers:
        """The scores of the candidates after these costs."""
        scores = np.array([candidate.score for candidate in candidates])
        bits_off = np.array([candidate.hamming or 0 for candidate in candidates])
        free = np.array([candidate.free for candidate in candidates], dtype=np.float64)
        costs = self.bit * bits_off + self.nearness * taken.nearness(candidates) + self.free * free
        values: Numbers = scores - costs
        return values


def keep_suitable(config: DecodeConfig, source: str, texts: Sequence[Written]) -> list[Written]:
    """The candidates or answers that may be shown as answers to `source`: all of them if `unfiltered`."""
    return [text for text in texts if config.unfiltered or not is_unsuitable(text.text, source)]


def choose_answers(
    config: DecodeConfig,
    source: str,
    signatures: Sequence[str],
    bins: Bins,
    taken: Taken,
    signer: Signer | None,
    most: int | None = None,
) -> Bins:
    """The best candidates of each bin of a source that are not `taken` yet; they are added to `taken`.

    Where the options ask for it, candidates are signed, and weighed, ranked or filtered by their signatures. With
    more than `most` bins, those with the best candidates are taken, and the others stay empty.
    """
    if config.needs_encoder and signer is None:
        raise Cod3sError("checking what answers mean needs an encoder", hint="pass a signer, or faithful='none'")
    if signer and config.by_signature:
        signed = realise(signer, bins, signatures)
        if config.pool == "on":
            signed = pooled(signed, signatures)
        bins = [keep_faithful(row, mode=config.faithful, within=config.faithful_within) for row in signed]
    if config.fresh:
        bins = [fresh_first(source, candidates) for candidates in bins]
    weights = None
    if config.faithful == "weigh":
        weights = Weights(config.bit_weight, config.nearness_weight, config.free_cost)
    chosen = choose(bins, config.per_bin, taken, weights, most=most)
    if signer and config.check and not config.by_signature:  # only what is returned needs to be signed
        return realise(signer, chosen, signatures)
    return chosen


def realise(signer: Signer, bins: Bins, signatures: Sequence[str]) -> Bins:
    """The candidates with their vectors, the signatures they realise, and how far those are from the wanted ones.

    Each text is encoded at most once.
    """
    known = {candidate.text: candidate.vector for candidates in bins for candidate in candidates}
    missing = [text for text, vector in known.items() if vector is None]
    known |= dict(zip(missing, signer.vectors(missing), strict=True))
    vectors = np.array([*known.values()], np.float32).reshape(len(known), signer.encoder.dim)
    rows = dict(zip(known, zip(vectors, signer.signatures_of(vectors), strict=True), strict=True))

    def realised(candidate: Candidate, wanted: str) -> Candidate:
        vector, signature = rows[candidate.text]
        return replace(candidate, vector=vector, realised=signature, hamming=bits_off(signature, wanted))

    return [
        [realised(candidate, wanted) for candidate in candidates]
        for candidates, wanted in zip(bins, signatures, strict=True)
    ]


def pooled(bins: Bins, signatures: Sequence[str]) -> Bins:
    """Every bin with the candidates of all bins, each text once, and their distance to its signature."""
    best: dict[str, Candidate] = {}
    for candidate in (candidate for candidates in bins for candidate in candidates):
        known = best.setdefault(candidate.text, candidate)
        if candidate.score > known.score:
            best[candidate.text] = candidate
    pool = sorted(best.values(), key=lambda candidate: -candidate.score)
    if not pool:
        return bins
    realised = pack_texts([candidate.realised for candidate in pool])
    distances = hamming(pack_texts(signatures)[:, None], realised)  # (bins, candidates)
    return [
        [replace(candidate, hamming=int(distance)) for candidate, distance in zip(pool, row, strict=True)]
        for row in distances
    ]


def keep_faithful(candidates: Sequence[Candidate], *, mode: str, within: int) -> list[Candidate]:
    """One bin's candidates, ranked or filtered by how near their signatures are to the bin's."""
    if mode == "rerank":
        return sorted(candidates, key=lambda candidate: candidate.hamming or 0)
    if mode == "filter":
        return [candidate for candidate in candidates if (candidate.hamming or 0) <= within]
    return list(candidates)


def fresh_first(source: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates in their order, with stale ones marked and moved to the end.

    Beams of a small model copy their source, which MMI rewards: nothing predicts a source better than its
    words.
    """
    marked = [replace(candidate, stale=is_stale(source, candidate.text)) for candidate in candidates]
    return sorted(marked, key=lambda candidate: candidate.stale)


def is_stale(source: str, text: str) -> bool:
    """Whether `text` holds a content word twice, or no content word that `source` lacks."""
    stems = content_stems(text)
    return len(set(stems)) < len(stems) or set(stems) <= set(content_stems(source))


def choose(
    bins: Bins, per_bin: int, taken: Taken, weights: Weights | None = None, *, most: int | None = None
) -> Bins:
    """From each bin, `per_bin` candidates that are not `taken`: the first ones, or the best by `weights`.

    With more than `most` bins, the bin with the best candidate comes next, until there are enough.
    """
    if most is None or most >= len(bins):
        return [_choose_from_bin(candidates, per_bin, taken, weights) for candidates in bins]
    chosen: Bins = [[] for _ in bins]
    left = set(range(len(bins)))
    for _ in range(most):
        bests = {number: best for number in sorted(left) if (best := _best(bins[number], taken, weights))}
        if not bests:
            break
        number = min(bests, key=lambda number: bests[number].order)
        chosen[number] = _choose_from_bin(bins[number], per_bin, taken, weights)
        left.remove(number)
    return chosen


def _choose_from_bin(
    candidates: Sequence[Candidate], per_bin: int, taken: Taken, weights: Weights | None
) -> list[Candidate]:
    chosen: list[Candidate] = []
    while len(chosen) < per_bin and (best := _best(candidates, taken, weights)):
        taken.add(best.candidate)
        chosen.append(best.candidate)
    return chosen


@dataclass(frozen=True)
class _Best:
    """A bin's best candidate, and what it is compared with other bins by: fresh ones first, then by value."""

    candidate: Candidate
    order: tuple[bool, float]


def _best(candidates: Sequence[Candidate], taken: Taken, weights: Weights | None) -> _Best | None:
    left = [candidate for candidate in candidates if candidate not in taken]
    if not left:
        return None
    if weights is None:  # they are in order
        return _Best(left[0], (left[0].stale, -left[0].score))
    orders = [
        (candidate.stale, -value)
        for candidate, value in zip(left, weights.values(left, taken).tolist(), strict=True)
    ]
    return min(map(_Best, left, orders), key=lambda best: best.order)
