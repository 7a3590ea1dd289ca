"""`cod3s diversify` against servers: protocol details, strategies, costs, and a causal model behind a real API."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import cod3s as library
from cod3s.ask import STRATEGIES, CompletionServer
from cod3s.ask.strategies import open_strategy, read_verbalized
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError
from conftest import Run

pytest.importorskip("httpx")
ANSWERS = [
    "Build a wall.",
    "Hold a door open.",
    "Sharpen a knife on it.",
    "Paint it as a gift.",
    "Warm the bed with it.",
    "Break a window in an emergency.",
]
Reply = tuple[int, Any] | tuple[int, Any, dict[str, str]]


class Scripted(BaseHTTPRequestHandler):
    """Answers every request with what a function of the test makes of it."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({**request, "path": self.path, "key": self.headers["Authorization"]})
        status, content, *headers = self.server.script(request, len(self.server.requests))
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in (headers[0] if headers else {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def scripted(script: Callable[[dict[str, Any], int], Reply]) -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Scripted) as server:
        server.requests, server.script = [], script
        server.address = f"http://127.0.0.1:{server.server_port}/v1"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def chat(*texts: Any, usage: dict[str, int] | None = None) -> tuple[int, Any]:
    content: dict[str, Any] = {"choices": [{"message": {"content": text}} for text in texts]}
    return 200, content | ({"usage": usage} if usage else {})


def in_turn(request: dict[str, Any], number: int) -> Reply:
    return chat(ANSWERS[(number - 1) % len(ANSWERS)], usage={"prompt_tokens": 10, "completion_tokens": 5})


def client(server: ThreadingHTTPServer, **options: Any) -> CompletionServer:
    return CompletionServer(server.address, "tiny", **{"chat": True, "samples": 1, "pause": 0.0, **options})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_fills_k_bins_of_a_model_that_has_them(strategy: str, static: Encoder) -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        if "JSON" in request["messages"][0]["content"]:
            return chat(json.dumps([{"text": text, "probability": 0.1} for text in ANSWERS[:5]]))
        return in_turn(request, number)

    with scripted(script) as server:
        found = library.diversify(client(server), "A use for a brick?", 4, strategy=strategy, encoder=static)
    assert found.stopped == "filled"
    assert len(found) == len(set(found.texts)) == 4
    assert len(found.strategies) == found.calls
    assert strategy == "auto" or set(found.strategies) == {strategy}


def test_avoid_tells_the_model_what_it_said(static: Encoder) -> None:
    with scripted(in_turn) as server:
        library.diversify(client(server), "A use for a brick?", 3, strategy="avoid", encoder=static)
    first, second, third = [request["messages"][0]["content"] for request in server.requests]
    assert first == "A use for a brick?"
    assert ANSWERS[0] in second
    assert ANSWERS[1] not in second
    assert all(answer in third for answer in ANSWERS[:2])


def test_a_model_that_continues_text_is_shown_a_list_to_continue(static: Encoder) -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        return 200, {"choices": [{"text": f" {ANSWERS[number - 1]}\n{number + 1}. something else"}]}

    with scripted(script) as server:
        ask = client(server, chat=False)
        found = library.diversify(ask, "A brick can", 3, strategy="avoid", encoder=static)
    assert server.requests[1]["prompt"].startswith('Different ways to continue the text "A brick can":\n1. ')
    assert server.requests[1]["prompt"].endswith("\n2.")
    assert ANSWERS[1] in found.candidates


def test_the_temperature_rises_while_nothing_new_comes(static: Encoder) -> None:
    with scripted(lambda request, number: chat(ANSWERS[0])) as server:
        found = library.diversify(client(server), "x", 3, strategy="temperature", budget=12, encoder=static)
    temperatures = [request["temperature"] for request in server.requests]
    assert found.stopped in ("exhausted", "budget")
    assert temperatures[:3] == [1.0, 1.0, 1.15]
    assert temperatures == sorted(temperatures)
    assert max(temperatures) <= 1.8


def test_auto_moves_to_the_strategy_that_brings_new_answers(static: Encoder) -> None:
    """A model that repeats itself unless it is told what it said."""

    def script(request: dict[str, Any], number: int) -> Reply:
        content = request["messages"][0]["content"]
        known = [answer for answer in ANSWERS if answer in content]
        return chat(ANSWERS[len(known)] if "given already" in content else ANSWERS[0])

    with scripted(script) as server:
        found = library.diversify(client(server), "x", 5, strategy="auto", encoder=static)
    assert found.stopped == "filled"
    assert found.strategies[-1] == "avoid"
    assert found.strategies.count("avoid") >= 3


@pytest.mark.parametrize(
    ("new_of_four", "strategies"),
    [
        ((4, 4, 4), ["resample"] * 4),
        ((4, 2, 2), ["resample"] * 4),  # half is enough
        ((4, 1, 4), ["resample", "resample", "verbalized", "verbalized"]),
        ((1, 1, 0), ["resample", "verbalized", "avoid", "temperature"]),
        ((4, 0, 0, 0, 0), ["resample", "resample", "verbalized", "avoid", "temperature", "resample"]),  # all tried
    ],
)
def test_auto_stays_with_what_brings_new_answers(new_of_four: tuple[int, ...], strategies: list[str]) -> None:
    auto = open_strategy("auto", CompletionServer("http://127.0.0.1:9/v1", "m", samples=4, chat=True))
    calls = [auto.plan("x", [])]
    for new_bins in new_of_four:
        auto.learn(calls[-1], 4, new_bins, 100)
        calls.append(auto.plan("x", []))
    assert [call.strategy for call in calls] == strategies


@pytest.mark.parametrize(
    ("reply", "wanted", "reason"),
    [
        ('[{"text": "a", "probability": 0.2}, {"text": "b", "probability": 0.7}]', ["b", "a"], "as asked"),
        ('Sure!\n```json\n[{"text": "a", "probability": "20%"}]\n```\nEnjoy.', ["a"], "fenced, in per cent"),
        ('[{"text": "a", "probability": 0.5}, {"text": "b", "prob', ["a"], "cut off at the token limit"),
        ('["a", "b"]', ["a", "b"], "bare strings"),
        ('{"responses": [{"text": "a", "probability": 1}]}', ["a"], "wrapped in an object"),
        ('{"text": "a", "probability": 0.1}\n{"text": "b", "probability": 0.2}', ["b", "a"], "an object per line"),
        ("1. first one (probability: 0.2)\n2) second one - 70%", ["second one", "first one"], "a numbered list"),
        ("- it costs 20\n* it costs 30", ["it costs 20", "it costs 30"], "a number that is no probability"),
        ('[{"text": "a", "probability": null}, {"text": " ", "probability": 1}]', ["a"], "blank, no number"),
        ("I cannot answer that.", [], "no list is no answer"),
        ("", [], "nothing"),
        ("[[[[", [], "broken"),
        ('[{"text": "a"}, {"text": "a"}]', ["a"], "said twice"),
    ],
)
def test_verbalized_answers_are_read_with_care(reply: str, wanted: list[str], reason: str) -> None:
    assert read_verbalized(reply) == wanted, reason


def test_a_strategy_that_does_not_exist_or_fit_is_refused() -> None:
    with pytest.raises(Cod3sError, match="no strategy is called 'avoyd'") as caught:
        open_strategy("avoyd", print)
    assert "avoid" in caught.value.hint
    with pytest.raises(Cod3sError, match="cannot change the temperature"):
        library.diversify(lambda prompt: "x", "x", 2, strategy="temperature")


def test_a_plain_function_can_be_told_what_to_avoid(static: Encoder) -> None:
    prompts: list[str] = []

    def generate(prompt: str) -> str:
        prompts.append(prompt)
        return ANSWERS[len(prompts) - 1]

    found = library.diversify(generate, "x", 2, strategy="avoid", encoder=static)
    assert found.stopped == "filled"
    assert ANSWERS[0] in prompts[1]
    assert found.tokens is None


def test_a_busy_server_is_asked_again_when_it_says(static: Encoder) -> None:
    pauses: list[float] = []

    def script(request: dict[str, Any], number: int) -> Reply:
        if number == 1:
            return 429, {"error": {"message": "slow down"}}, {"Retry-After": "7"}
        return (503, "loading model") if number == 2 else chat(ANSWERS[0])

    with scripted(script) as server:
        assert client(server, pause=0.5, sleep=pauses.append)("x") == [ANSWERS[0]]
    assert pauses == [7.0, 1.0]


def test_a_server_that_stays_busy_ends_in_a_clear_error(static: Encoder) -> None:
    with (
        scripted(lambda request, number: (429, {"error": {"message": "quota used up"}})) as server,
        pytest.raises(Cod3sError, match=r"3 calls gave no answer.* answered 429: quota used up") as caught,
    ):
        library.diversify(client(server, retries=1), "x", 2, encoder=static)
    assert "quota" in caught.value.hint
    assert len(server.requests) == 6


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_that_no_retry_mends_ends_the_asking_at_once(status: int, static: Encoder) -> None:
    with (
        scripted(lambda request, number: (status, {"error": "no"})) as server,
        pytest.raises(Cod3sError, match=f"1 call gave no answer.* answered {status}: no"),
    ):
        library.diversify(client(server), "x", 2, encoder=static)
    assert len(server.requests) == 1


def test_a_server_that_refuses_several_choices_is_asked_for_one(static: Encoder) -> None:
    """What llama.cpp's server answered to n before it knew it."""

    def script(request: dict[str, Any], number: int) -> Reply:
        if request.get("n", 1) != 1:
            return 500, {"error": {"code": 500, "message": "Only one completion choice is allowed"}}
        return in_turn(request, number)

    with scripted(script) as server:
        found = library.diversify(client(server, samples=4), "x", 3, encoder=static)
    assert found.stopped == "filled"
    assert [request.get("n", 1) for request in server.requests] == [4, 1, 1, 1]
    assert not found.failures


def test_a_server_that_ignores_several_choices_is_asked_more_often(static: Encoder) -> None:
    """Ollama writes one choice, whatever n says."""
    with scripted(in_turn) as server:
        found = library.diversify(client(server, samples=4), "x", 3, encoder=static)
    assert (found.stopped, found.calls) == ("filled", 3)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("<think>the user wants…</think>\n\nBuild a wall.", "Build a wall."),
        ([{"type": "text", "text": "Build "}, {"type": "text", "text": "a wall."}], "Build a wall."),
    ],
)
def test_messages_may_hold_thoughts_or_parts(content: Any, wanted: str) -> None:
    with scripted(lambda request, number: chat(content)) as server:
        assert client(server)("x") == [wanted]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ((200, "<html>hello</html>"), "did not answer with completions"),
        ((200, {"choices": [{"message": {"content": 5}}]}), "did not answer with completions"),
        ((200, {"choices": []}), "returned no text"),
        ((200, {"choices": [{"message": {"content": None}}]}), "returned no text"),
        ((200, {"choices": [{"message": {"content": "<think>cut off"}}]}), "returned no text"),
    ],
)
def test_replies_without_text_end_in_a_clear_error(reply: Reply, message: str, static: Encoder) -> None:
    with scripted(lambda request, number: reply) as server, pytest.raises(Cod3sError, match=message):
        library.diversify(client(server), "x", 2, encoder=static)


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://localhost:11434", "http://localhost:11434/v1/chat/completions"),
        ("http://localhost:11434/", "http://localhost:11434/v1/chat/completions"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1/chat/completions"),
        ("https://host/openai/v1/chat/completions", "https://host/openai/v1/chat/completions"),
    ],
)
def test_addresses_are_completed(url: str, wanted: str) -> None:
    assert CompletionServer(url, "m", chat=True).address == wanted


def test_tokens_are_counted_over_all_calls_and_bound_the_asking(static: Encoder) -> None:
    with scripted(in_turn) as server:
        found = library.diversify(client(server), "x", 6, token_budget=40, encoder=static)
    assert (found.stopped, found.calls) == ("tokens", 3)
    assert found.tokens is not None
    assert (found.tokens.prompt, found.tokens.completion, found.tokens.total) == (30, 15, 45)


def test_tokens_are_estimated_where_a_server_does_not_count(static: Encoder) -> None:
    with scripted(lambda request, number: chat("12345678")) as server:
        ask = client(server)
        ask("1234")
    assert (ask.tokens_spent().prompt, ask.tokens_spent().completion, ask.tokens_spent().estimated) == (1, 2, True)


def test_strategies_work_side_by_side(static: Encoder) -> None:
    with scripted(in_turn) as server:
        found = asyncio.run(library.diversify_async(client(server), "x", 4, strategy="avoid", encoder=static))
    assert found.stopped == "filled"


def test_diversified_answers_are_a_list(static: Encoder) -> None:
    with scripted(in_turn) as server:
        found = library.diversify(client(server), "x", 3, encoder=static)
    assert found[0].text == found.texts[0]
    assert len(found[1:]) == 2
    assert json.loads(found.to_json())["tokens"] == {"prompt": 30, "completion": 15, "estimated": False}
    assert repr(found).startswith("Diversified(3 of 3 answers, 3 calls, filled: ['Build a wall.'")
    assert "<table>" in found._repr_html_()


def test_the_command_prints_answers_and_tells_the_cost(cod3s: Run) -> None:
    with scripted(in_turn) as server:
        done = cod3s(
            "diversify", "-", "-k3", "--server", server.address, "--model", "tiny", "--strategy", "resample",
            "--samples", "1", "--price", "1,2", stdin="A use for a brick?\n", OPENAI_API_KEY="open sesame",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(ANSWERS[:3])
    assert "3 answers of 3 in 3 calls; stopped because 3 answers differ" in done.stderr
    assert "30 prompt tokens, 15 answer tokens, $0.0001" in done.stderr
    assert "sesame" not in done.stdout + done.stderr
    assert {request["key"] for request in server.requests} == {"Bearer open sesame"}
    assert server.requests[0]["messages"][0]["content"] == "A use for a brick?"


def test_json_of_the_command_holds_everything(cod3s: Run) -> None:
    with scripted(in_turn) as server:
        done = cod3s("diversify", "x", "-k2", "--server", server.address, "--model", "m", "--json")
    record = json.loads(done.stdout)
    assert record["stopped"] == "filled"
    assert len(record["selection"]["selected"]) == 2
    assert len(record["strategies"]) == record["calls"]


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["x", "--server", "http://127.0.0.1:9/v1", "--model", "m"], "did not answer", 1),
        (["x", "--server", "localhost:9", "--model", "m"], "hint: write http://localhost:9", 2),
        (
            ["x", "--server", "http://127.0.0.1:9/v1", "--model", "m", "--key-env", "NO_SUCH"],
            "NO_SUCH is empty or not set",
            2,
        ),
        (
            ["x", "--server", "http://127.0.0.1:9", "--model", "m", "--strategy", "nice"],
            "no strategy is called",
            2,
        ),
        (["x", "--server", "http://127.0.0.1:9", "--model", "m", "--api", "rest"], "no API is called 'rest'", 2),
        (["x", "--server", "http://127.0.0.1:9", "--model", "m", "--price", "1"], "--price takes two numbers", 2),
        (["-", "--server", "http://127.0.0.1:9", "--model", "m"], "the prompt is empty", 2),
    ],
)
def test_mistakes_on_the_command_line_are_told(arguments: list[str], message: str, code: int, here: Run) -> None:
    done = here("diversify", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


@pytest.fixture(scope="module")
def tiny_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server around a random Llama: the protocol is real, the texts are noise."""
    pytest.importorskip("transformers")
    pytest.importorskip("fastapi")
    from causal_server import make_tiny_model, served

    with served(make_tiny_model(tmp_path_factory.mktemp("llama"))) as address:
        yield address


@pytest.mark.parametrize("use_chat", [True, False])
@pytest.mark.parametrize("strategy", ["resample", "temperature", "avoid"])
def test_a_causal_model_is_asked_by_its_api(
    strategy: str, use_chat: bool, tiny_server: str, static: Encoder
) -> None:
    ask = CompletionServer(tiny_server, "tiny", samples=2, max_tokens=6, chat=use_chat, seed=1)
    found = library.diversify(ask, "he called", 3, strategy=strategy, budget=6, encoder=static)
    assert found.candidates
    assert found.tokens is not None
    assert not found.tokens.estimated
    assert 0 < found.tokens.completion <= 12 * found.calls


def test_a_seed_repeats_the_answers_of_a_causal_model(tiny_server: str) -> None:
    first, second = (
        CompletionServer(tiny_server, "tiny", samples=2, max_tokens=6, seed=3)("he") for _ in range(2)
    )
    assert first == second


def test_a_real_language_model_gives_different_answers(smollm2: Path, static: Encoder) -> None:
    from causal_server import served

    settings = {"samples": 3, "max_tokens": 8, "temperature": 0.5, "seed": 1, "timeout": 300}
    with served(smollm2) as address:
        ask = CompletionServer(address, "smollm2", chat=True, **settings)
        for strategy in ("avoid", "auto"):  # a model this small seldom writes the list that `verbalized` asks for
            found = library.diversify(
                ask, "Name one use for a brick.", 6, strategy=strategy, budget=2, encoder=static
            )
            assert len(set(found.texts)) == len(found) >= 3
            # Random weights would not say that.
            assert any("brick" in text.lower() for text in found.texts)
