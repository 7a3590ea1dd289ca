"""Requests that wait with the same settings are decoded in one batch, and nobody can tell from the answers."""

import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import anyio
import pytest

from cod3s.decode.generator import Generator, load
from cod3s.errors import Cod3sError, UsageError
from cod3s.records import AnswerSet
from cod3s.web.batching import Batching
from cod3s.web.error_replies import RefusedError
from cod3s.web.explorer import Explorer
from cod3s.web.limits import Limits
from cod3s.web.queue import WorkQueue
from cod3s.web.requests import generate_request
from tiny_bundle import SOURCES, TinyBundle

QUICK = {"k": 3, "signature_beam": 20, "beam": 4, "max_tokens": 12}


class Work:
    """Work that returns its request in capitals, fails on a full stop, and notes how many are in a batch."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.let_go = threading.Event()
        self.let_go.set()

    def alone(self, request: str) -> Iterator[str]:
        self.sizes.append(1)
        if request.endswith("."):
            raise Cod3sError(f"{request} cannot be answered")
        yield request.upper()

    def batch(self, requests: Sequence[str]) -> list[str]:
        self.sizes.append(len(requests))
        self.let_go.wait(30)
        if any(text.endswith(".") for text in requests):
            raise Cod3sError("one of them cannot be answered")
        return [text.upper() for text in requests]


async def never() -> dict[str, Any]:
    await anyio.sleep_forever()
    raise AssertionError


async def collect(replies: dict[str, Any], name: str, call: Callable[[], Awaitable[Any]]) -> None:
    try:
        replies[name] = await call()
    except Exception as error:
        replies[name] = error


async def ask_while_busy(
    queue: WorkQueue, batching: Batching[Any, Any], requests: dict[str, tuple[Any, object]], most: int
) -> dict[str, Any]:
    """The replies to requests, given by name with their keys, that all come while the engine is busy."""
    replies: dict[str, Any] = {}
    async with anyio.create_task_group() as clients, queue.turn():
        for name, (request, key) in requests.items():
            clients.start_soon(collect, replies, name, lambda r=request, k=key: batching.finish(r, k, most, never))
        while queue.requests <= len(requests):
            await anyio.sleep(0.005)
    return replies


def test_those_with_equal_keys_share_a_batch_up_to_the_most() -> None:
    work, queue = Work(), WorkQueue(Limits(at_once=1))
    batching = Batching(queue, work.alone, work.batch)
    asked = {name: (name, name in "xy") for name in "abcxdye"}
    replies = anyio.run(ask_while_busy, queue, batching, asked, 4)
    assert replies == {name: name.upper() for name in "abcxdye"}
    assert sorted(work.sizes) == [1, 2, 4]
    assert queue.requests == 0


def test_an_error_reaches_the_client_that_caused_it() -> None:
    work, queue = Work(), WorkQueue(Limits(at_once=1))
    asked = {name: (name, 0) for name in ("a", "b.", "c")}
    replies = anyio.run(ask_while_busy, queue, Batching(queue, work.alone, work.batch), asked, 4)
    assert (replies["a"], replies["c"]) == ("A", "C")
    assert isinstance(replies["b."], Cod3sError)
    assert work.sizes == [3, 1, 1, 1]


def test_a_client_that_leaves_takes_nothing_from_the_others() -> None:
    work, queue = Work(), WorkQueue(Limits(at_once=1))
    batching = Batching(queue, work.alone, work.batch)

    async def leave_and_stay() -> dict[str, Any]:
        replies: dict[str, Any] = {}
        left = anyio.Event()

        async def gone() -> dict[str, Any]:
            await left.wait()
            return {"type": "http.disconnect"}

        async with anyio.create_task_group() as clients, queue.turn():
            for name, receive in (("early", gone), ("stays", never), ("also", never)):
                clients.start_soon(collect, replies, name, lambda n=name, r=receive: batching.finish(n, 0, 4, r))
            while queue.requests < 4:
                await anyio.sleep(0.005)
            left.set()
            while queue.requests == 4:
                await anyio.sleep(0.005)
        return replies

    assert anyio.run(leave_and_stay) == {"early": None, "stays": "STAYS", "also": "ALSO"}
    assert work.sizes == [2]


def test_each_has_its_time_limit() -> None:
    work, queue = Work(), WorkQueue(Limits(at_once=1, seconds=0.3))
    work.let_go.clear()
    threading.Timer(0.8, work.let_go.set).start()
    asked = {name: (name, 0) for name in "ab"}
    replies = anyio.run(ask_while_busy, queue, Batching(queue, work.alone, work.batch), asked, 4)
    assert [error.status for error in replies.values() if isinstance(error, RefusedError)] == [504, 504]
    assert queue.requests == 0


@pytest.fixture(scope="module")
def generator(tiny_bundle: TinyBundle) -> Generator:
    return load(tiny_bundle.exact)


def test_a_real_batch_gives_the_answers_that_each_gets_alone(generator: Generator) -> None:
    explorer, queue = Explorer(generator, Limits()), WorkQueue(Limits(at_once=1))
    batches: list[int] = []

    def batch(requests: Sequence[Any]) -> list[AnswerSet]:
        batches.append(len(requests))
        return explorer.answer_all(requests)

    batching: Batching[Any, Any] = Batching(queue, explorer.answer, batch)
    body = generate_request(Limits(), generator.facts)
    requests = {text: body(text=text, relation="effect", **QUICK) for text in SOURCES}
    asked = {text: (request, explorer.settings_key(request)) for text, request in requests.items()}
    replies = anyio.run(ask_while_busy, queue, batching, asked, 4)
    assert batches == [len(SOURCES)]
    for text, request in requests.items():
        *_, alone = explorer.answer(request)
        assert isinstance(alone, AnswerSet)
        assert replies[text].texts == alone.texts
        assert replies[text].settings == alone.settings
        assert [answer.score for answer in replies[text]] == pytest.approx(
            [answer.score for answer in alone], abs=1e-3
        )


def test_keys_are_equal_where_requests_can_be_decoded_batching(generator: Generator) -> None:
    explorer, body = Explorer(generator, Limits()), generate_request(Limits(), generator.facts)

    def key(text: str, **more: Any) -> object:
        return explorer.settings_key(body(**{"text": text, "relation": "effect", **more}))

    assert key("it rained") == key("it snowed", beam=8)
    assert key("it rained") != key("it rained", beam=9)
    assert key("it rained") != key("it rained", relation="cause")
    assert key("it rained") != key("it rained", signatures=["0" * generator.facts.bits])
    assert key("it rained", search="sample") != key("it rained", search="sample")
    assert key("it rained", system="s2s-rs") != key("it rained", system="s2s-rs")
    with pytest.raises(UsageError, match="decides"):
        key("it rained", system="s2s", search="beam")
