"""Candidates of a user, checked and put in order: texts and scores in, a pool in rank order out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.encode import Encoder, Vectors
from cod3s.encode.protocol import unit
from cod3s.errors import Cod3sError, VectorError
from cod3s.signatures import Code, Packed, pack
from cod3s.signatures.signer import encode_sentences
from cod3s.text import for_embedding, is_visible

Rows = npt.NDArray[np.intp]
Scores = npt.NDArray[np.float64]

_BLOCK = 8192  # candidates encoded together


@dataclass(frozen=True, eq=False)
class Ranked:
    """Which candidates take part, best first: `places` are their places in the list that was given."""

    places: Rows
    blank: Rows


@dataclass(frozen=True, eq=False)
class Pool:
    """What the methods choose from, in rank order: row 0 is the best candidate."""

    form: Callable[[int], str]  # the text of a row as it is embedded: rows that share it say the same
    quality: Scores  # 1 for the best score, 0 for the worst; all 0 where there are no scores
    packed: Packed
    vectors: Vectors | None  # None for the method that needs signatures only


def check_texts(candidates: Iterable[str]) -> Sequence[str]:
    """The candidates as a list; anything but text is an error that names its place."""
    if isinstance(candidates, str | bytes):
        raise Cod3sError("one text was given where a list of candidates was needed", hint="put it into a list")
    texts = candidates if isinstance(candidates, Sequence) else list(candidates)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise Cod3sError(
                f"candidate {place} is {type(text).__name__}, text was needed", hint="convert it with str()"
            )
    return texts


def check_scores(scores: Iterable[float] | None, count: int) -> Scores | None:
    """One finite number for each candidate, or None."""
    if scores is None:
        return None
    try:
        given = np.array(list(scores), np.float64)
    except (TypeError, ValueError) as error:
        raise Cod3sError(f"the scores are not numbers: {error}") from error
    if given.shape != (count,):
        raise Cod3sError(f"{len(given)} scores were given for {count} candidates", hint="give one score for each")
    bad = np.flatnonzero(~np.isfinite(given))
    if len(bad):
        raise Cod3sError(
            f"the score of candidate {bad[0]} is {given[bad[0]]}, and {len(bad)} in all are not finite",
            hint="leave such candidates out, or give them a low score",
        )
    return given


def rank(texts: Sequence[str], scores: Scores | None) -> Ranked:
    """Best score first, equal ones as they came; without scores the given order is the ranking."""
    visible = np.fromiter(map(is_visible, texts), bool, len(texts))
    order = np.arange(len(texts)) if scores is None else np.argsort(-scores, kind="stable")
    return Ranked(places=order[visible[order]], blank=np.flatnonzero(~visible))


def make_pool(
    texts: Sequence[str],
    scores: Scores | None,
    places: Rows,
    *,
    source: Encoder | Vectors,
    code: Code,
    keep_vectors: bool,
) -> Pool:
    """Encode and sign the candidates at `places`; only packed signatures are kept unless vectors are asked for."""
    packed = np.empty((len(places), (code.bits + 7) // 8), np.uint8)
    vectors = np.empty((len(places), code.dim), np.float32) if keep_vectors else None
    done = 0
    for block in _vector_blocks(texts, places, source):
        rows = slice(done, done + len(block))
        packed[rows] = pack(code.sign(block))
        if vectors is not None:
            vectors[rows] = block
        done += len(block)
    return Pool(
        form=lambda row: for_embedding(texts[places[row]]),
        quality=_quality(scores, places),
        packed=packed,
        vectors=vectors,
    )


def check_vectors(vectors: Vectors, count: int) -> Vectors:
    """Unit vectors of the candidates, from an encoder of the user's own."""
    given = np.asarray(vectors)
    if given.ndim != 2 or len(given) != count or not given.size:
        raise VectorError(f"vectors of shape {given.shape} were given for {count} candidates, (n, dim) was needed")
    if not np.isfinite(given).all():
        raise VectorError("the vectors hold NaN or infinity", hint="look at what the encoder made of each text")
    return given


def _vector_blocks(texts: Sequence[str], places: Rows, source: Encoder | Vectors) -> Iterator[Vectors]:
    if isinstance(source, np.ndarray):
        for start in range(0, len(places), _BLOCK):
            yield unit(source[places[start : start + _BLOCK]].astype(np.float32))
        return
    for _, vectors in encode_sentences(source, (texts[place] for place in places), _BLOCK):
        yield vectors


def _quality(scores: Scores | None, places: Rows) -> Scores:
    ranked = np.zeros(len(places)) if scores is None else scores[places]
    spread = np.ptp(ranked) if len(ranked) else 0.0
    return (ranked - ranked.min()) / spread if spread else np.zeros(len(places))
