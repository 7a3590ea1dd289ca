"""Asking a function until k answers differ: stopping, failures, strategies, structure, quality, history."""

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cod3s
from cod3s.ask import STRATEGIES, Coverage, DiversifyConfig, Meter, Reply, Tokens
from cod3s.ask.coverage import measure_coverage
from cod3s.ask.planning import Call, View
from cod3s.ask.prompts import read_prompt
from cod3s.ask.strategies import open_strategy
from cod3s.ask.structure import InvalidAnswerError, read_structure
from cod3s.ask.verbalized import read_verbalized
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
NOTHING_YET = View([], lambda texts: [0] * len(texts))


def drawing(seed: int) -> Callable[[str], str]:
    draw = random.Random(seed)
    return lambda prompt: draw.choice(ANSWERS)


def saying(*replies: Any) -> Callable[[Any], Any]:
    """A generator that gives these replies, one per call."""
    rest = iter(replies)
    return lambda prompt: next(rest)


def texts_of(result: Any) -> tuple[str, ...]:
    return tuple(candidate.text for candidate in result.candidates)


def test_asking_ends_when_k_answers_differ(static: Encoder) -> None:
    result = cod3s.diversify(drawing(1), "He lost his keys.", 4, encoder=static)
    assert result.stopped == "filled"
    assert len(set(result.texts)) == 4
    assert result.calls == len(result.candidates) < 50
    assert (result.prompt, result.after.distinct) == ("He lost his keys.", 4)
    assert repr(result).startswith(f"Diversified(4 of 4 answers, {result.calls} calls, filled: [")


def test_a_generator_that_repeats_itself_is_not_asked_to_the_end(static: Encoder) -> None:
    result = cod3s.diversify(lambda prompt: ANSWERS[:2], "x", 5, budget=1000, encoder=static)
    assert (result.stopped, result.calls) == ("exhausted", 10)
    assert set(result.texts) == set(ANSWERS[:2])
    assert (result.coverage.share, result.coverage.unseen) == (1.0, 0.0)


def test_the_budget_is_never_exceeded_and_all_texts_are_kept(static: Encoder) -> None:
    numbers = iter(range(100))
    result = cod3s.diversify(lambda prompt: f"{next(numbers)}", "x", 50, budget=7, min_hamming=0, encoder=static)
    assert (result.stopped, result.calls) == ("budget", 7)
    assert texts_of(result) == tuple(map(str, range(7)))


def test_the_better_of_two_equal_answers_is_chosen_by_score(static: Encoder) -> None:
    generate = saying([(ANSWERS[0], -2.0), (ANSWERS[0].lower(), -1.0)], [(ANSWERS[1], -0.5)])
    result = cod3s.diversify(generate, "x", 2, method="signatures", encoder=static)
    assert result.texts == (ANSWERS[1], ANSWERS[0].lower())
    assert result.scores == (-2.0, -1.0, -0.5)
    assert result.selection.selected[1].duplicates == (0,)


FORMS: list[tuple[Any, tuple[str, ...], str]] = [
    ("one", ("one",), "a text"),
    (["one", "two"], ("one", "two"), "texts"),
    (("one", "two"), ("one", "two"), "a pair of texts is two answers"),
    (("one", 0.5), ("one",), "a text with its score"),
    ([("one", 1), ["two", np.float32(2)]], ("one", "two"), "texts with scores of any kind of number"),
    (["one", "", " "], ("one",), "blank texts are left out"),
    ((text for text in ("one", "two")), ("one", "two"), "a generator of texts"),
    (Reply(("one",), (None,), Tokens(3, 1)), ("one",), "a reply with its tokens"),
    ("one " * 250_000, ("one " * 250_000,), "an answer of a megabyte"),
]


def test_a_reply_may_have_many_forms(static: Encoder) -> None:
    for value, wanted, reason in FORMS:
        assert texts_of(cod3s.diversify(saying(value), "x", 5, budget=1, encoder=static)) == wanted, reason


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
    with pytest.raises(Cod3sError, match=message) as caught:
        cod3s.diversify(generate, "x", 3, encoder=static)
    assert "Error" not in message or isinstance(caught.value.__cause__, Exception)


def test_a_generator_that_fails_later_loses_nothing(static: Encoder) -> None:
    result = cod3s.diversify(saying(*ANSWERS[:2]), "x", 5, encoder=static)
    assert (result.stopped, result.calls) == ("failures", 5)
    assert set(result.texts) == set(ANSWERS[:2])
    assert len(result.failures) == 3
    assert "StopIteration" in result.failures[0]


def test_a_failure_now_and_then_costs_a_call_and_no_more(static: Encoder) -> None:
    numbers = iter(range(100))

    def flaky(prompt: str) -> str:
        number = next(numbers)
        if number % 2:
            raise TimeoutError("busy")
        return ANSWERS[number // 2]

    result = cod3s.diversify(flaky, "x", 4, encoder=static)
    assert (result.stopped, result.calls, len(result.failures)) == ("filled", 7, 3)


def test_impossible_options_fail_before_a_call_is_paid_for(static: Encoder) -> None:
    def paid(prompt: str) -> str:
        pytest.fail("it was called")

    for options, message in (
        ({"method": "best"}, "method cannot be 'best'"),
        ({"budget": 0}, "budget is 0, but it must be at least 1"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"bugdet": 3}, "no option 'bugdet'"),
        ({"strategy": "avoyd"}, "strategy cannot be 'avoyd'"),
        ({"strategy": "temperature"}, "cannot change the temperature"),
        ({"compare": "answer"}, "no schema that has the field 'answer'"),
        ({"schema": {"type": 5}}, "not a JSON schema"),
        ({"total_cost": 1.0}, "needs the price"),
        ({"price": "1"}, "two numbers separated by a comma"),
    ):
        with pytest.raises(Cod3sError, match=message):
            cod3s.diversify(paid, "x", 3, encoder=static, **options)  # type: ignore[arg-type]


def test_interrupting_is_not_swallowed(static: Encoder) -> None:
    def interrupt(prompt: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cod3s.diversify(interrupt, "x", 3, encoder=static)


def test_coroutines_are_asked_side_by_side_and_count_in_the_order_of_the_calls(static: Encoder) -> None:
    under_way, most, numbers = 0, 0, iter(range(100))

    async def generate(prompt: str) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        number = next(numbers)
        await asyncio.sleep(0.02 / (1 + number))  # the later, the faster
        under_way -= 1
        return ANSWERS[number]

    result = asyncio.run(cod3s.diversify_async(generate, "x", 5, concurrency=3, encoder=static))
    assert most == 3
    assert texts_of(result) == tuple(ANSWERS)
    assert (result.stopped, result.calls) == ("filled", 6)


def test_plain_and_asynchronous_functions_work_in_both_ways_of_asking(static: Encoder) -> None:
    async def slowly(prompt: str) -> str:
        await asyncio.sleep(0)
        return drawn(prompt)

    async def inside_a_loop() -> Any:
        return cod3s.diversify(drawing(2), "x", 3, encoder=static)  # as in a notebook

    drawn = drawing(2)
    plain = asyncio.run(cod3s.diversify_async(drawing(2), "x", 3, encoder=static))
    assert cod3s.diversify(slowly, "x", 3, encoder=static) == plain == asyncio.run(inside_a_loop())


def test_the_limits_of_a_run_stop_every_prompt(static: Encoder) -> None:
    async def both(config: DiversifyConfig) -> list[Any]:
        meter = Meter(config)
        return [
            await cod3s.diversify_async(generate, "x", 5, config=config, encoder=static, meter=meter)
            for generate in (saying(*replies), saying(*replies))
        ]

    replies = [Reply((text,), (None,), Tokens(10, 10)) for text in ANSWERS]
    for options in ({"total_calls": 7}, {"total_tokens": 140}, {"total_cost": 0.00014, "price": "1,1"}):
        first, second = asyncio.run(both(DiversifyConfig(**options)))  # type: ignore[arg-type]
        assert (first.stopped, second.stopped) == ("filled", "limit"), options
        assert first.calls + second.calls == 7, options


def test_a_rate_spaces_calls_evenly() -> None:
    async def three() -> float:
        meter, loop = Meter(DiversifyConfig(rate=1200)), asyncio.get_running_loop()
        start = loop.time()
        await asyncio.gather(*(meter.admit() for _ in range(3)))
        return loop.time() - start

    assert asyncio.run(three()) >= 0.099


def test_answers_keep_away_from_what_was_shown_before(static: Encoder) -> None:
    result = cod3s.diversify(saying(*ANSWERS), "x", 3, unlike=[ANSWERS[0].lower()], encoder=static)
    assert (result.stopped, result.calls) == ("filled", 4)
    assert ANSWERS[0] not in result.texts
    assert "1 of 4 candidates say what was shown before" in result.selection.remarks
    near = cod3s.diversify(lambda prompt: ANSWERS, "x", 2, like=["The dog barks."], encoder=static)
    assert ANSWERS[-1] in near.texts


def test_a_score_function_rates_every_answer_and_a_floor_leaves_out_the_worst(static: Encoder) -> None:
    async def length(prompt: str, answer: str) -> float:
        return len(answer)

    result = cod3s.diversify(saying(*ANSWERS), "x", 3, score=length, floor=20, encoder=static)
    assert result.scores == tuple(map(len, ANSWERS[: result.calls]))
    assert all(len(text) >= 20 for text in result.texts)
    assert result.after.quality == pytest.approx(np.mean([len(text) for text in result.texts]))


@pytest.mark.parametrize(("bad", "reason"), [(float("nan"), "the score is nan"), (None, "TypeError")])
def test_answers_without_a_finite_score_are_kept_but_not_chosen(bad: Any, reason: str, static: Encoder) -> None:
    def score(prompt: str, answer: str) -> Any:
        return bad if answer == ANSWERS[0] else 1.0

    result = cod3s.diversify(saying(*ANSWERS), "x", 2, score=score, encoder=static)
    assert result.scores[0] is None
    assert set(result.texts) == set(ANSWERS[1:3])
    assert reason in result.selection.remarks[-1]


def test_a_score_function_that_always_raises_ends_after_three_calls(static: Encoder) -> None:
    def score(prompt: str, answer: str) -> float:
        raise RuntimeError("no scale")

    with pytest.raises(Cod3sError, match="no answer could be scored: RuntimeError: no scale"):
        cod3s.diversify(saying(*ANSWERS), "x", 5, score=score, encoder=static)


SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "cost": {"type": "integer"}},
    "required": ["answer", "cost"],
}


def test_answers_that_do_not_fit_the_schema_are_asked_again_with_the_reason(static: Encoder) -> None:
    prompts: list[str] = []

    def generate(prompt: str) -> str:
        prompts.append(prompt)
        cost = '"nothing"' if len(prompts) == 1 else len(prompts)
        return f'{{"answer": "{ANSWERS[len(prompts) - 1]}", "cost": {cost}}}'

    result = cod3s.diversify(generate, "x", 2, schema=SCHEMA, compare="answer", encoder=static)
    assert result.calls == 3
    assert "'nothing' is not of type 'integer' at $.cost" in prompts[1]
    assert result.texts == tuple(ANSWERS[answer.index + 1] for answer in result)
    assert result.records[0] == {"answer": result.texts[0], "cost": result[0].index + 2}


def test_records_come_out_as_the_pydantic_model_that_was_the_schema(static: Encoder) -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Plan", answer=(str, ...), cost=(int, ...))
    reply = '```json\n{"answer": "Call a locksmith.", "cost": 5}\n```'
    result = cod3s.diversify(lambda prompt: reply, "x", 1, schema=model, compare="answer", encoder=static)
    assert result.records == (model(answer="Call a locksmith.", cost=5),)
    assert cod3s.diversify(lambda prompt: reply, "x", 1, schema=SCHEMA, encoder=static).texts[0].startswith("{")


def test_a_schema_that_no_answer_fits_ends_in_a_clear_error(static: Encoder) -> None:
    with pytest.raises(Cod3sError, match=r"not valid JSON .*which begins 'He called"):
        cod3s.diversify(lambda prompt: ANSWERS[0], "x", 2, schema=SCHEMA, encoder=static)


def test_a_compared_field_may_lie_deep_and_must_be_there() -> None:
    structure = read_structure({"type": "object"}, "plan.title")
    assert structure is not None
    assert structure.read('{"plan": {"title": "Go"}}')[0] == "Go"
    assert structure.read('{"plan": {"title": [1]}}')[0] == "[1]"
    for text in ('{"plan": 1}', "{}", "[" * 100_000, '{"plan": {"title": " "}}'):
        with pytest.raises(InvalidAnswerError):
            structure.read(text)


CHAT = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "data:,"}}, {"type": "text", "text": "x"}],
    },
]


def test_messages_reach_the_generator_with_their_images(static: Encoder) -> None:
    prompts: list[Any] = []

    def generate(messages: Any) -> str:
        prompts.append(messages)
        return ANSWERS[len(prompts) - 1]

    result = cod3s.diversify(generate, CHAT, 2, strategy="avoid", encoder=static)
    assert prompts[0] == CHAT == list(result.prompt)
    assert prompts[1][1]["content"][:2] == CHAT[1]["content"]
    assert ANSWERS[0] in prompts[1][1]["content"][2]["text"]


def test_prompts_that_nobody_can_answer_are_refused() -> None:
    for prompt, message in (
        (" ", "prompt is empty"),
        ([], "prompt is list"),
        ([{"content": "x"}], "message 1 has no role"),
        ([{"role": "user"}], "message 1 has no content"),
        ([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}], "ends with the assistant"),
        ([{"role": "user", "content": "\u200b"}], "last message is empty"),
        ([{"role": "user", "content": ["x"]}], "not an object"),
    ):
        with pytest.raises(Cod3sError, match=message):
            read_prompt(prompt)


LISTS = {
    "paraphrase": "Here they are:\n1. What did he do?\n2. How did it go on?",
    "attributes": 'Sure: {"tone": ["sad", "funny"], "length": ["short", "long"]}',
    "bins": '["money", "animals", "work"]',
    "verbalized": '["He called a locksmith.", "She slept in the car.", "The dog barked all night."]',
}


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "temperature"])
def test_every_strategy_fills_k_bins_of_a_function_that_has_them(strategy: str, static: Encoder) -> None:
    prompts: list[str] = []

    def generate(prompt: str) -> str:
        prompts.append(prompt)
        first = len(prompts) == 1
        return LISTS[strategy] if first and strategy in LISTS else ANSWERS[len(prompts) % len(ANSWERS)]

    result = cod3s.diversify(generate, "He lost his keys.", 3, strategy=strategy, encoder=static)
    assert result.stopped == "filled"
    assert not result.failures
    assert all("He lost his keys." in prompt or strategy == "paraphrase" for prompt in prompts)
    assert strategy in ("auto", "resample") or len(set(prompts)) == len(prompts)


def test_attributes_cover_all_pairs_of_values_in_few_calls() -> None:
    strategy = open_strategy(DiversifyConfig(strategy="attributes"), print)
    assert strategy.plan(read_prompt("x"), NOTHING_YET).preparation
    assert strategy.prepare('{"a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]}')
    prompts = [strategy.plan(read_prompt("x"), NOTHING_YET).prompt.text for _ in range(12)]
    pairs = {(a, b) for a in "123" for b in "456"} | {(a, c) for a in "123" for c in "789"}
    covered = {pair for pair in pairs for text in prompts if all(f": {value}\n" in text for value in pair)}
    assert covered == pairs
    assert not strategy.prepare("I cannot do that.")


def test_bins_hint_at_the_subject_that_is_farthest_from_all_answers() -> None:
    strategy = open_strategy(DiversifyConfig(strategy="bins"), print)
    strategy.plan(read_prompt("x"), NOTHING_YET)
    strategy.prepare("money\nanimals\nwork")
    view = View([], lambda texts: [{"money": 3, "animals": 9, "work": 5}[text] for text in texts])
    hints = [strategy.plan(read_prompt("x"), view).prompt.text for _ in range(4)]
    assert [name for hint in hints for name in ("money", "animals", "work") if name in hint] == [
        "animals",
        "work",
        "money",
        "animals",
    ]


def test_verbalized_asks_for_the_tail_and_goes_on_in_the_conversation() -> None:
    strategy = open_strategy(DiversifyConfig(strategy="verbalized", tail=0.1, turns=2), print)
    first = strategy.plan(read_prompt("x"), NOTHING_YET)
    assert "a probability below 0.1" in first.prompt.text
    strategy.learn(first, ['["a"]'], 1, 10)
    second = strategy.plan(read_prompt("x"), NOTHING_YET)
    assert [message["role"] for message in second.prompt.messages] == ["user", "assistant", "user"]
    strategy.learn(second, ['["b"]'], 1, 10)
    assert len(strategy.plan(read_prompt("x"), NOTHING_YET).prompt.messages) == 1, "two turns were asked for"


class Server:
    """Stands for the traits of a server only: nothing is asked."""

    temperature, max_tokens, chat = 1.0, 20, True

    def ask(self) -> None: ...


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
    auto = open_strategy(DiversifyConfig(), Server())
    calls: list[Call] = [auto.plan(read_prompt("x"), NOTHING_YET)]
    for new_bins in new_of_four:
        auto.learn(calls[-1], ["a"] * 4, new_bins, 100)
        calls.append(auto.plan(read_prompt("x"), NOTHING_YET))
    assert [call.strategy for call in calls] == strategies


VERBALIZED: list[tuple[str, list[tuple[str, float | None]], str]] = [
    (
        '[{"text": "a", "probability": 0.2}, {"text": "b", "probability": 0.7}]',
        [("b", 0.7), ("a", 0.2)],
        "as asked",
    ),
    ('Sure!\n```json\n[{"text": "a", "probability": "20%"}]\n```\nEnjoy.', [("a", 0.2)], "fenced, in percent"),
    ('[{"text": "a", "probability": 0.5}, {"text": "b", "prob', [("a", 0.5)], "cut off at the token limit"),
    ('["a", "b"]', [("a", None), ("b", None)], "bare strings"),
    ('{"responses": [{"text": "a", "probability": 1}]}', [("a", 1.0)], "wrapped in an object"),
    ('{"text": "a", "probability": 0.1}\n{"text": "b", "probability": 0.2}', [("b", 0.2), ("a", 0.1)], "per line"),
    ("1. first (probability: 0.2)\n2) second - 70%", [("second", 0.7), ("first", 0.2)], "a numbered list"),
    ("- it costs 20\n* it costs 30", [("it costs 20", None), ("it costs 30", None)], "no probability"),
    ('[{"text": "a", "probability": null}, {"text": " ", "probability": 1}]', [("a", None)], "blank, no number"),
    ("I cannot answer that.", [], "no list is no answer"),
    ("", [], "nothing"),
    ("[" * 100_000, [], "broken"),
    ('[{"text": "a"}, {"text": "a"}]', [("a", None)], "said twice"),
]


def test_verbalized_answers_are_read_with_care() -> None:
    for reply, wanted, reason in VERBALIZED:
        assert read_verbalized(reply) == wanted, reason


def test_coverage_counts_a_bin_once_per_call() -> None:
    packed = np.array([[0], [0], [255], [0], [15]], np.uint8)
    coverage = measure_coverage(packed, [0, 0, 0, 1, 2], 0)
    assert coverage == Coverage(calls=3, bins=3, once=2, twice=1, sightings=4)
    assert coverage.share == pytest.approx(1 - 2 / 4)
    assert coverage.unseen == pytest.approx(2 / 3 * 2 * 1 / (2 * 2))
    assert coverage.expected_new == pytest.approx(2.5 / 4)


@given(st.lists(st.tuples(st.integers(0, 255), st.integers(0, 5)), max_size=40), st.integers(0, 8))
def test_coverage_is_a_share_and_nothing_counts_twice(rows: list[tuple[int, int]], min_hamming: int) -> None:
    packed = np.array([[number] for number, _ in rows], np.uint8).reshape(-1, 1)
    coverage = measure_coverage(packed, [call for _, call in rows], min_hamming)
    assert 0 <= coverage.share <= 1
    assert coverage.once + coverage.twice <= coverage.bins <= coverage.sightings <= len(rows)
    assert coverage.unseen >= 0


def test_the_estimate_of_unseen_bins_is_near_the_truth() -> None:
    """100 equally likely bins, 100 draws: some 37 are unseen; the mean estimate over 50 runs is near it."""
    draw = np.random.default_rng(0)
    errors = []
    for _ in range(50):
        numbers = draw.integers(0, 100, 100)
        coverage = measure_coverage(numbers.astype(np.uint8)[:, None], range(100), 0)
        errors.append(coverage.unseen - (100 - len(set(numbers.tolist()))))
    assert abs(np.mean(errors)) < 5


def test_every_public_name_of_the_room_loads() -> None:
    from cod3s import ask

    assert all(getattr(ask, name) for name in ask.__all__)
