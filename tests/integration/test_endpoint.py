"""`cod3s serve --upstream` with the official client, before a real small model and servers that misbehave."""

import asyncio
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from causal_server import make_tiny_model, served
from cod3s.errors import UsageError
from cod3s.web.endpoint import create_endpoint
from cod3s.web.limits import ENDPOINT, Limits
from cod3s.web.upstream import Upstream
from conftest import ROOT, Run
from upstreams import TEXTS, Scripted, app_of
from web_server import serving, wait_until

openai = pytest.importorskip("openai")
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Name a use for a brick."}]


@contextmanager
def endpoint(
    mood: str = "", upstream: Scripted | None = None, **options: Any
) -> Iterator[tuple[Any, Scripted, str]]:
    """The official client of an endpoint, the scripted upstream behind it, and the endpoint's address."""
    scripted = upstream or Scripted(mood)
    limits = Limits(**{**ENDPOINT, "seconds": 20.0, **options.pop("limits", {})})
    with (
        serving(app_of(scripted)) as behind,
        serving(create_endpoint(behind, limits, **options)) as address,
        openai.OpenAI(base_url=f"{address}/v1", api_key="sk-secret", max_retries=0) as client,
    ):
        yield client, scripted, address


def contents(reply: Any) -> list[str]:
    return [choice.message.content for choice in reply.choices]


# Different answers


def test_n_answers_differ_and_the_reply_is_a_completion() -> None:
    with endpoint() as (client, upstream, _):
        reply = client.chat.completions.create(model="m", messages=MESSAGES, n=5, temperature=0.7, user="u1")
    assert len(set(contents(reply))) == 5
    assert len({TEXTS[0], TEXTS[1]} & set(contents(reply))) == 1, "they say the same"
    assert [choice.index for choice in reply.choices] == [0, 1, 2, 3, 4]
    assert {choice.finish_reason for choice in reply.choices} == {"length"}, "the choices are the upstream's own"
    assert (reply.id, reply.model) == ("c-1", "m")
    report = reply.cod3s
    assert (report["stopped"], report["distinct"], report["calls"]) == ("filled", 5, len(upstream.requests))
    assert reply.usage.completion_tokens == sum(8 * request.get("n", 1) for request in upstream.requests)
    first = upstream.requests[0]
    assert (first["messages"], first["n"], first["temperature"], first["user"]) == (MESSAGES, 5, 0.7, "u1")
    assert set(upstream.keys) == {"Bearer sk-secret"}


def test_texts_are_completed_too() -> None:
    with endpoint() as (client, upstream, _):
        reply = client.completions.create(model="m", prompt="A brick can", n=3)
        with pytest.raises(openai.UnprocessableEntityError, match="one prompt"):
            client.completions.create(model="m", prompt=["one", "two"], n=3)
    assert len({choice.text for choice in reply.choices}) == 3
    assert upstream.requests[0]["prompt"] == "A brick can"


def test_one_answer_passes_through_and_streams_as_the_upstream_does() -> None:
    with endpoint() as (client, upstream, address):
        reply = client.chat.completions.create(model="m", messages=MESSAGES)
        assert contents(reply) == TEXTS[:1]
        assert not hasattr(reply, "cod3s")
        chunks = list(client.chat.completions.create(model="m", messages=MESSAGES, n=1, stream=True))
        assert "".join(chunk.choices[0].delta.content for chunk in chunks) == "Use it."
        assert [model.id for model in client.models.list()] == ["m"]
        body = b'{"model":  "m", "messages": [], "odd": 1.50}'
        raw = httpx.post(
            f"{address}/v1/chat/completions", content=body, headers={"Content-Type": "application/json"}
        )
        assert raw.status_code == 200
        tools = [{"type": "function", "function": {"name": "f"}}]
        client.chat.completions.create(model="m", messages=MESSAGES, n=2, tools=tools)
    assert upstream.requests[2] == json.loads(body)
    assert upstream.requests[3]["n"] == 2, "calls of tools cannot be compared as texts"


def test_different_answers_can_be_streamed() -> None:
    with endpoint() as (client, _, _):
        options = {"model": "m", "messages": MESSAGES, "n": 3, "stream": True}
        chunks = list(client.chat.completions.create(**options, stream_options={"include_usage": True}))
        texts: dict[int, str] = {}
        for chunk in chunks:
            for choice in chunk.choices:
                texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
        assert len(set(texts.values())) == 3
        assert {choice.finish_reason for chunk in chunks for choice in chunk.choices} == {None, "length"}
        assert chunks[-1].usage.completion_tokens > 0
        pieces = list(client.completions.create(model="m", prompt="A brick can", n=2, stream=True))
        assert [piece.choices[0].index for piece in pieces] == [0, 1]


def test_wishes_choose_the_strategy_the_history_and_the_score() -> None:
    with endpoint() as (client, upstream, _):
        create = client.chat.completions.create
        wishes = {"unlike": [TEXTS[0], TEXTS[2]]}
        reply = create(model="m", messages=MESSAGES, n=3, extra_body={"cod3s": wishes})
        assert not {TEXTS[0], TEXTS[1], TEXTS[2]} & set(contents(reply))
        reply = create(model="m", messages=MESSAGES, extra_body={"cod3s": {**wishes, "strategy": "avoid"}})
        assert len(reply.choices) == 1
        assert TEXTS[0] in upstream.requests[-1]["messages"][-1]["content"], (
            "the model is told what was said before"
        )
        reply = create(model="m", messages=MESSAGES, n=2, extra_body={"cod3s": {"score": "judge", "budget": 2}})
        assert reply.cod3s["calls"] <= 2
        assert reply.cod3s["scores"] == [0.7, 0.7]
        assert any("Rate how good" in str(request) for request in upstream.requests)
        for wish, message in (
            ({"strategy": "shout"}, "cod3s.strategy"),
            ({"budget": 1000}, "cod3s.budget"),
            ({"encoder": "fast:/etc"}, "cod3s.encoder"),
        ):
            with pytest.raises(openai.UnprocessableEntityError, match=message):
                create(model="m", messages=MESSAGES, n=2, extra_body={"cod3s": wish})
        with pytest.raises(openai.UnprocessableEntityError, match="at most 30"):
            create(model="m", messages=MESSAGES, n=31)


def test_a_real_model_behind_a_real_server_gives_different_answers(tmp_path: Path) -> None:
    options: dict[str, Any] = {"model": "tiny", "n": 4, "max_tokens": 8, "seed": 5}
    options["extra_body"] = {"cod3s": {"strategy": "resample"}}
    with (
        served(make_tiny_model(tmp_path)) as behind,
        serving(create_endpoint(behind, Limits(**ENDPOINT))) as address,
        openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        first, again = (client.chat.completions.create(messages=MESSAGES[1:], **options) for _ in range(2))
        text = client.completions.create(prompt="he called", **options)
    assert len(set(contents(first))) == 4
    assert contents(first) == contents(again), "the same seed, the same answers"
    assert len({choice.text for choice in text.choices}) == 4


# Upstreams that misbehave


def test_an_upstream_that_ignores_or_refuses_n_is_asked_once_per_answer() -> None:
    for mood in ("ignores n", "refuses n"):
        with endpoint(mood) as (client, upstream, _):
            reply = client.chat.completions.create(model="m", messages=MESSAGES, n=3)
            assert len(set(contents(reply))) == 3
            assert len(upstream.requests) <= 8


def test_errors_come_back_as_the_upstream_sent_them() -> None:
    with endpoint("429") as (client, upstream, _):
        for n in (1, 5):
            with pytest.raises(openai.RateLimitError) as refused:
                client.chat.completions.create(model="m", messages=MESSAGES, n=n)
            assert refused.value.response.headers["retry-after"] == "7"
            assert refused.value.response.headers["x-request-id"] == "r1"
            assert refused.value.body == {"message": "slow down", "type": "rate_limit"}
        assert len(upstream.requests) == 2, "an error is passed on, not tried again"


def test_what_is_no_completion_is_a_clear_error() -> None:
    with endpoint("HTML") as (client, _, address):
        with pytest.raises(openai.InternalServerError, match="did not answer with completions"):
            client.chat.completions.create(model="m", messages=MESSAGES, n=3)
        passed_on = httpx.post(f"{address}/v1/chat/completions", json={"model": "m", "messages": MESSAGES})
        assert passed_on.headers["content-type"].startswith("text/html")
        assert "default-src 'self'" in passed_on.headers["content-security-policy"]


def test_an_upstream_that_hangs_is_not_waited_for() -> None:
    with endpoint("hangs", limits={"seconds": 1.0}) as (client, _, _):
        for n in (1, 3):
            with pytest.raises(openai.InternalServerError) as late:
                client.chat.completions.create(model="m", messages=MESSAGES, n=n)
            assert late.value.status_code == 504


def test_an_upstream_that_dies_midway_leaves_what_was_paid_for() -> None:
    with endpoint("dies") as (client, upstream, _):
        reply = client.chat.completions.create(model="m", messages=MESSAGES, n=8)
        assert 1 < len(reply.choices) <= 8, "those that one call brought"
        assert reply.cod3s["stopped"] == "failures"
        assert len(upstream.requests) == 2


def test_a_stream_that_is_cut_is_cut_for_the_client() -> None:
    with endpoint("cuts") as (_, _, address):
        body = {"model": "m", "messages": MESSAGES, "stream": True}
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.post(f"{address}/v1/chat/completions", json=body)
    with endpoint() as (client, _, _):
        assert len(list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))) == 2


def test_an_upstream_that_is_not_there_is_named() -> None:
    with (
        serving(create_endpoint("http://127.0.0.1:9", Limits(**ENDPOINT))) as address,
        openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        for n in (1, 3):
            with pytest.raises(openai.InternalServerError, match="the upstream did not answer") as gone:
                client.chat.completions.create(model="m", messages=MESSAGES, n=n)
            assert gone.value.status_code == 502


def test_long_answers_pass_and_endless_ones_do_not() -> None:
    with endpoint("1 MB") as (client, _, _):
        reply = client.chat.completions.create(model="m", messages=MESSAGES, n=2)
        assert all(len(text) > 1_000_000 for text in contents(reply))
    with (
        endpoint("1 MB", limits={"reply": 100_000}) as (client, _, _),
        pytest.raises(openai.InternalServerError, match="larger than 100000 bytes"),
    ):
        client.chat.completions.create(model="m", messages=MESSAGES, n=2)


def test_a_client_that_leaves_ends_the_call_to_the_upstream() -> None:
    with endpoint("hangs", limits={"at_once": 1}) as (_, upstream, address):
        for n in (1, 3):
            body = {"model": "m", "messages": MESSAGES, "n": n}
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{address}/v1/chat/completions", json=body, timeout=2)
            wait_until(lambda: httpx.get(f"{address}/healthz").json()["requests"] == 0)
        wait_until(lambda: upstream.left == 2)


# Keys, limits, addresses


def test_keys_are_passed_on_replaced_and_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), endpoint() as (client, upstream, _):
        client.chat.completions.create(model="m", messages=MESSAGES, n=3)
        client.chat.completions.create(model="m", messages=MESSAGES)
        assert set(upstream.keys) == {"Bearer sk-secret"}
    with (
        caplog.at_level(logging.DEBUG),
        endpoint(api_key="sk-secret", upstream_key="up") as (client, upstream, address),
    ):
        client.chat.completions.create(model="m", messages=MESSAGES, n=2)
        client.models.list()
        assert set(upstream.keys) == {"Bearer up"}, "the key of this server is not for the upstream"
        for key in ("", "Bearer wrong", "Bearer sk-secreT", "Bearer ключ"):
            reply = httpx.get(f"{address}/v1/models", headers={"Authorization": key.encode()})
            assert reply.status_code == 401
    ours = [
        record.getMessage() for record in caplog.records if record.name.startswith(("cod3s", "httpx", "httpcore"))
    ]
    assert ours
    assert "sk-secret" not in "".join(ours)
    assert "brick" not in "".join(ours)


def test_bodies_hosts_and_pages_are_checked_as_in_the_explorer() -> None:
    with endpoint(limits={"body": 1000}) as (_, upstream, address):
        path = f"{address}/v1/chat/completions"
        assert httpx.post(path, json={"messages": "x" * 2000}).status_code == 413
        assert httpx.post(path, content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415
        assert httpx.post(path, json={}, headers={"Origin": "https://evil.example"}).status_code == 403
        assert httpx.post(path, json={}, headers={"Host": "evil.example"}).status_code == 403
        assert httpx.get(f"{address}/docs").status_code == 200
        assert not upstream.requests
        assert httpx.post(path, content=b"{", headers={"Content-Type": "application/json"}).status_code == 500
        assert not upstream.requests, "what is not JSON is the upstream's to refuse"


def test_others_may_use_it_only_with_a_key(here: Run) -> None:
    serve = ["serve", "--port", "0", "--upstream", "http://localhost:1"]
    for more, message in (
        (["--host", "0.0.0.0"], "only with a key"),
        (["--allow-host", "api.example.org"], "only with a key"),
        (["--upstream", "ftp://x"], "an address such as"),
        (["--upstream", "http://me:secret@localhost:1"], "an address such as"),
    ):
        done = here(*serve, *more)
        assert done.returncode == 2
        assert message in done.stderr
        assert "secret" not in done.stderr
    assert "goes with --upstream" in here("serve", "--api-key", "x").stderr
    with pytest.raises(UsageError):
        Upstream("localhost:8000", Limits())


def test_it_runs_as_a_process_without_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "ctranslate2.py").write_text("raise ImportError('not in this install')\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}"}
    with serving(app_of(upstream := Scripted())) as behind:
        command = [sys.executable, "-m", "cod3s", "serve", "--port", "0", "--upstream", behind]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = re.search(r"at (http://\S+)", line)
            assert address, process.communicate(timeout=10)

            async def ask() -> Any:
                async with openai.AsyncOpenAI(base_url=f"{address[1]}/v1", api_key="none") as client:
                    return await client.chat.completions.create(model="m", messages=MESSAGES, n=3)

            assert len(set(contents(asyncio.run(ask())))) == 3
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
    assert upstream.requests
