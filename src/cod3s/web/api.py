"""The routes of the JSON API. `explorer` does their work; `queue` and `batching` decide when."""

from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from cod3s.bins.map import MAX_BINS
from cod3s.bundle import BundleFacts
from cod3s.records import AnswerMade, AnswerSet, Event, SignaturesChosen, StageStarted
from cod3s.selection import Selection
from cod3s.web.batching import Batching
from cod3s.web.bodies import body_of
from cod3s.web.explorer import Explorer
from cod3s.web.limits import Limits
from cod3s.web.queue import JsonLines, WorkQueue
from cod3s.web.replies import BinReply, ErrorReply, Health, Info, MapReply
from cod3s.web.requests import GenerateRequest, SelectRequest, generate_request, select_request

# Bins written in one go if the answer is not streamed: cheaper, and the work can still be stopped in between.
UNSTREAMED_GROUP = 10
_REASONS = {
    403: "The request comes from a page of another origin, or uses a host name that the server does not accept.",
    408: "The body arrived too slowly.",
    413: "The body is too large.",
    415: "The body is not marked as JSON.",
    422: "The request cannot be answered; the message says why.",
    501: "An optional library that this needs is not installed on the server.",
    503: "Too many requests are waiting, or this request waited too long; Retry-After says when to try again.",
    504: "The answer took too long.",
}

_EXAMPLE = {
    "text": "the baker forgot the yeast",
    "relation": "effect",
    "candidates": ["it rained all day", "rain fell until night", "the bridge was closed"],
    "k": 2,
}
"""What /docs offers to send, for fields of these names."""


def api_routes(explorer: Explorer, queue: WorkQueue, limits: Limits, facts: BundleFacts) -> APIRouter:
    """All routes of the API."""
    router = APIRouter()
    _add_answers(router, explorer, queue, limits, facts)
    _add_facts(router, explorer, queue, facts)
    return router


def _add_answers(
    router: APIRouter, explorer: Explorer, queue: WorkQueue, limits: Limits, facts: BundleFacts
) -> None:
    """The routes that take a body and wait for their turn."""
    generate_body, select_body = generate_request(limits, facts), select_request(limits)
    alone = partial(explorer.answer, group=UNSTREAMED_GROUP)
    batching: Batching[GenerateRequest, Any] = Batching(queue, alone, explorer.answer_all)

    @router.post("/api/generate", response_model=AnswerSet, **_takes(generate_body))
    async def generate(request: Request, body: Annotated[GenerateRequest, Depends(body_of(generate_body))]) -> Any:
        """k answers that mean different things: the record of `cod3s generate --json`."""
        key, most = explorer.settings_key(body), max(1, limits.batch // body.options().k)
        return _unless_gone(await batching.finish(body, key, most, request.receive))

    @router.post("/api/stream", response_class=Response, **_takes(generate_body, JsonLines.media_type))
    async def stream(body: Annotated[GenerateRequest, Depends(body_of(generate_body))]) -> Response:
        """The same, sent as it is made: a line with chosen signatures before their answers, and the record last.

        If answers are chosen from spare bins, as by default with a critic, they come together at the end.
        The field `event` of a line is stage (its `name` says what is done next), signatures, answer, done or, when
        something goes wrong midway, error. An answer has a `caption`: a sentence that its bin is like, or nothing
        if the bin says nothing about it.
        """
        return JsonLines(queue, map(partial(_event, explorer), explorer.answer(body, stages=True)))

    @router.post("/api/select", response_model=Selection, **_takes(select_body))
    async def select(request: Request, body: Annotated[SelectRequest, Depends(body_of(select_body))]) -> Any:
        """k of the candidates that mean different things: the record of `cod3s select --json`."""
        return _unless_gone(await queue.finish(explorer.select(body), request.receive))


def _add_facts(router: APIRouter, explorer: Explorer, queue: WorkQueue, facts: BundleFacts) -> None:
    """The routes that are answered at once."""
    of_relation = Query(
        description="The relation whose bins are meant.", json_schema_extra={"enum": [*facts.models]}
    )

    @router.get("/api/bins/{signature}", responses=_errors(422))
    def show_bin(
        signature: Annotated[str, Path(pattern=f"^[01]{{{facts.bits}}}$", description="The bin's bits.")],
        relation: Annotated[str, of_relation],
    ) -> BinReply:
        """The contents of a bin, and the populated bins nearest to it."""
        return explorer.bin(signature, relation)

    @router.get("/api/map", responses=_errors(422))
    def show_map(
        relation: Annotated[str, of_relation],
        limit: Annotated[int, Query(ge=1, le=MAX_BINS, description="How many bins, the largest first.")] = 3000,
    ) -> MapReply:
        """A map of the populated bins: neighbors mean similar things; x and y go from 0 to 1."""
        return explorer.map(relation, limit)

    @router.get("/api/info")
    def info() -> Info:
        """What is served, and what clients may ask for."""
        return explorer.info

    @router.get("/healthz")
    async def health() -> Health:
        """Whether the server is up, and how many requests are running or waiting."""
        return Health("ok", queue.requests)


def _unless_gone(result: Any) -> Any:
    """The result; if the client went away before it was there, a status that nobody will read."""
    return Response(status_code=499) if result is None else result


def _event(explorer: Explorer, event: Event) -> dict[str, Any]:
    """One line of a stream."""
    if isinstance(event, StageStarted):
        return {"event": "stage", **asdict(event)}
    if isinstance(event, SignaturesChosen):
        return {"event": "signatures", **asdict(event)}
    if isinstance(event, AnswerMade):
        return {"event": "answer", **asdict(event), "caption": explorer.caption(event.answer)}
    return {"event": "done", "record": asdict(event)}


def _takes(model: type[BaseModel], media_type: str | None = None) -> dict[str, Any]:
    """The OpenAPI description of a route that takes a body: its schema and the possible errors."""
    schema = model.model_json_schema()
    example = {name: value for name, value in _EXAMPLE.items() if name in schema["properties"]}
    content = {"application/json": {"schema": schema, "example": example}}
    responses = _errors(*_REASONS)
    if media_type:
        responses[200] = {"content": {media_type: {"schema": {"type": "string"}}}}
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}, "responses": responses}


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    replies: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorReply, "description": _REASONS[status]} for status in statuses
    }
    if 503 in replies:
        replies[503]["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
    return replies
