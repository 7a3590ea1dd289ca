"""Count how sentences spread over bins at several bit lengths, as in table 7 of the paper.

Only numbers are kept, not sentences: about 100 bytes per sentence.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from cod3s.errors import BinsError, SignatureError
from cod3s.signatures import Bits
from cod3s.text import words

MAX_STATISTIC_BITS = 64
_Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class BinRow:
    """One bit length: means and standard deviations (population) are over populated bins."""

    bits: int
    populated: int
    share_populated: float
    sentences_mean: float  # distinct sentences per bin
    sentences_sd: float
    unigrams_mean: float  # distinct lower-case words per bin
    unigrams_sd: float


class BinStatistics:
    """Collects blocks of sentences with signatures, then counts at every requested length."""

    def __init__(self, bits: Iterable[int]) -> None:
        self.lengths = sorted(set(bits), reverse=True)
        if not self.lengths or not 1 <= self.lengths[-1] <= self.lengths[0] <= MAX_STATISTIC_BITS:
            raise SignatureError(
                f"there are no bin statistics for {self.lengths or 'no'} bits",
                hint=f"choose lengths from 1 to {MAX_STATISTIC_BITS}",
            )
        self.sentences = 0
        self._seen: set[bytes] = set()
        self._vocabulary: dict[str, int] = {}
        self._signatures: list[_Numbers] = []  # of distinct sentences, the longest length
        self._tokens: list[npt.NDArray[np.uint32]] = []
        self._token_counts: list[npt.NDArray[np.uint32]] = []

    def add(self, sentences: Sequence[str], signed: Bits) -> None:
        """Add a block; a repeated sentence is counted, but not kept again."""
        self.sentences += len(sentences)
        new = [row for row, sentence in enumerate(sentences) if self._is_new(sentence)]
        if not new:
            return
        ids = [self._word_ids(sentences[row]) for row in new]
        self._signatures.append(_as_numbers(signed[new, : self.lengths[0]]))
        self._tokens.append(np.array([token for row in ids for token in row], np.uint32))
        self._token_counts.append(np.array([len(row) for row in ids], np.uint32))

    def rows(self) -> list[BinRow]:
        """The table, shortest signatures first."""
        if not self._signatures:
            raise BinsError("there are no sentences to count")
        signatures = np.concatenate(self._signatures)
        # The (bin, word) pairs of a shorter length are those of a longer length with bins merged, so each length
        # is counted from the distinct pairs of the length before.
        bins, sentence_bin = np.unique(signatures, return_inverse=True)
        counts = np.bincount(sentence_bin).astype(np.float64)
        pairs = self._distinct_pairs(sentence_bin)
        rows: list[BinRow] = []
        for longer, bits in zip([self.lengths[0], *self.lengths], self.lengths, strict=False):
            bins, parent = np.unique(bins >> np.uint64(longer - bits), return_inverse=True)
            counts = np.bincount(parent, weights=counts).astype(np.float64)
            merged = parent.astype(np.uint64)[pairs >> np.uint64(32)] << np.uint64(32)
            pairs = _distinct(merged | (pairs & np.uint64(0xFFFFFFFF)))
            unigrams = np.bincount((pairs >> np.uint64(32)).astype(np.intp), minlength=len(bins))
            rows.append(_row(bits, counts, unigrams))
        return rows[::-1]

    def _is_new(self, sentence: str) -> bool:
        digest = blake2b(sentence.encode(), digest_size=8).digest()
        before = len(self._seen)
        self._seen.add(digest)
        return len(self._seen) > before

    def _word_ids(self, sentence: str) -> list[int]:
        ids = self._vocabulary
        return [ids.setdefault(word, len(ids)) for word in words(sentence)]

    def _distinct_pairs(self, sentence_bin: npt.NDArray[np.intp]) -> _Numbers:
        """Distinct (bin, word) pairs, the bin's index in the upper 32 bits."""
        of_token = np.repeat(sentence_bin.astype(np.uint64), np.concatenate(self._token_counts))
        of_token <<= np.uint64(32)
        of_token |= np.concatenate(self._tokens)
        return _distinct(of_token)


def _row(bits: int, sentences: npt.NDArray[np.float64], unigrams: npt.NDArray[np.intp]) -> BinRow:
    return BinRow(
        bits=bits,
        populated=len(sentences),
        share_populated=len(sentences) / 2**bits,
        sentences_mean=float(sentences.mean()),
        sentences_sd=float(sentences.std()),
        unigrams_mean=float(unigrams.mean()),
        unigrams_sd=float(unigrams.std()),
    )


def _distinct(numbers: _Numbers) -> _Numbers:
    """The distinct numbers, sorted; sorting in place is about fifty times faster than `np.unique` here."""
    numbers.sort()
    new = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=new[1:])
    return numbers[new]


def _as_numbers(signed: Bits) -> _Numbers:
    """Each row of at most 64 bits as a number, the first bit the highest."""
    weights = np.uint64(1) << np.arange(signed.shape[1] - 1, -1, -1, dtype=np.uint64)
    numbers: _Numbers = signed.astype(np.uint64) @ weights
    return numbers
