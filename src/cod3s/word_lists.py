"""Read the tables in `data/`; look up the lists of English words in words.tsv, which says what each is for."""

from functools import cache
from pathlib import Path

DATA = Path(__file__).parent / "data"


def data_rows(name: str) -> list[list[str]]:
    """The rows of a table in `data/`, without its comments."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


@cache
def _read_lists() -> dict[str, str]:
    return {name: words for name, words, _about in data_rows("words.tsv")}


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
