"""Fidelity: whether answers are in the bins that they were written for."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from cod3s.signatures import bits_off

BIN_SIZES = (0, 1, 10, 100, 1000)
"""Lower bounds of the groups of bins by number of training sentences."""


@dataclass(frozen=True)
class Request:
    """The requested and the realised signature of an answer, its rank and the size of its bin."""

    signature: str
    realised: str
    rank: int  # of the answer in its set, from 0
    count: int  # training sentences in the bin

    @property
    def hamming(self) -> int:
        """How many bits differ."""
        return bits_off(self.signature, self.realised)


@dataclass(frozen=True)
class Fidelity:
    """Over a group of requests: mean distance, share of correct bits, share of answers in their bin."""

    requests: int
    hamming: float
    bits_right: float
    in_bin: float


def fidelity(requests: Sequence[Request]) -> Fidelity | None:
    """The figures of these requests; None without requests."""
    if not requests:
        return None
    distances = np.array([request.hamming for request in requests])
    bits = len(requests[0].signature)
    mean = float(distances.mean())
    return Fidelity(len(requests), mean, 1.0 - mean / bits, float((distances == 0).mean()))


def by_rank(requests: Iterable[Request]) -> dict[int, Fidelity]:
    """The figures by rank, from 0."""
    return _grouped(requests, lambda request: request.rank)


def by_bin_size(requests: Iterable[Request]) -> dict[int, Fidelity]:
    """The figures by size of the bin, under the lower bound of each group (BIN_SIZES)."""
    return _grouped(requests, lambda request: max(low for low in BIN_SIZES if low <= request.count))


def other_answers_hamming(sets: Iterable[Sequence[Request]]) -> float | None:
    """The mean distance of a request from the *other* answers of its set: what `hamming` is without control."""
    distances = [
        bits_off(request.signature, other.realised)
        for requests in sets
        for request in requests
        for other in requests
        if other is not request
    ]
    return float(np.mean(distances)) if distances else None


def _grouped(requests: Iterable[Request], key: Callable[[Request], int]) -> dict[int, Fidelity]:
    groups = groupby(sorted(requests, key=key), key)
    return {name: figures for name, group in groups if (figures := fidelity([*group]))}
