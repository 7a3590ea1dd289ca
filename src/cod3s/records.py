"""The frozen dataclasses that travel between the parts. They hold values and compute nothing."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SignedSentence:
    """A sentence, its signature (a string of 0 and 1) and how near its weakest bit is to flipping."""

    text: str
    signature: str
    margin: float  # |cosine| to the nearest hyperplane


@dataclass(frozen=True)
class SentencePair:
    """Two sentences by their index: how far apart in bits, and what that says about their cosine."""

    a: int
    b: int
    hamming: int
    cosine: float
    estimate: float  # cos(pi * hamming / bits), section 3 of the paper


@dataclass(frozen=True)
class Bin:
    """All sentences with one signature, or, with fewer bits than the file's, one inner node of the tree."""

    signature: str
    count: int
    medoid: str
    samples: tuple[str, ...]
