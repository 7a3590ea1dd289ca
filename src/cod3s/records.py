"""The frozen dataclasses that travel between the parts. They hold values and compute nothing."""

from collections.abc import Iterator
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


@dataclass(frozen=True)
class Hypothesis:
    """What an engine wrote or scored after a given prefix: the ids without the end token.

    `log_prob` is the plain sum over `tokens` and, where the text was ended, the end token; `length` counts both.
    """

    tokens: tuple[int, ...]
    log_prob: float
    length: int


@dataclass(frozen=True)
class ChosenSignature:
    """A signature that stage 1 chose, and why: scores are None where nothing computed them."""

    signature: str
    rank: int | None  # before the Hamming rule, from 0; None where a user chose it
    score: float | None  # what it was ranked by
    forward: float | None
    backward: float | None
    count: int  # training sentences in its bin
    medoid: str


@dataclass(frozen=True)
class Answer:
    """One generated sentence; `signature` and what follows it are empty for systems without signatures."""

    text: str
    score: float
    forward: float
    backward: float | None = None
    signature: str = ""
    signature_rank: int | None = None
    signature_score: float | None = None
    signature_forward: float | None = None
    signature_backward: float | None = None
    count: int = 0
    medoid: str = ""
    realised: str = ""  # the signature that the text has, where an encoder looked
    hamming: int | None = None  # between `signature` and `realised`
    constraint: str = ""  # the word that the text was made to hold in one of its forms (`dpc`)


@dataclass(frozen=True)
class SignaturesChosen:
    """The first event of a stream of answers: the bins to write in, in their order."""

    signatures: tuple[ChosenSignature, ...]


@dataclass(frozen=True)
class AnswerMade:
    """An event of a stream: one more answer, and its place in the set that the stream ends with."""

    place: int
    answer: Answer


@dataclass(frozen=True)
class AnswerSet:
    """The answers to one source, best first in the order of their signatures; the record of `generate --json`.

    Also the last event of a stream.
    """

    source: str
    relation: str
    system: str
    settings: dict[str, str | int | float | bool | None]
    answers: tuple[Answer, ...]
    remarks: tuple[str, ...] = ()  # what a reader should know: a relaxed threshold, a cut source

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)
