"""The store of a study on SQLite and PostgreSQL: nothing is lost or doubled, whoever writes at the same time."""

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cod3s.errors import Cod3sError
from cod3s.study.raters import Rater, Rating, timestamp, token_hash
from cod3s.study.service import Assignment
from cod3s.study.store import Store, open_store
from postgresql_server import postgresql
from studies import STUDY

LONG_AGO, NEVER = "0000", "9999"


@pytest.fixture(scope="module")
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
    with open_store(url, STUDY) as opened:
        yield opened


def join(store: Store, name: str) -> str:
    return store.admit(Rater(name, "page", timestamp(), name=name), token_hash(name)).id


def test_the_latest_rating_counts_and_a_click_that_is_sent_again_changes_nothing(store: Store) -> None:
    join(store, "ada")
    first = Rating("ada", "i1", 2, 1.5, timestamp(), key="first")
    second = replace(first, score=5, key="second")
    assert [store.add([], [rating]) for rating in (first, second, first)] == [1, 1, 0]
    assert [(rating.score, rating.revision) for rating in store.ratings()] == [(5, 2)]
    assert [(rating.score, rating.revision) for rating in store.ratings(every_revision=True)] == [(2, 1), (5, 2)]


def test_an_open_item_stays_until_it_is_rated_or_too_old(store: Store) -> None:
    join(store, "ada")
    rule = Assignment(7, 2, 4, tuple(f"i{n}" for n in range(4)), ())
    loads: list[dict[str, int]] = []

    def assign(free_before: str) -> str:
        item = store.assign_next("ada", lambda items, load: rule.next("ada", items, load), free_before=free_before)
        assert item is not None
        return item.item

    first = assign(LONG_AGO)
    assert assign(LONG_AGO) == first
    for free_before in (LONG_AGO, NEVER):
        store.assign_next("nobody", lambda _, load: loads.append(dict(load)), free_before=free_before)
    assert loads == [{first: 1}, {}], "assigned long ago and not rated: free for others"
    assert assign(NEVER) in rule.items
    assert len(store.assigned("ada")) == 1
    for score, key in ((3, "k"), (4, "l")):
        store.add([], [Rating("ada", assign(LONG_AGO) if score == 3 else first, score, 1.0, timestamp(), key=key)])
    assert [(item.item, item.score) for item in store.assigned("ada")] == [(first, 4)]
    assert assign(LONG_AGO) != first
    assert [item.score for item in store.assigned("ada")] == [4, None]
    store.assign_next("nobody", lambda _, load: loads.append(dict(load)), free_before=NEVER)
    assert loads[-1] == {first: 1}, "a rater who changes a score is one rater"


def test_the_same_outside_id_is_the_same_rater_and_the_same_name_is_not(store: Store) -> None:
    first = store.admit(Rater("r1", "prolific", timestamp(), external="pid"), "hash 1")
    again = store.admit(Rater("r2", "prolific", timestamp(), external="pid"), "hash 2")
    other = store.admit(Rater("r3", "import", timestamp(), external="pid"), "hash 3")
    assert (first.id, again.id, other.id) == ("r1", "r1", "r3")
    assert store.rater_of("hash 1") == store.rater_of("hash 2") == first
    assert store.rater_of("hash 4") is None
    for number in (4, 5):
        store.admit(Rater(f"r{number}", "page", timestamp(), name="Ada"), f"hash {number}")
    assert len(store.raters()) == 4


def test_adding_from_elsewhere_twice_adds_once_and_a_failure_adds_nothing(store: Store) -> None:
    raters = [Rater("x", "import", timestamp(), external="w1")]
    ratings = [Rating("x", f"i{n}", n, 0.0, timestamp(), key=f"row {n}") for n in range(3)]
    assert store.add(raters, ratings) == 3
    assert store.add([replace(raters[0], id="y")], [replace(rating, rater="y") for rating in ratings]) == 0
    new, homeless = (Rating(rater, "i9", 1, 0.0, timestamp(), key="new") for rater in ("x", "nobody"))
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        store.add([], [new, homeless])
    assert len(store.ratings(every_revision=True)) == 3


def test_finishing_is_recorded_once(store: Store) -> None:
    join(store, "ada")
    store.finish("ada")
    (first,) = store.raters()
    store.finish("ada")
    assert store.raters() == [first]
    assert first.finished


def test_the_database_of_another_study_is_refused(url: str) -> None:
    open_store(url, STUDY).close()
    with pytest.raises(Cod3sError, match="another study"):
        open_store(url, replace(STUDY, id="s2"))


def test_a_wrong_database_is_explained_without_its_password() -> None:
    for url, message in (
        ("ratings.sqlite", "not the URL"),
        ("mysql://localhost/x", "cannot be stored in 'mysql'"),
        ("sqlite:////no/such/folder/x.sqlite", "cannot be opened"),
        ("postgresql://user:hunter2@127.0.0.1:1/x", "cannot be opened"),
    ):
        with pytest.raises(Cod3sError, match=message) as error:
            open_store(url, STUDY)
        assert "hunter2" not in error.value.message
        assert "sqlite:///" in error.value.hint


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["i1", "i2"]), st.integers(0, 5), st.integers(1, 4)))
)
@settings(max_examples=15)
def test_the_store_holds_what_a_plain_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, clicks: list[tuple[str, str, int, int]]
) -> None:
    latest: dict[tuple[str, str], int] = {}
    keys: set[tuple[str, str, int]] = set()
    with open_store(f"sqlite:///{tmp_path_factory.mktemp('store')}/r.sqlite", STUDY) as store:
        for name in "ab":
            join(store, name)
        for rater, item, score, key in clicks:
            store.add([], [Rating(rater, item, score, 1.0, timestamp(), key=str(key))])
            if (rater, item, key) not in keys:
                latest[rater, item] = score
                keys.add((rater, item, key))
        assert {(rating.rater, rating.item): rating.score for rating in store.ratings()} == latest
        assert len(store.ratings(every_revision=True)) == len(keys)


def rate_all(store: Store, rater: str, rule: Assignment) -> None:
    """Rate until nothing is left, every click sent twice as an impatient page would."""
    join(store, rater)
    number = 0
    while item := store.assign_next(
        rater, lambda items, load: rule.next(rater, items, load), free_before=LONG_AGO
    ):
        click = Rating(rater, item.item, number % 6, 0.5, timestamp(), key=f"click {number}")
        store.add([], [click])
        store.add([], [click])
        number += 1


def rate_in_process(url: str, rater: str, rule: Assignment) -> None:
    with open_store(url, STUDY) as store:
        rate_all(store, rater, rule)


def check_balance(store: Store, rule: Assignment, raters: int) -> None:
    """No rating is lost or doubled, and no item has more raters than wanted.

    Raters could do as many ratings as are wanted in all, so an item past its raters would have taken another's.
    One or two may still be missing at the end: the last rater cannot rate an item twice.
    """
    ratings, assigned = store.ratings(), [item for rater in store.raters() for item in store.assigned(rater.id)]
    assert len(ratings) == len(store.ratings(every_revision=True))
    assert len(ratings) == sum(item.score is not None for item in assigned)
    load = Counter(rating.item for rating in ratings)
    assert max(load.values()) == rule.raters_per_item
    assert load.keys() == set(rule.items)
    wanted = len(rule.items) * rule.raters_per_item
    assert wanted - 2 <= len(ratings) <= wanted == raters * rule.per_rater
    assert len(store.raters()) == raters


def test_raters_in_threads_lose_and_double_nothing_and_overfill_no_item(store: Store) -> None:
    rule = Assignment(7, 3, 4, tuple(f"i{n}" for n in range(8)), ())
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: rate_all(store, f"r{n}", rule), range(6)))
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
    with open_store(url, STUDY) as store:
        check_balance(store, rule, raters=4)
