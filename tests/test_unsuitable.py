"""What an answer must not say is stopped everywhere, harmless answers pass, and odd sources get a remark."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cod3s.cli.main import app
from cod3s.corpus.filters import find_filters, removed_by
from cod3s.corpus.sql import connect
from cod3s.decode.choose import keep_suitable
from cod3s.decode.config import DEFAULT, PAPER
from cod3s.decode.generator import Generator, load
from cod3s.decode.request import make_batch
from cod3s.decode.sentences import Bins, Candidate
from cod3s.decode.statement import remarks_on
from cod3s.decode.systems import LISTED_SYSTEMS, find_system
from cod3s.decode.two_stages import AnswerChoice
from cod3s.evaluate.generation import name_systems
from cod3s.records import AnswerSet, ChosenSignature
from cod3s.unsuitable import find_unsuitable, is_sensitive, is_unsuitable, presentable, read_rules
from cod3s.word_lists import data_rows
from tiny_bundle import SOURCES, TinyBundle
from unsuitable_lines import read_answers, read_lines, read_sources

HARMLESS, HARMFUL = read_answers("harmless"), read_answers("harmful")
ANSWERS = [*HARMLESS, *HARMFUL]
SOURCE = SOURCES[0]

# The list


@pytest.mark.parametrize(("source", "answer"), HARMLESS, ids=[answer for _, answer in HARMLESS])
def test_harmless_answers_pass(source: str, answer: str) -> None:
    assert find_unsuitable(answer, source) is None


@pytest.mark.parametrize(("source", "answer"), HARMFUL, ids=range(len(HARMFUL)))
def test_harmful_answers_are_stopped(source: str, answer: str) -> None:
    assert find_unsuitable(answer, source), answer


def test_the_test_set_is_large_enough() -> None:
    assert len(set(HARMLESS)) == len(HARMLESS) >= 150
    assert len(set(HARMFUL)) == len(HARMFUL) >= 100
    assert len(set(read_sources())) == len(read_sources()) >= 150


def test_every_row_of_the_list_has_a_reason_and_every_rule_keys_and_a_use() -> None:
    rows = data_rows("unsuitable.tsv")
    assert rows[0] == ["kind", "name", "pattern", "reason"]
    assert all(len(row) == 4 and row[2] and row[3] for row in rows)
    assert {row[0] for row in rows[1:]} == {"part", "harmless", "never", "uninvited", "beside", "invites"}
    rules = read_rules()
    assert all(rule.keys for rule in rules.stops)
    assert {rule.topic for rule in rules.stops if rule.kind != "never"} == set(rules.invites)
    used = {find_unsuitable(answer, source) for source, answer in HARMFUL}
    assert {rule.topic for rule in used if rule} == {rule.topic for rule in rules.stops}


def test_a_source_that_speaks_of_a_topic_invites_a_mention_but_no_insult() -> None:
    assert is_unsuitable("muslims came to pray", "the shop closed")
    assert not is_unsuitable("muslims came to pray", "the mosque was full")
    assert is_unsuitable("muslims are dangerous", "the mosque was full")
    assert is_unsuitable("they were muslims", "the mosque was attacked")


def test_harmless_words_are_stopped_beside_a_source_that_they_hurt() -> None:
    assert is_unsuitable("his classmates laughed", "the boy wore a dress to school")
    assert not is_unsuitable("his classmates laughed", "the boy wore two different socks")


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("he was beaten up after school", "he had stolen the exam papers"),
        ("the gang attacked the boy", "he had drunk too much"),
        ("he was shot by the police", "he had been speeding"),
        ("she was teased by her classmates", "she looked different from others"),
        ("the village was afraid of the stranger", "he looked old"),
        ("she took too many pills", "they were on special offer"),
        ("she stopped eating", "it was part of a challenge with friends"),
        ("the boss touched her arm", "her colleagues clapped"),
        ("they were sent back to their country", "they had killed a child"),
        ("the teacher was dismissed at once", "she was having a baby"),
        ("she was followed home", "she had drunk too much to drive"),
        ("the village was afraid of the stranger", "he had come from abroad"),
        ("two men held hands in the park", "one of them got a ticket"),
        ("she fell in love with her teacher", "they became a couple"),
        ("he was ashamed of his body", "he could not lose his weight"),
        ("the boy wore a dress to school", "some parents complained"),
        ("he saw her in the shower", "she apologized to him"),
        ("the family was refused a flat", "the mother was ill for years"),
        ("the village was afraid of the stranger", "he had come from a foreign country"),
        ("the child was born with one hand", "his mother apologized"),
        ("they were sent back to their country", "they had abused their rights"),
        ("he was shot by the police", "he was drunk"),
        ("she did not get the promotion", "she was too tall for it"),
    ],
)
def test_victims_are_not_blamed_and_nobody_is_mocked(source: str, answer: str) -> None:
    assert is_unsuitable(answer, source)
    assert not is_unsuitable(answer, "he lost his job")


@given(st.text(), st.text())
def test_any_text_can_be_asked_about(text: str, source: str) -> None:
    assert is_unsuitable(text, source) in (True, False)
    assert presentable(text) in (text, "")
    assert len(remarks_on(text)) <= 1


@given(st.data())
def test_case_and_punctuation_do_not_matter(data: st.DataObject) -> None:
    source, answer = data.draw(st.sampled_from(ANSWERS))
    stop = data.draw(st.sampled_from([".", "!", " …", ", ", "  ", "?!", "\t", "”"]))
    first = data.draw(st.sampled_from(["", "“", "- ", "... "]))
    words = [word.upper() if data.draw(st.booleans()) else word for word in answer.replace("'", "’").split()]
    changed = first + data.draw(st.sampled_from([" ", ", ", " - ", "  "])).join(words) + stop
    assert is_unsuitable(changed, source) == is_unsuitable(answer, source)


def test_it_costs_next_to_nothing() -> None:
    """Measured: 5 ms of one core for 1,000 short sentences as a model writes them, 60 ms for this test set."""
    texts = [answer for _, answer in ANSWERS] * 3
    is_unsuitable("he was there")  # compiles
    start = process_time()
    for text in texts[:1000]:
        is_unsuitable(text)
    assert process_time() - start < 1


@pytest.mark.parametrize("text", ["b" * 10_000, "he was so " * 1000, "she is not very " * 600 + "black"])
def test_long_texts_take_no_time(text: str) -> None:
    start = process_time()
    is_unsuitable(text, text)
    remarks_on(text)
    assert process_time() - start < 1


# Training pairs


def test_training_pairs_are_judged_by_the_same_list() -> None:
    """In SQL as in Python, by both filters together; a pair's other side invites nothing."""
    connection = connect()
    connection.execute("CREATE TABLE pairs (source VARCHAR, target VARCHAR)")
    texts = [changed for _, answer in ANSWERS for changed in (answer, f"“{answer.capitalize()}!”")]
    connection.executemany("INSERT INTO pairs VALUES ('the well ran dry', ?)", [[text] for text in texts])
    removed = removed_by(find_filters("profanity,sensitive"))
    verdicts = dict(connection.execute(f"SELECT target, {removed} IS NOT NULL FROM pairs").fetchall())
    assert verdicts == {text: is_unsuitable(text) for text in texts}


# Answers


def candidates(*texts: str) -> list[Candidate]:
    return [Candidate(text, -1.0, -float(rank)) for rank, text in enumerate(texts)]


def test_the_next_candidate_of_the_bin_is_taken() -> None:
    bin = candidates("he was gay", "he was late")
    assert [kept.text for kept in keep_suitable(DEFAULT, "he left", bin)] == ["he was late"]
    assert keep_suitable(DEFAULT.with_values(unfiltered=True), "he left", bin) == bin


@pytest.fixture(scope="module")
def generator(tiny_bundle: TinyBundle) -> Generator:
    return load(tiny_bundle.exact)


@pytest.fixture
def rude(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny grammar has nothing to stop, so tea and the dark stand for what must not be said."""
    stop = lambda text, source="": any(word in text for word in ("tea", "bed", "dark", "taxi", "garden"))  # noqa: E731
    monkeypatch.setattr("cod3s.decode.choose.is_unsuitable", stop)


def texts(answers: AnswerSet) -> str:
    return " / ".join(answers.texts)


@pytest.mark.usefixtures("rude")
@pytest.mark.parametrize("system", [name for name in LISTED_SYSTEMS if "mmi-mmi" not in name])
def test_no_system_shows_what_is_stopped(generator: Generator, system: str) -> None:
    source = "the judge caught a cold in town"
    shown = generator.generate(source, "effect", 6, system=system)
    whole = generator.generate(source, "effect", 6, system=system, options=DEFAULT.with_values(unfiltered=True))
    assert "tea" in texts(whole)
    assert not {"tea", "bed"} & set(texts(shown).split())
    assert shown.settings["unfiltered"] is False
    assert whole.settings["unfiltered"] is True
    reasons = ("fit to be shown", "no sentence that was new")  # what is left of a bin may be taken already
    assert len(shown) == 6 or any(reason in remark for remark in shown.remarks for reason in reasons)


@pytest.mark.usefixtures("rude")
def test_a_bin_without_a_sentence_fit_to_be_shown_is_left_out_with_a_remark(generator: Generator) -> None:
    options = DEFAULT.with_values(beam=1)
    source = "the judge caught a cold in town"
    answers = generator.generate(source, "effect", 4, options=options)
    (last,) = [
        event for event in generator.stream(source, "effect", 4, options=options) if isinstance(event, AnswerSet)
    ]
    assert len(answers) < 4
    assert any("bins had no sentence fit to be shown" in remark for remark in answers.remarks)
    assert last.remarks == answers.remarks


SIGNATURES = [ChosenSignature(bits, None, None, None, None, 0, "") for bits in ("00", "01", "10", "11")]
TEXTS = ["a dog barked", "the milk boiled over", "nobody came", "it rained"]


@pytest.mark.usefixtures("rude")
def test_empty_bins_are_blamed_on_what_emptied_them() -> None:
    batch = make_batch([(SOURCE, None)], "effect", find_system("cod3s"), DEFAULT)
    bins: Bins = [candidates("a dog barked"), candidates("she made tea"), candidates("a dog barked"), []]
    choice = AnswerChoice(batch, 0, signer=None, judge=None)
    assert [answer.signature for answer in choice.answers(SIGNATURES, bins)] == ["00"]
    choice.add_remarks()
    first, second = batch.remarks[0]
    assert first.startswith("1 of 4 bins had no sentence fit to be shown")
    assert second == "2 of 4 bins had no sentence that was new"


def test_what_is_left_out_as_implausible_can_be_asked_for_from_anywhere() -> None:
    """`run`, Python and the API have no option --all: the remark names the command that has it, and the field."""
    batch = make_batch([(SOURCE, None)], "effect", find_system("cod3s"), DEFAULT)
    judge: Any = SimpleNamespace(critic=SimpleNamespace(floor=0.5, written_floor=0.0))
    choice = AnswerChoice(batch, 0, signer=None, judge=judge)
    shown = choice.answers(SIGNATURES, [candidates(text) for text in TEXTS])
    assert len(shown) == 3, "some are shown in any case"
    choice.add_remarks()
    assert (
        "left out 1 implausible answers; `cod3s generate --all`, or show_doubtful=True, shows them"
        in batch.remarks[0]
    )


@pytest.mark.parametrize(("recall", "shown"), [(40, 3), (0, 4)])
def test_written_answers_must_be_better_only_beside_known_ones(recall: int, shown: int) -> None:
    options = DEFAULT.with_values(recall=recall, rerank_sentences="critic")
    batch = make_batch([(SOURCE, None)], "effect", find_system("cod3s"), options)
    judge: Any = SimpleNamespace(critic=SimpleNamespace(floor=0.0, written_floor=0.5))
    choice = AnswerChoice(batch, 0, signer=None, judge=judge)
    assert len(choice.answers(SIGNATURES, [candidates(text) for text in TEXTS])) == shown


def test_medoids_are_shown_only_if_they_may_be() -> None:
    assert presentable("he was late") == "he was late"
    assert presentable("he was gay") == ""


def test_evaluation_measures_the_paper_unfiltered_and_the_default_as_users_meet_it() -> None:
    ours, paper = name_systems(["cod3s", "s2s"], "", k=3, seed=1)
    assert ours.options == DEFAULT.with_values(k=3, seed=1, show_doubtful=True), "sets of k answers are compared"
    assert paper.options == PAPER.with_values(k=3, seed=1, unfiltered=True)
    assert not PAPER.unfiltered, "generate --preset paper is filtered, too"


def test_sources_that_speak_of_victims_or_grief_are_sensitive() -> None:
    assert is_sensitive("He was beaten up after school.")
    assert is_sensitive("her husband died")
    assert not is_sensitive("He beat the eggs.")
    assert not is_sensitive("the plant died")


# Sources

BAD = [tuple(line.split(" | ", 1)) for line in read_lines("not_statements")]


@pytest.mark.parametrize("source", read_lines("statements"))
def test_statements_get_no_remark(source: str) -> None:
    assert remarks_on(source) == []


@pytest.mark.parametrize(("problem", "source"), BAD)
def test_other_sources_get_a_remark(problem: str, source: str) -> None:
    (remark,) = remarks_on(source)
    assert problem in remark
    assert "it rained all day" in remark, "it says what works"


def test_there_are_enough_sources_of_both_kinds() -> None:
    assert len(read_lines("statements")) >= 30
    assert len(BAD) >= 30
    assert not any(remarks_on(source) for _, source in read_sources())


def run(*arguments: str | Path) -> tuple[list[dict[str, object]], str]:
    result = CliRunner().invoke(app, ["generate", "effect", *map(str, arguments), "-k", "1", "--json"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def test_each_odd_source_is_told_on_stderr_and_in_json(tiny_bundle: TinyBundle) -> None:
    asked: Sequence[str] = ["why did he go?", SOURCE, "who is there?"]
    records, stderr = run(*asked, "--bundle", tiny_bundle.small)
    about = [any("looks like a question" in remark for remark in record["remarks"]) for record in records]  # type: ignore[attr-defined]
    assert about == [True, False, True]
    assert stderr.count("looks like a question") == 2


def test_unfiltered_is_a_flag_of_the_command_line(tiny_bundle: TinyBundle) -> None:
    ((record,), _) = run(SOURCE, "--bundle", tiny_bundle.small, "--unfiltered")
    assert record["settings"]["unfiltered"] is True  # type: ignore[index]


def test_sources_of_other_relations_may_be_anything() -> None:
    system = replace(find_system("cod3s"))
    batch = make_batch([("how are you?", None)], "reply", system, DEFAULT)
    assert batch.remarks == [[]]
