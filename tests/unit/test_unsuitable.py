"""What an answer must not say is stopped, in answers and in training pairs; harmless answers pass."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cod3s.corpus.filters import find_filters, removed_by
from cod3s.corpus.sql import connect
from cod3s.unsuitable import find_unsuitable, is_unsuitable, presentable, read_rules
from cod3s.word_lists import data_rows
from unsuitable_lines import read_answers

HARMLESS, HARMFUL = read_answers("harmless"), read_answers("harmful")
ANSWERS = [*HARMLESS, *HARMFUL]


def test_harmless_answers_pass() -> None:
    stopped = {answer: rule.topic for source, answer in HARMLESS if (rule := find_unsuitable(answer, source))}
    assert not stopped


def test_harmful_answers_are_stopped() -> None:
    assert not [answer for source, answer in HARMFUL if not find_unsuitable(answer, source)]


def test_every_rule_of_the_list_has_a_reason_keys_and_a_use() -> None:
    rows = data_rows("unsuitable.tsv")
    assert rows[0] == ["kind", "name", "pattern", "reason"]
    assert all(len(row) == 4 and row[2] and row[3] for row in rows)
    assert {row[0] for row in rows[1:]} == {"part", "harmless", "never", "uninvited", "careful", "invites"}
    rules = read_rules()
    assert all(rule.keys for rule in rules.stops)
    assert {rule.topic for rule in rules.stops if rule.kind == "uninvited"} <= set(rules.invites)
    used = {find_unsuitable(answer, source) for source, answer in HARMFUL}
    assert {rule.topic for rule in used if rule} == {rule.topic for rule in rules.stops if rule.kind != "careful"}


def test_a_source_that_speaks_of_a_topic_invites_a_mention_but_no_insult() -> None:
    assert is_unsuitable("muslims came to pray", "the shop closed")
    assert not is_unsuitable("muslims came to pray", "the mosque was full")
    assert is_unsuitable("muslims are dangerous", "the mosque was full")
    assert is_unsuitable("they were muslims", "the mosque was attacked")


@pytest.mark.parametrize(
    "answer",
    ["it was her own fault", "he had been careless", "they danced at the party", "he should have listened"],
)
def test_blame_and_mirth_are_stopped_only_where_a_source_needs_care(answer: str) -> None:
    assert is_unsuitable(answer, "his wife died", careful=True)
    assert not is_unsuitable(answer, "he lost the match")
    assert not is_unsuitable("he sold the house", "his wife died", careful=True)


@given(st.text(), st.text())
def test_any_text_can_be_judged(text: str, source: str) -> None:
    assert is_unsuitable(text, source) in (True, False)
    assert presentable(text) in (text, "")


@given(st.data())
def test_case_and_punctuation_do_not_matter(data: st.DataObject) -> None:
    source, answer = data.draw(st.sampled_from(ANSWERS))
    stop = data.draw(st.sampled_from([".", "!", " …", ", ", "  ", "?!", "\t", "”"]))
    first = data.draw(st.sampled_from(["", "“", "- ", "... "]))
    words = [word.upper() if data.draw(st.booleans()) else word for word in answer.replace("'", "’").split()]
    changed = first + data.draw(st.sampled_from([" ", ", ", " - ", "  "])).join(words) + stop
    assert is_unsuitable(changed, source) == is_unsuitable(answer, source)


@pytest.mark.parametrize("text", ["b" * 10_000, "he was so " * 1000, "she is not very " * 600 + "black"])
def test_long_texts_take_no_time(text: str) -> None:
    start = process_time()
    is_unsuitable(text, text)
    assert process_time() - start < 1


def test_training_pairs_are_judged_by_the_same_list() -> None:
    """In SQL as in Python, by both filters together; a pair's other side invites nothing."""
    connection = connect()
    connection.execute("CREATE TABLE pairs (source VARCHAR, target VARCHAR)")
    texts = [changed for _, answer in ANSWERS for changed in (answer, f"“{answer.capitalize()}!”")]
    connection.executemany("INSERT INTO pairs VALUES ('the well ran dry', ?)", [[text] for text in texts])
    removed = removed_by(find_filters("profanity,sensitive"))
    verdicts = dict(connection.execute(f"SELECT target, {removed} IS NOT NULL FROM pairs").fetchall())
    assert verdicts == {text: is_unsuitable(text) for text in texts}


def test_medoids_are_shown_only_if_they_may_be() -> None:
    assert presentable("he was late") == "he was late"
    assert presentable("he was gay") == ""
