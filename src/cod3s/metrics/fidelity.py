"""Fidelity: does an answer lie in the bin it was asked for? Requested and realised signatures in, figures out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cod3s.signatures import from_text

BIN_SIZES = (0, 1, 10, 100, 1000)
"""Lower ends of the groups of training sentences in a bin."""


@dataclass(frozen=True)
class Request:
    """One answer's signature as it was asked for and as its text has it, its place and its bin's size."""

    signature: str
    realised: str
    rank: int  # of the answer in its set, from 0
    count: int  # training sentences in the bin

    @property
    def hamming(self) -> int:
        """How many bits came out otherwise."""
        return int((from_text(self.signature) != from_text(self.realised, len(self.signature))).sum())


@dataclass(frozen=True)
class Fidelity:
    """Over some requests: mean distance, share of bits right, share of answers in their bin."""

    requests: int
    hamming: float
    bits_right: float
    in_bin: float


def fidelity(requests: Sequence[Request]) -> Fidelity | None:
    """The figures of these requests; None where there are none."""
    if not requests:
        return None
    distances = np.array([request.hamming for request in requests])
    bits = len(requests[0].signature)
    mean = float(distances.mean())
    return Fidelity(len(requests), mean, 1.0 - mean / bits, float((distances == 0).mean()))


def by_rank(requests: Iterable[Request]) -> dict[int, Fidelity]:
    """The figures of each rank from 0 on."""
    return _grouped((request.rank, request) for request in requests)


def by_bin_size(requests: Iterable[Request]) -> dict[int, Fidelity]:
    """The figures of each group of bins, under the lower end of its size (BIN_SIZES)."""
    return _grouped((max(low for low in BIN_SIZES if low <= request.count), request) for request in requests)


def other_answers_hamming(sets: Iterable[Sequence[Request]]) -> float | None:
    """Mean distance of a request from the *other* answers of its set: what `hamming` would be without control."""
    distances = [
        int((from_text(asked.signature) != from_text(other.realised)).sum())
        for own in sets
        for asked in own
        for other in own
        if other is not asked
    ]
    return float(np.mean(distances)) if distances else None


def _grouped(requests: Iterable[tuple[int, Request]]) -> dict[int, Fidelity]:
    groups: dict[int, list[Request]] = {}
    for key, request in requests:
        groups.setdefault(key, []).append(request)
    return {key: found for key in sorted(groups) if (found := fidelity(groups[key]))}
