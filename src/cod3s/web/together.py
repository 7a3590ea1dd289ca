"""Decode waiting requests with the same settings together; each keeps its time limit and may leave."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio
from anyio import to_thread
from starlette.types import Receive

from cod3s.errors import Cod3sError
from cod3s.web.queue import WorkQueue, in_threads, while_connected

Asked = TypeVar("Asked")
Result = TypeVar("Result")


@dataclass(eq=False)
class _Member(Generic[Asked, Result]):
    """A request in a group; when the group is done, it has a result or an error."""

    asked: Asked
    result: Result | None = None
    error: Exception | None = None


@dataclass(eq=False)
class _Group(Generic[Asked, Result]):
    """Requests that will be decoded together once any of them has a turn at the engine."""

    key: Hashable
    members: list[_Member[Asked, Result]] = field(default_factory=list)
    started: anyio.Event = field(default_factory=anyio.Event)
    done: anyio.Event = field(default_factory=anyio.Event)


class Together(Generic[Asked, Result]):
    """Groups the requests that wait in `queue`.

    `alone` answers a single request in steps, of which the last is the result, and can be stopped between them;
    `batch` answers several in a single step, with the same results.
    """

    def __init__(
        self,
        queue: WorkQueue,
        alone: Callable[[Asked], Iterator[Result]],
        batch: Callable[[Sequence[Asked]], list[Result]],
    ) -> None:
        self._queue, self._alone, self._batch = queue, alone, batch
        self._waiting: list[_Group[Asked, Result]] = []

    async def finish(self, asked: Asked, key: Hashable, most: int, receive: Receive) -> Result | None:
        """The result; None if the client went away before it.

        Requests with an equal `key` that wait are decoded together, up to `most` of them.
        """
        return await while_connected(receive, lambda: self._finish(asked, key, most))

    async def _finish(self, asked: Asked, key: Hashable, most: int) -> Result | None:
        with self._queue.waiting():
            group, member = self._join(asked, key, most)
            failure: Exception | None = None
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._lead, group)
                    try:
                        await self._queue.within_waiting(group.started.wait())
                        await self._queue.within_working(group.done.wait())
                    except Exception as error:  # the task group would wrap it in an ExceptionGroup
                        failure = error
                    tasks.cancel_scope.cancel()
            finally:
                self._leave(group, member)
        if failure or member.error:
            raise failure or member.error  # type: ignore[misc]
        return member.result

    def _join(
        self, asked: Asked, key: Hashable, most: int
    ) -> tuple[_Group[Asked, Result], _Member[Asked, Result]]:
        """Join a group that still waits and has room, or else a new group."""
        member: _Member[Asked, Result] = _Member(asked)
        for group in self._waiting:
            if group.key == key and len(group.members) < most:
                break
        else:
            group = _Group(key)
            self._waiting.append(group)
        group.members.append(member)
        return group, member

    def _leave(self, group: _Group[Asked, Result], member: _Member[Asked, Result]) -> None:
        group.members.remove(member)
        if not group.members and group in self._waiting:
            self._waiting.remove(group)

    async def _lead(self, group: _Group[Asked, Result]) -> None:
        """Wait for a turn; the first member of the group that gets a turn works for all of them."""
        async with self._queue.slot():
            if group.started.is_set():
                return
            self._waiting.remove(group)
            group.started.set()
            members = tuple(group.members)
            # Work for several is not given up because one client leaves.
            with anyio.CancelScope(shield=len(members) > 1):
                await self._work(members)
            group.done.set()

    async def _work(self, members: Sequence[_Member[Asked, Result]]) -> None:
        if len(members) > 1:
            return await to_thread.run_sync(self._answer_all, members)
        (member,) = members
        try:
            async for step in in_threads(self._alone(member.asked)):
                member.result = step
        except Exception as error:
            member.error = error

    def _answer_all(self, members: Sequence[_Member[Asked, Result]]) -> None:
        """Fill in the results. If something is wrong with a request, each is answered alone."""
        try:
            results = self._batch([member.asked for member in members])
        except Cod3sError:
            for member in members:
                self._answer_alone(member)
        except Exception as error:
            for member in members:
                member.error = error
        else:
            for member, result in zip(members, results, strict=True):
                member.result = result

    def _answer_alone(self, member: _Member[Asked, Result]) -> None:
        try:
            for step in self._alone(member.asked):
                member.result = step
        except Exception as error:
            member.error = error
