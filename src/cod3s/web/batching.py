"""Decode waiting requests with equal settings in one batch; each keeps its time limit and may leave."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio
from anyio import to_thread
from starlette.types import Receive

from cod3s.errors import Cod3sError
from cod3s.web.queue import WorkQueue, in_threads, while_connected

Request = TypeVar("Request")
Result = TypeVar("Result")


@dataclass(eq=False)
class _Member(Generic[Request, Result]):
    """A request that is decoded with those of an equal `key`; when it is done, it has a result or an error."""

    request: Request
    key: Hashable
    result: Result | None = None
    error: Exception | None = None
    started: anyio.Event = field(default_factory=anyio.Event)
    done: anyio.Event = field(default_factory=anyio.Event)


class Batching(Generic[Request, Result]):
    """Groups the requests that wait in `queue`.

    `alone` answers a single request in steps, of which the last is the result, and can be stopped between them;
    `batch` answers several in a single step, with the same results.
    """

    def __init__(
        self,
        queue: WorkQueue,
        alone: Callable[[Request], Iterator[Result]],
        batch: Callable[[Sequence[Request]], list[Result]],
    ) -> None:
        self._queue, self._alone, self._batch = queue, alone, batch
        self._waiting: list[_Member[Request, Result]] = []

    async def finish(self, request: Request, key: Hashable, most: int, receive: Receive) -> Result | None:
        """The result, decoded with up to `most` waiting requests of an equal `key`; None if the client leaves."""
        return await while_connected(receive, lambda: self._finish(_Member(request, key), most))

    async def _finish(self, member: _Member[Request, Result], most: int) -> Result | None:
        with self._queue.waiting():
            self._waiting.append(member)
            failure: Exception | None = None
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._lead, member, most)
                    try:
                        await self._queue.within_waiting(member.started.wait())
                        with self._queue.working():
                            await member.done.wait()
                    except Exception as error:  # the task group would wrap it in an ExceptionGroup
                        failure = error
                    tasks.cancel_scope.cancel()
            finally:
                if member in self._waiting:
                    self._waiting.remove(member)
        if failure or member.error:
            raise failure or member.error  # type: ignore[misc]
        return member.result

    async def _lead(self, member: _Member[Request, Result], most: int) -> None:
        """Wait for a turn, and work for all who wait with the same key, unless one of them has done so already."""
        async with self._queue.free:
            if member.started.is_set():
                return
            others = [other for other in self._waiting if other.key == member.key and other is not member]
            group = [member, *others][:most]
            for joined in group:
                self._waiting.remove(joined)
                joined.started.set()
            # Work for several is not given up because one client leaves.
            with anyio.CancelScope(shield=len(group) > 1):
                await self._work(group)
            for joined in group:
                joined.done.set()

    async def _work(self, group: Sequence[_Member[Request, Result]]) -> None:
        """Fill in the results. If something is wrong with a request of several, each is answered alone."""
        if len(group) > 1:
            try:
                results = await to_thread.run_sync(self._batch, [member.request for member in group])
            except Cod3sError:
                pass
            except Exception as error:
                for member in group:
                    member.error = error
                return
            else:
                for member, result in zip(group, results, strict=True):
                    member.result = result
                return
        for member in group:
            try:
                async for step in in_threads(self._alone(member.request)):
                    member.result = step
            except Exception as error:
                member.error = error
