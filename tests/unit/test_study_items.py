"""The items of a study, its folder, and who rates what."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cod3s.corpus.questions import Question
from cod3s.corpus.relations import TEMPLATES
from cod3s.errors import Cod3sError
from cod3s.records import Answer, AnswerSet
from cod3s.study.folder import CHECK, Credit, Exclusion, Item, read_items, read_study, write_study
from cod3s.study.raters import matches, new_token, token_hash
from cod3s.study.service import Assignment, assignment_of
from cod3s.study.statements import answer_items, attention_checks, choose_questions, gold_items, mix
from studies import STUDY

QUESTIONS = [
    Question("1", "The well ran dry.", "effect", ("We moved.", "We danced."), 0),
    Question("2", "The clock stopped.", "cause", ("It was wound.", "The spring broke."), 1),
    Question("3", "The frog jumped.", "cause", ("It saw a fly.", "It was Monday."), None),
]


def answers(system: str, *texts: str | Answer, source: str = "the well ran dry") -> AnswerSet:
    parts = tuple(text if isinstance(text, Answer) else Answer(text, 0.0, 0.0) for text in texts)
    return AnswerSet(source, "effect", system, {}, parts)


def some_items(number: int, checks: int = 0) -> list[Item]:
    items = [Item(f"i{n}", "answer", f"Statement {n}.", credits=(Credit("x", 1, 1),)) for n in range(number)]
    return items + [replace(check, id=f"c{n}") for n, check in enumerate(attention_checks(checks))]


def test_a_statement_of_two_systems_is_one_item_credited_to_both() -> None:
    systems = {"a": [answers("a", "we moved", "we prayed")], "b": [answers("b", "We moved.")]}
    items = {item.statement: item for item in answer_items(systems, TEMPLATES, {"a": 3, "b": 3})}
    assert set(items) == {"The well ran dry, so we moved.", "The well ran dry, so we prayed."}
    assert [credit.system for credit in items["The well ran dry, so we moved."].credits] == ["a", "b"]


RANKED: list[tuple[list[Any], list[tuple[str, int, int | None]], str]] = [
    ([Answer("x", 0, -2.0), Answer("y", 0, -1.0)], [("y", 2, 1), ("x", 1, 2)], "the likelier one is first"),
    (
        [Answer("x", 0, -1.0, signature_forward=-5.0), Answer("y", 0, -2.0, signature_forward=-4.0)],
        [("y", 2, 1), ("x", 1, 2)],
        "the paper ranks by the signature where there is one",
    ),
    (
        [Answer("x", 0, -1.0, signature_forward=-5.0), Answer("y", 0, -2.0)],
        [("x", 1, 1), ("y", 2, 2)],
        "scores of signatures and sentences are not compared",
    ),
    (["x", "y"], [("x", 1, None), ("y", 2, None)], "no likelihoods: no rank, the order of the record"),
    ([Answer("x", 0, -1.0), Answer("y", 0, -1.0)], [("x", 1, 1), ("y", 2, 2)], "a tie keeps the order"),
    ([Answer("x", 0, None)], [("x", 1, None)], "null in the file is no likelihood"),  # type: ignore[arg-type]
]


def test_ranks_are_by_likelihood() -> None:
    for texts, ranked, reason in RANKED:
        items = answer_items({"a": [answers("a", *texts)]}, TEMPLATES, {"a": 2})
        credits = [(item.target, item.credits[0].position, item.credits[0].rank) for item in items]
        assert credits == ranked, reason


def test_top_takes_the_likeliest_answers_of_each_system() -> None:
    texts = [Answer(text, 0, -rank) for rank, text in enumerate("wxyz", 1)]
    systems = {"a": [answers("a", *texts)], "b": [answers("b", *texts)]}
    items = answer_items(systems, TEMPLATES, {"a": 1, "b": 3})
    assert Counter(credit.system for item in items for credit in item.credits) == {"a": 1, "b": 3}


def test_outputs_that_make_no_study_are_refused() -> None:
    for sets, message in (
        ([answers("a", "x"), answers("a", "y")], "more than once"),
        ([replace(answers("a", "x"), relation="reply")], "no template.*--template"),
        ([answers("a")], "contain no answers"),
        ([answers("a", "we moved", " ")], "empty answer"),
    ):
        with pytest.raises(Cod3sError) as error:
            answer_items({"a": sets}, TEMPLATES, {"a": 3})
        assert re.search(message, error.value.message + error.value.hint)


def test_an_answer_that_is_also_a_gold_alternative_stays_one_item_with_the_label() -> None:
    systems = {"a": [answers("a", "we moved", "we dug")]}
    gold = gold_items(choose_questions(QUESTIONS, systems, None, seed=1), TEMPLATES)
    items = mix(answer_items(systems, TEMPLATES, {"a": 3}), gold, attention_checks(2), seed=1)
    assert {item.statement: (item.kind, item.label) for item in items if item.kind != CHECK} == {
        "The well ran dry, so we moved.": ("answer", "right"),
        "The well ran dry, so we dug.": ("answer", ""),
        "The well ran dry, so we danced.": ("gold", "wrong"),
    }


def test_gold_questions_are_those_answered_or_a_number_of_them_and_never_one_without_an_answer() -> None:
    unanswered = {"a": [answers("a", "x", source="the sun rose")]}
    with pytest.raises(Cod3sError, match="none of the gold questions"):
        choose_questions(QUESTIONS, unanswered, None, seed=1)
    assert {question.id for question in choose_questions(QUESTIONS, unanswered, 9, seed=1)} == {"1", "2"}
    answered = {"a": [answers("a", "x")]}
    assert [question.id for question in choose_questions(QUESTIONS, answered, 1, seed=1)] == ["1"]


def test_the_order_comes_from_the_seed_and_ids_reveal_nothing() -> None:
    statements = [Item("", "answer", f"Statement {n}.") for n in range(40)]
    first, again, other = (mix(statements, [], attention_checks(3), seed) for seed in (1, 1, 2))
    assert first == again
    assert [item.statement for item in first] != [item.statement for item in other]
    assert [item.id for item in first] == [f"i{n:05}" for n in range(1, 44)]


def test_every_check_has_a_score_that_passes_and_one_that_fails() -> None:
    checks = attention_checks(12)
    assert len({check.statement for check in checks}) == 12
    for check in checks:
        assert set() < set(check.expected) < set(range(6))
        if number := re.search(r"choose (\d)", check.statement):
            assert check.expected == (int(number[1]),)
    with pytest.raises(Cod3sError, match="only 12"):
        attention_checks(13)


def test_a_study_comes_back_from_its_folder_and_is_never_replaced(tmp_path: Path) -> None:
    study = replace(STUDY, exclusion=Exclusion(2, None, 0.5), outputs=({"file": "a.jsonl"},))
    items = mix(
        answer_items({"a": [answers("a", "ünicode “quotes”")]}, TEMPLATES, {"a": 3}), [], attention_checks(1), 1
    )
    write_study(tmp_path / "study", study, items)
    assert read_study(tmp_path / "study") == study
    assert read_items(tmp_path / "study") == items
    with pytest.raises(Cod3sError, match="not empty") as error:
        write_study(tmp_path / "study", study, items)
    assert "name another folder, or delete this one" in error.value.hint


def test_a_damaged_study_and_a_damaged_item_are_named(tmp_path: Path) -> None:
    write_study(tmp_path / "study", STUDY, some_items(1))
    for content, message in (
        ("[]", "does not describe a study"),
        ('{"format": 99}', "newer format"),
        ('{"format": 1, "scale": []}', "does not describe"),
        ("{", "valid JSON"),
    ):
        (tmp_path / "study" / "study.json").write_text(content)
        with pytest.raises(Cod3sError, match=message):
            read_study(tmp_path / "study")
    with (tmp_path / "study" / "items.jsonl").open("a") as stream:
        stream.write('{"id": "i9"}\n')
    with pytest.raises(Cod3sError, match="line 2"):
        read_items(tmp_path / "study")


@given(
    items=st.integers(1, 8),
    checks=st.integers(0, 3),
    per_rater=st.integers(1, 9),
    wanted=st.integers(1, 3),
    seed=st.integers(0, 3),
    turns=st.lists(st.integers(0, 5), max_size=60),
)
@settings(max_examples=60)
@example(items=2, checks=0, per_rater=2, wanted=2, seed=0, turns=[1, 0, 2, 1, 0, 2])
def test_assignment_is_balanced_in_whatever_order_raters_come(
    items: int, checks: int, per_rater: int, wanted: int, seed: int, turns: list[int]
) -> None:
    study = replace(STUDY, seed=seed, raters_per_item=wanted, per_rater=per_rater)
    rule = assignment_of(study, some_items(items, checks))
    load: Counter[str] = Counter()
    assigned: dict[int, list[str]] = {rater: [] for rater in range(6)}
    for rater in (*turns, *(rater for rater in assigned for _ in range(rule.total + 1))):
        full = min(load[item] for item in rule.items) >= wanted
        item = rule.next(f"r{rater}", assigned[rater], load)
        if item is None:
            missing = {item for item in rule.items if load[item] < wanted} - set(assigned[rater])
            assert len(assigned[rater]) == rule.total or not missing, "sent home while there was something to do"
            continue
        assert item not in assigned[rater]
        assigned[rater].append(item)
        if item in rule.items:
            assert full or load[item] < wanted, "an item went past its raters while another had too few"
            unseen = set(rule.items).difference(assigned[rater]) | {item}
            assert load[item] == min(load[other] for other in unseen), "not the one with the fewest raters"
            load[item] += 1
    assert all(len(items) <= rule.total for items in assigned.values())
    assert all(set(rule.checks) <= set(items) for items in assigned.values() if len(items) == rule.total)


def test_checks_are_spread_over_a_raters_work_at_positions_of_their_own() -> None:
    rule = Assignment(7, 4, 30, tuple(f"i{n}" for n in range(60)), ("c1", "c2", "c3"))
    positions = {rater: sorted(rule.check_positions(f"r{rater}")) for rater in range(20)}
    assert all(a <= 11 < b <= 22 < c <= 33 for a, b, c in positions.values())
    assert len(set(map(tuple, positions.values()))) > 10


def test_raters_see_other_orders_and_the_same_seed_gives_the_same() -> None:
    rule = Assignment(7, 4, 10, tuple(f"i{n}" for n in range(30)), ())
    assert len({rule.next(f"r{n}", [], {}) for n in range(10)}) > 3
    assert rule.next("r1", [], {}) == replace(rule).next("r1", [], {})


def test_tokens_are_long_and_never_the_same() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 32
    token = tokens.pop()
    assert matches(token, token_hash(token))
    assert not matches(token + "x", token_hash(token))
