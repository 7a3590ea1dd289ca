"""Signatures as bits, packed bytes and strings; the Hamming distance and the cosine that it estimates.

A bit array is bool (n, bits); packed it is uint8 (n, ceil(bits / 8)), first bit first.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cod3s.errors import SignatureError
from cod3s.options import MAX_BITS

Bits = npt.NDArray[np.bool_]
Packed = npt.NDArray[np.uint8]


def check_bits(bits: int) -> int:
    """`bits` itself, if a signature can have that many: 1 to 256."""
    if not 1 <= bits <= MAX_BITS:
        raise SignatureError(f"a signature cannot have {bits} bits", hint=f"choose 1 to {MAX_BITS} bits")
    return bits


def pack(bits: Bits) -> Packed:
    """Eight bits per byte; the last byte is filled up with zeros."""
    return np.packbits(bits, axis=-1)


def unpack(packed: Packed, bits: int) -> Bits:
    """The bit array that was packed; `bits` says how many bits of the last byte count."""
    width = packed.shape[-1]
    if not 8 * (width - 1) < bits <= 8 * width:
        raise SignatureError(f"{width} packed bytes cannot hold a signature of {bits} bits")
    return np.unpackbits(packed, axis=-1, count=bits).astype(bool)


def to_text(bits: Bits) -> list[str]:
    """Each row as a string of 0 and 1, in token order."""
    rows = np.ascontiguousarray(bits).astype(np.uint8) + ord("0")
    return [row.tobytes().decode("ascii") for row in rows]


def from_text(signature: str, bits: int | None = None) -> Bits:
    """One signature's bits (bits,) from a string of 0 and 1; a wrong length or character is an error."""
    if not signature or set(signature) - {"0", "1"}:
        raise SignatureError(f"{signature!r} is not a signature", hint="write it as a string of 0 and 1")
    if bits is not None and len(signature) != bits:
        raise SignatureError(f"{signature!r} has {len(signature)} bits, but {bits} are needed")
    check_bits(len(signature))
    values: Bits = np.frombuffer(signature.encode("ascii"), np.uint8) == ord("1")
    return values


def pack_texts(signatures: Sequence[str]) -> Packed:
    """Signatures of equal length, given as strings, packed: (n, bytes)."""
    if not signatures:
        return np.zeros((0, 1), np.uint8)
    return pack(np.stack([from_text(signature) for signature in signatures]))


def hamming(a: Packed, b: Packed) -> npt.NDArray[np.intp]:
    """How many bits differ, by popcount; the leading axes broadcast: (n, 1, w) and (m, w) give (n, m)."""
    if a.shape[-1] != b.shape[-1]:
        raise SignatureError(f"signatures of {a.shape[-1]} and {b.shape[-1]} bytes cannot be compared")
    distance: npt.NDArray[np.intp] = np.bitwise_count(np.bitwise_xor(a, b)).sum(axis=-1, dtype=np.intp)
    return distance


def bits_off(a: str, b: str) -> int:
    """How many bits differ between two signatures of equal length, given as strings."""
    return int((from_text(a) != from_text(b, len(a))).sum())


def cosine_estimate(distance: npt.ArrayLike, bits: int) -> npt.NDArray[np.float64]:
    """The cosine that a Hamming distance estimates: cos(pi * distance / bits), section 3 of the paper."""
    cosine: npt.NDArray[np.float64] = np.cos(np.pi * np.asarray(distance, np.float64) / bits)
    return cosine
