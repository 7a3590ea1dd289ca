"""The gate before the engine: so many at work, so many waiting, so long each. Requests in, places out.

Work runs in threads, a step at a time, so that the server goes on listening and can stop between two steps.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
from anyio import to_thread
from starlette.types import Receive

from cod3s.web.limits import Limits
from cod3s.web.refusals import BusyError, OutOfTimeError

RETRY_SECONDS = 2  # what a refused client is told to wait

Step = TypeVar("Step")
Result = TypeVar("Result")


class Gate:
    """Gives places at the engine, in the order of arrival."""

    def __init__(self, limits: Limits) -> None:
        self._free = anyio.Semaphore(limits.at_once)
        self._most, self._seconds = limits.at_once + limits.waiting, limits.seconds
        self.taken = 0  # places at work and waiting

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place, when one is free; an error if too many wait, or too long, or if the work takes too long.

        Waiting takes nothing off the time for the work: else a long queue would give places to requests that have
        no time left, and all work would be for nothing.
        """
        if self.taken >= self._most:
            raise BusyError(RETRY_SECONDS)
        self.taken += 1
        try:
            await self._wait()
            try:
                with anyio.fail_after(self._seconds):
                    yield
            except TimeoutError:
                raise OutOfTimeError(self._seconds) from None
            finally:
                self._free.release()
        finally:
            self.taken -= 1

    async def _wait(self) -> None:
        try:
            with anyio.fail_after(self._seconds):
                await self._free.acquire()
        except TimeoutError:
            raise BusyError(RETRY_SECONDS) from None

    async def finish(self, steps: Iterator[Step], receive: Receive) -> Step | None:
        """The last step of the work, done at a place of its own; None if the client went away before."""

        async def work() -> Step | None:
            last = None
            async with self.place():
                async for step in in_threads(steps):
                    last = step
            return last

        return await while_connected(receive, work)


async def in_threads(steps: Iterator[Step]) -> AsyncIterator[Step]:
    """Each step as it is made. A cancelled request ends with the step under way."""
    end = object()
    while (step := await to_thread.run_sync(next, steps, end)) is not end:
        yield step  # type: ignore[misc]


async def while_connected(receive: Receive, work: Callable[[], Awaitable[Result]]) -> Result | None:
    """What `work` gives; None if the client went away, which cancels it. Its body must have been read."""
    result: Result | None = None
    failure: Exception | None = None

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        try:
            result = await work()
        except Exception as error:  # the group would raise it inside a group of exceptions
            failure = error
        group.cancel_scope.cancel()
    if failure:
        raise failure
    return result
