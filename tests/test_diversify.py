"""Asking a generator until k answers lie apart: estimates, stopping, failures, and real generators behind it."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cod3s
from cod3s.ask import CompletionServer, Coverage, ModelGenerator, PipelineGenerator
from cod3s.ask.coverage import measure_coverage
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError

ANSWERS = [
    "He called a locksmith.",
    "She slept in the car.",
    "The landlord let him in.",
    "He was late for work.",
    "It cost a fortune.",
    "The dog barked all night.",
]


def drawing(seed: int, weights: list[float] | None = None) -> Callable[[str], str]:
    draw = random.Random(seed)
    return lambda prompt: draw.choices(ANSWERS, weights)[0]


def test_asking_ends_when_k_answers_lie_apart(static: Encoder) -> None:
    found = cod3s.diversify(drawing(1), "He lost his keys.", 4, encoder=static)
    assert found.stopped == "filled"
    assert len(set(found.texts)) == 4
    assert found.calls == len(found.candidates) < 50
    assert found.prompt == "He lost his keys."


def test_a_generator_that_repeats_itself_is_not_asked_to_the_end(static: Encoder) -> None:
    found = cod3s.diversify(lambda prompt: ANSWERS[:2], "x", 5, budget=1000, encoder=static)
    assert (found.stopped, found.calls) == ("exhausted", 10)
    assert found.texts == (ANSWERS[0], ANSWERS[1])
    assert (found.coverage.share, found.coverage.unseen) == (1.0, 0.0)
    assert found.selection.remarks == ("only 2 of 20 candidates differ",)


def test_the_budget_is_never_exceeded_and_all_texts_are_kept(static: Encoder) -> None:
    numbers = iter(range(100))
    found = cod3s.diversify(lambda prompt: f"{next(numbers)}", "x", 50, budget=7, min_hamming=0, encoder=static)
    assert (found.stopped, found.calls) == ("budget", 7)
    assert found.candidates == tuple(map(str, range(7)))


def test_the_best_of_each_bin_is_chosen_by_score(static: Encoder) -> None:
    replies = iter([[(ANSWERS[0], -2.0), (ANSWERS[0].lower(), -1.0)], [(ANSWERS[1], -0.5)]])
    found = cod3s.diversify(lambda prompt: next(replies), "x", 2, encoder=static)
    assert found.texts == (ANSWERS[1], ANSWERS[0].lower())
    assert found.scores == (-2.0, -1.0, -0.5)
    assert found.selection.selected[1].duplicates == (0,)


FORMS: list[tuple[Any, tuple[str, ...], str]] = [
    ("one", ("one",), "a text"),
    (["one", "two"], ("one", "two"), "texts"),
    (("one", "two"), ("one", "two"), "a pair of texts is two answers"),
    (("one", 0.5), ("one",), "a text with its score"),
    ([("one", 1), ["two", np.float32(2)]], ("one", "two"), "texts with scores of any kind of number"),
    (["one", "", " "], ("one",), "blank texts are left out"),
    ((text for text in ("one", "two")), ("one", "two"), "a generator of texts"),
]


@pytest.mark.parametrize(("value", "wanted", "reason"), FORMS)
def test_a_reply_may_have_many_forms(value: Any, wanted: tuple[str, ...], reason: str, static: Encoder) -> None:
    assert cod3s.diversify(lambda prompt: value, "x", 5, budget=1, encoder=static).candidates == wanted, reason


def raising(prompt: str) -> str:
    raise ValueError("out of memory")


def broken_generator(prompt: str) -> Iterator[str]:
    yield "one"
    raise ValueError("out of memory")


@pytest.mark.parametrize(
    ("generate", "message"),
    [
        (raising, "3 calls gave no answer; the last one failed: ValueError: out of memory"),
        (broken_generator, "ValueError: out of memory"),
        (lambda prompt: None, "returned no text"),
        (lambda prompt: [], "returned no text"),
        (lambda prompt: "  ", "returned no text"),
        (lambda prompt: 5, "returned int; return a text"),
        (lambda prompt: {"text": "one"}, "returned dict"),
        (lambda prompt: [1, 2], "a list with int in it"),
        (lambda: "no prompt", "TypeError"),
    ],
)
def test_a_generator_that_gives_nothing_ends_in_a_clear_error(
    generate: Callable[..., Any], message: str, static: Encoder
) -> None:
    with pytest.raises(Cod3sError, match=message):
        cod3s.diversify(generate, "x", 3, encoder=static)


def test_the_users_own_error_is_the_cause(static: Encoder) -> None:
    with pytest.raises(Cod3sError) as caught:
        cod3s.diversify(raising, "x", 3, encoder=static)
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_generator_that_fails_later_loses_nothing(static: Encoder) -> None:
    replies = iter(ANSWERS[:2])
    found = cod3s.diversify(lambda prompt: next(replies), "x", 5, encoder=static)
    assert (found.stopped, found.calls) == ("failures", 5)
    assert found.texts == tuple(ANSWERS[:2])
    assert len(found.failures) == 3
    assert "StopIteration" in found.failures[0]


def test_a_failure_now_and_then_costs_a_call_and_no_more(static: Encoder) -> None:
    numbers = iter(range(100))

    def flaky(prompt: str) -> str:
        number = next(numbers)
        if number % 2:
            raise TimeoutError("busy")
        return ANSWERS[number // 2]

    found = cod3s.diversify(flaky, "x", 4, encoder=static)
    assert (found.stopped, found.calls, len(found.failures)) == ("filled", 7, 3)


@pytest.mark.parametrize("bad", [None, float("nan")])
def test_scores_that_are_not_all_there_rank_nothing(bad: float | None, static: Encoder) -> None:
    replies = iter([(ANSWERS[0], 1.0), ANSWERS[1] if bad is None else (ANSWERS[1], bad)])
    found = cod3s.diversify(lambda prompt: next(replies), "x", 2, encoder=static)
    assert found.scores is None
    assert found.texts == (ANSWERS[0], ANSWERS[1])
    assert "no finite score" in found.selection.remarks[0]


def test_a_wrong_method_is_refused_before_a_call_is_paid_for(static: Encoder) -> None:
    with pytest.raises(Cod3sError, match="no method is called"):
        cod3s.diversify(lambda prompt: pytest.fail("it was called"), "x", 3, method="best", encoder=static)
    with pytest.raises(Cod3sError, match="the budget is 0 calls"):
        cod3s.diversify(drawing(1), "x", 3, budget=0, encoder=static)


def test_interrupting_is_not_swallowed(static: Encoder) -> None:
    def interrupt(prompt: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cod3s.diversify(interrupt, "x", 3, encoder=static)


async def slowly(prompt: str) -> str:
    return prompt


def test_an_asynchronous_generator_is_asked_side_by_side(static: Encoder) -> None:
    under_way, most, numbers = 0, 0, iter(range(100))

    async def generate(prompt: str) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        number = next(numbers)
        await asyncio.sleep(0.02 / (1 + number))  # the later, the faster
        under_way -= 1
        return ANSWERS[number]

    found = asyncio.run(cod3s.diversify_async(generate, "x", 5, concurrency=3, encoder=static))
    assert most == 3
    assert found.candidates == tuple(ANSWERS), "in the order of the calls"
    assert (found.stopped, found.calls) == ("filled", 6)


def test_a_plain_function_can_be_asked_asynchronously(static: Encoder) -> None:
    found = asyncio.run(cod3s.diversify_async(drawing(2), "x", 3, encoder=static))
    assert found.stopped == "filled"


def test_failures_are_told_asynchronously_too(static: Encoder) -> None:
    async def generate(prompt: str) -> str:
        raise ConnectionError("gone")

    with pytest.raises(Cod3sError, match="ConnectionError: gone"):
        asyncio.run(cod3s.diversify_async(generate, "x", 3, encoder=static))


def test_a_coroutine_given_to_the_plain_function_is_told_where_to_go(static: Encoder) -> None:
    with pytest.raises(Cod3sError) as caught:
        cod3s.diversify(slowly, "x", 3, encoder=static)
    assert "diversify_async" in caught.value.hint


def test_coverage_counts_a_bin_once_a_call() -> None:
    packed = np.array([[0], [0], [255], [0], [15]], np.uint8)
    found = measure_coverage(packed, [0, 0, 0, 1, 2], 0)
    assert found == Coverage(calls=3, bins=3, once=2, twice=1, sightings=4)
    assert found.share == pytest.approx(1 - 2 / 4)
    assert found.unseen == pytest.approx(2 / 3 * 2 * 1 / (2 * 2))
    assert found.expected_new == pytest.approx(2.5 / 4)


@given(st.lists(st.tuples(st.integers(0, 255), st.integers(0, 5)), max_size=40), st.integers(0, 8))
def test_coverage_is_a_share_and_nothing_counts_twice(rows: list[tuple[int, int]], min_hamming: int) -> None:
    packed = np.array([[number] for number, _ in rows], np.uint8).reshape(-1, 1)
    found = measure_coverage(packed, [call for _, call in rows], min_hamming)
    assert 0 <= found.share <= 1
    assert found.once + found.twice <= found.bins <= found.sightings <= len(rows)
    assert found.unseen >= 0


def test_the_estimate_of_unseen_bins_is_near_the_truth() -> None:
    """100 equally likely bins, 100 draws: some 37 are unseen; the mean estimate over 50 runs is near it."""
    draw = np.random.default_rng(0)
    errors = []
    for _ in range(50):
        numbers = draw.integers(0, 100, 100)
        packed = numbers.astype(np.uint8)[:, None]
        found = measure_coverage(packed, range(100), 0)
        errors.append(found.unseen - (100 - len(set(numbers.tolist()))))
    assert abs(np.mean(errors)) < 5


class Completions(BaseHTTPRequestHandler):
    """A small server that speaks the completion API: it draws answers with the seed it is sent."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({**request, "path": self.path, "key": self.headers["Authorization"]})
        if request["model"] == "private" and self.headers["Authorization"] != "Bearer open sesame":
            return self._answer(401, {"error": "no key"})
        if request["model"] == "odd":
            return self._answer(200, {"object": "list"})
        draw = random.Random(request.get("seed"))
        texts = draw.choices(ANSWERS, k=request.get("n", 1))
        if self.path == "/v1/chat/completions":
            scores = {"content": [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": -2.0}]}
            return self._answer(
                200, {"choices": [{"message": {"content": text}, "logprobs": scores} for text in texts]}
            )
        scores = {"token_logprobs": [None, -1.0, -3.0]}
        return self._answer(200, {"choices": [{"text": text, "logprobs": scores} for text in texts]})

    def _answer(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadingHTTPServer]:
    pytest.importorskip("httpx")
    with ThreadingHTTPServer(("127.0.0.1", 0), Completions) as running:
        running.requests = []
        thread = Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def address(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}/v1"


def test_a_server_is_asked_until_k_answers_lie_apart(server: ThreadingHTTPServer, static: Encoder) -> None:
    ask = CompletionServer(address(server), "tiny", samples=2, seed=5, max_tokens=20)
    found = cod3s.diversify(ask, "He lost his keys, so", 4, encoder=static)
    assert found.stopped == "filled"
    assert found.scores is None
    sent = server.requests[-found.calls :]
    assert [request["seed"] for request in sent] == list(range(5, 5 + found.calls))
    assert {(request["prompt"], request["n"], request["max_tokens"], request["path"]) for request in sent} == {
        ("He lost his keys, so", 2, 20, "/v1/completions")
    }


@pytest.mark.parametrize(("chat", "score"), [(False, -2.0), (True, -1.5)])
def test_scores_are_mean_log_probabilities(chat: bool, score: float, server: ThreadingHTTPServer) -> None:
    ask = CompletionServer(address(server) + "/", "tiny", samples=3, chat=chat, with_scores=True)
    replies = ask("x")
    assert [found for _, found in replies] == [score] * 3
    assert all(text in ANSWERS for text, _ in replies)


def test_a_server_can_be_asked_side_by_side(server: ThreadingHTTPServer, static: Encoder) -> None:
    ask = CompletionServer(address(server), "tiny", samples=1, seed=1)
    found = asyncio.run(cod3s.diversify_async(ask, "x", 4, encoder=static))
    assert found.stopped == "filled"


def test_a_key_is_sent_and_never_shown(server: ThreadingHTTPServer) -> None:
    ask = CompletionServer(address(server), "private", key="open sesame")
    assert len(ask("x")) == 8
    assert "sesame" not in repr(ask)


@pytest.mark.parametrize(
    ("model", "place", "message"),
    [
        ("private", "", "answered 401"),
        ("odd", "", "did not answer with completions"),
        ("tiny", "http://127.0.0.1:9", "did not answer"),
        ("tiny", "nonsense://x", "does not start with http"),
    ],
)
def test_a_server_that_cannot_help_is_told_about(
    model: str, place: str, message: str, server: ThreadingHTTPServer
) -> None:
    with pytest.raises(Cod3sError, match=message):
        CompletionServer(place or address(server), model, timeout=5)("x")


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


def test_a_transformers_pipeline_is_asked_until_k_answers_lie_apart(
    tiny: tuple[Any, Any], static: Encoder
) -> None:
    transformers = pytest.importorskip("transformers")
    pipeline = transformers.pipeline("text-generation", model=tiny[0], tokenizer=tiny[1])
    found = cod3s.diversify(PipelineGenerator(pipeline, samples=4, max_new_tokens=5), "he ran", 3, encoder=static)
    again = cod3s.diversify(PipelineGenerator(pipeline, samples=4, max_new_tokens=5), "he ran", 3, encoder=static)
    assert found.stopped == "filled"
    assert found == again, "the seed decides what is drawn"
    assert not any(text.startswith("he ran") and len(text.split()) > 5 for text in found.texts), "no prompt in it"


def test_a_transformers_model_gives_texts_with_the_log_probabilities_it_has(tiny: tuple[Any, Any]) -> None:
    torch = pytest.importorskip("torch")
    model, tokenizer = tiny
    before = torch.random.get_rng_state()
    replies = ModelGenerator(model, tokenizer, samples=16, max_new_tokens=4, temperature=2.0, top_k=5)("he ran")
    assert torch.equal(torch.random.get_rng_state(), before), "the user's random state is left alone"
    prompt = tokenizer("he ran")["input_ids"]
    for text, score in replies:
        words = tokenizer(text)["input_ids"]
        ids = [*prompt, *words, *([1] if len(words) < 4 else [])]  # shorter texts were ended
        with torch.no_grad():
            steps = torch.log_softmax(model(torch.tensor([ids])).logits[0], dim=-1)
        wanted = [float(steps[place - 1, ids[place]]) for place in range(len(prompt), len(ids))]
        assert score == pytest.approx(np.mean(wanted), abs=1e-4)


def test_a_pipeline_for_something_else_is_refused() -> None:
    class Classifier:
        task = "text-classification"

    with pytest.raises(Cod3sError, match="text-generation is needed"):
        PipelineGenerator(Classifier())("x")
