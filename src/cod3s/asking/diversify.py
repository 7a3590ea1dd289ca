"""Ask a generator until k answers lie apart, then choose the k best.

The loop is written twice, for functions and for coroutines; what was heard and when to stop is kept by `Inquiry`.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from cod3s.asking.diversified import Diversified, Tokens
from cod3s.asking.inquiry import MIN_GAIN, Inquiry
from cod3s.asking.replies import Answered, Failed, read_reply
from cod3s.asking.strategies import Call, Strategy, open_strategy
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError
from cod3s.selection import AUTO, BITS
from cod3s.signatures import SEED

BUDGET = 50
STRATEGY = "resample"

Watch = Callable[[Inquiry], None]
"""Called after every call, for those who show progress."""


def diversify(
    generate: Callable[[str], Any],
    prompt: str,
    k: int,
    *,
    strategy: str = STRATEGY,
    budget: int = BUDGET,
    token_budget: int | None = None,
    min_gain: float = MIN_GAIN,
    method: str = AUTO,
    min_hamming: int | None = None,
    bits: int = BITS,
    encoder: Encoder | str = "static",
    seed: int = SEED,
    watch: Watch | None = None,
) -> Diversified:
    """Call `generate(prompt)` until k answers lie apart, at most `budget` times; then choose the k best.

    `generate` returns a text, a list of texts, (text, score) or a list of (text, score), and should draw anew at
    each call. `strategy` decides what each call sends (`cod3s.asking.STRATEGIES`). The asking ends early when one
    more call should bring fewer than `min_gain` new bins. A call that fails costs one of the budget and is
    reported; three in a row end the asking. `token_budget` needs a generator that counts tokens, such as
    CompletionServer.
    """
    plan = open_strategy(strategy, generate)
    inquiry = Inquiry(
        k,
        budget=budget,
        token_budget=token_budget,
        min_gain=min_gain,
        method=method,
        min_hamming=min_hamming,
        bits=bits,
        encoder=encoder,
        seed=seed,
    )
    spent = _Meter(generate)
    while not inquiry.stopped:
        call = plan.plan(prompt, inquiry.kept())
        _hear(inquiry, plan, call, _attempt(generate, call), spent, watch)
    return inquiry.conclude(prompt)


async def diversify_async(
    generate: Callable[[str], Any],
    prompt: str,
    k: int,
    *,
    concurrency: int = 4,
    strategy: str = STRATEGY,
    budget: int = BUDGET,
    token_budget: int | None = None,
    min_gain: float = MIN_GAIN,
    method: str = AUTO,
    min_hamming: int | None = None,
    bits: int = BITS,
    encoder: Encoder | str = "static",
    seed: int = SEED,
    watch: Watch | None = None,
) -> Diversified:
    """`diversify` with `concurrency` calls under way at once; a plain function runs in threads.

    Replies count in the order in which the calls were made, so the result does not depend on which is faster.
    """
    if concurrency < 1:
        raise Cod3sError(f"{concurrency} calls at once were asked for", hint="allow at least 1")
    plan = open_strategy(strategy, generate)
    inquiry = Inquiry(
        k,
        budget=budget,
        token_budget=token_budget,
        min_gain=min_gain,
        method=method,
        min_hamming=min_hamming,
        bits=bits,
        encoder=encoder,
        seed=seed,
    )
    spent = _Meter(generate)
    while not inquiry.stopped:
        kept = inquiry.kept()
        calls = [plan.plan(prompt, kept) for _ in range(min(concurrency, inquiry.left))]
        replies = await asyncio.gather(*(_attempt_async(generate, call) for call in calls))
        for call, reply in zip(calls, replies, strict=True):
            _hear(inquiry, plan, call, reply, spent, watch)
    return inquiry.conclude(prompt)


class _Meter:
    """Tokens that a generator spent since the asking began, where it counts them."""

    def __init__(self, generate: Any) -> None:
        self._count: Callable[[], Tokens] | None = getattr(generate, "tokens_spent", None)
        self._start = self._count() if self._count else Tokens()

    def tokens(self) -> Tokens | None:
        if self._count is None:
            return None
        now = self._count()
        return Tokens(
            now.prompt - self._start.prompt, now.completion - self._start.completion, estimated=now.estimated
        )


def _hear(
    inquiry: Inquiry, plan: Strategy, call: Call, reply: Answered | Failed, spent: _Meter, watch: Watch | None
) -> None:
    tokens, before = spent.tokens(), inquiry.tokens
    new_bins = inquiry.hear(reply, call.strategy, tokens)
    plan.learn(call, new_bins, (tokens.total if tokens else 0) - (before.total if before else 0))
    if watch is not None:
        watch(inquiry)


def _adjusted(generate: Callable[[str], Any], call: Call) -> Callable[[str], Any]:
    """The generator with the settings of this call, where it has settings."""
    adjust = getattr(generate, "adjusted", None)
    adjusted: Callable[[str], Any] = adjust(**call.settings) if adjust and call.settings else generate
    return adjusted


def _attempt(generate: Callable[[str], Any], call: Call) -> Answered | Failed:
    try:
        value = _adjusted(generate, call)(call.prompt)
        # A generator function runs while its items are taken, so that is part of the attempt.
        value = list(value) if inspect.isgenerator(value) else value
    except Exception as error:
        return _failed(error)
    return read_reply(value, call.read)


async def _attempt_async(generate: Callable[[str], Any], call: Call) -> Answered | Failed:
    try:
        value = await _call(_adjusted(generate, call), call.prompt)
    except Exception as error:
        return _failed(error)
    return read_reply(value, call.read)


def _failed(error: Exception) -> Failed:
    reason = error.message if isinstance(error, Cod3sError) else f"{type(error).__name__}: {error}"
    return Failed(reason, error, final=getattr(error, "final", False))


async def _call(generate: Callable[[str], Any], prompt: str) -> Any:
    if inspect.iscoroutinefunction(generate):
        return await generate(prompt)
    value = await asyncio.to_thread(generate, prompt)
    if isinstance(value, Awaitable):
        return await value
    return list(value) if inspect.isgenerator(value) else value
