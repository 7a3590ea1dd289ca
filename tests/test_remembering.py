"""The engine with a memory: it gives what the engine gives, and asks it for nothing twice."""

from dataclasses import replace

import pytest

from cod3s.decode.decode_config import DecodeConfig
from cod3s.decode.generator import load
from cod3s.model.engine import Draws, Request
from cod3s.model.memory import RememberingEngine
from cod3s.records import Hypothesis
from fake_engine import FakeEngine
from tiny_bundle import SOURCES, TinyBundle


def _engine() -> FakeEngine:
    return FakeEngine(
        found=lambda request: [Hypothesis((number, *request.prefix), -float(number), 2) for number in (1, 2, 3)],
        scored=lambda request, tokens: -float(len(tokens) + len(request.prefix)),
    )


def _requests(*sources: str) -> list[Request]:
    return [Request(source, (7,)) for source in sources]


def test_only_what_is_new_is_asked_for() -> None:
    inner = _engine()
    engine = RememberingEngine(inner, 1000)
    first = engine.search(_requests("a", "b"), beam=3, max_tokens=5)
    again = engine.search(_requests("b", "c", "a"), beam=3, max_tokens=5)
    assert inner.calls == [("search", 2), ("search", 1)]
    assert again == [first[1], _engine().search(_requests("c"), beam=3, max_tokens=5)[0], first[0]]


def test_other_options_are_another_question() -> None:
    inner = _engine()
    engine = RememberingEngine(inner, 1000)
    for beam, most, only in ((3, 5, None), (2, 5, None), (3, 4, None), (3, 5, [1])):
        assert len(engine.search(_requests("a"), beam=beam, max_tokens=most, only=only)[0]) == beam
    assert len(inner.calls) == 4


def test_scores_belong_to_request_continuation_and_end() -> None:
    inner = _engine()
    engine = RememberingEngine(inner, 1000)
    asked = [(1, 2), (1, 2, 3)]
    first = engine.score(_requests("a", "a"), asked)
    assert engine.score(_requests("a", "a"), asked[::-1]) == first[::-1]
    assert engine.score(_requests("a"), [(1, 2)], end=False) != first[:1]
    assert [number for _, number in inner.calls] == [2, 1]


def test_a_draw_is_remembered_with_its_whole_call() -> None:
    inner = _engine()
    engine = RememberingEngine(inner, 1000)
    draws = Draws(samples=2, top_k=5, temperature=1.0, max_tokens=5, seed=1)
    first = engine.sample(_requests("a", "b"), draws)
    assert engine.sample(_requests("a", "b"), draws) == first
    engine.sample(_requests("a"), draws)
    engine.sample(_requests("a", "b"), replace(draws, seed=2))
    assert [number for _, number in inner.calls] == [2, 1, 2]


def test_the_longest_unused_goes_first() -> None:
    inner = _engine()
    engine = RememberingEngine(inner, 6)  # two requests with three hypotheses each

    def ask(source: str) -> int:
        before = len(inner.calls)
        engine.search(_requests(source), beam=3, max_tokens=5)
        return len(inner.calls) - before

    assert [ask(source) for source in ("a", "b", "a", "c", "a", "b")] == [1, 1, 0, 1, 0, 1]


def test_nothing_is_remembered_of_an_empty_call() -> None:
    inner = _engine()
    engine = RememberingEngine(inner, 1000)
    assert engine.search([], beam=1, max_tokens=1) == []
    assert engine.score([], []) == []
    assert inner.calls == []


def test_models_without_memory_are_the_same_models(tiny_bundle: TinyBundle) -> None:
    models = load(tiny_bundle.exact, remember=1000).models
    remembering, bare = models.plain("effect").engine, models.without_memory().plain("effect").engine
    assert isinstance(remembering, RememberingEngine)
    assert remembering.engine is bare
    assert load(tiny_bundle.exact).models.without_memory().plain("effect").engine.cuts("it rained") is False


@pytest.mark.parametrize("system", ["cod3s-mmi-mmi", "cod3s-mmi-mmi-rs", "s2s"])
def test_a_bundle_answers_alike_with_and_without(tiny_bundle: TinyBundle, system: str) -> None:
    plain, remembering = load(tiny_bundle.exact), load(tiny_bundle.exact, remember=1000)
    for weight in (0.3, 2.0):
        options = DecodeConfig(k=3, beam=6, signature_beam=20, samples=6, sentence_weight=weight)
        found = remembering.generate(SOURCES, "effect", system=system, options=options)
        wanted = plain.generate(SOURCES, "effect", system=system, options=options)
        assert [[answer.text for answer in own] for own in found] == [[a.text for a in own] for own in wanted]
        scores = [answer.score for own in found for answer in own]
        assert scores == pytest.approx([answer.score for own in wanted for answer in own], abs=1e-4)
