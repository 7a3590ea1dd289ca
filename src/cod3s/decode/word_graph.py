"""The word graph of a bundle: which words of a target go with which words of a source.

`cod3s.corpus.related_words` builds it and says what its scores are.
"""

import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from cod3s.errors import BundleError
from cod3s.text import words

_ARRAYS = ("words", "base", "targets", "starts", "target", "strength")


@dataclass(frozen=True)
class RelatedWord:
    """A word that targets of a source are likely to contain, with its inflected forms, most frequent first."""

    base: str
    forms: tuple[str, ...]
    strength: float


class WordGraph:
    """An open word graph. Words are numbered; the edges of word i are those from starts[i] to starts[i + 1]."""

    def __init__(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self._words: list[str] = arrays["words"].tolist()
        self._base, self._targets = arrays["base"], arrays["targets"]
        self._starts, self._target, self._strength = arrays["starts"], arrays["target"], arrays["strength"]
        self._numbers = {word: number for number, word in enumerate(self._words)}

    def related(self, source: str, number: int) -> list[RelatedWord]:
        """Up to `number` words that targets of `source` contain, strongest first, without the words of the source.

        A word's strength is the sum of its edges from the source's words.
        """
        known = {int(self._base[self._numbers[word]]) for word in words(source) if word in self._numbers}
        strengths: Counter[int] = Counter()
        for base in known:
            edges = slice(int(self._starts[base]), int(self._starts[base + 1]))
            for target, strength in zip(self._target[edges].tolist(), self._strength[edges].tolist(), strict=True):
                if target not in known:
                    strengths[target] += strength
        ranked = sorted(strengths.items(), key=lambda item: (-item[1], self._words[item[0]]))[:number]
        found = [RelatedWord(self._words[base], self._forms(base), strength) for base, strength in ranked]
        return [word for word in found if word.forms]

    def _forms(self, base: int) -> tuple[str, ...]:
        """The forms of a word that occur in more than one target, without genitives."""
        forms = np.flatnonzero((self._base == base) & (self._targets > 1)).tolist()
        forms = [form for form in forms if "'" not in self._words[form]]
        return tuple(self._words[form] for form in sorted(forms, key=lambda form: -int(self._targets[form])))


def word_graph_path(bundle: Path, relation: str) -> Path:
    """Where a bundle keeps the word graph of a relation, if it has one."""
    return bundle / "words" / f"{relation}.npz"


def open_word_graph(path: Path) -> WordGraph:
    """The word graph at `path`."""
    hint = "export the bundle again with --word-graph CORPUS, where CORPUS is what it was trained on"
    if not path.is_file():
        raise BundleError(f"there is no word graph at {path}", hint=hint)
    try:
        with np.load(path, allow_pickle=False) as file:
            return WordGraph({name: file[name] for name in _ARRAYS})
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        raise BundleError(f"{path} holds no word graph: {error}", hint=hint) from error
