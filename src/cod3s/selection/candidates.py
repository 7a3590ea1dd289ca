"""Check a user's candidates, put them in rank order, and give their vectors or signatures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cod3s.encode import Encoder, Vectors, load_encoder
from cod3s.encode.protocol import unit
from cod3s.errors import Cod3sError, VectorError
from cod3s.options import check_seed
from cod3s.signatures import Code, Packed, check_bits, pack, random_code
from cod3s.text import all_for_embedding, is_visible

Rows = npt.NDArray[np.intp]
Scores = npt.NDArray[np.float64]

_BLOCK = 8192  # candidates encoded together


@dataclass(frozen=True, eq=False)
class Source:
    """Where vectors and signatures come from: an encoder, or the user's own vectors."""

    texts: Sequence[str]
    encoder: Encoder | str  # opened only if it is needed
    given: Vectors | None
    code: Code

    @property
    def name(self) -> str:
        return "vectors" if self.given is not None or isinstance(self.encoder, str) else self.encoder.id

    def vectors(self, positions: Rows) -> Vectors:
        """Unit vectors of the candidates at these positions."""
        if self.given is not None:
            return unit(self.given[positions].astype(np.float32, copy=False))
        return self.embed([self.texts[position] for position in positions.tolist()])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts; with the user's vectors, the encoder must be the one that made them."""
        encoder = load_encoder(self.encoder) if isinstance(self.encoder, str) else self.encoder
        if encoder.dim != self.code.dim:
            raise VectorError(
                f"texts to compare with get {encoder.dim} dimensions by {encoder.id}, "
                f"but the vectors have {self.code.dim}",
                hint="pass the encoder that made the vectors as encoder=",
            )
        return encoder.encode(all_for_embedding(texts)) if texts else np.empty((0, encoder.dim), np.float32)

    def forms(self, positions: Rows) -> list[str]:
        """The texts at these positions as they are embedded."""
        return all_for_embedding([self.texts[position] for position in positions.tolist()])


_code = lru_cache(maxsize=16)(random_code)


def open_source(
    texts: Sequence[str], encoder: Encoder | str, vectors: Vectors | None, bits: int, seed: int
) -> Source:
    """The user's vectors, if there are any, else the encoder; with the code that signs them."""
    check_bits(bits)
    check_seed(seed)
    if vectors is not None:
        rows = check_vectors(vectors, len(texts))
        return Source(texts, encoder, rows, _code(bits, rows.shape[1], seed))
    opened = load_encoder(encoder) if isinstance(encoder, str) else encoder
    return Source(texts, opened, None, _code(bits, opened.dim, seed))


def check_texts(candidates: Iterable[str], name: str = "candidate") -> Sequence[str]:
    """The candidates as a list; anything but text is an error that names its position."""
    if isinstance(candidates, str | bytes):
        raise Cod3sError(f"a text was given, but a list of {name}s is needed", hint="put it in a list")
    texts = candidates if isinstance(candidates, Sequence) else list(candidates)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise Cod3sError(
                f"{name} {position} is {type(text).__name__}, but text is needed", hint="convert it with str()"
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


def check_vectors(vectors: Vectors, count: int) -> Vectors:
    """Vectors from the user's encoder, a finite row per candidate."""
    try:
        rows = np.asarray(vectors)
        if rows.dtype.kind not in "fiu":
            raise ValueError(f"their type is {rows.dtype}")
    except ValueError as error:  # also rows of different lengths
        raise VectorError(f"the vectors are not a table of numbers: {error}") from error
    if rows.ndim != 2 or len(rows) != count or not rows.size:
        raise VectorError(
            f"vectors of shape {rows.shape} were given for {count} candidates, but (n, dim) is needed"
        )
    if not np.isfinite(rows).all():
        raise VectorError("the vectors contain NaN or infinity", hint="check the encoder's vector of each text")
    return rows


def rank(texts: Sequence[str], scores: Scores | None, among: Rows | None = None) -> tuple[Rows, Rows]:
    """The positions of the candidates to choose from (all, or `among` these), best first, and of the blank ones.

    Equal scores keep the order of the list, which is the ranking if there are no scores.
    """
    listed = texts if among is None else [texts[position] for position in among.tolist()]
    visible = np.array([text[:1].isalnum() or is_visible(text) for text in listed], bool)
    positions = np.arange(len(texts)) if among is None else among
    shown, blank = positions[visible], positions[~visible]
    return (shown if scores is None else shown[np.argsort(-scores[shown], kind="stable")]), blank


def quality_of(scores: Scores | None, positions: Rows) -> Scores:
    """The scores of the ranked candidates, scaled from 1 (best) to 0; all 0 if they do not differ."""
    ranked = np.zeros(len(positions)) if scores is None else scores[positions]
    spread = np.ptp(ranked) if len(ranked) else 0.0
    return (ranked - ranked.min()) / spread if spread else np.zeros(len(positions))


def encode_rows(source: Source, positions: Rows) -> Vectors:
    """The vectors of the candidates at `positions`, encoded in blocks in the order of the list."""
    if source.given is not None or len(positions) <= _BLOCK:
        return source.vectors(positions)
    vectors = np.empty((len(positions), source.code.dim), np.float32)
    rows_in_list_order = np.argsort(positions)
    for start in range(0, len(positions), _BLOCK):
        rows = rows_in_list_order[start : start + _BLOCK]
        vectors[rows] = source.vectors(positions[rows])
    return vectors


def sign_rows(source: Source, positions: Rows) -> Packed:
    """The packed signatures of the candidates at `positions`; no more than a block of vectors is held."""
    packed = np.empty((len(positions), (source.code.bits + 7) // 8), np.uint8)
    # Texts are read in the order of the list, which is faster than random access, and stored in their rows.
    rows_in_list_order = np.argsort(positions)
    for start in range(0, len(positions), _BLOCK):
        rows = rows_in_list_order[start : start + _BLOCK]
        packed[rows] = pack(source.code.sign(source.vectors(positions[rows])))
    return packed
