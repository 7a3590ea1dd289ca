"""Select k candidates by a named method, and list the duplicates of each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.encode import Encoder, Vectors
from cod3s.errors import Cod3sError
from cod3s.options import find_name
from cod3s.records import ResultSet
from cod3s.selection.candidates import (
    Pool,
    Rows,
    Scores,
    SignedVectors,
    check_scores,
    check_texts,
    check_vectors,
    make_pool,
    rank,
)
from cod3s.selection.methods.greedy import choose_dpp, choose_mmr, take_away_shared
from cod3s.selection.methods.hamming_rule import choose_apart
from cod3s.selection.methods.kmedoids import choose_kmedoids
from cod3s.signatures import SEED, Packed, check_bits, hamming, keep_apart, random_code, to_text, unpack
from cod3s.signatures.signer import Signer, open_signer

AUTO = "auto"
METHODS = {
    AUTO: "dpp up to 100,000 candidates, signatures beyond: the best by docs/measured/select.md",
    "signatures": "the paper's rule: the best of each bin, from bins that are far apart; linear, flat memory",
    "mmr": "maximal marginal relevance: score against the nearest chosen candidate",
    "dpp": "determinantal point process: score against the volume spanned",
    "kmedoids": "k clusters, the best of each",
}
BITS = 128
MOST_FOR_DPP = 100_000  # candidates that `auto` gives to dpp, which holds their vectors
_WEIGHTED = ("mmr", "dpp")
_SCORE_WEIGHT = 0.5
_AUTO_SCORE_WEIGHT = 0.03  # scores decide between candidates that differ about as much
_AUTO_SHARED = 0.6  # share of the candidates' mean that `auto` subtracts
_AUTO_TYPICAL = 0.03  # what it gives candidates that have near neighbours
_BLOCK = 65_536


@dataclass(frozen=True)
class Selected:
    """A chosen candidate: its position in the list, and the positions of those it represents."""

    text: str
    signature: str
    score: float | None
    index: int
    duplicates: tuple[int, ...]  # not chosen, and within `min_hamming` bits; the nearest chosen candidate has them


@dataclass(frozen=True, repr=False)
class Selection(ResultSet[Selected]):
    """The chosen candidates, best first; the record of `select --json`."""

    k: int  # as requested; fewer are selected if there are fewer candidates
    method: str  # the method that ran: never `auto`
    selected: tuple[Selected, ...]
    settings: dict[str, str | int | float | bool]
    blank: tuple[int, ...] = ()  # candidates with nothing visible in them: never selected
    remarks: tuple[str, ...] = ()

    _items = "selected"

    def _title(self) -> str:
        return f"{len(self)} by {self.method}"


def select(
    candidates: Iterable[str],
    k: int,
    *,
    scores: Iterable[float] | None = None,
    method: str = AUTO,
    min_hamming: int | None = None,
    bits: int = BITS,
    encoder: Encoder | str = "static",
    vectors: Vectors | None = None,
    seed: int = SEED,
    score_weight: float | None = None,
    strict: bool = False,
) -> Selection:
    """Choose k candidates that mean different things, and list the duplicates of each.

    Higher scores are better; without scores the order of the list is the ranking. `auto` runs dpp up to 100,000
    candidates and signatures beyond, or where `strict` or `min_hamming` ask for the rule; the result says which.
    Two candidates count as the same when their signatures differ in at most `min_hamming` bits (default: a
    quarter of `bits`). `strict` (signatures) returns fewer than k rather than any so close. `score_weight`
    (mmr, dpp) weighs scores against diversity, 0 to below 1: default 0.5, and 0.03 for `auto`, which also
    subtracts 0.6 of the vectors' mean and slightly prefers candidates with near neighbours (`shared` and `typical`
    in the settings). `vectors` are your embeddings, which replace the encoder.
    """
    check_method(method)
    if k < 1:
        raise Cod3sError(f"k is {k}", hint="it must be at least 1")
    if score_weight is None:
        score_weight = _AUTO_SCORE_WEIGHT if method == AUTO else _SCORE_WEIGHT
    if not 0 <= score_weight < 1:
        raise Cod3sError(f"the score weight is {score_weight}", hint="choose from 0 (diversity alone) to below 1")
    texts = check_texts(candidates)
    numbers = check_scores(scores, len(texts))
    shared = typical = 0.0
    if method == AUTO and (strict or min_hamming is not None or len(texts) > MOST_FOR_DPP):
        method = "signatures"
    elif method == AUTO:
        method, shared, typical = "dpp", _AUTO_SHARED, _AUTO_TYPICAL
    positions, blank = rank(texts, numbers)
    min_hamming = default_min_hamming(bits) if min_hamming is None else min_hamming
    source, encoder_name = _open_source(encoder, vectors, len(texts), bits, seed)
    pool = make_pool(texts, numbers, positions, source=source, keep_vectors=method != "signatures")
    if pool.vectors is None or not len(pool.packed):
        rows = choose_apart(pool, k, min_hamming=min_hamming, strict=strict)
    else:
        vectors = take_away_shared(pool.vectors, shared)
        rows = _choose_by_vectors(pool, vectors, k, method, score_weight, typical, seed)
    return Selection(
        k=k,
        method=method,
        selected=_describe(texts, numbers, positions, pool.packed, rows, bits, min_hamming),
        settings={
            "encoder": encoder_name,
            "bits": bits,
            "min_hamming": min_hamming,
            "seed": seed,
            **({"score_weight": score_weight} if method in _WEIGHTED else {}),
            **({"shared": shared, "typical": typical} if shared else {}),
        },
        blank=tuple(blank.tolist()),
        remarks=_remarks(pool.packed, rows, k, min_hamming),
    )


def default_min_hamming(bits: int) -> int:
    """A quarter of the bits: cosines above about 0.7 count as the same (docs/measured/select.md says why).

    The paper's 2 of 16 corresponds to a cosine of about 0.9.
    """
    return check_bits(bits) // 4


def _open_source(
    encoder: Encoder | str, vectors: Vectors | None, count: int, bits: int, seed: int
) -> tuple[Signer | SignedVectors, str]:
    """Where vectors and signatures come from, and its name in the settings."""
    if vectors is not None:
        rows = check_vectors(vectors, count)
        return SignedVectors(rows, random_code(bits, rows.shape[1], seed)), "vectors"
    signer = open_signer(encoder, bits, seed)
    return signer, signer.encoder.id


def check_method(method: str) -> str:
    """`method`, or an error if it is not one of METHODS."""
    return find_name("method", method, METHODS)


def _choose_by_vectors(
    pool: Pool, vectors: Vectors, k: int, method: str, score_weight: float, typical_weight: float, seed: int
) -> Rows:
    """Rows chosen by a method that looks at cosines, from the candidates that say something new."""
    rows = _different(pool)
    vectors, quality = vectors[rows], pool.quality[rows]
    if method == "kmedoids":
        return rows[choose_kmedoids(vectors, quality, k, seed=seed)]
    if method == "mmr":
        return rows[choose_mmr(vectors, quality, k, score_weight=score_weight)]
    return rows[choose_dpp(vectors, quality, k, score_weight=score_weight, typical_weight=typical_weight)]


def _different(pool: Pool) -> Rows:
    """The first row of each text."""
    first: dict[str, int] = {}
    for row in range(len(pool.packed)):
        first.setdefault(pool.form(row), row)
    return np.fromiter(first.values(), np.intp, len(first))


def _describe(
    texts: Sequence[str],
    scores: Scores | None,
    positions: Rows,
    packed: Packed,
    rows: Rows,
    bits: int,
    min_hamming: int,
) -> tuple[Selected, ...]:
    stands_for = _represented(packed, rows, min_hamming)
    signatures = to_text(unpack(packed[rows], bits))
    return tuple(
        Selected(
            text=texts[positions[row]],
            signature=signature,
            score=None if scores is None else float(scores[positions[row]]),
            index=int(positions[row]),
            duplicates=tuple(np.sort(positions[stands_for == number]).tolist()),
        )
        for number, (row, signature) in enumerate(zip(rows, signatures, strict=True))
    )


def _represented(packed: Packed, rows: Rows, min_hamming: int) -> npt.NDArray[np.int32]:
    """For each row, the number of the chosen row that represents it: the nearest, earlier on a tie; else -1."""
    nearest = np.full(len(packed), -1, np.int32)
    for start in range(0, len(packed) if len(rows) else 0, _BLOCK):
        block = slice(start, start + _BLOCK)
        distances = np.stack([hamming(packed[block], packed[row]) for row in rows])  # (chosen, block)
        nearest[block] = np.where(distances.min(axis=0) <= min_hamming, distances.argmin(axis=0), -1)
    nearest[rows] = -1
    return nearest


def _shortage(chosen: int, candidates: int) -> str:
    """Why fewer than k were chosen."""
    if chosen < candidates:
        return f"only {chosen} of {candidates} candidates differ"
    return "there was only 1 candidate" if candidates == 1 else f"there were only {candidates} candidates"


def _remarks(packed: Packed, rows: Rows, k: int, min_hamming: int) -> tuple[str, ...]:
    if not len(rows):
        return ("there was nothing to select",)
    if len(rows) < k:
        return (_shortage(len(rows), len(packed)),)
    apart = keep_apart(packed[rows], min_hamming).kept
    if len(apart) < len(rows):
        return (f"{len(apart)} of {k} differ in more than {min_hamming} bits; the others are closer",)
    return ()
