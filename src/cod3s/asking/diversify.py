"""Asks a generator until k bins that lie apart are filled. The user's function in, `Diversified` out.

The loop is written twice, for functions and for coroutines, and only calls: what is known and when to stop is
the business of `Asking`.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from cod3s.asking.inquiry import MIN_GAIN, Asking
from cod3s.asking.replies import Answered, Failed, read_reply
from cod3s.asking.result import Diversified
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError
from cod3s.selection import BITS
from cod3s.signatures import SEED

BUDGET = 50


def diversify(
    generate: Callable[[str], Any],
    prompt: str,
    k: int,
    *,
    budget: int = BUDGET,
    min_gain: float = MIN_GAIN,
    method: str = "signatures",
    min_hamming: int | None = None,
    bits: int = BITS,
    encoder: Encoder | str = "static",
    seed: int = SEED,
) -> Diversified:
    """Call `generate(prompt)` until k answers lie apart, at most `budget` times; then choose the k best.

    `generate` returns a text, a list of texts, (text, score) or a list of (text, score), and should draw anew at
    each call. The asking ends early when one more call should bring fewer than `min_gain` new bins. A call that
    fails costs one of the budget and is reported; three in a row end the asking.
    """
    asking = Asking(
        k,
        budget=budget,
        min_gain=min_gain,
        method=method,
        min_hamming=min_hamming,
        bits=bits,
        encoder=encoder,
        seed=seed,
    )
    while not asking.stopped:
        asking.hear(_attempt(generate, prompt))
    return asking.conclude(prompt)


async def diversify_async(
    generate: Callable[[str], Any],
    prompt: str,
    k: int,
    *,
    concurrency: int = 4,
    budget: int = BUDGET,
    min_gain: float = MIN_GAIN,
    method: str = "signatures",
    min_hamming: int | None = None,
    bits: int = BITS,
    encoder: Encoder | str = "static",
    seed: int = SEED,
) -> Diversified:
    """`diversify` with `concurrency` calls under way at once; a plain function runs in threads.

    Replies count in the order in which the calls were made, so the result does not depend on which is faster.
    """
    if concurrency < 1:
        raise Cod3sError(f"{concurrency} calls at once were asked for", hint="allow at least 1")
    asking = Asking(
        k,
        budget=budget,
        min_gain=min_gain,
        method=method,
        min_hamming=min_hamming,
        bits=bits,
        encoder=encoder,
        seed=seed,
    )
    while not asking.stopped:
        calls = min(concurrency, asking.left)
        for reply in await asyncio.gather(*(_attempt_async(generate, prompt) for _ in range(calls))):
            asking.hear(reply)
    return asking.conclude(prompt)


def _attempt(generate: Callable[[str], Any], prompt: str) -> Answered | Failed:
    try:
        value = generate(prompt)
        # A generator function runs while its items are taken, so that is part of the attempt.
        value = list(value) if inspect.isgenerator(value) else value
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}", error)
    return read_reply(value)


async def _attempt_async(generate: Callable[[str], Any], prompt: str) -> Answered | Failed:
    try:
        value = await _call(generate, prompt)
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}", error)
    return read_reply(value)


async def _call(generate: Callable[[str], Any], prompt: str) -> Any:
    if inspect.iscoroutinefunction(generate):
        return await generate(prompt)
    value = await asyncio.to_thread(generate, prompt)
    if isinstance(value, Awaitable):
        return await value
    return list(value) if inspect.isgenerator(value) else value
