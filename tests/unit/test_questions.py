"""Evaluation sets are read whole, safely, and recognized by what they hold."""

import gzip
import json
from pathlib import Path

import pytest

from cod3s.corpus.questions import Question, read_questions
from cod3s.errors import Cod3sError, FileFormatError

DATA = Path(__file__).parents[3] / "shared" / "data" / "eval"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the evaluation sets are not on this machine")

ITEM = """<item id="7" asks-for="effect" most-plausible-alternative="2">
  <p>The kettle   whistled.</p> <a1>The cat slept.</a1> <a2>I made tea &amp; toast.</a2>
</item>"""
COPA = f'<?xml version="1.0"?>\n<!DOCTYPE copa-corpus SYSTEM "copa.dtd">\n<copa-corpus>\n{ITEM}\n</copa-corpus>\n'
SUPERGLUE = {"premise": "The kettle whistled.", "choice1": "The cat slept.", "choice2": "I made tea & toast."}
SUPERGLUE |= {"question": "effect", "label": 1, "idx": 7}
ECARE = {"index": "7", "premise": "The kettle whistled.", "ask-for": "effect", "label": 1}
ECARE |= {"hypothesis1": "The cat slept.", "hypothesis2": "I made tea & toast."}
EXPECTED = Question("7", "The kettle whistled.", "effect", ("The cat slept.", "I made tea & toast."), 1)


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "questions"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_every_format_gives_the_same_question_also_packed(tmp_path: Path) -> None:
    for content in (COPA, json.dumps(SUPERGLUE), json.dumps(ECARE)):
        assert read_questions(written(tmp_path, content)) == [EXPECTED]
        (tmp_path / "packed.gz").write_bytes(gzip.compress(content.encode()))
        assert read_questions(tmp_path / "packed.gz") == [EXPECTED]
    (tmp_path / "packed.gz").write_bytes(gzip.compress(COPA.encode())[:-9])
    with pytest.raises(FileFormatError, match="damaged gzip"):
        read_questions(tmp_path / "packed.gz")


def test_a_test_set_may_keep_its_answers(tmp_path: Path) -> None:
    blind = {name: value for name, value in SUPERGLUE.items() if name != "label"}
    assert read_questions(written(tmp_path, json.dumps(blind)))[0].answer is None


BAD = [
    (COPA.replace("<a2>", "<a1>").replace("</a2>", "</a1>"), "line 5: .*two <a1>", "a doubled alternative"),
    (COPA.replace("<p>The kettle   whistled.</p>", ""), "needs <p>", "no premise"),
    (COPA.replace('alternative="2"', 'alternative="3"'), "must be 1 or 2", "an answer that is not there"),
    (COPA.replace('asks-for="effect"', 'asks-for="reason"'), "effect, not 'reason'", "an unknown direction"),
    (COPA.replace("</item>", ""), "line 7: not well-formed", "an element that does not end"),
    (COPA.replace("copa-corpus>", "library>"), "<library> where <item>", "XML about something else"),
    ("<copa-corpus></copa-corpus>", "no questions", "no item at all"),
    (
        COPA.replace('SYSTEM "copa.dtd"', '[<!ENTITY a "ha">]'),
        "line 2: .*DTD",
        "a file that defines entities",
    ),
    (
        COPA.replace('SYSTEM "copa.dtd"', '[<!ENTITY a SYSTEM "file:///etc/passwd">]'),
        "DTD",
        "an entity that would fetch a file",
    ),
    (
        COPA.replace('SYSTEM "copa.dtd"', '[<!ENTITY % a SYSTEM "http://localhost/a.dtd"> %a;]'),
        "DTD",
        "a parameter entity that would fetch a file",
    ),
    (
        COPA.replace('SYSTEM "copa.dtd"', '[<!ATTLIST item id CDATA "1">]'),
        "DTD",
        "a definition of attributes",
    ),
    (COPA.replace("The kettle", "The &kettle;"), "entity 'kettle'", "an entity that the DTD would define"),
    (json.dumps(ECARE | {"label": 2}), "line 1: .*the label is 2", "a label that is not there"),
    (json.dumps(ECARE | {"label": True}), "line 1: .*the label is True", "a label that is no number"),
    (json.dumps(ECARE | {"premise": ""}), "line 1: .*not text", "an empty premise"),
    ('{"premise": "x", "text": "y"}', "line 1: .*premise, text, which no known set has", "other fields"),
    ('{"premise": ', "line 1: not a question", "a line cut short"),
    (b'{"premise": "\xff"}', "is not UTF-8 text", "invalid UTF-8"),
    ("premise,choice1\n", "line 1: not a known format", "CSV"),
    ("", "is empty", "an empty file"),
]


def test_a_bad_set_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    for content, message, _reason in BAD:
        with pytest.raises(FileFormatError, match=message):
            read_questions(written(tmp_path, content))


def test_entities_that_grow_without_end_are_refused_at_once(tmp_path: Path) -> None:
    layers = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE c [<!ENTITY e0 "ha">{layers}]><copa-corpus><item><p>&e11;</p></item></copa-corpus>'
    with pytest.raises(FileFormatError, match=r"\(DTD\) inside, which is not read"):
        read_questions(written(tmp_path, bomb))


def test_a_missing_set_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="no file at"):
        read_questions(tmp_path / "copa.xml")


@needs_data
@pytest.mark.parametrize(
    ("name", "questions"), [("copa-dev.xml", 500), ("balanced-copa-dev-all.xml", 1000), ("ecare-dev.jsonl", 2122)]
)
def test_the_released_sets_are_read_whole(name: str, questions: int) -> None:
    """The sizes are those of the releases."""
    found = read_questions(DATA / name)
    assert len(found) == questions
    assert {question.direction for question in found} == {"cause", "effect"}
    assert {question.answer for question in found} == {0, 1}
    assert len({question.id for question in found}) == questions
