"""Texts that are kept as numbers of their words."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cod3s.io.packed_texts import load_texts, save_texts

TEXTS = ["the tap dripped", "", "I don't know", "the tap  broke\t_again_", "ärger, 3 % — 漢字"]


def test_texts_come_back_as_they_were(tmp_path: Path) -> None:
    save_texts(tmp_path / "texts", TEXTS)
    texts = load_texts(tmp_path / "texts")
    assert list(texts) == TEXTS
    assert (texts[-1], texts[1:3]) == (TEXTS[-1], TEXTS[1:3])
    with pytest.raises(IndexError):
        texts[len(TEXTS)]


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))))
def test_any_texts_come_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("texts") / "texts"
    save_texts(path, texts)
    assert list(load_texts(path)) == texts


def test_more_words_than_two_bytes_can_count(tmp_path: Path) -> None:
    texts = [f"word{number}" for number in range(70_000)]
    save_texts(tmp_path / "texts", texts)
    assert list(load_texts(tmp_path / "texts")) == texts


def test_a_line_break_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line break"):
        save_texts(tmp_path / "texts", ["two\nlines"])


def packed(header: object, numbers: list[int]) -> bytes:
    return lzma.compress(json.dumps(header).encode() + b"\n" + np.array(numbers, ">u2").tobytes())


WHOLE = {"bytes": 2, "pieces": ["\n", "a"]}
DAMAGED = {
    "not compressed": b"no archive",
    "cut": packed(WHOLE, [1, 0])[:-9],
    "a piece that is not there": packed(WHOLE, [2, 0]),
    "a text without an end": packed(WHOLE, [1]),
    "no pieces": packed({"bytes": 2}, [0]),
    "pieces that are not texts": packed({"bytes": 2, "pieces": [0, 1]}, [0]),
    "numbers of another size": packed({"bytes": 3, "pieces": ["\n"]}, [0]),
    "no header": packed([], [0]),
    "a header without end": lzma.compress(b"[" * 100_000),
    "half a number": lzma.compress(json.dumps(WHOLE).encode() + b"\n\0"),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "texts").write_bytes(content)
    with pytest.raises(ValueError, match="does not hold"):
        load_texts(tmp_path / "texts")
