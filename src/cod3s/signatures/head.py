"""Infer the signature of a target from its source's vector: a linear head says how likely each bit is.

Bits are inferred in order, and the log-odds of a bit depend on the vector and on the bits before it. Next to a
language model this takes no time, and a vector of the whole sentence knows more about the bits of its answers.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors
from cod3s.errors import BundleError, Progress
from cod3s.io.arrays import load_half, save_half
from cod3s.logistic import fit_large_logistic
from cod3s.signatures.bits import Bits, to_text

_WIDER = 4  # the search keeps this many times as many prefixes as signatures are asked for
_SHRINK = 3.0  # the penalty on squared weights, in pairs


@dataclass(frozen=True)
class SignatureHead:
    """A row of weights per bit: for each dimension of the vector, for each bit (as -1 or 1), and one alone."""

    weights: npt.NDArray[np.float64]  # (bits, dim + bits + 1)

    @property
    def bits(self) -> int:
        return len(self.weights)

    @property
    def dim(self) -> int:
        return int(self.weights.shape[1]) - self.bits - 1

    def likeliest(self, vector: Vectors, number: int) -> list[tuple[str, float]]:
        """The likeliest signatures of answers to the source with this vector, with their log-probabilities."""
        from_vector = self.weights[:, : self.dim] @ vector + self.weights[:, -1]
        earlier = self.weights[:, self.dim : -1]
        prefixes, log_probs = np.zeros((1, 0)), np.zeros(1)  # of -1 and 1
        for bit in range(self.bits):
            log_odds = from_vector[bit] + prefixes @ earlier[bit, :bit]
            longer = np.concatenate([log_probs - np.logaddexp(0, -side * log_odds) for side in (1, -1)])
            best = np.argsort(-longer, kind="stable")[: _WIDER * number]
            sides = np.where(best < len(log_probs), 1.0, -1.0)
            prefixes = np.column_stack([prefixes[best % len(log_probs)], sides])
            log_probs = longer[best]
        signatures = to_text(prefixes[:number] > 0)
        return list(zip(signatures, log_probs[:number].tolist(), strict=True))


def fit_head(vectors: Vectors, bits: Bits, progress: Progress = lambda _: None) -> SignatureHead:
    """The head that explains best how the targets of sources with these vectors were signed.

    `vectors` (pairs, dim) are those of the sources, `bits` (pairs, bits) those of the targets.
    """
    dim, number = vectors.shape[1], bits.shape[1]
    design = np.column_stack([vectors, 2 * bits.astype(np.float32) - 1, np.ones(len(vectors), np.float32)])
    gram = (design.T @ design).astype(np.float64)
    weights = np.zeros((number, design.shape[1]))
    for bit in range(number):
        columns = [*range(dim + bit), design.shape[1] - 1]  # the vector, the bits before, the bias
        penalty = np.array([_SHRINK] * (len(columns) - 1) + [1e-6])
        weights[bit, columns] = fit_large_logistic(
            design[:, columns], bits[:, bit].astype(np.float64), penalty, gram[np.ix_(columns, columns)]
        )
        progress(1)
    return SignatureHead(weights)


def share_inferred(head: SignatureHead, vectors: Vectors, bits: Bits) -> float:
    """The share of bits that the head gets right, given the true bits before each."""
    signs = 2.0 * bits - 1
    earlier = np.tril(head.weights[:, head.dim : -1], -1)
    log_odds = vectors @ head.weights[:, : head.dim].T + signs @ earlier.T + head.weights[:, -1]
    return float(((log_odds > 0) == bits).mean())


def save_head(path: Path, head: SignatureHead) -> None:
    """Write the weights in half precision."""
    save_half(path, head.weights)


def load_head(path: Path, bits: int) -> SignatureHead:
    """The head in a file; an error if it does not infer `bits` bits."""
    weights = load_half(path).astype(np.float64)
    if weights.ndim != 2 or len(weights) != bits or weights.shape[1] <= bits + 1 or not np.isfinite(weights).all():
        raise BundleError(
            f"{path} does not infer signatures of {bits} bits", hint="learn it again with `cod3s associate`"
        )
    return SignatureHead(weights)
