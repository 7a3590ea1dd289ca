"""Ask a generator until k answers differ, then choose the k best; one call at a time or several at once."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cod3s.ask.diversified import Diversified, Tokens
from cod3s.ask.inquiry import MIN_GAIN, Inquiry
from cod3s.ask.replies import Answered, Failed, read_reply
from cod3s.ask.strategies import Call, open_strategy
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError
from cod3s.selection import AUTO, BITS
from cod3s.signatures import SEED

BUDGET = 50
STRATEGY = "resample"

Watch = Callable[[Inquiry], None]
"""Called after every call, to show progress."""


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
    """Call `generate(prompt)` until k answers differ, at most `budget` times; then choose the k best.

    `generate` returns a text, a list of texts, (text, score) or a list of (text, score), and should sample
    again on each call. `strategy` decides what each call sends (`cod3s.ask.STRATEGIES`). It stops early when
    another call is expected to bring fewer than `min_gain` new bins. A failed call counts towards the budget and
    is reported; after three in a row, it stops. `token_budget` needs a generator that counts tokens, such as
    CompletionServer.
    """
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
    rounds = _Rounds(generate, prompt, strategy, inquiry, watch)
    while calls := rounds.plan(1):
        rounds.hear(calls, [_attempt(generate, call) for call in calls])
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
    """`diversify` with `concurrency` calls at the same time; a plain function runs in threads.

    Replies count in the order of the calls, so the result does not depend on which comes back first.
    """
    if concurrency < 1:
        raise Cod3sError(f"the concurrency is {concurrency}", hint="it must be at least 1")
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
    rounds = _Rounds(generate, prompt, strategy, inquiry, watch)
    while calls := rounds.plan(concurrency):
        rounds.hear(calls, await asyncio.gather(*(_attempt_async(generate, call) for call in calls)))
    return inquiry.conclude(prompt)


class _Rounds:
    """Plans each round of calls with a strategy, and passes the replies to inquiry, strategy and watcher."""

    def __init__(
        self, generate: Callable[[str], Any], prompt: str, strategy: str, inquiry: Inquiry, watch: Watch | None
    ) -> None:
        self._strategy = open_strategy(strategy, generate)
        self._prompt, self._inquiry, self._watch = prompt, inquiry, watch
        self._count: Callable[[], Tokens] | None = getattr(generate, "tokens_spent", None)
        self._start = self._count() if self._count else Tokens()

    def plan(self, most: int) -> list[Call]:
        """Up to `most` calls within the budget; none when it is time to stop."""
        if self._inquiry.stopped:
            return []
        kept = self._inquiry.kept()
        return [self._strategy.plan(self._prompt, kept) for _ in range(min(most, self._inquiry.left))]

    def hear(self, calls: Sequence[Call], replies: Sequence[Answered | Failed]) -> None:
        for call, reply in zip(calls, replies, strict=True):
            tokens, before = self._tokens(), self._inquiry.tokens
            new_bins = self._inquiry.hear(reply, call.strategy, tokens)
            cost = (tokens.total if tokens else 0) - (before.total if before else 0)
            texts = len(reply.texts) if isinstance(reply, Answered) else 0
            self._strategy.learn(call, texts, new_bins, cost)
            if self._watch is not None:
                self._watch(self._inquiry)

    def _tokens(self) -> Tokens | None:
        """The tokens that the generator has spent since the start, if it counts them."""
        if self._count is None:
            return None
        now, start = self._count(), self._start
        return Tokens(now.prompt - start.prompt, now.completion - start.completion, estimated=now.estimated)


def _adjusted(generate: Callable[[str], Any], call: Call) -> Callable[[str], Any]:
    """The generator with the settings of this call, if it has settings."""
    adjust = getattr(generate, "adjusted", None)
    adjusted: Callable[[str], Any] = adjust(**call.settings) if adjust and call.settings else generate
    return adjusted


def _attempt(generate: Callable[[str], Any], call: Call) -> Answered | Failed:
    try:
        value = _listed(_adjusted(generate, call)(call.prompt))
    except Exception as error:
        return _failed(error)
    return read_reply(value, call.read)


async def _attempt_async(generate: Callable[[str], Any], call: Call) -> Answered | Failed:
    try:
        adjusted = _adjusted(generate, call)
        if inspect.iscoroutinefunction(adjusted):
            value = await adjusted(call.prompt)
        else:
            value = _listed(await asyncio.to_thread(adjusted, call.prompt))
            value = await value if isinstance(value, Awaitable) else value
    except Exception as error:
        return _failed(error)
    return read_reply(value, call.read)


def _listed(value: Any) -> Any:
    """The items of a generator function, which may fail while they are listed; any other value unchanged."""
    return list(value) if inspect.isgenerator(value) else value


def _failed(error: Exception) -> Failed:
    reason = error.message if isinstance(error, Cod3sError) else f"{type(error).__name__}: {error}"
    return Failed(reason, error, final=getattr(error, "final", False))
