"""Ask a server with an OpenAI-compatible API through the official client. Needs the extra `llm`.

OpenAI, vLLM, llama.cpp, Ollama and others offer it, with differences that are handled here: Ollama ignores `n` and
returns a single choice, older llama.cpp servers refuse it, and newer models of OpenAI refuse `max_tokens`.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal
from weakref import WeakKeyDictionary

from cod3s.ask.prompts import Message, PromptLike, read_prompt
from cod3s.ask.replies import Reply, Tokens
from cod3s.ask.running import run
from cod3s.errors import Cod3sError, UsageError, require
from cod3s.options import check_options, option

_HINTS = {
    400: "the server does not accept these settings for this model; see its message",
    401: "put the server's key into OPENAI_API_KEY, name its variable with --key-env, or pass key=…",
    403: "this key may not use this model; check the key and the model's name",
    404: "check the address (it usually ends in /v1) and the model's name",
    429: "the server is busy or your quota is used up: try again later, with fewer calls or with --rate",
}
_TEMPORARY = {408, 409, 425, 429}  # worth asking again later, as is every error from 500 on
_CHARACTERS_PER_TOKEN = 4  # if a server does not count them
_THOUGHTS = re.compile(r"^\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_ABOUT_CHOICES = re.compile(r"one completion choice|\bn\b.{0,40}(not supported|must be 1|unsupported)")
_ABOUT_MAX_TOKENS = re.compile(r"max_completion_tokens")


class ServerError(Cod3sError):
    """A server that did not answer properly; `final` if asking again would not help."""

    def __init__(self, message: str, hint: str = "", *, final: bool = False) -> None:
        super().__init__(message, hint)
        self.final = final


@dataclass
class _Habits:
    """The habits of a server: whether it ever answered, and which parameters it refuses."""

    has_answered: bool = False
    single_choice: bool = False
    max_completion_tokens: bool = False


@dataclass(frozen=True)
class CompletionServer:
    """Called with a text or messages, returns `samples` texts; `with_scores`, as (text, mean log-probability).

    `url` is the address up to `/completions`, usually ending in /v1, which is added to a bare host. With a
    `sampling_seed`, each call sends the next number, so a server that honors it repeats a whole run.
    """

    url: str
    model: str
    api: Literal["chat", "completions"] = option(
        "chat", "chat, or completions for a model that continues text.", panel="Server"
    )
    samples: int = option(4, "Answers to request per call.", least=1, most=128, panel="Server")
    max_tokens: int = option(64, "Maximum tokens per answer.", least=1, panel="Server")
    temperature: float = option(1.0, "Sampling temperature; higher is bolder.", least=0, most=2, panel="Server")
    top_p: float = option(
        1.0, "Sample from the likeliest tokens that sum to this probability.", above=0, most=1, panel="Server"
    )
    sampling_seed: int | None = option(
        None, "Seed sent to the server, which may ignore it; goes up by 1 with each call.", least=0, panel="Server"
    )
    timeout: float = option(60.0, "Seconds to wait for a reply.", above=0, panel="Server")
    retries: int = option(3, "Retries of a call that failed for the moment.", least=0, panel="Server")
    with_scores: bool = False
    key: str | None = field(default=None, repr=False)
    _numbers: Iterator[int] = field(default_factory=count, init=False, repr=False, compare=False)
    _habits: _Habits = field(default_factory=_Habits, init=False, repr=False, compare=False)
    _clients: "WeakKeyDictionary[asyncio.AbstractEventLoop, Any]" = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        check_options(self)
        if not re.match(r"https?://", self.url):
            raise UsageError(
                f"the address {self.url!r} does not start with http:// or https://",
                hint=f"write http://{self.url.rpartition('://')[2]}",
            )

    def __call__(self, prompt: PromptLike) -> list[str] | list[tuple[str, float]]:
        reply: Reply = run(self.ask(prompt), self)
        if not self.with_scores:
            return list(reply.texts)
        return [(text, score or 0.0) for text, score in zip(reply.texts, reply.scores, strict=True)]

    async def ask(
        self,
        prompt: PromptLike,
        *,
        samples: int | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        response_format: Mapping[str, Any] | None = None,
    ) -> Reply:
        """The texts of a call and its tokens; settings that are not given are those of the server."""
        request = self.request(
            prompt,
            samples=1 if self._habits.single_choice else samples or self.samples,
            max_tokens=max_tokens,
            temperature=temperature,
            response_format=response_format,
        )
        try:
            body = await self._post(request)
        except ServerError as error:
            if "n" in request and _ABOUT_CHOICES.search(error.message):
                self._habits.single_choice = True
            elif "max_tokens" in request and _ABOUT_MAX_TOKENS.search(error.message):
                self._habits.max_completion_tokens = True
            else:
                raise
            return await self.ask(
                prompt,
                samples=samples,
                max_tokens=max_tokens,
                temperature=temperature,
                response_format=response_format,
            )
        return self.read(body, request)

    def request(
        self,
        prompt: PromptLike,
        *,
        samples: int | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        response_format: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The body of a request."""
        limit = "max_completion_tokens" if self._habits.max_completion_tokens else "max_tokens"
        body: dict[str, Any] = {
            "model": self.model,
            limit: max_tokens or self.max_tokens,
            "temperature": self.temperature if temperature is None else temperature,
            "top_p": self.top_p,
        }
        if (samples or self.samples) != 1:
            body["n"] = samples or self.samples
        if self.chat:
            body["messages"] = read_prompt(prompt).to_send(takes_messages=True)
        elif isinstance(prompt, str):
            body["prompt"] = prompt
        else:
            raise UsageError("a model that continues text takes a text, not messages", hint="use the chat API")
        if self.with_scores:
            body["logprobs"] = True if self.chat else 1
        if response_format is not None:
            body["response_format"] = dict(response_format)
        if self.sampling_seed is not None:
            body["seed"] = self.sampling_seed + next(self._numbers)
        return body

    def read(self, body: str, request: Mapping[str, Any]) -> Reply:
        """The reply in the body of a response, also of one from a batch."""
        try:
            content = json.loads(body)
            texts = tuple(map(self._text, content["choices"]))
            scores = tuple(self._score(choice) if self.with_scores else None for choice in content["choices"])
        except (ValueError, KeyError, TypeError, ZeroDivisionError, RecursionError) as error:
            wanted = "completions with log-probabilities" if self.with_scores else "completions"
            raise ServerError(
                f"{self.address} did not answer with {wanted}", hint=f"it begins {body[:120]!r}"
            ) from error
        return Reply(texts, scores, _tokens(content.get("usage"), request, texts))

    @property
    def chat(self) -> bool:
        """Whether it takes messages and follows instructions."""
        return self.api == "chat"

    @property
    def address(self) -> str:
        """Where requests go."""
        return f"{self._base}{self.path}"

    @property
    def path(self) -> str:
        """The part of the address after the base, as batch files name it."""
        return "/chat/completions" if self.chat else "/completions"

    @property
    def _base(self) -> str:
        url = re.sub(r"(/chat)?/completions$", "", self.url.rstrip("/"))
        return f"{url}/v1" if re.fullmatch(r"https?://[^/]+", url) else url

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    async def _post(self, request: dict[str, Any]) -> str:
        """The body of the server's answer; the client retries what fails for the moment."""
        openai = require("openai", "llm")
        create = self._client(openai)
        # A placeholder stands for a missing key, and no header is sent for it.
        headers = {} if self.key else {"Authorization": openai.Omit()}
        try:
            answer = await create(**request, extra_headers=headers)
        except openai.APIStatusError as error:
            self._habits.has_answered = True
            status = error.status_code
            raise ServerError(
                f"{self.address} answered {status}: {_message(error.response)}",
                hint=_HINTS.get(status, ""),
                final=status not in _TEMPORARY and status < 500,
            ) from error
        except openai.APIConnectionError as error:
            raise ServerError(
                f"{self.address} did not answer: {error.__cause__ or error}",
                hint="check that the server is running and the address is right, or raise --timeout",
                # One that has answered before may come back.
                final=not isinstance(error, openai.APITimeoutError) and not self._habits.has_answered,
            ) from error
        self._habits.has_answered = True
        body: str = answer.http_response.text
        return body

    def _client(self, openai: Any) -> Any:
        """The function that sends requests, with the connections of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = openai.AsyncOpenAI(
                api_key=self.key or "none", base_url=self._base, timeout=self.timeout, max_retries=self.retries
            )
        client = self._clients[loop]
        api = client.chat.completions if self.chat else client.completions
        return api.with_raw_response.create

    def _text(self, choice: Mapping[str, Any]) -> str:
        """The text of a choice: thoughts are left out, parts are joined, an empty message is an empty text."""
        content = choice["message"]["content"] if self.chat else choice["text"]
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
        if content is None:
            return ""
        if not isinstance(content, str):
            raise TypeError("a text was needed")
        return _THOUGHTS.sub("", content).strip() if self.chat else content

    def _score(self, choice: Mapping[str, Any]) -> float:
        if self.chat:
            values = [token["logprob"] for token in choice["logprobs"]["content"]]
        else:
            values = [value for value in choice["logprobs"]["token_logprobs"] if value is not None]
        return float(sum(values) / len(values))


def _tokens(usage: Any, request: Mapping[str, Any], texts: tuple[str, ...]) -> Tokens:
    """The tokens that a server counted, or an estimate."""
    names = ("prompt_tokens", "completion_tokens")
    if isinstance(usage, dict) and all(isinstance(usage.get(name), int) for name in names):
        return Tokens(usage["prompt_tokens"], usage["completion_tokens"])
    sent = request["messages"] if "messages" in request else request["prompt"]
    return Tokens(estimate_tokens(sent), sum(map(estimate_tokens, texts)), estimated=True)


def estimate_tokens(content: str | list[Message]) -> int:
    """The number of tokens of a text or of messages, rounded up."""
    text = content if isinstance(content, str) else "".join(str(message.get("content", "")) for message in content)
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def _message(response: Any) -> str:
    """The server's message about an error, usually in error.message."""
    try:
        error = response.json()["error"]
        return str(error["message"] if isinstance(error, dict) else error)[:300]
    except (ValueError, KeyError, TypeError):
        return str(response.text[:200])
