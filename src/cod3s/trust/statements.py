"""Notice sources that a model of causes and effects cannot answer well: not English, or not a statement.

A linear model on hashed letter sequences and words decides; `recipes/fit_statements.py` learns its weights from
`dataset/statements.tsv`.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal
from zlib import crc32

import numpy as np
import numpy.typing as npt

from cod3s.io.arrays import load_array
from cod3s.io.disk import read_json
from cod3s.word_lists import DATA

Form = Literal["statement", "foreign", "question", "command", "other"]
FORMS: tuple[Form, ...] = ("statement", "foreign", "question", "command", "other")
BUCKETS = 1 << 14
"""How many numbers features are hashed to; the weights of a form take one byte per bucket."""
WEIGHTS, SCALES = "statements.npy", "statements.json"
"""Files in cod3s/data, written by the recipe."""

_BETTER = 'an English statement such as "it rained all day" gets better answers'
_PROBLEMS: dict[Form, str] = {
    "foreign": "does not look like English",
    "question": "looks like a question",
    "command": "looks like a command",
    "other": "does not look like a statement",
}
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|0+|[^\w\s]")
_LONGEST_LETTERS = 4  # letters per sequence
_LONGEST_TEXT = 300  # characters; the beginning tells the language and the form
_LAST_LATIN = "\u024f"
_FORM = 3.0  # the weight of features that tell questions and commands from statements; there are few of them


@dataclass(frozen=True)
class FormVerdict:
    """The likeliest form of a source, and the probability that it is an English statement."""

    form: Form
    statement: float


@dataclass(frozen=True)
class _Model:
    weights: npt.NDArray[np.int8]  # (buckets, forms)
    scales: npt.NDArray[np.float64]  # (forms,)
    biases: npt.NDArray[np.float64]  # (forms,)
    threshold: float


def judge_form(source: str) -> FormVerdict:
    """Whether a source is an English statement, or which other form it has."""
    model = _open_model()
    buckets, values = hashed_features(source)
    log_odds = (values @ model.weights[buckets].astype(np.float64)) * model.scales + model.biases
    powers = np.exp(log_odds - log_odds.max())
    probabilities = powers / powers.sum()
    statement = float(probabilities[0])
    if statement >= model.threshold:
        return FormVerdict("statement", statement)
    return FormVerdict(FORMS[1 + int(probabilities[1:].argmax())], statement)


def remarks_on(source: str) -> list[str]:
    """At most one remark, on a source that is probably not an English statement."""
    form = judge_form(source).form
    return [] if form == "statement" else [f"the source {_PROBLEMS[form]}: {_BETTER}"]


def hashed_features(source: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The distinct buckets of a source's features, and their values, which have the length 1."""
    buckets: dict[int, float] = {}
    for feature, weight in _features(source):
        buckets[crc32(feature.encode()) % BUCKETS] = weight
    values = np.array(list(buckets.values()))
    return np.array(list(buckets), dtype=np.int64), values / np.sqrt((values**2).sum())


def _features(source: str) -> Iterator[tuple[str, float]]:
    """Features with their weights: opening, end and length; words; letter sequences within words."""
    plain = unicodedata.normalize("NFKC", source[:_LONGEST_TEXT]).replace("’", "'")
    plain = re.sub(r"\d", "0", plain)
    words = _WORD.findall("".join(map(_letter, plain.casefold())))
    yield f"length {min(len(words), 6)}", _FORM
    if not words:
        return
    yield f"end {words[-1]}" if not words[-1][0].isalpha() else "end", _FORM
    for position, word in enumerate(words[:3]):
        yield f"{position} {word}", _FORM
    yield f"opening {' '.join(words[:2])}", _FORM
    for first, second in pairwise(words):
        yield f"pair {first} {second}", 1.0
    for word in words:
        yield f"word {word}", 1.0
        bounded = f"<{word}>"
        for size in range(1, _LONGEST_LETTERS + 1):
            for start in range(len(bounded) - size + 1):
                yield bounded[start : start + size], 1.0


def _letter(character: str) -> str:
    """The character, or one that stands for all letters of scripts other than the Latin one."""
    return "ж" if character > _LAST_LATIN and character.isalpha() else character


@cache
def _open_model() -> _Model:
    facts = read_json(DATA / SCALES)
    return _Model(
        load_array(DATA / WEIGHTS, np.int8),
        np.array([facts["scales"][form] for form in FORMS]),
        np.array([facts["biases"][form] for form in FORMS]),
        facts["threshold"],
    )
