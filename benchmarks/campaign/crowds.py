"""A crowd: many clients with valid, broken, slow and aborted requests against `cod3s serve`.

    PYTHONPATH=benchmarks:tests python -m campaign.crowds --clients 50 --seconds 600 --warm-up 700
    PYTHONPATH=benchmarks:tests python -m campaign.crowds --only generate --seconds 60

The second sends a single kind of request, to see what makes memory grow.

Every reply has a documented status, the queue stays bounded, and a request after the crowd is answered within five
seconds. After a warm-up, memory is flat from the first to the last tenth: the server opens encoders when a request
needs them, remembers answers up to a limit, and decodes up to 40 answers of waiting requests together.
"""

import argparse
import asyncio
import json
import random
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from serve_load import server

from campaign.long_runs import different_sources
from campaign.material import material
from campaign.tally import Budget, Tally, budget_of, parser, print_all
from campaign.watch import Watch, watched
from cod3s.web.limits import Limits

_RECOVERY_SECONDS = 5.0
_PATIENCE = 120.0  # longer than arriving, waiting and working may take together
_BUSY = (200, 503, 504)
_NO_REPLY = 0


@dataclass
class Crowd:
    """The clients, what they have been told, and what was wrong."""

    address: str
    draw: random.Random
    only: str = ""  # what the names of the kinds that are sent have in them
    end: float = 0.0
    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)  # of valid requests that were answered
    findings: list[str] = field(default_factory=list)
    most_taken: int = 0

    def __post_init__(self) -> None:
        self._kinds = [kind for kind in _KINDS if self.only in kind.name]
        self._sources = different_sources()
        self._host, _, port = self.address.removeprefix("http://").rstrip("/").rpartition(":")
        self._port = int(port)

    async def run(self, clients: int, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        async with self._connected():
            await asyncio.gather(self._watch_queue(), *(self._client() for _ in range(clients)))

    async def warm_up(self, answers: int) -> None:
        """Send a valid request of each kind, then so many questions one after another, and then many at once."""
        async with self._connected():
            for kind in dict.fromkeys(self._kinds):
                if kind.expected == _BUSY:
                    await kind.send(self)
            for _ in range(answers):
                await self.post("/api/generate", self.question())
            at_once = Limits().at_once + Limits().waiting
            await asyncio.gather(*(self.post("/api/generate", self.question()) for _ in range(at_once)))
        self.seconds.clear()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[None]:
        # The server closes idle connections after five seconds; a request at that moment would get no reply.
        limits = httpx.Limits(keepalive_expiry=1.0)
        async with httpx.AsyncClient(
            base_url=self.address, timeout=_PATIENCE, trust_env=False, limits=limits
        ) as self._http:
            yield

    async def _client(self) -> None:
        """One client: another kind of request each time."""
        while time.monotonic() < self.end:
            await asyncio.sleep(self.draw.random())
            kind = self.draw.choice(self._kinds)
            try:
                status = await asyncio.wait_for(kind.send(self), _PATIENCE)
            except (
                httpx.HTTPError,
                OSError,
                TimeoutError,
                asyncio.TimeoutError,
            ) as error:
                self.findings.append(f"{kind.name}: {error!r}")
                continue
            self.statuses.setdefault(kind.name, Counter())[status] += 1
            if status not in kind.expected:
                self.findings.append(f"{kind.name}: status {status}")

    async def _watch_queue(self) -> None:
        while time.monotonic() < self.end:
            try:
                reply = await self._http.get("/healthz")
                self.most_taken = max(self.most_taken, reply.json()["requests"])
            except httpx.HTTPError as error:
                self.findings.append(f"/healthz: {error!r}")
            await asyncio.sleep(1)

    def question(self, **options: object) -> dict[str, object]:
        return {"text": next(self._sources), "relation": self.draw.choice(("cause", "effect")), "k": 3, **options}

    async def post(self, path: str, body: object, **headers: str) -> int:
        start = time.monotonic()
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        reply = await self._http.post(
            path, content=content, headers={"Content-Type": "application/json", **headers}
        )
        if reply.status_code == 200:
            self.seconds.append(time.monotonic() - start)
            if path == "/api/stream" and not _is_whole(reply.content):
                self.findings.append(f"a stream ended with {reply.content[-200:]!r}")
        return int(reply.status_code)

    async def get(self, path: str) -> int:
        return int((await self._http.get(path)).status_code)

    async def raw(self, *parts: bytes, pause: float = 0.0, half_close: bool = False) -> bytes:
        """What the server sends back to bytes that are sent in parts, until it closes or says no more."""
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            with suppress(ConnectionError):  # it may have had enough
                for part in parts:
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(pause)
                    if reader.at_eof() or reader._buffer:  # type: ignore[attr-defined]
                        break
                if half_close:
                    writer.write_eof()
            with suppress(ConnectionError):
                return await reader.read(1 << 16)
            return b""
        finally:
            writer.close()

    async def abort(self, request: bytes) -> int:
        """Send a request, read the beginning of the reply, and reset the connection."""
        reader, writer = await asyncio.open_connection(self._host, self._port)
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.write(request)
        with suppress(TimeoutError, asyncio.TimeoutError, ConnectionError):
            await asyncio.wait_for(reader.read(200), self.draw.uniform(0, 2))
        writer.transport.abort()
        return _NO_REPLY

    def request(self, path: str, body: bytes, length: int | None = None) -> bytes:
        """A whole request as bytes; `length` is what it claims to have."""
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body

    def asking(self, path: str) -> bytes:
        return self.request(path, json.dumps(self.question()).encode())


@dataclass(frozen=True)
class Kind:
    """A kind of request, and the statuses that it may get; 0 is no reply at all."""

    name: str
    send: Callable[[Crowd], Awaitable[int]]
    expected: tuple[int, ...]


def _is_whole(stream: bytes) -> bool:
    """Whether a stream ends as documented: with the record, or with the error of a request that took too long."""
    last = json.loads(stream.splitlines()[-1])
    return last["event"] == "done" or (last["event"] == "error" and "took longer than" in last["message"])


def _status(reply: bytes) -> int:
    return int(reply.split(None, 2)[1]) if reply.startswith(b"HTTP/1.1 ") else _NO_REPLY


async def _slow_body(crowd: Crowd) -> int:
    """One byte per second, for longer than the server waits."""
    body = json.dumps(crowd.question()).encode() * 2
    head = crowd.request("/api/generate", b"", len(body))
    return _status(await crowd.raw(head, *(body[n : n + 1] for n in range(len(body))), pause=1.0))


async def _half_closed(crowd: Crowd) -> int:
    return _status(await crowd.raw(crowd.asking("/api/generate"), half_close=True))


async def _pipelined(crowd: Crowd) -> int:
    one = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    reader, writer = await asyncio.open_connection(crowd._host, crowd._port)
    writer.write(one + b"\r\n" + one + b"Connection: close\r\n\r\n")
    try:
        replies = await reader.read(-1)
    finally:
        writer.close()
    return 200 if replies.count(b"HTTP/1.1 200") == 2 else _NO_REPLY


async def _silent(crowd: Crowd) -> int:
    _, writer = await asyncio.open_connection(crowd._host, crowd._port)
    await asyncio.sleep(crowd.draw.uniform(0, 5))
    writer.close()
    return _NO_REPLY


_KINDS = (
    *[Kind("generate", lambda c: c.post("/api/generate", c.question()), _BUSY)] * 6,
    *[Kind("stream", lambda c: c.post("/api/stream", c.question()), _BUSY)] * 3,
    Kind("sample", lambda c: c.post("/api/generate", c.question(search="sample", samples=4)), _BUSY),
    Kind("select", lambda c: c.post("/api/select", {"candidates": ["a dog", "a cat", "rain"], "k": 2}), _BUSY),
    Kind("bin", lambda c: c.get("/api/bins/01010101?relation=effect"), (200,)),
    Kind("map", lambda c: c.get("/api/map?relation=cause&limit=50"), (200,)),
    Kind("page", lambda c: c.get("/"), (200,)),
    Kind("no JSON", lambda c: c.post("/api/generate", b'{"text": '), (422,)),
    Kind("unknown field", lambda c: c.post("/api/generate", c.question(odd=1)), (422,)),
    Kind("too many answers", lambda c: c.post("/api/generate", c.question(k=10**6)), (422,)),
    Kind("too large", lambda c: c.post("/api/generate", b" " * 100_000), (413,)),
    Kind("foreign page", lambda c: c.post("/api/generate", c.question(), Origin="http://evil.example"), (403,)),
    Kind("no such route", lambda c: c.get("/api/nothing"), (404,)),
    Kind("wrong method", lambda c: c.get("/api/generate"), (405,)),
    Kind("not HTTP", lambda c: _as_status(c.raw(b"\x16\x03\x01 what is this\r\n\r\n")), (400,)),
    Kind("slow body", _slow_body, (408,)),
    Kind("half-closed", _half_closed, (*_BUSY, _NO_REPLY)),
    Kind("pipelined", _pipelined, (200,)),
    Kind("silent", _silent, (_NO_REPLY,)),
    Kind("aborted answer", lambda c: c.abort(c.asking("/api/generate")), (_NO_REPLY,)),
    *[Kind("aborted stream", lambda c: c.abort(c.asking("/api/stream")), (_NO_REPLY,))] * 2,
)


async def _as_status(reply: Awaitable[bytes]) -> int:
    return _status(await reply)


def send_crowd(
    bundle: Path, budget: Budget, clients: int, limits: Limits, warm_up: int = 0, only: str = ""
) -> Tally:
    """The tally of one crowd: each reply, then the queue, recovery and, after a warm-up, memory."""
    tally = Tally(f"server: {clients} clients, {budget.seconds / 60:g} minutes")
    options = ("--bundle", str(bundle), "--seconds", str(limits.seconds))
    with server(*options) as (address, pid):
        crowd = Crowd(address, budget.draw("crowd"), only)
        if warm_up:
            asyncio.run(crowd.warm_up(warm_up))
        with watched(pid) as watch:
            asyncio.run(crowd.run(clients, budget.seconds))
        recovery = _recovery(address)
    tally.tried = sum(counter.total() for counter in crowd.statuses.values())
    tally.findings = [f"{tally.name}, {finding}" for finding in crowd.findings]
    bounded = crowd.most_taken <= limits.at_once + limits.waiting
    tally.count("queue", "" if bounded else f"{crowd.most_taken} requests were waiting or at work")
    tally.count("recovery", "" if recovery < _RECOVERY_SECONDS else f"answered after {recovery:.1f} s")
    if warm_up:
        tally.count("memory and open files", watch.growth(settled=0, width=0.1))
    tally.remark = _summary(crowd, watch, recovery)
    print(json.dumps({name: dict(counter) for name, counter in sorted(crowd.statuses.items())}), file=sys.stderr)
    return tally


def _recovery(address: str) -> float:
    start = time.monotonic()
    body = {"text": "the baker lost the key at home", "relation": "effect", "k": 3}
    while time.monotonic() < start + _PATIENCE:
        if httpx.post(f"{address}/api/generate", json=body, timeout=_PATIENCE, trust_env=False).status_code == 200:
            break
        time.sleep(0.1)
    return time.monotonic() - start


def _summary(crowd: Crowd, watch: Watch, recovery: float) -> str:
    times = sorted(crowd.seconds) or [0.0]
    first, middle, last = watch.part(0, 0.1), watch.part(0.5, 0.6), watch.part(0.9, 1)
    return (
        f"answered {len(crowd.seconds):,}, 95 % within {times[int(0.95 * (len(times) - 1))]:.1f} s; "
        f"at most {crowd.most_taken} waiting or at work; recovery {recovery:.1f} s; memory in the first tenth, "
        f"the middle and the last tenth {first.memory_mb:.0f}, {middle.memory_mb:.0f}, {last.memory_mb:.0f} MB; "
        f"open files {first.handles}, {middle.handles}, {last.handles}"
    )


def campaign(options: argparse.Namespace) -> Iterator[Tally]:
    clients, warm_up = getattr(options, "clients", 50), getattr(options, "warm_up", 0)
    yield send_crowd(material() / "small", budget_of(options), clients, Limits(), warm_up, options.only)


if __name__ == "__main__":
    options = parser(__doc__, cases=1, seconds=600)
    options.add_argument("--clients", type=int, default=50)
    options.add_argument("--warm-up", type=int, default=0, help="questions before the crowd; 700 fill the memory")
    sys.exit(print_all(campaign(options.parse_args())))
