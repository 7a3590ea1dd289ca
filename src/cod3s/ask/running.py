"""Run asynchronous work from plain functions, and plain functions from asynchronous work."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")

_THREADS = ThreadPoolExecutor(64, thread_name_prefix="cod3s-ask")  # starts a thread only when one is needed


def run(work: Coroutine[Any, Any, Result], *closing: Any) -> Result:
    """The result of `work`, also inside a running loop, as in a notebook; then `closing` disconnect."""

    async def complete() -> Result:
        try:
            return await work
        finally:
            for server in closing:
                if hasattr(server, "aclose"):
                    await server.aclose()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(complete())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, complete()).result()


async def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function: coroutines are awaited, plain functions run in threads."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        return await function(*arguments)

    def in_thread() -> Any:
        try:
            value = function(*arguments)
            return list(value) if inspect.isgenerator(value) else value
        except StopIteration as error:  # a future cannot carry it
            raise RuntimeError("StopIteration") from error

    loop = asyncio.get_running_loop()
    value = await loop.run_in_executor(_THREADS, partial(copy_context().run, in_thread))
    return await value if inspect.isawaitable(value) else value
