"""Codes turn vectors into bits: random hyperplanes as in the paper, and two learned alternatives.

Every code here is affine: bit i is 1 where `planes[i] @ vector >= thresholds[i]`. They differ in how planes and
thresholds are chosen.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.errors import FileFormatError, VectorError
from cod3s.io.arrays import load_array
from cod3s.io.disk import read_json, replaced_folder, write_json
from cod3s.options import SEED, check_seed
from cod3s.signatures.bits import Bits, check_bits

CODES = ("random", "median", "itq")
_FORMAT = 1
_ROWS = 65_536  # signed at a time, so that a million vectors need no large temporary
_ITQ_ROUNDS = 50

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Code:
    """A kind, its hyperplanes (bits, dim) and thresholds (bits,), and the seed that made them."""

    kind: str
    planes: npt.NDArray[np.float64]
    thresholds: npt.NDArray[np.float64]
    seed: int

    @property
    def bits(self) -> int:
        return len(self.planes)

    @property
    def dim(self) -> int:
        return int(self.planes.shape[1])

    def prefix(self, bits: int) -> "Code":
        """The code of the first `bits` bits: exact for random and median, whose bits are independent."""
        if not 1 <= bits <= self.bits:
            raise VectorError(f"a code of {self.bits} bits has no prefix of {bits}")
        return Code(self.kind, self.planes[:bits], self.thresholds[:bits], self.seed)

    def project(self, vectors: Floats) -> npt.NDArray[np.float32]:
        """Signed distance of each vector from each hyperplane's threshold, unscaled, float32 (n, bits)."""
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise VectorError(
                f"vectors of shape {vectors.shape} were given, but (n, {self.dim}) is needed",
                hint="the code and the vectors must come from the same encoder",
            )
        planes, offsets = self._in_single_precision
        projected = np.empty((len(vectors), self.bits), np.float32)
        for start in range(0, len(vectors), _ROWS):
            rows = slice(start, start + _ROWS)
            np.matmul(vectors[rows].astype(np.float32, copy=False), planes, out=projected[rows])
        projected -= offsets
        _check_finite(projected)
        return projected

    @cached_property
    def _in_single_precision(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Hyperplanes (dim, bits) and thresholds as vectors are multiplied with them."""
        planes = np.ascontiguousarray(self.planes.T, np.float32)
        return planes, self.thresholds.astype(np.float32)

    def sign(self, vectors: Floats) -> Bits:
        """Signatures, bool (n, bits). A projection of exactly 0 is a 1: appendix A (the original says 0)."""
        return self.project(vectors) >= 0

    def sketch(self, signatures: Bits) -> npt.NDArray[np.float64]:
        """The direction that each signature stands for: its hyperplanes, signed by its bits, summed (n, dim)."""
        directions: npt.NDArray[np.float64] = np.where(signatures, 1.0, -1.0) @ self.planes
        return directions

    def margin(self, vectors: Floats) -> npt.NDArray[np.float64]:
        """How far the nearest hyperplane is, (n,): |cosine| to it where its threshold is 0.

        Bits with a margin near 0 flip most easily. Zero vectors get 0.
        """
        norms = np.linalg.norm(vectors, axis=1)[:, None] * np.linalg.norm(self.planes, axis=1)[None]
        distance = np.abs(self.project(vectors))
        cosines = np.divide(distance, norms, out=np.zeros(distance.shape), where=norms > 0)
        nearest: npt.NDArray[np.float64] = cosines.min(axis=1)
        return nearest

    def save(self, folder: Path, encoder: str) -> None:
        """Write the code and the id of the encoder it belongs to: JSON and plain arrays, atomically."""
        facts = {"format": _FORMAT, "kind": self.kind, "seed": self.seed, "bits": self.bits}
        with replaced_folder(folder, "code.json") as partial:
            np.save(partial / "hyperplanes.npy", self.planes, allow_pickle=False)
            np.save(partial / "thresholds.npy", self.thresholds, allow_pickle=False)
            write_json(partial / "code.json", {**facts, "dim": self.dim, "encoder": encoder})


def load_code(folder: Path) -> tuple[Code, str]:
    """A saved code and the id of the encoder it belongs to."""
    facts = read_json(folder / "code.json")
    try:
        planes, thresholds = (
            load_array(folder / f"{name}.npy", np.float64) for name in ("hyperplanes", "thresholds")
        )
        code = Code(str(facts["kind"]), planes, thresholds, int(facts["seed"]))
        sound = (
            facts["format"] == _FORMAT
            and code.kind in CODES
            and planes.shape == (facts["bits"], facts["dim"])
            and thresholds.shape == (facts["bits"],)
            and np.isfinite(planes).all()
            and np.isfinite(thresholds).all()
        )
        encoder = str(facts["encoder"])
    except (OSError, ValueError, KeyError, TypeError, EOFError, OverflowError) as error:
        raise FileFormatError(f"{folder} does not contain a complete code: {error}", hint=_FIT_AGAIN) from error
    if not sound:
        raise FileFormatError(f"the files of {folder} do not belong together", hint=_FIT_AGAIN)
    return code, encoder


_FIT_AGAIN = "`cod3s prepare` writes the code of a corpus; copy its folder again"


def random_code(bits: int, dim: int, seed: int = SEED) -> Code:
    """The paper's code: `bits` Gaussian hyperplanes through the origin.

    They are drawn row by row, as in the original, so with the same seed fewer bits are a prefix of more.
    """
    check_bits(bits)
    check_seed(seed)
    planes = np.random.RandomState(seed).randn(bits, dim)
    return Code("random", planes, np.zeros(bits), seed)


def median_code(vectors: Floats, bits: int, seed: int = SEED) -> Code:
    """Random hyperplanes shifted to the median of `vectors`, so that every bit splits them in half."""
    base = random_code(bits, _dim(vectors), seed)
    medians = np.median(base.project(vectors), axis=0).astype(np.float64)
    return Code("median", base.planes, medians, seed)


def itq_code(vectors: Floats, bits: int, seed: int = SEED) -> Code:
    """Iterative quantisation (Gong and Lazebnik 2011): principal axes, rotated to lie near the corners.

    Its bits are learned together: fewer bits are not a prefix of more.
    """
    dim = _dim(vectors)
    check_bits(bits)
    if bits > min(dim, len(vectors)):
        raise VectorError(
            f"ITQ of {bits} bits needs {bits} dimensions and sentences, not {dim} and {len(vectors)}",
            hint="choose fewer bits, or fit on more sentences",
        )
    _check_finite(vectors)
    mean = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors - mean
    _, axes = np.linalg.eigh(centred.T @ centred)  # ascending
    principal = axes[:, ::-1][:, :bits]  # (dim, bits)
    rotation = _itq_rotation(centred @ principal, seed)
    planes = np.ascontiguousarray((principal @ rotation).T)
    return Code("itq", planes, planes @ mean, seed)


def _itq_rotation(projected: npt.NDArray[np.float64], seed: int) -> npt.NDArray[np.float64]:
    """The rotation that brings `projected` (n, bits) nearest to its signs, by alternating Procrustes."""
    bits = projected.shape[1]
    rotation, _ = np.linalg.qr(np.random.RandomState(seed).randn(bits, bits))
    for _ in range(_ITQ_ROUNDS):
        signs = np.where(projected @ rotation >= 0, 1.0, -1.0)
        left, _, right = np.linalg.svd(projected.T @ signs)
        rotation = left @ right
    return rotation


def _dim(vectors: Floats) -> int:
    if vectors.ndim != 2 or not len(vectors):
        raise VectorError(f"vectors of shape {vectors.shape} were given, but (n, dim) with n > 0 is needed")
    return int(vectors.shape[1])


def _check_finite(rows: Floats) -> None:
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise VectorError(
            f"vector {int(bad.argmax())} contains NaN or infinity, as do {int(bad.sum())} vectors in all"
        )
