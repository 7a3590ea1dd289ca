"""Locality-sensitive hashing: signatures of vectors, whose Hamming distance follows the angle."""

from cod3s.options import SEED
from cod3s.signatures.apart import keep_apart
from cod3s.signatures.bits import (
    Bits,
    Packed,
    bits_off,
    check_bits,
    cosine_estimate,
    from_text,
    hamming,
    pack,
    pack_texts,
    to_text,
    unpack,
)
from cod3s.signatures.codes import CODES, Code, itq_code, load_code, median_code, random_code

__all__ = [
    "CODES",
    "SEED",
    "Bits",
    "Code",
    "Packed",
    "bits_off",
    "check_bits",
    "cosine_estimate",
    "from_text",
    "hamming",
    "itq_code",
    "keep_apart",
    "load_code",
    "median_code",
    "pack",
    "pack_texts",
    "random_code",
    "to_text",
    "unpack",
]
