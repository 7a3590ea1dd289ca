"""`cod3s diversify` against servers: protocol details, strategies, costs, and causal models behind real APIs."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cod3s as library
from cod3s.ask import STRATEGIES, CompletionServer, Judge, ModelGenerator, PipelineGenerator
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError
from conftest import Run
from scripted_server import ANSWERS, Reply, chat, in_turn, scripted

pytest.importorskip("openai")


def client(server: Any, **options: Any) -> CompletionServer:
    return CompletionServer(server.address, "tiny", **{"samples": 1, **options})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_fills_k_bins_of_a_model_that_has_them(strategy: str, static: Encoder) -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        content = request["messages"][-1]["content"]
        if "probability" in content:
            return chat(json.dumps([{"text": text, "probability": 0.1} for text in ANSWERS[:5]]))
        if "JSON" in content:
            return chat('{"place": ["house", "garden"], "mood": ["calm", "wild"]}')
        return chat("money\nanimals") if "per line" in content else in_turn(request, number)

    with scripted(script) as server:
        result = library.diversify(client(server), "A use for a brick?", 4, strategy=strategy, encoder=static)
    assert result.stopped == "filled"
    assert len(result) == len(set(result.texts)) == 4
    assert len(result.strategies) == result.calls
    assert strategy == "auto" or set(result.strategies) == {strategy}
    assert strategy != "persona" or server.requests[0]["messages"][0]["role"] == "system"


def test_a_model_that_continues_text_is_shown_a_list_to_continue(static: Encoder) -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        return 200, {"choices": [{"text": f" {ANSWERS[number - 1]}\n{number + 1}. something else"}]}

    with scripted(script) as server:
        ask = client(server, api="completions")
        result = library.diversify(ask, "A brick can", 3, strategy="avoid", encoder=static)
        with pytest.raises(Cod3sError, match="needs a model that follows instructions"):
            library.diversify(ask, "A brick can", 3, strategy="persona", encoder=static)
    assert server.requests[1]["prompt"].startswith('Different ways to continue the text "A brick can":\n1. ')
    assert server.requests[1]["prompt"].endswith("\n2.")
    assert ANSWERS[1] in result.texts


def test_the_temperature_rises_while_nothing_new_comes(static: Encoder) -> None:
    with scripted(lambda request, number: chat(ANSWERS[0])) as server:
        result = library.diversify(client(server), "x", 3, strategy="temperature", budget=12, encoder=static)
    temperatures = [request["temperature"] for request in server.requests]
    assert result.stopped in ("exhausted", "budget")
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
        result = library.diversify(client(server), "x", 5, strategy="auto", encoder=static)
    assert result.stopped == "filled"
    assert result.strategies[-1] == "avoid"
    assert result.strategies.count("avoid") >= 3


def test_a_schema_is_sent_and_an_invalid_answer_is_asked_again(static: Encoder) -> None:
    schema = {"type": "object", "properties": {"use": {"type": "string"}}, "required": ["use"]}

    def script(request: dict[str, Any], number: int) -> Reply:
        if number == 1:
            return chat('{"us')
        answers = [{"answer": {"use": text}, "probability": 0.2} for text in ANSWERS[1:4]]
        listed = "probability" in request["messages"][-1]["content"]
        return chat(json.dumps({"answers": answers} if listed else {"use": ANSWERS[0]}))

    with scripted(script) as server:
        result = library.diversify(client(server), "x", 3, schema=schema, compare="use", encoder=static)
    assert [len(request["messages"]) for request in server.requests[:2]] == [1, 3]
    assert "not valid JSON" in server.requests[1]["messages"][2]["content"]
    assert server.requests[0]["response_format"]["json_schema"]["schema"] == schema
    assert all(record["use"] in ANSWERS for record in result.records)


def test_a_judge_rates_answers_and_its_tokens_count(static: Encoder) -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        content = request["messages"][0]["content"]
        if not content.startswith("Rate"):
            return in_turn(request, number)
        usage = {"prompt_tokens": 100, "completion_tokens": 1}
        return chat("8.5" if "wall" in content else "I would say 3/10.", usage=usage)

    with scripted(script) as server:
        judge = Judge(client(server))
        result = library.diversify(client(server), "x", 2, score=judge, encoder=static)
        assert set(result.scores) <= {0.85, 0.3}
        assert result.tokens.prompt == 110 * result.calls
        server.script = lambda request, number: chat("a fine answer")
        with pytest.raises(Cod3sError, match="did not reply with a number, but with 'a fine answer'"):
            library.diversify(client(server), "x", 2, score=judge, encoder=static)


def test_a_busy_server_is_asked_again_when_it_says() -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        if number == 1:
            return 429, {"error": {"message": "slow down"}}, {"Retry-After-Ms": "20"}
        return (503, "loading model", {"Retry-After-Ms": "20"}) if number == 2 else chat(ANSWERS[0])

    with scripted(script) as server:
        assert client(server)("x") == [ANSWERS[0]]
    assert len(server.requests) == 3


def test_errors_of_a_server_end_in_a_clear_error(static: Encoder) -> None:
    replies: list[tuple[Reply, str, int]] = [
        (
            (429, {"error": {"message": "quota used up"}}),
            "3 calls gave no answer.* answered 429: quota used up",
            3,
        ),
        ((401, {"error": "no"}), "1 call gave no answer.* answered 401: no", 1),
        ((404, "not here"), "1 call gave no answer.* answered 404: not here", 1),
        ((200, "<html>hello</html>"), "did not answer with completions", 3),
        ((200, {"choices": [{"message": {"content": 5}}]}), "did not answer with completions", 3),
        ((200, {"choices": []}), "returned no text", 3),
        ((200, {"choices": [{"message": {"content": None}}]}), "returned no text", 3),
        ((200, {"choices": [{"message": {"content": "<think>cut off"}}]}), "returned no text", 3),
        ((200, '{"choices": [{"mess', {"Content-Length": "999"}), "did not answer", 1),
    ]
    for reply, message, requests in replies:
        with (
            scripted(lambda request, number, reply=reply: reply) as server,
            pytest.raises(Cod3sError, match=message) as caught,
        ):
            library.diversify(client(server, retries=0, timeout=1.0), "x", 2, encoder=static)
        assert caught.value.hint
        assert len(server.requests) == requests, message


def test_a_server_that_hangs_is_given_up(static: Encoder) -> None:
    def hang(request: dict[str, Any], number: int) -> Reply:
        time.sleep(0.6)
        return chat("too late")

    with scripted(hang) as server, pytest.raises(Cod3sError, match="did not answer: ") as caught:
        library.diversify(client(server, retries=0, timeout=0.2), "x", 2, encoder=static)
    assert "--timeout" in caught.value.hint


def test_parameters_that_a_server_refuses_are_left_out(static: Encoder) -> None:
    """Older servers of llama.cpp refuse n, and newer models of OpenAI refuse max_tokens."""

    def script(request: dict[str, Any], number: int) -> Reply:
        if request.get("n", 1) != 1:
            return 400, {"error": {"message": "Only one completion choice is allowed"}}
        if "max_tokens" in request:
            return 400, {"error": {"message": "Unsupported: max_tokens. Use 'max_completion_tokens' instead."}}
        return in_turn(request, number)

    with scripted(script) as server:
        result = library.diversify(client(server, samples=4), "x", 3, encoder=static)
    assert result.stopped == "filled"
    assert ["max_completion_tokens" in request for request in server.requests] == [False, False, True, True, True]
    assert not result.failures


def test_a_server_that_ignores_several_choices_is_asked_more_often(static: Encoder) -> None:
    """Ollama writes one choice, whatever n says."""
    with scripted(in_turn) as server:
        result = library.diversify(client(server, samples=4), "x", 3, encoder=static)
    assert (result.stopped, result.calls) == ("filled", 3)


def test_messages_may_hold_thoughts_or_parts_and_scores() -> None:
    for content in (
        "<think>the user wants…</think>\n\nBuild a wall.",
        [{"type": "text", "text": "Build "}, {"type": "text", "text": "a wall."}],
    ):
        with scripted(lambda request, number, content=content: chat(content)) as server:
            assert client(server)("x") == ["Build a wall."]
    choice = {"message": {"content": "a b"}, "logprobs": {"content": [{"logprob": -1.0}, {"logprob": -2.0}]}}
    with scripted(lambda request, number: (200, {"choices": [choice]})) as server:
        assert client(server, with_scores=True)("x") == [("a b", -1.5)]
    text = {"text": "a b", "logprobs": {"token_logprobs": [None, -1.0, -3.0]}}
    with scripted(lambda request, number: (200, {"choices": [text]})) as server:
        assert client(server, with_scores=True, api="completions")("x") == [("a b", -2.0)]


def test_addresses_are_completed() -> None:
    for url, wanted in (
        ("http://localhost:11434", "http://localhost:11434/v1/chat/completions"),
        ("http://localhost:11434/", "http://localhost:11434/v1/chat/completions"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1/chat/completions"),
        ("https://host/openai/v1/chat/completions", "https://host/openai/v1/chat/completions"),
    ):
        assert CompletionServer(url, "m").address == wanted
    with pytest.raises(Cod3sError, match="does not start with http"):
        CompletionServer("nonsense://x", "m")


def test_tokens_are_counted_or_estimated_and_bound_the_asking(static: Encoder) -> None:
    with scripted(in_turn) as server:
        result = library.diversify(client(server), "x", 6, token_budget=40, encoder=static)
    assert (result.stopped, result.calls) == ("tokens", 3)
    assert (result.tokens.prompt, result.tokens.completion, result.tokens.total) == (30, 15, 45)
    with scripted(lambda request, number: chat("12345678")) as server:
        result = library.diversify(client(server), "1234", 1, encoder=static)
    assert json.loads(result.to_json())["tokens"] == {"prompt": 1, "completion": 2, "estimated": True}


def test_calls_are_made_side_by_side_and_a_key_is_sent_but_never_shown(static: Encoder) -> None:
    with scripted(in_turn) as server:
        ask = client(server, key="open sesame", sampling_seed=5)
        result = asyncio.run(library.diversify_async(ask, "x", 4, strategy="avoid", concurrency=2, encoder=static))
    assert result.stopped == "filled"
    assert "sesame" not in repr(ask)
    assert {request["key"] for request in server.requests} == {"Bearer open sesame"}
    assert sorted(request["seed"] for request in server.requests) == list(range(5, 5 + result.calls))


def test_a_missing_client_names_the_install_and_is_not_tried_again() -> None:
    code = (
        "import sys, cod3s; sys.modules['openai'] = None\n"
        "from cod3s.ask import CompletionServer\n"
        "cod3s.diversify(CompletionServer('http://127.0.0.1:9', 'm'), 'x', 2)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtraError: this needs 'openai'" in done.stderr
    assert "gave no answer" not in done.stderr


def test_the_command_prints_answers_and_tells_the_cost(cod3s: Run) -> None:
    with scripted(in_turn) as server:
        done = cod3s(
            "diversify", "-", "-k3", "--server", server.address, "--model", "tiny", "--strategy", "resample",
            "--samples", "1", "--price", "1,2", "--system", "Be brief.",
            stdin="A use for a brick?\n", OPENAI_API_KEY="open sesame",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(ANSWERS[:3])
    assert "3 answers of 3 in 3 calls; stopped because 3 answers differ" in done.stderr
    assert "30 prompt tokens, 15 answer tokens, $0.0001" in done.stderr
    assert "sesame" not in done.stdout + done.stderr
    assert [message["content"] for message in server.requests[0]["messages"]] == [
        "Be brief.",
        "A use for a brick?",
    ]


def test_json_of_the_command_holds_everything(here: Run) -> None:
    with scripted(in_turn) as server:
        done = here("diversify", "x", "-k2", "--server", server.address, "--model", "m", "--json")
    record = json.loads(done.stdout)
    assert record["stopped"] == "filled"
    assert len(record["selection"]["selected"]) == 2
    assert {"text": ANSWERS[0], "score": None, "probability": None, "call": 0, "record": None} in record[
        "candidates"
    ]
    assert len(record["strategies"]) == record["calls"]


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["x", "--server", "http://127.0.0.1:9/v1", "--model", "m", "--retries", "0"], "did not answer", 1),
        (["x", "--server", "localhost:9", "--model", "m"], "hint: write http://localhost:9", 2),
        (["x", "--server", "http://h", "--model", "m", "--key-env", "NO_SUCH"], "NO_SUCH is empty or not set", 2),
        (["x", "--server", "http://h", "--model", "m", "--strategy", "nice"], "'nice' is not one of", 2),
        (["x", "--server", "http://h", "--model", "m", "--price", "1"], "price is two numbers", 2),
        (["-", "--server", "http://h", "--model", "m"], "the prompt is empty", 2),
    ],
)
def test_mistakes_on_the_command_line_are_told(arguments: list[str], message: str, code: int, here: Run) -> None:
    done = here("diversify", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in " ".join(done.stderr.replace("│", " ").split())


@pytest.fixture(scope="module")
def tiny_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server around a random Llama: the protocol is real, the texts are noise."""
    pytest.importorskip("transformers")
    pytest.importorskip("fastapi")
    from causal_server import make_tiny_model, served

    with served(make_tiny_model(tmp_path_factory.mktemp("llama"))) as address:
        yield address


def test_a_causal_model_is_asked_by_its_api_with_every_strategy(tiny_server: str, static: Encoder) -> None:
    for api in ("chat", "completions"):
        ask = CompletionServer(tiny_server, "tiny", samples=2, max_tokens=6, api=api, sampling_seed=1)  # type: ignore[arg-type]
        for strategy in STRATEGIES if api == "chat" else ("resample", "temperature", "avoid"):
            if strategy in ("verbalized", "attributes"):
                continue  # noise is no JSON
            result = library.diversify(ask, "he called", 3, strategy=strategy, budget=6, encoder=static)
            assert result.candidates, strategy
            assert not result.tokens.estimated
            assert result.tokens.completion > 0
    first, second = (
        CompletionServer(tiny_server, "tiny", samples=2, max_tokens=6, sampling_seed=3)("he") for _ in range(2)
    )
    assert first == second, "a seed repeats the answers"


def test_a_real_language_model_gives_different_answers(smollm2: Path, static: Encoder) -> None:
    from causal_server import served

    with served(smollm2) as address:
        ask = CompletionServer(
            address, "smollm2", samples=3, max_tokens=8, temperature=0.5, sampling_seed=1, timeout=300
        )
        for strategy in ("avoid", "auto"):  # a model this small seldom writes the list that `verbalized` asks for
            result = library.diversify(
                ask, "Name one use for a brick.", 6, strategy=strategy, budget=2, encoder=static
            )
            assert len(set(result.texts)) == len(result) >= 3
            # Random weights would not say that.
            assert any("brick" in text.lower() for text in result.texts)


@pytest.fixture(scope="module")
def tiny() -> tuple[Any, Any]:
    """A random GPT-2 with eleven tokens and its tokenizer."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    words = ["<unk>", "</s>", "he", "she", "slept", "ran", "home", "late", "rain", "fell", "again"]
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    # <unk> stays an ordinary word, so that a text that holds it is read back as it was drawn.
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", pad_token="</s>")
    wrapped.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    transformers.set_seed(0)
    config = transformers.GPT2Config(
        vocab_size=11,
        n_embd=8,
        n_layer=1,
        n_head=1,
        n_positions=32,
        eos_token_id=1,
        bos_token_id=1,
        pad_token_id=1,
    )
    return transformers.GPT2LMHeadModel(config).eval(), wrapped


def test_a_transformers_pipeline_is_asked_until_k_answers_differ(tiny: tuple[Any, Any], static: Encoder) -> None:
    import transformers

    pipeline = transformers.pipeline("text-generation", model=tiny[0], tokenizer=tiny[1])
    first, again = (
        library.diversify(PipelineGenerator(pipeline, samples=4, max_new_tokens=5), "he ran", 3, encoder=static)
        for _ in range(2)
    )
    assert first.stopped == "filled"
    assert first == again, "the seed decides what is drawn"
    assert not any(text.startswith("he ran") and len(text.split()) > 5 for text in first.texts), "no prompt in it"
    messages = [{"role": "system", "content": "she slept"}, {"role": "user", "content": "he ran"}]
    assert library.diversify(PipelineGenerator(pipeline, samples=4), messages, 2, encoder=static).candidates
    pipeline.task = "text-classification"
    with pytest.raises(Cod3sError, match="text-generation is needed"):
        PipelineGenerator(pipeline)("x")


def test_a_transformers_model_gives_texts_with_the_log_probabilities_it_has(tiny: tuple[Any, Any]) -> None:
    import torch

    model, tokenizer = tiny
    before = torch.random.get_rng_state()
    generate = ModelGenerator(model, tokenizer, samples=16, max_new_tokens=4, temperature=2.0, top_k=5)
    for prompt, read in (("he ran", "he ran"), ([{"role": "user", "content": "he ran"}], "he ran ")):
        replies = generate(prompt)
        assert torch.equal(torch.random.get_rng_state(), before), "the user's random state is left alone"
        start = tokenizer(read)["input_ids"]
        for text, score in replies:
            words = tokenizer(text)["input_ids"]
            ids = [*start, *words, *([1] if len(words) < 4 else [])]  # shorter texts were ended
            with torch.no_grad():
                steps = torch.log_softmax(model(torch.tensor([ids])).logits[0], dim=-1)
            wanted = [float(steps[place - 1, ids[place]]) for place in range(len(start), len(ids))]
            assert score == pytest.approx(np.mean(wanted), abs=1e-4)
