"""The queue of requests for the engine: a few run, some may wait, and each has a time limit.

Work runs in threads, step by step, so that the server keeps listening and can stop between two steps.
"""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cod3s.errors import Cod3sError
from cod3s.web.error_replies import RefusedError, explain
from cod3s.web.limits import Limits

RETRY_SECONDS = 2  # how long a refused client is told to wait
_log = logging.getLogger("cod3s.web")

Event = dict[str, Any]
Step = TypeVar("Step")
Result = TypeVar("Result")


def _busy() -> RefusedError:
    hint = f"try again in {RETRY_SECONDS} seconds"
    return RefusedError(503, "too many requests are waiting", hint, retry_after=RETRY_SECONDS)


class WorkQueue:
    """Lets requests use the engine in the order of arrival."""

    def __init__(self, limits: Limits) -> None:
        self.free = anyio.Semaphore(limits.at_once)  # `async with` it to wait for the engine without a limit
        self._capacity, self._seconds = limits.at_once + limits.waiting, limits.seconds
        self.requests = 0  # running and waiting

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count a request as waiting or at work; an error if the queue is full."""
        if self.requests >= self._capacity:
            raise _busy()
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn at the engine; an error if too many wait, or too long, or if the work takes too long.

        Waiting does not count against the time for the work: otherwise a long queue would give turns to requests
        that have no time left, and all work would be wasted.
        """
        with self.waiting():
            await self.within_waiting(self.free.acquire())
            try:
                with self.working():
                    yield
            finally:
                self.free.release()

    async def within_waiting(self, start: Awaitable[None]) -> None:
        """Wait for the start of the work; an error if that takes too long."""
        try:
            with anyio.fail_after(self._seconds):
                await start
        except TimeoutError:
            raise _busy() from None

    @contextmanager
    def working(self) -> Iterator[None]:
        """An error if the work in this context takes too long."""
        try:
            with anyio.fail_after(self._seconds):
                yield
        except TimeoutError:
            raise RefusedError(
                504,
                f"this took longer than {self._seconds:g} seconds",
                hint="ask for fewer answers or a narrower beam, or try later",
            ) from None

    async def run(self, work: Callable[[], Awaitable[Result]], receive: Receive) -> Result | None:
        """The result of the work when it has had its turn; None if the client went away before."""

        async def in_turn() -> Result:
            async with self.turn():
                return await work()

        return await while_connected(receive, in_turn)

    async def finish(self, steps: Iterator[Step], receive: Receive) -> Step | None:
        """The last of the steps; None if the client went away before it."""

        async def work() -> Step | None:
            last = None
            async for step in in_threads(steps):
                last = step
            return last

        return await self.run(work, receive)


async def in_threads(steps: Iterator[Step]) -> AsyncIterator[Step]:
    """Each step as it is finished. A cancelled request ends after the current step."""
    end = object()
    while (step := await to_thread.run_sync(next, steps, end)) is not end:
        yield step  # type: ignore[misc]


async def while_connected(receive: Receive, work: Callable[[], Awaitable[Result]]) -> Result | None:
    """The result of `work`; None if the client went away, which cancels it. Read the request's body first."""
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
        except Exception as error:  # the task group would wrap it in an ExceptionGroup
            failure = error
        group.cancel_scope.cancel()
    if failure:
        raise failure
    return result


class JsonLines(Response):
    """Sends each event of the work as a line of JSON, as soon as it is made.

    The first byte is sent once the request has its turn, so that a refusal can still have its own status. Later
    errors are sent as a line.
    """

    media_type = "application/x-ndjson"

    def __init__(self, queue: WorkQueue, events: Iterator[Event]) -> None:
        super().__init__()
        del self.headers["content-length"]  # unknown until the end
        self._queue, self._events = queue, events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await while_connected(receive, lambda: self._send_all(send))

    async def _send_all(self, send: Send) -> None:
        started = False
        try:
            async with self._queue.turn():
                async for event in in_threads(self._events):
                    if not started:
                        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                        started = True
                    await send(_line(event))
        except Exception as error:
            if not started:
                raise
            if not isinstance(error, Cod3sError):
                _log.error("a stream broke off", exc_info=error)
            await send(_line({"event": "error", **explain(error)}))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _line(event: Event) -> dict[str, Any]:
    body = json.dumps(event, ensure_ascii=False).encode() + b"\n"
    return {"type": "http.response.body", "body": body, "more_body": True}
