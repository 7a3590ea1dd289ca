"""The routes of the JSON API. `explorer` does their work; `queue` decides when."""

from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from cod3s.bins.map import MAX_BINS
from cod3s.bundle import BundleFacts
from cod3s.records import AnswerMade, AnswerSet, Event, SignaturesChosen
from cod3s.selection import Selection
from cod3s.web.explorer import Comparison, Explorer
from cod3s.web.limits import Limits
from cod3s.web.queue import JsonLines, WorkQueue
from cod3s.web.requests import GenerateRequest, Question, SelectRequest, body_of, bounded
from cod3s.web.responses import BinReply, ErrorReply, Health, Info, MapReply
from cod3s.web.together import Together

UNSEEN_GROUP = (
    10  # bins written together if the answer is not streamed: cheaper, and can still be stopped in between
)
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
    generate_body = bounded(GenerateRequest, limits, facts)
    question = bounded(Question, limits, facts)
    select_body = bounded(SelectRequest, limits, facts)
    alone = partial(explorer.answer, group=UNSEEN_GROUP)
    together: Together[GenerateRequest, Any] = Together(queue, alone, explorer.answer_all)

    @router.post("/api/generate", response_model=AnswerSet, **_takes(generate_body))
    async def generate(request: Request, body: Annotated[GenerateRequest, Depends(body_of(generate_body))]) -> Any:
        """k answers that mean different things: the record of `cod3s generate --json`."""
        key, most = explorer.settings_key(body), max(1, limits.together // body.options().k)
        return _unless_gone(await together.finish(body, key, most, request.receive))

    @router.post("/api/stream", response_class=Response, **_takes(generate_body, JsonLines.media_type))
    async def stream(body: Annotated[GenerateRequest, Depends(body_of(generate_body))]) -> Response:
        """The same, sent as it is made: a line with chosen signatures before their answers, and the record last.

        Known answers that are surely good come at once. If the others are chosen from spare bins, as by default
        with a critic, they come together at the end.
        The field `event` of a line is signatures, answer, done or, when something goes wrong midway, error. An
        answer has a `caption`: a sentence that its bin is like, or nothing if the bin tells nothing about it.
        """
        return JsonLines(queue, map(partial(_event, explorer), explorer.answer(body)))

    @router.post("/api/compare", response_model=Comparison, **_takes(question))
    async def compare(request: Request, body: Annotated[Question, Depends(body_of(question))]) -> Any:
        """The answers of the two stages and of plain beam search, and how many of each mean different things."""
        return _unless_gone(await queue.finish(explorer.compare(body), request.receive))

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
        """A map of the populated bins: neighbours mean similar things; x and y go from 0 to 1."""
        return explorer.map(relation, limit)

    @router.get("/api/info")
    def info() -> Info:
        """What is served, and what clients may ask for."""
        return explorer.info

    @router.get("/healthz")
    async def health() -> Health:
        """Whether the server is up, and how many requests are running or waiting."""
        return Health("ok", queue.taken)


def _unless_gone(result: Any) -> Any:
    """The result; if the client went away before it was there, a status that nobody will read."""
    return Response(status_code=499) if result is None else result


def _event(explorer: Explorer, event: Event) -> dict[str, Any]:
    """One line of a stream."""
    if isinstance(event, SignaturesChosen):
        return {"event": "signatures", **asdict(event)}
    if isinstance(event, AnswerMade):
        return {"event": "answer", **asdict(event), "caption": explorer.caption(event.answer)}
    return {"event": "done", "record": asdict(event)}


def _takes(model: type[BaseModel], media_type: str | None = None) -> dict[str, Any]:
    """The OpenAPI description of a route that takes a body: its schema and the possible refusals."""
    content = {"application/json": {"schema": model.model_json_schema()}}
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
