"""Servers with the OpenAI-compatible API for tests of the endpoint before them: a tidy one, and untidy ones."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

TEXTS = [
    "Use it to hold a door open.",
    "Use it to hold the door open.",
    "Build a garden wall from it.",
    "Warm your bed with it in winter.",
    "Sharpen a kitchen knife on it.",
    "Draw with it on a pavement.",
    "Train your arms with it.",
    "Raise a cooking pot above the fire with it.",
]


@dataclass
class Scripted:
    """An upstream that says its texts in turn; `mood` is what is wrong with it, and `requests` what it got."""

    mood: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    left: int = 0  # requests whose sender went away

    def __post_init__(self) -> None:
        self._texts = itertools.cycle(TEXTS)

    async def reply(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.requests.append(body)
        self.keys.append(request.headers.get("authorization", ""))
        misbehaved = await self._misbehave(request, len(self.requests))
        if misbehaved is not None:
            return misbehaved
        if "Rate how good" in str(body):
            return JSONResponse({"choices": [{"message": {"content": "7 of 10"}}]})
        n = 1 if self.mood == "ignores n" else body.get("n", 1)
        if self.mood == "refuses n" and n > 1:
            return JSONResponse({"error": {"message": "only one completion choice is allowed"}}, 400)
        if body.get("stream"):
            return StreamingResponse(self._stream(), media_type="text/event-stream")
        return JSONResponse(self._completion(n, "messages" in body))

    async def _misbehave(self, request: Request, call: int) -> Response | None:
        if self.mood == "429":
            headers = {"Retry-After": "7", "x-request-id": "r1"}
            return JSONResponse({"error": {"message": "slow down", "type": "rate_limit"}}, 429, headers)
        if self.mood == "HTML":
            return HTMLResponse("<h1>502 Bad Gateway</h1>")
        if self.mood == "hangs":
            while not await request.is_disconnected():
                await asyncio.sleep(0.05)
            self.left += 1
        if self.mood == "dies" and call > 1:
            return StreamingResponse(_broken(b'{"choices": [{"mess'), media_type="application/json")
        if self.mood == "cuts":
            return StreamingResponse(_broken(b'data: {"choices": []}\n\n'), media_type="text/event-stream")
        return None

    def _completion(self, n: int, is_chat: bool) -> dict[str, Any]:
        texts = [next(self._texts) + (" really" * 150_000 if self.mood == "1 MB" else "") for _ in range(n)]
        choices: list[dict[str, Any]] = [
            {"index": i, "finish_reason": "stop", "text": t} for i, t in enumerate(texts)
        ]
        if is_chat:
            choices = [
                {"index": i, "finish_reason": "length", "message": {"role": "assistant", "content": text}}
                for i, text in enumerate(texts)
            ]
        usage = {"prompt_tokens": 10, "completion_tokens": 8 * n, "total_tokens": 10 + 8 * n}
        return {
            "id": "c-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": choices,
            "usage": usage,
        }

    async def _stream(self) -> AsyncIterator[bytes]:
        for word in ("Use ", "it."):
            chunk = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            chunk |= {"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]}
            yield f"data: {json.dumps(chunk)}\n\n".encode()
            await asyncio.sleep(0.05)
        yield b"data: [DONE]\n\n"


async def _broken(start: bytes) -> AsyncIterator[bytes]:
    yield start
    raise ConnectionResetError("the upstream dies")


def app_of(upstream: Scripted) -> FastAPI:
    app = FastAPI()
    app.post("/v1/chat/completions")(upstream.reply)
    app.post("/v1/completions")(upstream.reply)
    app.get("/v1/models")(lambda: {"object": "list", "data": [{"id": "m", "object": "model"}]})
    return app
