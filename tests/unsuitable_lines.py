"""The test set of what answers must not say: unsuitable/*.txt."""

import codecs
from pathlib import Path

FOLDER = Path(__file__).parent / "unsuitable"
_CODED = "rot13:"


def read_lines(name: str) -> list[str]:
    """The lines of a file without its comments."""
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def read_answers(name: str) -> list[tuple[str, str]]:
    """Sources, empty where they do not matter, and answers to them."""
    return [_answer(line) for line in read_lines(name)]


def read_sources() -> list[tuple[str, str]]:
    """Relations and sources that invite what must not be said."""
    rows = [line.partition("\t") for line in read_lines("sources")]
    return [(relation, source) for relation, _, source in rows]


def _answer(line: str) -> tuple[str, str]:
    if line.startswith(_CODED):
        line = codecs.decode(line.removeprefix(_CODED), "rot13")
    source, _, answer = line.rpartition(" | ")
    return source, answer
