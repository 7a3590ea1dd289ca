"""Sentences take the forms that embedding and modelling need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cod3s.errors import SentenceError
from cod3s.text import all_for_embedding, clean, for_embedding, for_modelling, words


@pytest.mark.parametrize(
    ("given", "wanted", "reason"),
    [
        ("it rained", "It rained.", "capital and full stop are added"),
        ("It rained.", "It rained.", "a finished sentence stays"),
        ("did it rain?", "Did it rain?", "a question mark is punctuation"),
        ('he said "no."', 'He said "no."', "punctuation inside closing quotes counts"),
        ("  two   spaces\there ", "Two spaces here.", "white space is folded"),
        ("then i left", "Then I left.", "a lone i is the pronoun"),
        ("i was late", "I was late.", "also at the start"),
        ("i.e. this one", "I.e. this one.", "an abbreviation is not the pronoun"),
        ("she ate pi i guess", "She ate pi I guess.", "only the lone letter changes"),
        ("ünder way", "Ünder way.", "capitals of other letters too"),
        ("天気がいい。", "天気がいい。", "punctuation of other scripts counts"),
        ("nice 🙂", "Nice 🙂.", "an emoji is not punctuation"),
    ],
)
def test_the_embedding_form(given: str, wanted: str, reason: str) -> None:
    assert for_embedding(given) == wanted, reason


PLAIN = st.text(st.sampled_from("abiIZ .!?'\")-\n\t\x7f"), max_size=12)


@given(st.lists(PLAIN | st.text(max_size=8) | st.just("\u0345i i"), max_size=6))
def test_many_texts_take_the_form_that_each_takes_alone(texts: list[str]) -> None:
    try:
        alone = [for_embedding(text) for text in texts]
    except SentenceError:
        with pytest.raises(SentenceError):
            all_for_embedding(texts)
    else:
        assert all_for_embedding(texts) == alone


def test_what_is_not_text_among_many_is_named() -> None:
    with pytest.raises(SentenceError, match="7 is int"):
        all_for_embedding(["it rained", 7])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("given", "wanted", "reason"),
    [
        ("The dog barked.", "the dog barked", "first letter small, no full stop"),
        ("I left!", "I left", "the pronoun keeps its capital"),
        ("I'm late.", "I'm late", "and so do its contractions, which the original lower-cases"),
        ("I", "I", "a bare I, on which the original crashes"),
        ("I’ll go", "I'll go", "typographic apostrophes become plain"),
        ("It was fine", "it was fine", "a word that merely starts with I"),
        ("NASA launched it.", "NASA launched it", "acronyms keep their case"),
        ("McCoy sang...", "McCoy sang", "inner capitals mark a name; dots go"),
        ("?!", "?!", "nothing but punctuation stays as it is"),
        ("then i left", "then I left", "a careless i is the pronoun"),
        ("i’m late and i've lost it", "I'm late and I've lost it", "with its endings, and plain quotes"),
        ("I LOST MY KEYS!!", "I lost my keys", "a sentence in capitals is not all acronyms"),
        ("NASA WON", "NASA WON", "two words may be"),
        ("he said i.e. that one", "he said i.e. that one", "an abbreviation is not the pronoun"),
    ],
)
def test_the_modelling_form(given: str, wanted: str, reason: str) -> None:
    assert for_modelling(given) == wanted, reason


@pytest.mark.parametrize("empty", ["", "   ", "\n\t", "\x00\x1b", "\u2028", "\ud800"])
def test_text_with_nothing_visible_is_an_error_with_a_way_out(empty: str) -> None:
    with pytest.raises(SentenceError) as caught:
        clean(empty)
    assert "visible" in caught.value.hint


@given(st.text(min_size=1))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    try:
        once = clean(text)
    except SentenceError:
        return
    assert clean(once) == once
    assert for_embedding(for_embedding(once)) == for_embedding(once)
    once.encode("utf-8")


def test_words_are_lower_cased_with_their_apostrophes() -> None:
    assert words("Don't stop, DON'T! 3 cats") == ["don't", "stop", "don't", "3", "cats"]
