"""Studies of human ratings: items, assignment, the store on SQLite and PostgreSQL, the server, a kill."""

import hashlib
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx
import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cod3s.cli.main import app
from cod3s.corpus.questions import Question
from cod3s.corpus.relations import TEMPLATES
from cod3s.errors import Cod3sError
from cod3s.records import Answer, AnswerSet
from cod3s.study.collect.assignment import Assignment, assignment_of
from cod3s.study.collect.rating_store import Store, database_url, open_store
from cod3s.study.collect.server import Throttle
from cod3s.study.plan.design import NewStudy
from cod3s.study.plan.folder import (
    CHECK,
    Credit,
    Exclusion,
    Item,
    Rater,
    Rating,
    Study,
    read_items,
    read_study,
    write_study,
)
from cod3s.study.plan.identities import matches, new_token, timestamp, token_hash
from cod3s.study.plan.statements import answer_items, attention_checks, choose_questions, gold_items, mix
from cod3s.web.address import Access
from cod3s.web.guard import HEADERS, Guard
from conftest import ROOT, Run
from judge_study import SYSTEMS, a_made_study, outputs_folder, served
from postgresql_server import postgresql

LONG_AGO, NEVER = "0000", "9999"


def answers(system: str, *texts: str | Answer, source: str = "the well ran dry") -> AnswerSet:
    own = tuple(text if isinstance(text, Answer) else Answer(text, 0.0, 0.0) for text in texts)
    return AnswerSet(source, "effect", system, {}, own)


def a_study(**values: Any) -> Study:
    facts: dict[str, Any] = {
        "id": "s1", "name": "wells", "created": timestamp(), "seed": 7, "raters_per_item": 2, "per_rater": 4,
        "question": "?", "scale": tuple("abcdef"), "instructions": "Read.", "completion_code": "CODE",
        "admin_token_hash": token_hash("admin"),
    }  # fmt: skip
    return Study(**{**facts, **values})


def some_items(number: int, checks: int = 0) -> list[Item]:
    written = [
        Item(f"i{n}", "answer", f"Statement {n}.", of=(Credit(SYSTEMS[n % 2], 1, 1),)) for n in range(number)
    ]
    return written + [replace(check, id=f"c{n}") for n, check in enumerate(attention_checks(checks))]


# Items


def test_a_statement_of_two_systems_is_one_item_credited_to_both() -> None:
    systems = {"a": [answers("a", "we moved", "we prayed")], "b": [answers("b", "We moved.")]}
    items = {item.statement: item for item in answer_items(systems, TEMPLATES, {"a": 3, "b": 3})}
    assert set(items) == {"The well ran dry, so we moved.", "The well ran dry, so we prayed."}
    assert [credit.system for credit in items["The well ran dry, so we moved."].of] == ["a", "b"]


@pytest.mark.parametrize(
    ("own", "wanted", "reason"),
    [
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
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_ranks_are_by_likelihood(own: list[Any], wanted: list[tuple[str, int, int | None]], reason: str) -> None:
    items = answer_items({"a": [answers("a", *own)]}, TEMPLATES, {"a": 2})
    assert [(item.target, item.of[0].place, item.of[0].rank) for item in items] == wanted, reason


def test_top_takes_the_likeliest_answers_of_each_system() -> None:
    own = [Answer(text, 0, -place) for place, text in enumerate("wxyz", 1)]
    systems = {"a": [answers("a", *own)], "b": [answers("b", *own)]}
    items = answer_items(systems, TEMPLATES, {"a": 1, "b": 3})
    assert Counter(credit.system for item in items for credit in item.of) == {"a": 1, "b": 3}


def test_a_system_that_answers_a_source_twice_is_refused() -> None:
    with pytest.raises(Cod3sError, match="more than once"):
        answer_items({"a": [answers("a", "x"), answers("a", "y")]}, TEMPLATES, {"a": 3})


def test_a_relation_without_a_template_says_how_to_give_one() -> None:
    with pytest.raises(Cod3sError) as error:
        answer_items({"a": [replace(answers("a", "x"), relation="reply")]}, TEMPLATES, {"a": 3})
    assert "--template" in error.value.hint


@pytest.mark.parametrize(("texts", "words"), [((), "contain no answers"), (("we moved", " "), "empty answer")])
def test_outputs_without_a_statement_to_rate_are_refused(texts: tuple[str, ...], words: str) -> None:
    with pytest.raises(Cod3sError, match=words):
        answer_items({"a": [answers("a", *texts)]}, TEMPLATES, {"a": 3})


QUESTIONS = [
    Question("1", "The well ran dry.", "effect", ("We moved.", "We danced."), 0),
    Question("2", "The clock stopped.", "cause", ("It was wound.", "The spring broke."), 1),
    Question("3", "The frog jumped.", "cause", ("It saw a fly.", "It was Monday."), None),
]


def test_an_answer_that_is_also_a_gold_alternative_stays_one_item_with_the_label() -> None:
    systems = {"a": [answers("a", "we moved", "we dug")]}
    gold = gold_items(choose_questions(QUESTIONS, systems, None, seed=1), TEMPLATES)
    items = mix(answer_items(systems, TEMPLATES, {"a": 3}), gold, attention_checks(2), seed=1)
    found = {item.statement: (item.kind, item.label) for item in items if item.kind != CHECK}
    assert found == {
        "The well ran dry, so we moved.": ("answer", "right"),
        "The well ran dry, so we dug.": ("answer", ""),
        "The well ran dry, so we danced.": ("gold", "wrong"),
    }


def test_gold_questions_are_those_answered_or_as_many_as_asked_for_never_those_without_an_answer() -> None:
    unanswered = {"a": [answers("a", "x", source="the sun rose")]}
    with pytest.raises(Cod3sError, match="none of the gold questions"):
        choose_questions(QUESTIONS, unanswered, None, seed=1)
    assert {question.id for question in choose_questions(QUESTIONS, unanswered, 9, seed=1)} == {"1", "2"}
    answered = {"a": [answers("a", "x")]}
    assert [question.id for question in choose_questions(QUESTIONS, answered, 1, seed=1)] == ["1"]


def test_the_order_comes_from_the_seed_and_ids_say_nothing() -> None:
    written = [Item("", "answer", f"Statement {n}.") for n in range(40)]
    first, again, other = (mix(written, [], attention_checks(3), seed) for seed in (1, 1, 2))
    assert first == again
    assert [item.statement for item in first] != [item.statement for item in other]
    assert [item.id for item in first] == [f"i{n:05}" for n in range(1, 44)]


def test_every_written_check_has_a_score_that_passes_and_one_that_fails() -> None:
    checks = attention_checks(12)
    assert len({check.statement for check in checks}) == 12
    for check in checks:
        assert 0 < len(check.expected) < 6
        assert set(check.expected) < set(range(6))
        if number := re.search(r"choose (\d)", check.statement):
            assert check.expected == (int(number[1]),)
    with pytest.raises(Cod3sError):
        attention_checks(13)


# The study's folder


def test_a_study_comes_back_from_its_folder_as_it_was(tmp_path: Path) -> None:
    study = a_study(exclusion=Exclusion(2, None, 0.5), templates=TEMPLATES, outputs=({"file": "a.jsonl"},))
    items = mix(
        answer_items({"a": [answers("a", "ünicode “quotes”")]}, TEMPLATES, {"a": 3}), [], attention_checks(1), 1
    )
    write_study(tmp_path / "study", study, items)
    assert read_study(tmp_path / "study") == study
    assert read_items(tmp_path / "study") == items


def test_a_study_is_never_written_over_another(tmp_path: Path) -> None:
    write_study(tmp_path / "study", a_study(), some_items(1))
    with pytest.raises(Cod3sError, match="not empty") as raised:
        write_study(tmp_path / "study", a_study(), some_items(1))
    assert "name another folder, or delete this one" in raised.value.hint


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "does not describe a study"),
        ('{"format": 99}', "newer format"),
        ('{"format": 1, "scale": []}', "does not describe"),
        ("{", "valid JSON"),
    ],
)
def test_a_damaged_study_is_named(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "study.json").write_text(content)
    with pytest.raises(Cod3sError, match=words):
        read_study(tmp_path)


def test_a_damaged_item_is_named_by_its_line(tmp_path: Path) -> None:
    write_study(tmp_path / "study", a_study(), some_items(1))
    with (tmp_path / "study" / "items.jsonl").open("a") as stream:
        stream.write('{"id": "i9"}\n')
    with pytest.raises(Cod3sError, match="line 2"):
        read_items(tmp_path / "study")


# Assignment


@given(
    items=st.integers(1, 8),
    checks=st.integers(0, 3),
    per_rater=st.integers(1, 9),
    wanted=st.integers(1, 3),
    seed=st.integers(0, 3),
    turns=st.lists(st.integers(0, 5), max_size=60),
)
@settings(max_examples=60, deadline=None)
@example(items=2, checks=0, per_rater=2, wanted=2, seed=0, turns=[1, 0, 2, 1, 0, 2])
def test_assignment_is_balanced_in_whatever_order_raters_come(
    items: int, checks: int, per_rater: int, wanted: int, seed: int, turns: list[int]
) -> None:
    rule = assignment_of(
        a_study(seed=seed, raters_per_item=wanted, per_rater=per_rater), some_items(items, checks)
    )
    load: Counter[str] = Counter()
    own: dict[int, list[str]] = {rater: [] for rater in range(6)}
    for rater in (*turns, *(rater for rater in own for _ in range(rule.total + 1))):
        full = min(load[one] for one in rule.items) >= wanted
        item = rule.next(f"r{rater}", own[rater], load)
        if item is None:
            missing = {one for one in rule.items if load[one] < wanted} - set(own[rater])
            assert len(own[rater]) == rule.total or not missing, "sent home while there was something to do"
            continue
        assert item not in own[rater]
        own[rater].append(item)
        if item in rule.items:
            assert full or load[item] < wanted, "an item went past its raters while another had too few"
            unseen = set(rule.items).difference(own[rater]) | {item}
            assert load[item] == min(load[one] for one in unseen), "not the one with the fewest raters"
            load[item] += 1
    assert all(len(given_items) <= rule.total for given_items in own.values())
    assert all(set(rule.checks) <= set(one) for one in own.values() if len(one) == rule.total)


def test_checks_are_spread_over_a_raters_work_at_positions_of_their_own() -> None:
    rule = Assignment(7, 4, 30, tuple(f"i{n}" for n in range(60)), ("c1", "c2", "c3"))
    positions = {rater: sorted(rule.check_positions(f"r{rater}")) for rater in range(20)}
    assert all(a <= 11 < b <= 22 < c <= 33 for a, b, c in positions.values())
    assert len(set(map(tuple, positions.values()))) > 10


def test_raters_see_other_orders_and_the_same_seed_gives_the_same() -> None:
    rule = Assignment(7, 4, 10, tuple(f"i{n}" for n in range(30)), ())
    assert len({rule.next(f"r{n}", [], {}) for n in range(10)}) > 3
    assert rule.next("r1", [], {}) == replace(rule).next("r1", [], {})


# The store, on both databases


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new, empty database of either kind; in PostgreSQL a schema, which takes no time to make."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ratings.sqlite"
    cluster: str = request.getfixturevalue("cluster")
    name = f"study{os.urandom(4).hex()}"
    with psycopg.connect(cluster, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")  # type: ignore[call-overload]
    return f"{cluster}&options=-csearch_path%3D{name}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url, a_study()) as opened:
        yield opened


def join(store: Store, name: str) -> str:
    return store.admit(Rater(name, "page", timestamp(), name=name), token_hash(name)).id


def load_of(store: Store, free_before: str) -> dict[str, int]:
    """The number of raters per item, as `give` tells it to the rule that chooses."""
    loads: list[dict[str, int]] = []
    store.assign_next("nobody", lambda _items, load: loads.append(dict(load)), free_before=free_before)
    return loads[0]


def test_the_latest_rating_counts_and_the_earlier_ones_are_kept(store: Store) -> None:
    join(store, "ada")
    for score, key in ((2, "first"), (5, "second")):
        store.add([], [Rating("ada", "i1", score, 1.5, timestamp(), key=key)])
    assert [(rating.score, rating.revision) for rating in store.ratings()] == [(5, 2)]
    assert [(rating.score, rating.revision) for rating in store.ratings(every_revision=True)] == [(2, 1), (5, 2)]


def test_a_click_that_is_sent_again_changes_nothing_even_when_it_comes_late(store: Store) -> None:
    join(store, "ada")
    first = Rating("ada", "i1", 2, 1.0, timestamp(), key="first")
    store.add([], [first])
    store.add([], [replace(first, score=5, key="second")])
    assert store.add([], [first]) == 0
    assert [rating.score for rating in store.ratings()] == [5]
    assert len(store.ratings(every_revision=True)) == 2


def test_an_open_item_stays_until_it_is_rated_or_too_old(store: Store) -> None:
    join(store, "ada")
    rule = assignment_of(a_study(), some_items(4))

    def give(free_before: str) -> str:
        found = store.assign_next("ada", lambda own, load: rule.next("ada", own, load), free_before=free_before)
        assert found is not None
        return found.item

    first = give(LONG_AGO)
    assert give(LONG_AGO) == first
    assert load_of(store, LONG_AGO) == {first: 1}
    assert load_of(store, NEVER) == {}, "given long ago and not rated: free for others"
    assert give(NEVER) in rule.items
    assert len(store.assigned("ada")) == 1
    store.add([], [Rating("ada", give(LONG_AGO), 3, 1.0, timestamp(), key="k")])
    assert give(LONG_AGO) != first
    assert [one.score for one in store.assigned("ada")] == [3, None]


def test_someone_who_comes_again_under_the_same_outside_id_is_the_same_rater(store: Store) -> None:
    first = store.admit(Rater("r1", "prolific", timestamp(), external="pid"), "hash 1")
    again = store.admit(Rater("r2", "prolific", timestamp(), external="pid"), "hash 2")
    other = store.admit(Rater("r3", "import", timestamp(), external="pid"), "hash 3")
    assert (first.id, again.id, other.id) == ("r1", "r1", "r3")
    assert store.rater_of("hash 1") == store.rater_of("hash 2") == first
    assert store.rater_of("hash 4") is None


def test_two_raters_of_one_name_are_two(store: Store) -> None:
    for number in range(2):
        store.admit(Rater(f"r{number}", "page", timestamp(), name="Ada"), f"hash {number}")
    assert len(store.raters()) == 2


def test_adding_from_elsewhere_twice_adds_once_and_a_failure_adds_nothing(store: Store) -> None:
    raters = [Rater("x", "import", timestamp(), external="w1")]
    ratings = [Rating("x", f"i{n}", n, 0.0, timestamp(), key=f"row {n}") for n in range(3)]
    assert store.add(raters, ratings) == 3
    assert store.add([replace(raters[0], id="y")], [replace(one, rater="y") for one in ratings]) == 0
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        store.add(
            [], [Rating("x", "i9", 1, 0.0, timestamp(), key="new"), Rating("nobody", "i1", 1, 0.0, "", key="k")]
        )
    assert len(store.ratings(every_revision=True)) == 3


def test_finishing_is_noted_once(store: Store) -> None:
    join(store, "ada")
    store.finish("ada")
    (first,) = store.raters()
    store.finish("ada")
    assert store.raters() == [first]
    assert first.finished


def test_the_database_of_another_study_is_refused(url: str) -> None:
    open_store(url, a_study()).close()
    with pytest.raises(Cod3sError, match="another study"):
        open_store(url, a_study(id="s2"))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ratings.sqlite", "not the URL"),
        ("mysql://localhost/x", "cannot be stored in 'mysql'"),
        ("sqlite:////no/such/folder/x.sqlite", "cannot be opened"),
        ("postgresql://user:hunter2@127.0.0.1:1/x", "cannot be opened"),
    ],
)
def test_a_wrong_database_is_explained_without_its_password(url: str, words: str) -> None:
    with pytest.raises(Cod3sError, match=words) as error:
        open_store(url, a_study())
    assert "hunter2" not in error.value.message
    assert "sqlite:///" in error.value.hint


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["i1", "i2"]), st.integers(0, 5), st.integers(1, 4)))
)
@settings(max_examples=15, deadline=None)
def test_the_store_holds_what_a_plain_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, clicks: list[tuple[str, str, int, int]]
) -> None:
    latest: dict[tuple[str, str], int] = {}
    keys: set[tuple[str, str, int]] = set()
    with open_store(f"sqlite:///{tmp_path_factory.mktemp('store')}/r.sqlite", a_study()) as store:
        for name in "ab":
            join(store, name)
        for rater, item, score, key in clicks:
            store.add([], [Rating(rater, item, score, 1.0, timestamp(), key=str(key))])
            if (rater, item, key) not in keys:
                latest[rater, item] = score
                keys.add((rater, item, key))
        assert {(one.rater, one.item): one.score for one in store.ratings()} == latest
        assert len(store.ratings(every_revision=True)) == len(keys)


def rate_all(store: Store, rater: str, rule: Assignment) -> int:
    """Rates until nothing is left, every click sent twice as an impatient page would; how many ratings."""
    join(store, rater)
    number = 0
    while found := store.assign_next(rater, lambda own, load: rule.next(rater, own, load), free_before=LONG_AGO):
        click = Rating(rater, found.item, number % 6, 0.5, timestamp(), key=f"click {number}")
        store.add([], [click])
        store.add([], [click])
        number += 1
    return number


def rate_in_process(url: str, rater: str, rule: Assignment) -> None:
    with open_store(url, a_study()) as store:
        rate_all(store, rater, rule)


def check_balance(store: Store, rule: Assignment, raters: int) -> None:
    """No rating is lost or doubled, and no item has more raters than asked for.

    Raters could do as many ratings as are wanted in all, so an item past its raters would have taken another's.
    One or two may still be missing at the end: the last rater cannot rate an item twice.
    """
    ratings = store.ratings()
    assert (
        len({(one.rater, one.item) for one in ratings}) == len(ratings) == len(store.ratings(every_revision=True))
    )
    assert len(ratings) == sum(one.score is not None for own in store.raters() for one in store.assigned(own.id))
    load = Counter(one.item for one in ratings)
    assert max(load.values()) == rule.raters_per_item
    assert load.keys() == set(rule.items)
    wanted = len(rule.items) * rule.raters_per_item
    assert wanted - 2 <= len(ratings) <= wanted == raters * rule.per_rater
    assert len(store.raters()) == raters


def test_raters_in_threads_lose_and_double_nothing_and_overfill_no_item(store: Store) -> None:
    rule = Assignment(7, 3, 4, tuple(f"i{n}" for n in range(8)), ())
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda n: rate_all(store, f"r{n}", rule), range(6)))
    assert sum(done) == len(store.ratings())
    check_balance(store, rule, raters=6)


def test_raters_in_processes_lose_and_double_nothing_and_overfill_no_item(url: str) -> None:
    rule = Assignment(7, 2, 3, tuple(f"i{n}" for n in range(6)), ())
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=rate_in_process, args=(url, f"r{n}", rule)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    with open_store(url, a_study()) as store:
        check_balance(store, rule, raters=4)


# The server


@pytest.fixture
def made(tmp_path: Path) -> NewStudy:
    return a_made_study(tmp_path)


@pytest.fixture
def client(made: NewStudy, tmp_path: Path) -> Iterator[httpx.Client]:
    url = database_url(tmp_path / "study")
    with open_store(url, made.study) as store, served(made.study, list(made.items), store) as opened:
        yield opened


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def joined(client: httpx.Client, name: str = "Ada") -> dict[str, str]:
    return bearer(client.post("/api/raters", json={"name": name}).raise_for_status().json()["token"])


def click(score: int = 3, key: str = "12345678") -> dict[str, Any]:
    return {"score": score, "seconds": 2.5, "key": key}


def test_a_rater_rates_goes_back_and_gets_the_code_at_the_end(client: httpx.Client, made: NewStudy) -> None:
    own = joined(client)
    for place in range(1, 6):
        standing = client.get("/api/standing", headers=own).json()
        assert standing["current"]["place"] == place == standing["rated"] + 1
        assert standing["ending"] is None
        after = client.put(f"/api/statements/{place}", headers=own, json=click(place, f"key-{place}-xx")).json()
        assert after["rated"] == place
    assert after["current"] is None
    assert after["ending"] == {"code": made.study.completion_code, "link": ""}
    assert client.get("/api/statements/2", headers=own).json()["score"] == 2
    client.put("/api/statements/2", headers=own, json=click(0, "another-key")).raise_for_status()
    assert client.get("/api/statements/2", headers=own).json()["score"] == 0
    assert client.get("/api/standing", headers=own).json()["rated"] == 5


def test_nothing_that_a_rater_receives_tells_systems_kinds_or_ids(client: httpx.Client, made: NewStudy) -> None:
    received = [client.get(path).text for path in ("/", "/static/rate.js", "/static/talk.js", "/api/study")]
    answer = client.post("/api/raters", json={"name": "Ada"})
    own = bearer(answer.json()["token"])
    received.append(answer.text)
    for place in range(1, 6):
        received.append(client.get("/api/standing", headers=own).text)
        received.append(client.get(f"/api/statements/{place}", headers=own).text)
        received.append(client.put(f"/api/statements/{place}", headers=own, json=click()).text)
    told = "\n".join(received)
    assert sum(item.statement in told for item in made.items) == 5
    for secret in (*SYSTEMS, *(item.id for item in made.items), '"check"', '"gold"', '"expected"', '"rank"'):
        assert secret not in told


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/api/statements/1", click(6), 422),  # not on the scale
        ("PUT", "/api/statements/1", click(-1), 422),
        ("PUT", "/api/statements/1", {**click(), "score": 2.5}, 422),
        ("PUT", "/api/statements/1", {**click(), "score": True}, 422),
        ("PUT", "/api/statements/1", {**click(), "seconds": -1}, 422),
        ("PUT", "/api/statements/1", {**click(), "key": "short"}, 422),
        ("PUT", "/api/statements/1", {**click(), "system": "x"}, 422),  # fields that are not asked for
        ("PUT", "/api/statements/2", click(), 404),  # not reached
        ("PUT", "/api/statements/0", click(), 404),
        ("GET", "/api/statements/-1", None, 404),
        ("GET", "/api/statements/99999999999999999999", None, 404),
        ("GET", "/api/statements/one", None, 422),
        ("GET", "/static/../app.py", None, 404),  # no path reaches the disk
        ("GET", "/static/%2e%2e/app.py", None, 404),
        ("GET", "/study.json", None, 404),
        ("DELETE", "/api/statements/1", None, 405),
        ("POST", "/api/raters", {"name": ""}, 422),
        ("POST", "/api/raters", {"name": "x" * 81}, 422),
        ("POST", "/api/raters", {"prolific_pid": "p", "study_id": "s", "session_id": "t"}, 403),
        ("GET", "/openapi.json", None, 404),
    ],
)
def test_what_is_wrong_is_refused_in_one_shape(
    client: httpx.Client, method: str, path: str, body: dict[str, Any] | None, status: int
) -> None:
    own = joined(client)
    client.get("/api/standing", headers=own)
    answer = client.request(method, path, json=body, headers=own)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    assert client.get("/api/standing", headers=own).json()["rated"] == 0


@pytest.mark.parametrize(
    "path", ["/api/standing", "/api/statements/1", "/api/admin/progress", "/api/admin/ratings"]
)
def test_only_the_right_token_opens_a_page(client: httpx.Client, made: NewStudy, path: str) -> None:
    rater = joined(client)
    client.get("/api/standing", headers=rater)
    admin = bearer(made.admin_token)
    wrong = [
        {},
        {"Authorization": "Bearer"},
        bearer("x" * 32),
        {"Authorization": "Basic eA=="},
        {"Cookie": "token=x"},
    ]
    right, other = (admin, rater) if "admin" in path else (rater, admin)
    assert [client.get(path, headers=one).status_code for one in (*wrong, other)] == [401] * 6
    assert client.get(path, headers=right).status_code == 200


def test_every_answer_has_the_security_headers_and_no_server_name(client: httpx.Client) -> None:
    for path in ("/", "/admin", "/static/rate.js", "/api/study", "/nowhere", "/healthz"):
        found = client.get(path).headers
        assert {name: found[name] for name in HEADERS} == HEADERS
    page = client.get("/").text + client.get("/admin").text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|https?://", page), (
        "inline or foreign code"
    )


def test_large_bodies_are_refused_whether_they_say_their_size_or_not(client: httpx.Client) -> None:
    for content in (b"x" * 20_000, iter([b"x" * 1000] * 20)):
        answer = client.post("/api/raters", content=content)
        assert answer.status_code == 413
    assert client.get("/healthz").status_code == 200


def test_names_are_kept_as_text_whatever_is_in_them(client: httpx.Client, made: NewStudy) -> None:
    names = {
        "<b>Zoë</b> \U0001f642": "<b>Zoë</b> \U0001f642",
        "a\x00b\nc": "a b c",
        "'; DROP TABLE raters; --": None,
    }
    for name in names:
        joined(client, name)
    for name in ("\x00\x01", "\u2028"):  # nothing to see
        assert client.post("/api/raters", json={"name": name}).status_code == 422
    lone = client.post(
        "/api/raters", content=b'{"name": "a\\ud800"}', headers={"Content-Type": "application/json"}
    )
    assert lone.status_code in (201, 422)
    raters = client.get("/api/admin/progress", headers=bearer(made.admin_token)).json()["raters"]
    assert {rater["name"] for rater in raters} >= {kept or name for name, kept in names.items()}


def test_a_body_that_never_ends_frees_its_place() -> None:
    async def never(*_: Any) -> None:
        raise AssertionError("the app was asked")

    async def ask() -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        guard = Guard(never, access=Access(), max_body=10, in_flight=1, body_seconds=0.01)
        for _ in range(2):
            await guard({"type": "http", "method": "POST", "headers": []}, anyio.sleep_forever, send)  # type: ignore[arg-type]
        return sent

    statuses = [message["status"] for message in anyio.run(ask) if "status" in message]
    assert statuses == [408, 408]


def test_joining_is_throttled_with_a_time_to_come_back(made: NewStudy, tmp_path: Path) -> None:
    with (
        open_store(database_url(tmp_path / "study"), made.study) as store,
        served(made.study, list(made.items), store, joins_per_minute=2) as client,
    ):
        answers = [client.post("/api/raters", json={"name": "Ada"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert answers[2].headers["Retry-After"]


def test_the_throttle_counts_the_last_minute_only() -> None:
    now = [0.0]
    throttle = Throttle(2, clock=lambda: now[0])
    assert [throttle.passes() for _ in range(3)] == [True, True, False]
    now[0] = 60.0
    assert throttle.passes()


def test_more_requests_than_allowed_at_once_are_told_to_come_back(made: NewStudy, tmp_path: Path) -> None:
    with (
        open_store(database_url(tmp_path / "study"), made.study) as store,
        served(made.study, list(made.items), store, in_flight=0) as client,
    ):
        answer = client.get("/healthz")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")


def test_a_participant_of_prolific_is_one_rater_and_returns_with_the_code(made: NewStudy, tmp_path: Path) -> None:
    entry = {"prolific_pid": "5f00aa", "study_id": "s", "session_id": "t"}
    with (
        open_store(database_url(tmp_path / "study"), made.study) as store,
        served(made.study, list(made.items), store, prolific=True) as client,
    ):
        assert client.post("/api/raters", json={"name": "Ada"}).status_code == 403
        assert client.post("/api/raters", json={**entry, "prolific_pid": "a b"}).status_code == 422
        first, again = (bearer(client.post("/api/raters", json=entry).json()["token"]) for _ in range(2))
        assert first != again
        for place in range(1, 6):
            client.get("/api/standing", headers=first)
            standing = client.put(f"/api/statements/{place}", headers=again, json=click()).json()
        assert [(rater.external, rater.session) for rater in store.raters()] == [("5f00aa", "t")]
    assert standing["ending"]["link"].endswith(f"?cc={made.study.completion_code}")


def test_the_administrator_sees_progress_and_ratings(client: httpx.Client, made: NewStudy) -> None:
    own = joined(client)
    statements = {item.statement: item for item in made.items}
    scores: dict[str, int] = {}
    for place in range(1, 6):
        item = statements[client.get("/api/standing", headers=own).json()["current"]["statement"]]
        score = item.expected[0] if item.kind == CHECK else 4
        scores[item.id] = score
        client.put(f"/api/statements/{place}", headers=own, json=click(score, f"key-{place}-xx"))
    progress = client.get("/api/admin/progress", headers=bearer(made.admin_token)).json()
    assert (progress["ratings"], progress["wanted"], progress["done"]) == (4, 12, pytest.approx(1 / 3))
    assert progress["coverage"] == {"0": 2, "1": 4}
    (rater,) = progress["raters"]
    assert (rater["name"], rater["ratings"], rater["checks"], rater["failed_checks"]) == ("Ada", 4, 1, 0)
    assert rater["finished"]
    assert {row["mean"] for row in progress["means"]} == {4.0}
    assert {row["system"] for row in progress["means"]} <= set(SYSTEMS)
    ratings = client.get("/api/admin/ratings", headers=bearer(made.admin_token)).json()
    assert {rating["item"]: rating["score"] for rating in ratings} == scores


def test_many_raters_at_once_through_the_server_lose_and_double_nothing(tmp_path: Path) -> None:
    made = a_made_study(tmp_path, per_rater=3, checks=0)

    def rate(client: httpx.Client, name: str) -> int:
        own = joined(client, name)
        standing = client.get("/api/standing", headers=own).json()
        while standing["current"]:
            place = standing["current"]["place"]
            body = click(place, f"{name}-{place}-key")
            for _ in range(2):  # the page of an impatient network
                standing = client.put(f"/api/statements/{place}", headers=own, json=body).raise_for_status().json()
        return int(standing["rated"])

    with (
        open_store(database_url(tmp_path / "study"), made.study) as store,
        served(made.study, list(made.items), store) as client,
        ThreadPoolExecutor(4) as pool,
    ):
        done = list(pool.map(lambda n: rate(client, f"rater{n}"), range(4)))
        assert sum(done) == len(store.ratings())
        check_balance(store, assignment_of(made.study, made.items), raters=4)


# The command line


def test_new_makes_a_study_and_shows_the_token_once(cod3s: Run, tmp_path: Path) -> None:
    outputs_folder(tmp_path / "outputs")
    done = cod3s(
        "judge", "new", "outputs", "-o", "study", "--top", "1", "--top", "quokka=2", "--checks", "2", "--json"
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["items"] == {"answer": 4, "check": 2}
    assert record["raters_needed"] == 4
    study = read_study(tmp_path / "study")
    assert matches(record["admin_token"], study.admin_token_hash)
    assert record["admin_token"] not in "".join(file.read_text() for file in (tmp_path / "study").iterdir())
    assert {own["system"] for own in study.outputs if "system" in own} == set(SYSTEMS)


def test_a_study_of_what_comes_in_a_pipe_records_its_checksum(cod3s: Run, tmp_path: Path) -> None:
    text = '{"source": "it rained", "relation": "effect", "answers": ["we got wet", "the grass grew"]}\n'
    done = cod3s("judge", "new", "-", "-o", "study", "--checks", "0", stdin=text)
    assert done.returncode == 0, done.stderr
    record, *_ = read_study(tmp_path / "study").outputs
    assert record == {"file": "standard input", "sha256": hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--top", "many"], "--top takes a number"),
        (["--top", "quoka=3"], "did you mean 'quokka'"),
        (["--template", "reply={source}"], "{source} and {target}"),
        (["--checks", "99"], "attention checks"),
        (["--instructions", "nowhere.txt"], "no file at nowhere.txt"),
    ],
)
def test_new_explains_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    outputs_folder(tmp_path / "outputs")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["judge", "new", "outputs", "-o", "study", *arguments])
    assert isinstance(done.exception, Cod3sError)
    assert words in done.exception.message + done.exception.hint
    assert not (tmp_path / "study").exists()


@contextmanager
def server_process(study: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`cod3s judge serve` as a process of its own, and its address."""
    command = [sys.executable, "-m", "cod3s", "judge", "serve", str(study), "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", env=environment) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("raters: http"), line + process.stderr.read()
            yield process, line.split()[1].rstrip("/")
        finally:
            process.kill()


def test_a_killed_server_loses_no_rating_that_it_acknowledged(made: NewStudy, tmp_path: Path, url: str) -> None:
    folder = tmp_path / "study"
    acknowledged: dict[str, int] = {}

    def click_until_it_dies(address: str, kill: Callable[[], None]) -> None:
        with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
            own = joined(client)
            client.get("/api/standing", headers=own)
            for number in range(1000):
                body = click(number % 6, f"click-{number:05}")
                try:
                    client.put("/api/statements/1", headers=own, json=body).raise_for_status()
                except httpx.TransportError:
                    return
                acknowledged[body["key"]] = body["score"]
                if number == 20:
                    threading.Thread(target=kill).start()  # at any moment of the next requests

    with server_process(folder, "--database", url) as (process, address):
        click_until_it_dies(address, lambda: os.kill(process.pid, signal.SIGKILL))
        assert process.wait(30) == -signal.SIGKILL
    assert len(acknowledged) > 20
    with open_store(url, made.study) as store:
        kept = {rating.key: rating.score for rating in store.ratings(every_revision=True)}
        assert acknowledged.items() <= kept.items()
        assert len(kept) <= len(acknowledged) + 1, "at most the one that was on its way"
    with server_process(folder, "--database", url) as (_, address):
        assert httpx.get(f"{address}/healthz", trust_env=False).status_code == 200


def test_serve_ends_with_ctrl_c_and_says_when_a_port_is_taken(cod3s: Run, made: NewStudy, tmp_path: Path) -> None:
    with server_process(tmp_path / "study", "--admin-token") as (process, address):
        assert process.stderr is not None
        token = process.stderr.readline().strip().partition("#")[2]
        assert (
            httpx.get(f"{address}/api/admin/progress", headers=bearer(token), trust_env=False).status_code == 200
        )
        refused = httpx.get(f"{address}/api/admin/progress", headers=bearer(made.admin_token), trust_env=False)
        assert refused.status_code == 401, "a new token takes the place of the old one"
        done = cod3s("judge", "serve", "study", "--port", address.rpartition(":")[2])
        assert done.returncode == 1
        assert "cannot listen on" in done.stderr
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_tokens_are_long_and_never_the_same() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 32
    token = tokens.pop()
    assert matches(token, token_hash(token))
    assert not matches(token + "x", token_hash(token))
