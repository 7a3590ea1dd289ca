"""n different answers in place of n samples: what the endpoint asks of the server before it, and its reply."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, cast

from pydantic import Field, create_model
from starlette.responses import JSONResponse, Response

from cod3s.ask import Candidate, CompletionServer, Diversified, DiversifyConfig, Judge, Reply, diversify_async
from cod3s.ask.config import DEFAULT
from cod3s.ask.prompts import PromptLike, read_prompt
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError
from cod3s.options import options_of
from cod3s.web.bodies import Body, option_field
from cod3s.web.error_replies import RefusedError
from cod3s.web.limits import Limits
from cod3s.web.upstream import Upstream, UpstreamError

FIELD = "cod3s"
"""The field of a request with the wishes of a client, and of a reply with what was done."""
CHAT, TEXT = "/chat/completions", "/completions"
MOST_CONCURRENT = 8  # calls for one request
MOST_COMPARED = 20_000  # characters of an answer
_OPEN = (
    *("strategy", "budget", "token_budget", "min_gain", "concurrency", "list_size", "tail", "turns"),
    *("method", "min_hamming", "bits", "compare", "score_weight", "floor", "seed"),
)
_OPTIONS = {name: options_of(DiversifyConfig)[name] for name in _OPEN}


class Wishes(Body):
    """How answers should differ: the options of `cod3s diversify`, with its defaults."""

    score: Literal["none", "judge"] = Field("none", description="judge: the model rates each answer, from 0 to 1.")
    unlike: list[str] = Field([], description="Earlier answers: none that means the same is given.")
    like: list[str] = Field([], description="Answers near the meaning of these are preferred.")

    def config(self, k: int, encoder: Encoder) -> DiversifyConfig:
        """All options; only models made by `wishes_model` have them."""
        return replace(DEFAULT, k=k, encoder=encoder, **{name: getattr(self, name) for name in _OPTIONS})


def wishes_model(limits: Limits) -> type[Wishes]:
    """The wishes that a server with these limits takes."""
    most = {"budget": limits.calls, "concurrency": MOST_CONCURRENT}
    fields: dict[str, Any] = {name: option_field(option, most.get(name)) for name, option in _OPTIONS.items()}
    for name in ("unlike", "like"):
        fields[name] = (Annotated[list[str], Field(max_length=limits.candidates)], Wishes.model_fields[name])
    return create_model("Wishes", __base__=Wishes, __doc__=Wishes.__doc__, **fields)


class Writer:
    """The generator that `diversify` asks: the client's own request with other prompts, each choice remembered."""

    def __init__(
        self, upstream: Upstream, path: str, headers: Mapping[str, str], body: dict[str, Any], *, samples: int
    ) -> None:
        self._upstream, self._path, self._headers = upstream, path, headers
        self.body = {name: value for name, value in body.items() if name not in ("n", "stream", "stream_options")}
        self.streams, self.stream_options = bool(body.get("stream")), body.get("stream_options")
        self.chat = path == CHAT
        self._reader = CompletionServer(
            upstream.base, str(body.get("model", "")), api="chat" if self.chat else "completions"
        )
        self._limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        self.max_tokens = _number(body.get(self._limit), 0)
        self.temperature = _number(body.get("temperature"), 1.0)
        self._samples, self._calls = samples, 0
        self.first: dict[str, Any] = {}
        self.choices: dict[str, dict[str, Any]] = {}  # by text

    @property
    def prompt(self) -> PromptLike:
        """What the client asks."""
        name = "messages" if self.chat else "prompt"
        if not self.chat and not isinstance(self.body.get(name), str):
            raise RefusedError(
                422, "several answers are given to one prompt, which is a text", "send one at a time"
            )
        return cast(PromptLike, self.body.get(name))

    def bare(self) -> "Writer":
        """The same model without the client's settings, to judge answers."""
        return Writer(self._upstream, self._path, self._headers, {"model": self.body.get("model")}, samples=1)

    async def ask(
        self,
        prompt: PromptLike,
        *,
        samples: int | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        response_format: Mapping[str, Any] | None = None,
    ) -> Reply:
        """The texts of a call; settings that are not given are the client's."""
        changed = {self._limit: max_tokens, "temperature": temperature, "response_format": response_format}
        request = self.body | {name: value for name, value in changed.items() if value is not None}
        request |= (
            {"messages": read_prompt(prompt).to_send(takes_messages=True)} if self.chat else {"prompt": prompt}
        )
        if isinstance(seed := self.body.get("seed"), int):
            request["seed"] = seed + self._calls  # the same seed would bring the same answers in each call
        self._calls += 1
        samples = samples or self._samples
        try:
            text = await self._upstream.ask(
                self._path, self._headers, request | ({"n": samples} if samples > 1 else {})
            )
        except UpstreamError as error:
            if samples == 1 or error.reply is None or error.reply.status_code not in (400, 422, 500, 501):
                raise
            self._samples = 1  # it may be that the server refuses `n`; if not, it says again what is wrong
            text = await self._upstream.ask(self._path, self._headers, request)
        try:
            reply = self._reader.read(text, request)
        except Cod3sError as error:
            raise UpstreamError(502, "the upstream did not answer with completions", error.hint) from error
        content = json.loads(text)
        self.first = self.first or content
        # The start of a text says what it means, and signing a megabyte would hold up other clients.
        texts = reply.texts if response_format else tuple(text[:MOST_COMPARED] for text in reply.texts)
        for key, choice in zip(texts, content["choices"], strict=True):
            self.choices.setdefault(key, choice)
        return replace(reply, texts=texts)


def _number(value: Any, otherwise: float) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


async def different_answers(writer: Writer, n: int, wishes: Wishes, encoder: Encoder) -> Response:
    """The reply with n different choices, streamed if the client wants it, or the upstream's error."""
    config, form, schema = wishes.config(n, encoder), writer.body.get("response_format"), None
    if isinstance(form, dict) and isinstance(form.get("json_schema"), dict):
        schema = form["json_schema"].get("schema")
    elif form and config.strategy == "auto":
        config = replace(config, strategy="resample")  # a list of answers would not be in the requested form
    judge = Judge(cast(Any, writer.bare())) if wishes.score == "judge" else None
    try:
        result = await diversify_async(
            cast(Any, writer),
            writer.prompt,
            config=config,
            score=cast(Any, judge),
            schema=schema,
            unlike=wishes.unlike,
            like=wishes.like,
        )
    except Cod3sError as error:
        cause = error.__cause__
        if not isinstance(cause, UpstreamError):
            raise
        if cause.reply is None:
            raise cause from None
        return cause.reply
    if not result.texts:
        message = f"none of {len(result.candidates)} answers may be given: they are like earlier ones, or too bad"
        raise RefusedError(422, message, f"send fewer texts in {FIELD}.unlike, or a lower floor")
    reply = _reply(writer, result)
    return _as_stream(reply, writer.stream_options) if writer.streams else JSONResponse(reply)


def _reply(writer: Writer, result: Diversified) -> dict[str, Any]:
    """A completion in the upstream's form, with the chosen answers as choices and a report."""
    chosen = [result.candidates[answer.index] for answer in result]
    kept = {name: value for name, value in writer.first.items() if name not in ("choices", "usage")}
    reply = {**kept, "choices": [{**_choice(writer, answer), "index": i} for i, answer in enumerate(chosen)]}
    if result.tokens is not None:
        prompt, completion = result.tokens.prompt, result.tokens.completion
        reply["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
    reply[FIELD] = {
        "distinct": result.after.distinct,
        "calls": result.calls,
        "stopped": result.stopped,
        "strategies": list(dict.fromkeys(result.strategies)),
        "candidates": len(result.candidates),
        "scores": [answer.score for answer in chosen],
        "remarks": [*result.selection.remarks, *dict.fromkeys(result.failures)],
    }
    return reply


def _choice(writer: Writer, answer: Candidate) -> dict[str, Any]:
    """The upstream's own choice, or one made of an answer that was part of a longer text."""
    text = answer.text if answer.record is None else json.dumps(answer.record, ensure_ascii=False)
    content: dict[str, Any] = (
        {"message": {"role": "assistant", "content": text}} if writer.chat else {"text": text}
    )
    return writer.choices.get(text, {**content, "finish_reason": "stop", "logprobs": None})


def _as_stream(reply: dict[str, Any], options: Any) -> Response:
    """The reply as server-sent events: the answers are chosen together, so they come together."""
    with_usage = isinstance(options, dict) and options.get("include_usage") is True
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in _chunks(reply, with_usage=with_usage)]
    return Response("".join([*events, "data: [DONE]\n\n"]), media_type="text/event-stream")


def _chunks(reply: dict[str, Any], *, with_usage: bool) -> Iterator[dict[str, Any]]:
    head = {"id": "", "created": int(time.time()), "model": "", **reply}
    choices, usage, report = head.pop("choices"), head.pop("usage", None), head.pop(FIELD)
    head["object"] = (
        "chat.completion.chunk" if any("message" in choice for choice in choices) else "text_completion"
    )
    for choice in choices:
        end = {"index": choice["index"], "finish_reason": choice.get("finish_reason")}
        if "message" in choice:
            yield {
                **head,
                "choices": [{"index": choice["index"], "delta": choice["message"], "finish_reason": None}],
            }
            yield {**head, "choices": [{**end, "delta": {}}]}
        else:
            yield {**head, "choices": [choice]}
    if with_usage:
        yield {**head, "choices": [], "usage": usage, FIELD: report}
