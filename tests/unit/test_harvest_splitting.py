"""Paragraphs and sentences: what ends one, what only looks like it, and that nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st

from cod3s.harvest.splitting import paragraphs, sentences

SENTENCES = [
    ("It rained. We left.", ["It rained.", "We left."], "two plain sentences"),
    ("Dr. Hale met Mrs. Orr.", ["Dr. Hale met Mrs. Orr."], "titles"),
    ("J. B. Carver signed. He left.", ["J. B. Carver signed.", "He left."], "initials"),
    ("It cost 3.50 in all. I paid.", ["It cost 3.50 in all.", "I paid."], "a decimal"),
    ("Bring cups, plates, etc. and sit.", ["Bring cups, plates, etc. and sit."], "an abbreviation goes on"),
    ("We sold cups, etc. The rest stayed.", ["We sold cups, etc.", "The rest stayed."], "an abbreviation ends"),
    ("See No. 5 on the list.", ["See No. 5 on the list."], "a number's abbreviation"),
    ("Oh no. We are late.", ["Oh no.", "We are late."], "no is a word without a number"),
    ("He waited... and left.", ["He waited... and left."], "an ellipsis goes on"),
    ("He waited... Then he left.", ["He waited...", "Then he left."], "an ellipsis ends"),
    ("It was I. She knew.", ["It was I.", "She knew."], "I is no initial"),
    ("“Go!” she said. He went.", ["“Go!” she said.", "He went."], "speech and its tag"),
    ('"I am ill." So he left.', ['"I am ill."', "So he left."], "a closing quote belongs to its sentence"),
    ("Really?! Yes.", ["Really?!", "Yes."], "two marks"),
    ("He left at 5 p.m. on Friday.", ["He left at 5 p.m. on Friday."], "p.m. goes on"),
    ("He left at 5 p.m. She stayed.", ["He left at 5 p.m.", "She stayed."], "p.m. ends"),
    ("Élodie slept. Émile read.", ["Élodie slept.", "Émile read."], "capitals beyond ASCII"),
    ("no end at all", ["no end at all"], "no stop"),
    (
        "I ran 😭 the bus left 🚌👋🏽 So I walked.",
        ["I ran", "the bus left", "So I walked."],
        "emoji instead of stops",
    ),
    ("It rained. ☔️ We left!😀", ["It rained.", "We left!"], "emoji after stops"),
    ("😀", [], "nothing but emoji"),
    ("", [], "empty"),
    ("   ", [], "space only"),
]


def test_a_paragraph_is_cut_into_its_sentences() -> None:
    for text, expected, reason in SENTENCES:
        assert sentences(text) == expected, reason


LONG = "This line is as long as an editor makes its lines before it wraps"
PARAGRAPHS = [
    ("One.\n\nTwo.", ["One.", "Two."], "a blank line"),
    ("One.\n \t\nTwo.", ["One.", "Two."], "a line of spaces"),
    (f"{LONG}\nthe text.", [f"{LONG} the text."], "a wrapped line goes on"),
    ("A short line\nAnother", ["A short line", "Another"], "a short line ends its paragraph"),
    (f"{LONG * 2}\nNext.", [LONG * 2, "Next."], "a line that nobody wrapped"),
    ("# Heading\nText.", ["Text."], "a heading is no sentence"),
    (f"{LONG}\n# Heading\nText.", [LONG, "Text."], "a heading ends a paragraph"),
    ("- one\n- two", ["one", "two"], "list items"),
    ("1. one\n2) two", ["one", "two"], "numbered items"),
    ("> quoted", ["quoted"], "a block quote"),
    ("**Ada:** Hello.", ["Hello."], "a speaker label"),
    ("**Ada**: Hello.", ["Hello."], "a speaker label, its colon outside"),
    ("It was *very* _late_.", ["It was very late."], "emphasis"),
    ("a snake_case_name", ["a snake_case_name"], "underscores inside a word"),
    ("See [the page](https://a.org/b) now.", ["See the page now."], "a link keeps its text"),
    ("| a | b |\n\nText.", ["Text."], "a table row"),
    ("---\nText.", ["Text."], "a rule"),
    ("", [], "empty"),
    ("One.\r\n\r\nTwo.", ["One.", "Two."], "foreign line ends"),
]


def test_text_is_cut_into_plain_paragraphs() -> None:
    for text, expected, reason in PARAGRAPHS:
        assert list(paragraphs(text)) == expected, reason


@given(st.text(alphabet=" abIT.!?…\"”'(),3", max_size=200))
def test_sentences_lose_nothing_but_space(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@given(st.text(max_size=300))
def test_no_text_breaks_the_splitter(text: str) -> None:
    for paragraph in paragraphs(text):
        assert "\n" not in paragraph
        assert all(sentence == sentence.strip() != "" for sentence in sentences(paragraph))
