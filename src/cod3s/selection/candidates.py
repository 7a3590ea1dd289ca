"""Check a user's candidates and put them in rank order, with their vectors or signatures."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors
from cod3s.encode.protocol import unit
from cod3s.errors import Cod3sError, VectorError
from cod3s.signatures import Code, Packed, pack
from cod3s.signatures.signer import Signer
from cod3s.text import for_embedding, is_visible

Rows = npt.NDArray[np.intp]
Scores = npt.NDArray[np.float64]

_BLOCK = 8192  # candidates encoded together


@dataclass(frozen=True, eq=False)
class Pool:
    """What the methods choose from, in rank order: row 0 is the best candidate."""

    form: Callable[[int], str]  # the text of a row as it is embedded: rows that share it say the same thing
    quality: Scores  # from 1, the best, to 0, the worst; all 0 without scores; empty without vectors
    packed: Packed
    vectors: Vectors | None  # None for the method that needs only signatures


@dataclass(frozen=True, eq=False)
class SignedVectors:
    """The user's vectors, a row per candidate, and the code that signs them."""

    vectors: Vectors
    code: Code


def check_texts(candidates: Iterable[str]) -> Sequence[str]:
    """The candidates as a list; anything but text is an error that names its position."""
    if isinstance(candidates, str | bytes):
        raise Cod3sError("one text was given, but a list of candidates is needed", hint="put it in a list")
    texts = candidates if isinstance(candidates, Sequence) else list(candidates)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise Cod3sError(
                f"candidate {position} is {type(text).__name__}, but text is needed", hint="convert it with str()"
            )
    return texts


def check_scores(scores: Iterable[float] | None, count: int) -> Scores | None:
    """One finite number per candidate, or None."""
    if scores is None:
        return None
    try:
        numbers = np.array(scores if isinstance(scores, np.ndarray) else list(scores), np.float64)
    except (TypeError, ValueError) as error:
        raise Cod3sError(f"the scores are not numbers: {error}") from error
    if numbers.shape != (count,):
        raise Cod3sError(
            f"{len(numbers)} scores were given for {count} candidates", hint="give one score per candidate"
        )
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise Cod3sError(
            f"the score of candidate {bad[0]} is {numbers[bad[0]]}, and {len(bad)} in all are not finite",
            hint="leave such candidates out, or give them a low score",
        )
    return numbers


def rank(texts: Sequence[str], scores: Scores | None) -> tuple[Rows, Rows]:
    """The positions of the candidates to choose from, best first, and of the blank ones.

    Equal scores keep the order of the list, which is the ranking if there are no scores.
    """
    visible = np.fromiter(map(is_visible, texts), bool, len(texts))
    order = np.arange(len(texts)) if scores is None else np.argsort(-scores, kind="stable")
    return order[visible[order]], np.flatnonzero(~visible)


def make_pool(
    texts: Sequence[str],
    scores: Scores | None,
    positions: Rows,
    *,
    source: Signer | SignedVectors,
    keep_vectors: bool,
) -> Pool:
    """Encode and sign the candidates at `positions`; without `keep_vectors` only packed signatures are kept."""
    code = source.code
    packed = np.empty((len(positions), (code.bits + 7) // 8), np.uint8)
    vectors = np.empty((len(positions), code.dim), np.float32) if keep_vectors else None
    # Texts are read in the order of the list, which is faster than random access, and stored in their rows.
    rows_in_list_order = np.argsort(positions)
    for start in range(0, len(positions), _BLOCK):
        rows = rows_in_list_order[start : start + _BLOCK]
        block = _encode(texts, positions[rows], source)
        packed[rows] = pack(code.sign(block))
        if vectors is not None:
            vectors[rows] = block
    return Pool(
        form=lambda row: for_embedding(texts[positions[row]]),
        quality=_quality(scores, positions) if keep_vectors else np.empty(0),
        packed=packed,
        vectors=vectors,
    )


def check_vectors(vectors: Vectors, count: int) -> Vectors:
    """Vectors from the user's encoder, a finite row per candidate."""
    rows = np.asarray(vectors)
    if rows.ndim != 2 or len(rows) != count or not rows.size:
        raise VectorError(
            f"vectors of shape {rows.shape} were given for {count} candidates, but (n, dim) is needed"
        )
    if not np.isfinite(rows).all():
        raise VectorError("the vectors contain NaN or infinity", hint="check the encoder's vector of each text")
    return rows


def _encode(texts: Sequence[str], positions: Rows, source: Signer | SignedVectors) -> Vectors:
    if isinstance(source, SignedVectors):
        return unit(source.vectors[positions].astype(np.float32))
    return source.vectors([texts[position] for position in positions.tolist()])


def _quality(scores: Scores | None, positions: Rows) -> Scores:
    ranked = np.zeros(len(positions)) if scores is None else scores[positions]
    spread = np.ptp(ranked) if len(ranked) else 0.0
    return (ranked - ranked.min()) / spread if spread else np.zeros(len(positions))
