"""Each filter removes what its name says, and nothing else."""

import hashlib
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cod3s.corpus.filters import FILTERS, PRESETS, find_filters, removed_by
from cod3s.corpus.manifest import make_funnel
from cod3s.corpus.sql import connect
from cod3s.errors import Cod3sError, SentenceError
from cod3s.text import clean

CONNECTION = connect()
FINE = "it rained all day"


def removed(source: str, target: str, filters: str) -> str | None:
    CONNECTION.execute(
        f"""SELECT {removed_by(find_filters(filters))} FROM (
            SELECT *, bare(source) AS source_bare, bare(target) AS target_bare
            FROM (SELECT $1::VARCHAR AS source, $2::VARCHAR AS target))""",
        [source, target],
    )
    return CONNECTION.fetchall()[0][0]


CASES = [
    ("empty", FINE, "", True, "nothing"),
    ("empty", FINE, "rain", True, "one word is not a statement"),
    ("empty", FINE, "it rained", False, "two words can be"),
    ("empty:1", FINE, "Yes", False, "replies may be one word long"),
    ("empty", FINE, "-- 12", True, "no letter"),
    ("empty", "雨 降", FINE, False, "letters of any script are letters"),
    ("length:4", FINE, FINE, False, "four words are not more than four"),
    ("length:3", FINE, "we stayed", True, "the source counts"),
    ("length:3", "we stayed", FINE, True, "the target counts"),
    ("characters", FINE, "we stayed in bed", False, "letters and spaces"),
    ("characters", FINE, "it's \"late\", isn't it?", False, "punctuation of sentences"),
    ("characters", FINE, "the café was closed", False, "letters with marks"),
    ("characters", FINE, "he is 40", True, "digits"),
    ("characters", FINE, "rock & roll", True, "special characters"),
    ("characters", FINE, "it cost $", True, "currency"),
    ("symbols", FINE, "he is 40 years old", False, "digits may stay"),
    ("symbols", FINE, "see <b>this</b>", True, "markup"),
    ("symbols", FINE, "visit www.example.org now", True, "an address"),
    ("symbols", FINE, "mail a@b.org", True, "an address"),
    ("symbols", FINE, "well......... no", True, "a row of dots"),
    ("symbols", FINE, "well... no", False, "an ellipsis"),
    ("symbols", FINE, "caf\ufffd is closed", True, "a character lost in decoding"),
    ("dangling", FINE, "we wondered what it was", True, "breaks off"),
    ("dangling", FINE, "it could be...", True, "breaks off before punctuation"),
    ("dangling", FINE, "Maybe", True, "capitals do not matter"),
    ("dangling", FINE, "that is hard to describe", False, "ends in -be, not in be: the original drops it"),
    ("dangling", FINE, "we took the tube", False, "ends in -be, not in be: the original drops it"),
    ("dangling", FINE, "nobody knew who that visitor was", False, "was alone is not on the list"),
    ("dangling", "I do not know what it is", FINE, False, "only targets are generated"),
    ("dangling", FINE, "it is raining", False, "the words must be the last ones"),
    ("repeated", FINE, "It rained, all day!", True, "both sides say the same"),
    ("repeated", FINE, "no no no no", True, "a loop"),
    ("repeated", FINE, "very very very very good", True, "more repetition than words"),
    ("repeated", FINE, "no no", False, "too short to be a loop"),
    ("repeated", FINE, "the dog saw the other dog", False, "ordinary repetition"),
    ("english", FINE, "we stayed at home", False, "English"),
    ("english", "il pleuvait beaucoup", "nous sommes restés chez nous", True, "French: no English word"),
    ("english", "the 雨 が 降 っ た", "家 に いた", True, "letters of another script"),
    ("english", FINE, "the naïve café owner was closed", False, "loan words"),
    ("english", "rain fell", "dogs barked loudly", False, "no common word, but too short to tell"),
    ("english", "regen fiel", "hunde bellten laut", False, "too short to tell: the price of a cheap rule"),
    ("english", "I’m tired", "work ended late", False, "a curly apostrophe"),
    ("profanity", FINE, "we stayed at home", False, "polite"),
    ("profanity", FINE, "such bastard weather", True, "a word of the list"),
    ("profanity", FINE, "we dined in Scunthorpe", False, "inside another word"),
    ("broken", FINE, "the con- ductor waved", True, "a word cut at the end of a line"),
    ("broken", FINE, "a well-known conductor waved", False, "a hyphen"),
    ("broken", FINE, "we could-- wait, listen", True, "speech cut off"),
    ("broken", FINE, "we did n't go", True, "a contraction cut in two"),
    ("broken", FINE, "the dogs' owner stayed , too", True, "a space before a comma"),
    ("broken", FINE, "the river rose by 1.5 metres", False, "a decimal point"),
    ("broken", FINE, "it wasnâ t open", True, "a quotation mark in a wrong encoding"),
    ("broken", FINE, "the château was closed", False, "a letter with its mark"),
    ("unfinished", FINE, "we walked over to Mrs.", True, "a title without its name"),
    ("unfinished", FINE, "we saw the", True, "an article without its noun"),
    ("unfinished", "she asked if they're", FINE, True, "a shortened verb; sources count too"),
    ("unfinished", FINE, "nobody knew what it was for", False, "a preposition may end a sentence"),
    ("unfinished", FINE, "she got an A", False, "a grade"),
    ("unfinished", FINE, "we left a tip for the panda", False, "ends in -a, not in a"),
    ("headless", FINE, "didn't take an umbrella", True, "no subject"),
    ("headless", FINE, "one wanted to go out", True, "lost its no: the opposite is meant"),
    ("headless", FINE, "one of us stayed", False, "one of several"),
    ("headless", FINE, "3) we stayed", True, "a number of a list"),
    ("headless", FINE, "300 people stayed", False, "a number that counts"),
    ("headless", FINE, "no one wanted to go out", False, "still has its no"),
    ("filler", FINE, "however, we went out", True, "refers to a sentence before"),
    ("filler", FINE, "well, we went out", True, "an opener"),
    ("filler", FINE, "well water tasted of iron", False, "well is a noun here"),
    ("filler", FINE, "no umbrella was left", False, "no belongs to the sentence"),
    ("filler", FINE, "we went out, you see", True, "a tag"),
    ("filler", FINE, "you see better with glasses", False, "not a tag"),
    ("chat", FINE, "we were sooo wet", True, "stretched letters"),
    ("chat", FINE, "we didnt go", True, "an apostrophe is missing"),
    ("chat", FINE, "it was funny haha", True, "laughter"),
    ("chat", FINE, "we got DRENCHED", True, "shouting"),
    ("chat", FINE, "we asked NASA", False, "a short name in capitals"),
    ("chat", FINE, "we went to Utah", False, "letters of a list inside a word"),
    ("vague", FINE, "I did it", True, "can mean anything"),
    ("vague", FINE, "it's all good", True, "an apostrophe"),
    ("vague", FINE, "they did not want it", False, "long enough to mean something beside a clear source"),
    ("vague", "he said he could do it", "they wanted it that way", True, "neither side means anything"),
    ("vague", FINE, "she fell", False, "short, but says what happened"),
    ("copied", "Rosa wants to plant a pear tree", "Rosa plants a pear tree", True, "the wish for the deed"),
    ("copied", "Rosa wants to plant a pear tree", "Rosa digs a hole", False, "a name in common"),
    ("copied", "the new lamp fell", "Rosa fixed the new lamp", False, "three of four words in common"),
    ("template", FINE, "they feels happy", True, "wrong agreement"),
    ("template", FINE, "the dog she likes barked", False, "she likes"),
    ("template", FINE, "the cat own(s) a basket", True, "an ending left to choose"),
    ("template", FINE, "the cat (a tabby) slept", False, "a remark in brackets"),
    ("template", "you would buy a hat", "you want to stay dry", True, "a pattern filled with words"),
    ("template", "you would get wet", "the roof leaks", False, "you would alone"),
    ("meta", FINE, "I write this post at home", True, "of its own text"),
    ("meta", FINE, "my second reason is the price", True, "of its own argument"),
    ("meta", FINE, "she went to the post office", True, "the price of a cheap rule"),
    ("meta", FINE, "we lost a tent post", False, "another post"),
    ("sensitive", FINE, "he thought of suicide", True, "not for a demonstration"),
    ("sensitive", FINE, "we met white people from the north", True, "a people"),
    ("sensitive", FINE, "we painted the wall white", False, "a colour"),
]


def test_a_filter_removes_what_its_name_says() -> None:
    for name, source, target, expected, reason in CASES:
        [wanted] = find_filters(name)
        assert removed(source, target, name) == (wanted.label if expected else None), (name, reason)


def test_the_first_filter_in_the_list_takes_the_row() -> None:
    assert removed("he is 40", "it could be", "dangling,characters") == "dangling"
    assert removed("he is 40", "it could be", "characters,dangling") == "characters"


def test_presets_are_lists_of_known_filters() -> None:
    assert [one.label for one in find_filters("paper")] == ["characters", "length:12"]
    assert find_filters("none") == []
    named = {one.label.partition(":")[0] for preset in PRESETS for one in find_filters(preset)}
    assert named == set(FILTERS)


def test_a_wrong_name_is_answered_with_the_right_one() -> None:
    for name, hint in {
        "lenght": "did you mean 'length'?",
        "papers": "did you mean 'paper'?",
        "length:many": "for example length:12",
        "length:0": "for example length:12",
        "dangling:3": "write it as dangling",
        "zzz": "choose one of: empty",
    }.items():
        with pytest.raises(Cod3sError) as raised:
            find_filters(f"empty,{name}")
        assert hint in raised.value.hint


def ask(expression: str, *values: str) -> object:
    CONNECTION.execute(f"SELECT {expression}", list(values))
    return CONNECTION.fetchall()[0][0]


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs", "Cn"]), max_size=40))
@example("\xad")
@example("\u200b \ufe0f\n")
@example("e\u0301\u200b")
def test_text_is_cleaned_in_sql_as_in_python(text: str) -> None:
    try:
        expected = clean(text)
    except SentenceError:
        expected = ""
    found = ask("clean($1::VARCHAR)", text)
    # Two libraries may know different versions of Unicode; what both compose must be the same.
    assert unicodedata.normalize("NFC", str(found)) == expected


SAME = [
    ("It rained.", "it rained", True, "case and punctuation"),
    ("it  rained", "itrained", True, "spaces"),
    ("it's late", "its late", True, "apostrophes"),
    ("it rained", "it drained", False, "letters"),
    ("room 12", "room 21", False, "digits"),
    ("resume", "résumé", False, "marks"),
    ("???", "!!!", False, "text without letters is only like itself"),
]


def test_near_duplicates_share_letters_and_digits() -> None:
    for one, other, same, reason in SAME:
        assert (ask("bare($1::VARCHAR)", one) == ask("bare($1::VARCHAR)", other)) is same, reason


@given(st.text("abcXYZ 0189.,", max_size=20))
def test_the_hash_is_md5_whatever_the_version_of_the_database(text: str) -> None:
    bare = "".join(letter for letter in text.lower() if letter.isalnum()) or text
    assert ask("md5_number_upper(bare($1::VARCHAR))", text) == int.from_bytes(
        hashlib.md5(bare.encode()).digest()[:8], "little"
    )


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(0, 100))
def test_a_funnel_adds_up(removed_counts: list[int], kept: int) -> None:
    reasons = [(f"step {number}", "why") for number in range(len(removed_counts))]
    counts = {name: count for (name, _), count in zip(reasons, removed_counts, strict=True)}
    rows = kept + sum(removed_counts)
    steps = make_funnel(rows, reasons, counts, kept)
    assert steps[0].rows_in == rows
    assert steps[-1].rows_out == kept
    assert [step.removed for step in steps] == removed_counts
    assert all(one.rows_out == other.rows_in for one, other in pairwise(steps))


def test_a_funnel_that_does_not_add_up_is_an_error() -> None:
    with pytest.raises(Cod3sError, match="ends with 5 rows, but 4 were kept"):
        make_funnel(6, [("length", "long")], {"length": 1}, 4)
    with pytest.raises(Cod3sError, match="unknown steps: other"):
        make_funnel(6, [("length", "long")], {"other": 1}, 5)
