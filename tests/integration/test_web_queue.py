"""The gate before the engine: who may work, who waits, who is sent away, and that places come back."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from cod3s.decode.generator import Generator, load
from cod3s.web.app import create_app
from cod3s.web.error_replies import add_error_handlers
from cod3s.web.limits import Limits
from cod3s.web.queue import JsonLines, WorkQueue
from tiny_bundle import SOURCES, TinyBundle
from web_server import serving, wait_until

Steps = Callable[[], Iterator[dict[str, Any]]]


def app_of(gate: WorkQueue, steps: Steps) -> FastAPI:
    """Work of a test's own behind the real gate, streamed and not."""
    app = FastAPI()
    add_error_handlers(app)

    @app.get("/stream")
    async def stream() -> Response:
        return JsonLines(gate, steps())

    @app.get("/last", response_model=None)
    async def last(request: Request) -> Any:
        return await gate.finish(steps(), request.receive) or Response(status_code=499)

    return app


def endless() -> Iterator[dict[str, Any]]:
    while True:
        time.sleep(0.02)
        yield {"event": "answer"}


class Held:
    """Work that stands still until it is let go, and counts how often it ran at the same time."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.running = self.most = 0
        self._lock = threading.Lock()

    def __call__(self) -> Iterator[dict[str, Any]]:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.let_go.wait(30)
        with self._lock:
            self.running -= 1
        yield {"event": "done"}


def test_so_many_work_so_many_wait_and_the_next_is_sent_away() -> None:
    gate, work = WorkQueue(Limits(at_once=2, waiting=3)), Held()
    with serving(app_of(gate, work)) as address, ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(httpx.get, f"{address}/last", timeout=30, trust_env=False) for _ in range(5)]
        wait_until(lambda: gate.requests == 5)
        for route in ("last", "stream"):
            refused = httpx.get(f"{address}/{route}")
            assert refused.status_code == 503
            assert int(refused.headers["Retry-After"]) >= 1
            assert "waiting" in refused.json()["error"]["message"]
        work.let_go.set()
        assert [one.result().status_code for one in asked] == [200] * 5
        assert work.most == 2
        assert gate.requests == 0
        assert httpx.get(f"{address}/last").status_code == 200


@pytest.mark.parametrize("route", ["last", "stream"])
def test_a_client_that_leaves_frees_its_place(route: str) -> None:
    gate = WorkQueue(Limits(at_once=1, waiting=0))
    with serving(app_of(gate, endless)) as address:
        with suppress(httpx.ReadTimeout), httpx.stream("GET", f"{address}/{route}", timeout=0.5) as reply:
            next(reply.iter_lines())  # a stream is left after its first line, the other while nothing comes
        assert gate.requests in (0, 1)
        wait_until(lambda: gate.requests == 0)


def test_a_client_that_leaves_while_it_waits_frees_its_place() -> None:
    gate, work = WorkQueue(Limits(at_once=1, waiting=1)), Held()
    with serving(app_of(gate, work)) as address, ThreadPoolExecutor(1) as pool:
        first = pool.submit(httpx.get, f"{address}/last", timeout=30)
        wait_until(lambda: work.running == 1)
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{address}/last", timeout=0.3)
        wait_until(lambda: gate.requests == 1)
        work.let_go.set()
        assert first.result().status_code == 200


def test_what_takes_too_long_is_ended_with_a_status() -> None:
    gate = WorkQueue(Limits(seconds=0.3))
    with serving(app_of(gate, endless)) as address:
        late = httpx.get(f"{address}/last")
        assert late.status_code == 504
        assert "0.3 seconds" in late.json()["error"]["message"]
        assert gate.requests == 0


def test_a_stream_that_takes_too_long_ends_with_a_line_that_says_so() -> None:
    gate = WorkQueue(Limits(seconds=0.3))
    with serving(app_of(gate, endless)) as address:
        reply = httpx.get(f"{address}/stream")
        *made, last = map(json.loads, reply.text.splitlines())
        assert reply.status_code == 200
        assert {one["event"] for one in made} == {"answer"}
        assert last["event"] == "error"
        assert "0.3 seconds" in last["message"]
        assert gate.requests == 0


def test_who_waits_too_long_is_sent_away() -> None:
    gate, work = WorkQueue(Limits(at_once=1, waiting=1, seconds=0.5)), Held()
    with serving(app_of(gate, work)) as address, ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(httpx.get, f"{address}/last", timeout=30) for _ in range(2)]
        wait_until(lambda: gate.requests == 2)
        wait_until(lambda: gate.requests == 1)  # the one that waited
        work.let_go.set()
        assert sorted(one.result().status_code for one in asked) == [503, 504]


def test_waiting_takes_nothing_off_the_time_for_the_work() -> None:
    """Eight requests of 0.3 seconds, one at a time: the last would wait longer than the 1 second of the limit.

    They are all answered or sent away while they wait; none is begun and then given up.
    """

    def short() -> Iterator[dict[str, Any]]:
        time.sleep(0.3)
        yield {"event": "done"}

    gate = WorkQueue(Limits(at_once=1, waiting=8, seconds=1.0))
    with serving(app_of(gate, short)) as address, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(httpx.get, f"{address}/last", timeout=30) for _ in range(8)]
        came = [one.result().status_code for one in asked]
    assert set(came) <= {200, 503}
    assert came.count(200) >= 2


def test_an_error_on_the_way_is_a_line_and_one_before_it_a_status() -> None:
    def broken() -> Iterator[dict[str, Any]]:
        raise ZeroDivisionError("a bug")
        yield {}

    def breaks() -> Iterator[dict[str, Any]]:
        yield {"event": "answer"}
        raise ZeroDivisionError("a bug")

    for work, status in ((broken, 500), (breaks, 200)):
        gate = WorkQueue(Limits())
        with serving(app_of(gate, work)) as address:
            reply = httpx.get(f"{address}/stream")
            assert reply.status_code == status
            last = json.loads(reply.text.splitlines()[-1])
            assert "something went wrong" in (last if status == 200 else last["error"])["message"]
            assert "a bug" not in reply.text.replace("this is a bug in cod3s", "")
            assert gate.requests == 0


@pytest.fixture(scope="module")
def generator(tiny_bundle: TinyBundle) -> Generator:
    return load(tiny_bundle.exact)


def test_real_work_is_given_up_between_two_groups_of_bins(generator: Generator) -> None:
    """A request for far more than can be read leaves soon after its client."""
    heavy = {"text": SOURCES[0], "relation": "effect", "k": 200, "beam": 100, "signature_beam": 100}
    app = create_app(generator, Limits(k=200, at_once=1, waiting=0))
    with serving(app) as address, httpx.Client(base_url=address, timeout=30) as client:
        with client.stream("POST", "/api/stream", json=heavy) as reply:
            came = reply.iter_lines()  # kept, because a stream that nobody holds is closed
            assert json.loads(next(came))["event"] == "stage"
            assert httpx.post(f"{address}/api/generate", json=heavy).status_code == 503
            assert httpx.get(f"{address}/api/info").status_code == 200, (
                "what needs no engine is answered meanwhile"
            )
        wait_until(lambda: client.get("/healthz").json()["requests"] == 0)
