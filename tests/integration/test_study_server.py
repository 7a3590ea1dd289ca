"""The server of a study: what raters and administrators may do, hostile requests, many raters, kills."""

import json
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
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import response_schema_conformance

from cod3s.study.design import NewStudy
from cod3s.study.folder import CHECK
from cod3s.study.raters import Rater, Rating, timestamp
from cod3s.study.server import ServerOptions, Throttle, create_app
from cod3s.study.store import Store, database_url, open_store
from cod3s.web.address import Access
from cod3s.web.guard import HEADERS, Guard
from conftest import ROOT, Run
from studies import SYSTEMS, new_study, served

ROUTES = [
    ("GET", "/healthz"),
    ("GET", "/api/study"),
    ("POST", "/api/raters"),
    ("GET", "/api/standing"),
    ("GET", "/api/statements/{position}"),
    ("PUT", "/api/statements/{position}"),
    ("GET", "/api/admin/progress"),
]
OPEN = ("/healthz", "/api/study", "/api/raters")  # to everyone
WITH_INPUT = ("/api/raters", "/api/statements/{position}")  # only these can be sent wrong values
REFUSALS = {400, 401, 403, 404, 409, 422, 429}


@pytest.fixture
def made(tmp_path: Path) -> NewStudy:
    return new_study(tmp_path)


@pytest.fixture
def store(made: NewStudy, tmp_path: Path) -> Iterator[Store]:
    with open_store(database_url(tmp_path / "study"), made.study) as opened:
        yield opened


@pytest.fixture
def client(made: NewStudy, store: Store) -> Iterator[httpx.Client]:
    with served(made.study, list(made.items), store) as opened:
        yield opened


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def joined(client: httpx.Client, name: str = "Ada") -> dict[str, str]:
    return bearer(client.post("/api/raters", json={"name": name}).raise_for_status().json()["token"])


def click(score: int = 3, key: str = "12345678") -> dict[str, Any]:
    return {"score": score, "seconds": 2.5, "key": key}


def test_nothing_that_a_rater_receives_names_a_system_a_kind_or_an_item(
    client: httpx.Client, made: NewStudy
) -> None:
    rater = joined(client)
    received = client.get("/api/study").text
    for position in range(1, 6):
        received += client.get("/api/standing", headers=rater).text
        received += client.put(f"/api/statements/{position}", headers=rater, json=click()).text
        received += client.get(f"/api/statements/{position}", headers=rater).text
    assert json.loads(client.get("/api/standing", headers=rater).text)["ending"]
    for secret in (*SYSTEMS, '"answer"', '"check"', *(item.id for item in made.items)):
        assert secret not in received


WRONG: list[tuple[str, str, dict[str, Any] | None, int]] = [
    ("PUT", "/api/statements/1", click(6), 422),  # not on the scale
    ("PUT", "/api/statements/1", {**click(), "score": 2.5}, 422),
    ("PUT", "/api/statements/1", {**click(), "score": True}, 422),
    ("PUT", "/api/statements/1", {**click(), "seconds": -1}, 422),
    ("PUT", "/api/statements/1", {**click(), "key": "short"}, 422),
    ("PUT", "/api/statements/1", {**click(), "system": "x"}, 422),  # an unknown field
    ("PUT", "/api/statements/1", {**click(), "assigned_at": "2020"}, 409),  # another statement was shown
    ("PUT", "/api/statements/2", click(), 404),  # not reached
    ("GET", "/api/statements/-1", None, 404),
    ("GET", "/api/statements/99999999999999999999", None, 404),
    ("GET", "/static/../app.py", None, 404),  # no path reaches the disk
    ("GET", "/static/%2e%2e/app.py", None, 404),
    ("GET", "/study.json", None, 404),
    ("GET", "/openapi.json", None, 404),
    ("DELETE", "/api/statements/1", None, 405),
    ("POST", "/api/raters", {"name": "x" * 81}, 422),
    ("POST", "/api/raters", {"name": "\x00\x01"}, 422),  # nothing to see
    ("POST", "/api/raters", {"prolific_pid": "p", "study_id": "s", "session_id": "t"}, 403),
    ("POST", "/api/raters", {"name": "x" * 20_000}, 413),
]


def test_wrong_requests_are_refused_in_one_shape(client: httpx.Client) -> None:
    rater = joined(client)
    client.get("/api/standing", headers=rater)
    for method, path, body, status in WRONG:
        reply = client.request(method, path, json=body, headers=rater)
        assert reply.status_code == status, (method, path, body)
        assert reply.json()["error"]["message"]
    assert client.get("/api/standing", headers=rater).json()["rated"] == 0


def test_only_the_right_token_opens_a_page(client: httpx.Client, made: NewStudy) -> None:
    rater, admin = joined(client), bearer(made.admin_token)
    client.get("/api/standing", headers=rater)
    wrong = [
        {},
        {"Authorization": "Bearer"},
        bearer("x" * 32),
        {"Authorization": "Basic eA=="},
        {"Cookie": "token=x"},
    ]
    for path, right, other in (
        ("/api/standing", rater, admin),
        ("/api/statements/1", rater, admin),
        ("/api/admin/progress", admin, rater),
    ):
        assert {client.get(path, headers=headers).status_code for headers in (*wrong, other)} == {401}
        assert client.get(path, headers=right).status_code == 200


def test_every_reply_has_the_security_headers_and_pages_have_no_inline_code(client: httpx.Client) -> None:
    for path in ("/", "/admin", "/static/rate.js", "/api/study", "/nowhere", "/healthz"):
        headers = client.get(path).headers
        assert {name: headers[name] for name in HEADERS} == HEADERS
    page = client.get("/").text + client.get("/admin").text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|https?://", page)


def test_names_are_kept_as_text_whatever_is_in_them(client: httpx.Client, made: NewStudy) -> None:
    names = {"<b>Zoë</b> \U0001f642": "<b>Zoë</b> \U0001f642", "a\x00b\nc": "a b c"}
    names["'; DROP TABLE raters; --"] = "'; DROP TABLE raters; --"
    for name in names:
        joined(client, name)
    raters = client.get("/api/admin/progress", headers=bearer(made.admin_token)).json()["raters"]
    assert {rater["name"] for rater in raters} == set(names.values())


def test_a_body_that_never_ends_frees_its_place() -> None:
    async def never(*_: Any) -> None:
        raise AssertionError("the app got a request")

    async def request_twice() -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        guard = Guard(never, access=Access(), max_body=10, in_flight=1, body_seconds=0.01)
        for _ in range(2):
            await guard({"type": "http", "method": "POST", "headers": []}, anyio.sleep_forever, send)  # type: ignore[arg-type]
        return sent

    assert [message["status"] for message in anyio.run(request_twice) if "status" in message] == [408, 408]


@pytest.mark.parametrize(
    ("options", "statuses"), [({"joins_per_minute": 2}, [201, 201, 429]), ({"in_flight": 0}, [503, 503, 503])]
)
def test_too_many_requests_are_told_when_to_come_back(
    made: NewStudy, store: Store, options: dict[str, int], statuses: list[int]
) -> None:
    with served(made.study, list(made.items), store, **options) as client:
        replies = [client.post("/api/raters", json={"name": "Ada"}) for _ in range(3)]
    assert [reply.status_code for reply in replies] == statuses
    assert replies[2].headers["Retry-After"]


def test_the_throttle_counts_the_last_minute_only() -> None:
    now = [0.0]
    throttle = Throttle(2, clock=lambda: now[0])
    assert [throttle.passes() for _ in range(3)] == [True, True, False]
    now[0] = 60.0
    assert throttle.passes()


def test_a_participant_of_prolific_is_one_rater_and_returns_with_the_code(made: NewStudy, store: Store) -> None:
    entry = {"prolific_pid": "5f00aa", "study_id": "s", "session_id": "t"}
    with served(made.study, list(made.items), store, prolific=True) as client:
        assert client.post("/api/raters", json={"name": "Ada"}).status_code == 403
        assert client.post("/api/raters", json={**entry, "prolific_pid": "a b"}).status_code == 422
        first, again = (bearer(client.post("/api/raters", json=entry).json()["token"]) for _ in range(2))
        assert first != again
        for position in range(1, 6):
            client.get("/api/standing", headers=first)
            standing = client.put(f"/api/statements/{position}", headers=again, json=click()).json()
    assert [(rater.external, rater.session) for rater in store.raters()] == [("5f00aa", "t")]
    assert standing["ending"]["link"].endswith(f"?cc={made.study.completion_code}")


def test_the_administrator_sees_the_progress(client: httpx.Client, made: NewStudy) -> None:
    rater, items = joined(client), {item.statement: item for item in made.items}
    for position in range(1, 6):
        item = items[client.get("/api/standing", headers=rater).json()["current"]["statement"]]
        score = item.expected[0] if item.kind == CHECK else 4
        client.put(f"/api/statements/{position}", headers=rater, json=click(score, f"key-{position}-xx"))
    progress = client.get("/api/admin/progress", headers=bearer(made.admin_token)).json()
    assert (progress["ratings"], progress["wanted"], progress["done"]) == (4, 12, pytest.approx(1 / 3))
    assert progress["coverage"] == {"0": 2, "1": 4}
    (row,) = progress["raters"]
    assert (row["name"], row["ratings"], row["checks"], row["failed_checks"]) == ("Ada", 4, 1, 0)
    assert row["finished"]
    assert {mean["mean"] for mean in progress["means"]} == {4.0}
    assert {mean["system"] for mean in progress["means"]} <= set(SYSTEMS)


def test_ratings_of_items_that_the_study_does_not_have_are_counted_and_left_out(
    client: httpx.Client, made: NewStudy, store: Store
) -> None:
    known, unknown = (Rating("x", item, 3, 2.0, timestamp(), key=item) for item in (made.items[0].id, "elsewhere"))
    store.add([Rater("x", "import", timestamp(), external="w")], [known, unknown])
    reply = client.get("/api/admin/progress", headers=bearer(made.admin_token))
    assert reply.status_code == 200
    assert reply.json()["unknown"] == 1
    (row,) = reply.json()["raters"]
    assert row["ratings"] + row["checks"] == 1


def test_many_raters_at_once_through_the_server_lose_and_double_nothing(tmp_path: Path) -> None:
    made = new_study(tmp_path, per_rater=3, checks=0)

    def rate(client: httpx.Client, name: str) -> None:
        rater = joined(client, name)
        standing = client.get("/api/standing", headers=rater).json()
        while standing["current"]:
            position = standing["current"]["position"]
            body = click(position, f"{name}-{position}-key")
            for _ in range(2):  # the page of an impatient network
                reply = client.put(f"/api/statements/{position}", headers=rater, json=body)
            standing = reply.raise_for_status().json()

    with (
        open_store(database_url(tmp_path / "study"), made.study) as store,
        served(made.study, list(made.items), store) as client,
        ThreadPoolExecutor(4) as pool,
    ):
        list(pool.map(lambda n: rate(client, f"rater{n}"), range(4)))
        ratings = store.ratings(every_revision=True)
    load = Counter(rating.item for rating in ratings)
    assert {rating.revision for rating in ratings} == {1}
    assert max(load.values()) == 2
    assert load.total() >= 10  # of 12; the last rater cannot rate an item twice


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, dict[str, str], dict[str, str]]]:
    """The routes as the framework describes them, and the headers of a rater and of the administrator."""
    folder: Path = tmp_path_factory.mktemp("described")
    made = new_study(folder)
    with open_store(database_url(folder / "study"), made.study) as store:
        options = ServerOptions(allowed_hosts=["testserver"])
        app: Any = create_app(made.study, list(made.items), store, options)
        schema = schemathesis.openapi.from_dict(app._app._app.openapi())
        schema.app = app
        reply = schema["/api/raters"]["POST"].Case(body={"name": "Ada"}, media_type="application/json").call()
        yield schema, bearer(reply.json()["token"]), bearer(made.admin_token)


@pytest.mark.parametrize("known", [True, False], ids=["with a token", "without"])
def test_generated_requests_are_answered_or_refused(
    known: bool, described: tuple[Any, dict[str, str], dict[str, str]]
) -> None:
    """Answers are as declared, refusals have a message, and only who knows a token reads or rates."""
    schema, rater, administrator = described
    paths = schema.raw_schema["paths"]
    assert {(name.upper(), path) for path, methods in paths.items() for name in methods} == set(ROUTES)
    quick = settings(max_examples=10, suppress_health_check=list(HealthCheck), database=None)
    modes = schemathesis.GenerationMode

    def check(case: Any) -> None:
        headers = administrator if "/admin/" in case.path else rater
        reply = case.call(headers=headers if known else None)
        if reply.status_code < 300:
            assert known or case.path in OPEN
            case.validate_response(reply, checks=[response_schema_conformance])
        else:
            assert reply.status_code in REFUSALS
            assert set(reply.json()["error"]) == {"message", "hint"}
        assert {name: reply.headers[name.lower()][0] for name in HEADERS} == HEADERS

    for method, path in ROUTES:
        for mode in modes if path in WITH_INPUT else [modes.POSITIVE]:
            quick(given(case=schema[path][method].as_strategy(generation_mode=mode))(check))()


@contextmanager
def server_process(study: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`cod3s study serve` as a process of its own, and its address."""
    command = [sys.executable, "-m", "cod3s", "study", "serve", str(study), "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", env=environment) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("raters: http"), line + process.stderr.read()
            yield process, line.split()[1].rstrip("/")
        finally:
            process.kill()


def test_a_killed_server_loses_no_rating_that_it_acknowledged(made: NewStudy, tmp_path: Path) -> None:
    acknowledged: dict[str, int] = {}

    def click_until_it_dies(address: str, kill: Callable[[], None]) -> None:
        with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
            rater = joined(client)
            client.get("/api/standing", headers=rater)
            for number in range(1000):
                body = click(number % 6, f"click-{number:05}")
                try:
                    client.put("/api/statements/1", headers=rater, json=body).raise_for_status()
                except httpx.TransportError:
                    return
                acknowledged[body["key"]] = body["score"]
                if number == 20:
                    threading.Thread(target=kill).start()  # at any moment of the next requests

    with server_process(tmp_path / "study") as (process, address):
        click_until_it_dies(address, lambda: os.kill(process.pid, signal.SIGKILL))
        assert process.wait(30) == -signal.SIGKILL
    assert len(acknowledged) > 20
    with open_store(database_url(tmp_path / "study"), made.study) as store:
        kept = {rating.key: rating.score for rating in store.ratings(every_revision=True)}
    assert acknowledged.items() <= kept.items()
    assert len(kept) <= len(acknowledged) + 1, "at most the one that was on its way"


def test_serve_ends_with_ctrl_c_and_says_when_a_port_is_taken(cod3s: Run, made: NewStudy, tmp_path: Path) -> None:
    with server_process(tmp_path / "study", "--admin-token") as (process, address):
        assert process.stderr is not None
        token = process.stderr.readline().strip().partition("#")[2]
        statuses = [
            httpx.get(f"{address}/api/admin/progress", headers=bearer(text), trust_env=False).status_code
            for text in (token, made.admin_token)
        ]
        assert statuses == [200, 401], "a new token replaces the old one"
        done = cod3s("study", "serve", "study", "--port", address.rpartition(":")[2])
        assert done.returncode == 1
        assert "cannot listen on" in done.stderr
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
