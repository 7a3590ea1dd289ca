"""Look up the lists of English words in data/words.tsv, which says what each of them is for."""

from functools import cache
from pathlib import Path

PATH = Path(__file__).parent / "data" / "words.tsv"


@cache
def _read_lists() -> dict[str, str]:
    lines = PATH.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {name: words for name, words, _about in rows}


def word_set(name: str) -> frozenset[str]:
    """The words of a list whose words are separated by spaces."""
    return frozenset(_read_lists()[name].split())


def word_pattern(name: str) -> str:
    """The words or phrases of a list as the alternatives of a regular expression."""
    listed = _read_lists()[name]
    return listed if "|" in listed else listed.replace(" ", "|")


def word_groups(name: str) -> list[list[str]]:
    """The groups of a list, which are separated by semicolons."""
    return [group.split() for group in _read_lists()[name].split(";")]
