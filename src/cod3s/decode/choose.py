"""Choose the answers among the candidates: suitable, faithful to their bin, fresh, and without repeated texts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cod3s.decode.config import DecodeConfig
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
Chosen = dict[int, list[Candidate]]
"""The answers by the number of their bin, in the order in which they were chosen."""

SUITABLE = "fit to be shown (the option unfiltered gives them, too)"


class Taken:
    """The answers to one source so far: their texts and vectors."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._vectors: list[Vectors] = []

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, candidate: Candidate) -> bool:
        """Whether its text was taken; upper and lower case are the same."""
        return candidate.text.casefold() in self._texts

    def add(self, candidate: Candidate) -> None:
        self._texts.add(candidate.text.casefold())
        if candidate.vector is not None:
            self._vectors.append(candidate.vector)

    def nearness(self, vectors: Vectors) -> Numbers:
        """The cosine of each vector to the nearest answer so far; 0 while there are no answers."""
        if not self._vectors:
            return np.zeros(len(vectors))
        cosines = vectors @ np.array(self._vectors).T  # (vectors, answers)
        nearest: Numbers = cosines.max(axis=1).astype(np.float64)
        return nearest


@dataclass(frozen=True)
class Weights:
    """What a candidate loses: for each bit off its bin, and by nearness to an earlier answer."""

    bit: float
    nearness: float


@dataclass(frozen=True)
class Offers:
    """The candidates of a source, and how many bits each is off each bin: infinity if it is not offered there."""

    candidates: Sequence[Candidate]
    bits_off: Numbers  # (bins, candidates)

    def by_bin(self) -> Bins:
        """Each bin's candidates, with their distance to its signature."""
        return [
            [
                replace(self.candidates[column], hamming=int(distances[column]))
                for column in np.flatnonzero(np.isfinite(distances)).tolist()
            ]
            for distances in self.bits_off
        ]


def keep_suitable(
    config: DecodeConfig, source: str, texts: Sequence[Written], *, careful: bool = False
) -> list[Written]:
    """The candidates or answers that may be shown as answers to `source`: all of them if `unfiltered`."""
    return [text for text in texts if config.unfiltered or not is_unsuitable(text.text, source, careful=careful)]


def choose_answers(
    config: DecodeConfig,
    source: str,
    signatures: Sequence[str],
    bins: Bins,
    taken: Taken,
    signer: Signer | None,
    most: int | None = None,
) -> Chosen:
    """The best candidates of each bin of a source that are not `taken` yet; they are added to `taken`.

    Where the options ask for it, candidates are signed, and weighed, ranked or filtered by their signatures. With
    more than `most` bins, those with the best candidates are taken.
    """
    if config.needs_encoder and signer is None:
        raise Cod3sError("checking what answers mean needs an encoder", hint="pass a signer, or bin_fit='none'")
    if not config.allow_repeats:
        bins = [mark_stale(source, candidates) for candidates in bins]
    if signer and config.by_signature:
        bins = realise(signer, bins, signatures)
        offers = pool_offers(bins, signatures) if config.share_candidates == "on" else separate_offers(bins)
        if config.bin_fit == "weigh":
            weights = Weights(config.bit_weight, config.nearness_weight)
            return choose_weighed(offers, config.per_bin, taken, weights, most=most)
        bins = [
            keep_faithful(candidates, mode=config.bin_fit, within=config.bin_fit_within)
            for candidates in offers.by_bin()
        ]
    chosen = choose_first(list(map(fresh_first, bins)), config.per_bin, taken, most=most)
    if signer and config.check and not config.by_signature:  # only what is returned needs to be signed
        rows = realise(signer, [*chosen.values()], [signatures[number] for number in chosen])
        return dict(zip(chosen, rows, strict=True))
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


def separate_offers(bins: Bins) -> Offers:
    """Every bin offers its own candidates."""
    candidates = [*chain.from_iterable(bins)]
    bits_off = np.full((len(bins), len(candidates)), np.inf)
    bin_numbers = np.repeat(np.arange(len(bins)), [len(row) for row in bins])
    bits_off[bin_numbers, np.arange(len(candidates))] = [candidate.hamming or 0 for candidate in candidates]
    return Offers(candidates, bits_off)


def pool_offers(bins: Bins, signatures: Sequence[str]) -> Offers:
    """Every bin offers the candidates of all bins, each text once with its best score, best first."""
    best: dict[str, Candidate] = {}
    for candidate in sorted(chain.from_iterable(bins), key=lambda candidate: -candidate.score):
        best.setdefault(candidate.text, candidate)
    pool = list(best.values())
    if not pool:
        return separate_offers(bins)
    realised = pack_texts([candidate.realised for candidate in pool])
    return Offers(pool, hamming(pack_texts(signatures)[:, None], realised).astype(np.float64))


def keep_faithful(candidates: Sequence[Candidate], *, mode: str, within: int) -> list[Candidate]:
    """One bin's candidates, ranked or filtered by how near their signatures are to the bin's."""
    if mode == "rerank":
        return sorted(candidates, key=lambda candidate: candidate.hamming or 0)
    if mode == "filter":
        return [candidate for candidate in candidates if (candidate.hamming or 0) <= within]
    return list(candidates)


def mark_stale(source: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, where those that only repeat the source or themselves are marked."""
    return [replace(candidate, stale=is_stale(source, candidate.text)) for candidate in candidates]


def fresh_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates in their order, with stale ones moved to the end.

    Beams of a small model copy their source, which MMI rewards: nothing predicts a source better than its
    words.
    """
    return sorted(candidates, key=lambda candidate: candidate.stale)


def is_stale(source: str, text: str) -> bool:
    """Whether `text` holds a content word twice, or no content word that `source` lacks."""
    stems = content_stems(text)
    return len(set(stems)) < len(stems) or set(stems) <= set(content_stems(source))


def choose_first(bins: Bins, per_bin: int, taken: Taken, *, most: int | None = None) -> Chosen:
    """From each bin, the first `per_bin` candidates that are not `taken`.

    With more than `most` bins, the bin whose first candidate scores best comes next, until there are enough.
    """
    chosen: Chosen = {}
    left = list(range(len(bins)))
    enough = len(bins) if most is None else min(most, len(bins))
    for _ in range(enough):
        number = left[0] if enough == len(bins) else min(left, key=lambda number: _order(bins[number], taken))
        left.remove(number)
        for candidate in bins[number]:
            if candidate not in taken and len(chosen.get(number, [])) < per_bin:
                taken.add(candidate)
                chosen.setdefault(number, []).append(candidate)
    return chosen


def _order(candidates: Sequence[Candidate], taken: Taken) -> tuple[bool, float]:
    """What a bin is compared with other bins by: its first new candidate; fresh ones come first, then by score."""
    best = next((candidate for candidate in candidates if candidate not in taken), None)
    return (best.stale, -best.score) if best else (True, float("inf"))


def choose_weighed(
    offers: Offers, per_bin: int, taken: Taken, weights: Weights, *, most: int | None = None
) -> Chosen:
    """From each bin, the best `per_bin` candidates by score and costs that are not `taken`; stale ones last.

    With more than `most` bins, the bin with the best candidate comes next, until there are enough.
    """
    bins = len(offers.bits_off)
    if not offers.candidates:
        return {}
    costs = _CostMatrix(offers, weights, taken)
    if most is None or most >= bins:
        rows = {number: costs.take_from(number, per_bin) for number in range(bins)}
        return {number: row for number, row in rows.items() if row}
    chosen: Chosen = {}
    while len(chosen) < most and (number := costs.best_bin()) is not None:
        chosen[number] = costs.take_from(number, per_bin)
    return chosen


class _CostMatrix:
    """What each candidate costs in each bin; a bin or a text that was taken costs infinity.

    The lowest cost of each candidate is kept, so that a step does not look at every bin again.
    """

    _STALE = 1e9  # more than any other cost

    def __init__(self, offers: Offers, weights: Weights, taken: Taken) -> None:
        candidates = offers.candidates
        self._offers, self._weights, self._taken = offers, weights, taken
        texts: dict[str, int] = {}
        self._texts = np.array([texts.setdefault(row.text.casefold(), len(texts)) for row in candidates], np.int64)
        self._vectors = np.array([row.vector for row in candidates], np.float32)
        self._nearness = taken.nearness(self._vectors)
        values = [row.stale * self._STALE - row.score + (np.inf if row in taken else 0.0) for row in candidates]
        offered = np.isfinite(offers.bits_off)
        self._costs: Numbers = np.full(offers.bits_off.shape, np.inf)
        np.multiply(weights.bit, offers.bits_off, out=self._costs, where=offered)
        self._costs += values
        self._lowest, self._cheapest = self._costs.min(axis=0), self._costs.argmin(axis=0)

    def best_bin(self) -> int | None:
        """The bin with the best candidate that is left; None if there is none."""
        costs = self._lowest + self._weights.nearness * self._nearness
        if np.isinf(costs.min()):
            return None
        return int(self._cheapest[costs.argmin()])

    def take_from(self, number: int, count: int) -> list[Candidate]:
        """The best candidates of a bin, which then has none left."""
        chosen: list[Candidate] = []
        while len(chosen) < count:
            costs = self._costs[number] + self._weights.nearness * self._nearness
            if np.isinf(costs.min()):
                break
            chosen.append(self._take(int(costs.argmin()), number))
        self._close(number)
        return chosen

    def _take(self, column: int, number: int) -> Candidate:
        candidate = self._offers.candidates[column]
        cosines = (self._vectors @ self._vectors[column]).astype(np.float64)
        self._nearness = np.maximum(self._nearness, cosines) if self._taken else cosines
        self._taken.add(candidate)
        repeated = self._texts == self._texts[column]
        self._costs[:, repeated] = self._lowest[repeated] = np.inf
        return replace(candidate, hamming=int(self._offers.bits_off[number, column]))

    def _close(self, number: int) -> None:
        self._costs[number] = np.inf
        moved = np.flatnonzero(self._cheapest == number)
        self._lowest[moved] = self._costs[:, moved].min(axis=0)
        self._cheapest[moved] = self._costs[:, moved].argmin(axis=0)
