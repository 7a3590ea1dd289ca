"""Ask a server with an OpenAI-compatible API: completions or chat completions. Needs the extra `http`.

OpenAI, vLLM, llama.cpp, Ollama and others offer it, with differences that are handled here: Ollama ignores `n` and
returns a single choice, and older llama.cpp servers refuse it.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from threading import Lock
from typing import Any

from cod3s.ask.diversified import Tokens
from cod3s.errors import Cod3sError, UsageError, require

_HINTS = {
    400: "the server does not accept these settings for this model; see its message",
    401: "put the server's key into OPENAI_API_KEY, name its variable with --key-env, or pass key=…",
    403: "this key may not use this model; check the key and the model's name",
    404: "check the address (it usually ends in /v1) and the model's name",
    429: "the server is busy or your quota is used up: try again later, or with fewer calls",
}
_TEMPORARY = {408, 409, 425, 429, 500, 502, 503, 504}  # worth retrying
_LONGEST_WAIT = 60.0  # seconds, whatever a server's Retry-After says
_CHARACTERS_PER_TOKEN = 4  # if a server does not count them
_THOUGHTS = re.compile(r"^\s*<think>.*?(?:</think>|\Z)", re.DOTALL)


class ServerError(Cod3sError):
    """A server that did not answer properly; `final` if asking again would not help."""

    def __init__(self, message: str, hint: str = "", *, final: bool = False) -> None:
        super().__init__(message, hint)
        self.final = final


@dataclass
class _Ledger:
    """Shared by all calls to a server: tokens spent, whether it ever answered, and whether it accepts `n`."""

    tokens: Tokens = field(default_factory=Tokens)
    has_answered: bool = False
    one_choice_only: bool = False
    lock: Any = field(default_factory=Lock)


@dataclass(frozen=True)
class CompletionServer:
    """Called with a prompt, returns `samples` texts; `with_scores`, as (text, mean log-probability per token).

    `url` is the address up to `/completions`, usually ending in /v1, which is added to a bare host. `chat` sends
    the prompt as a user's message. With `seed`, each call sends the next number, so a server that honours it
    repeats a whole run. A call that fails temporarily is retried up to `retries` times, with growing pauses.
    """

    url: str
    model: str
    samples: int = 8
    max_tokens: int = 64
    temperature: float = 1.0
    top_p: float = 1.0
    chat: bool = False
    with_scores: bool = False
    seed: int | None = None
    key: str | None = field(default=None, repr=False)
    timeout: float = 60.0  # seconds
    retries: int = 3
    pause: float = 0.5  # seconds before the first retry; doubled each time
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False, compare=False)
    _numbers: "count[int]" = field(default_factory=count, repr=False, compare=False)
    _ledger: _Ledger = field(default_factory=_Ledger, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not re.match(r"https?://", self.url):
            raise UsageError(
                f"the address {self.url!r} does not start with http:// or https://",
                hint=f"write http://{self.url.rpartition('://')[2]}",
            )

    def __call__(self, prompt: str) -> list[str] | list[tuple[str, float]]:
        try:
            choices = self._ask(prompt, self.samples if not self._ledger.one_choice_only else 1)
        except ServerError as error:
            if self.samples == 1 or self._ledger.one_choice_only or not _is_about_choices(error):
                raise
            self._ledger.one_choice_only = True
            choices = self._ask(prompt, 1)
        texts = [text for text, _ in choices]
        return texts if not self.with_scores else [(text, score or 0.0) for text, score in choices]

    def adjusted(self, **settings: Any) -> "CompletionServer":
        """The same server with different settings; tokens are counted together."""
        return replace(self, **settings)

    def tokens_spent(self) -> Tokens:
        """The tokens of all calls so far."""
        return self._ledger.tokens

    @property
    def address(self) -> str:
        """Where requests go."""
        url = re.sub(r"(/chat)?/completions$", "", self.url.rstrip("/"))
        if re.fullmatch(r"https?://[^/]+", url):
            url += "/v1"
        return f"{url}/{'chat/' if self.chat else ''}completions"

    def _ask(self, prompt: str, samples: int) -> list[tuple[str, float | None]]:
        answer = self._post(self._request(prompt, samples))
        choices = self._choices(answer)
        self._count(answer, prompt, choices)
        return choices

    def _post(self, request: dict[str, Any]) -> Any:
        """The server's answer; a temporary failure is retried after a pause."""
        httpx = require("httpx", "http")
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        for attempt in range(self.retries + 1):
            wait = self.pause * 2**attempt
            try:
                answer = httpx.post(self.address, json=request, headers=headers, timeout=self.timeout)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                failure = self._unreachable(error, never_answers=not isinstance(error, httpx.TimeoutException))
            else:
                if answer.is_success:
                    self._ledger.has_answered = True
                    return answer
                failure = self._refusal(answer)
                wait = _asked_wait(answer, wait)
            if failure.final or attempt == self.retries or _is_about_choices(failure):
                raise failure
            self.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _unreachable(self, error: Exception, never_answers: bool) -> ServerError:
        """A server that never answered counts as missing; one that has answered before may come back."""
        return ServerError(
            f"{self.address} did not answer: {error or type(error).__name__}",
            hint="check that the server is running and the address is right, or allow more time with --timeout",
            final=never_answers and not self._ledger.has_answered,
        )

    def _refusal(self, answer: Any) -> ServerError:
        return ServerError(
            f"{self.address} answered {answer.status_code}: {_message(answer)}",
            hint=_HINTS.get(answer.status_code, ""),
            final=answer.status_code not in _TEMPORARY,
        )

    def _request(self, prompt: str, samples: int) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
        }
        if samples != 1:
            request |= {"n": samples}
        request |= {"messages": [{"role": "user", "content": prompt}]} if self.chat else {"prompt": prompt}
        if self.with_scores:
            request |= {"logprobs": True if self.chat else 1}
        if self.seed is not None:
            request |= {"seed": self.seed + next(self._numbers)}
        return request

    def _choices(self, answer: Any) -> list[tuple[str, float | None]]:
        try:
            choices = answer.json()["choices"]
            texts = [
                _message_text(choice["message"]["content"]) if self.chat else choice["text"] for choice in choices
            ]
            if not all(isinstance(text, str) for text in texts):
                raise TypeError("a text was needed")
            scores = [self._score(choice) if self.with_scores else None for choice in choices]
            return list(zip(texts, scores, strict=True))
        except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
            wanted = "completions with log-probabilities" if self.with_scores else "completions"
            raise ServerError(
                f"{self.address} did not answer with {wanted}", hint=f"it begins {answer.text[:120]!r}"
            ) from error

    def _score(self, choice: dict[str, Any]) -> float:
        if self.chat:
            values = [token["logprob"] for token in choice["logprobs"]["content"]]
        else:
            values = [value for value in choice["logprobs"]["token_logprobs"] if value is not None]
        return float(sum(values) / len(values))

    def _count(self, answer: Any, prompt: str, choices: list[tuple[str, float | None]]) -> None:
        usage = answer.json().get("usage")
        counted = isinstance(usage, dict) and all(
            isinstance(usage.get(name), int) for name in ("prompt_tokens", "completion_tokens")
        )
        if counted:
            spent = Tokens(usage["prompt_tokens"], usage["completion_tokens"])
        else:
            spent = Tokens(_estimate(prompt), sum(_estimate(text) for text, _ in choices), estimated=True)
        with self._ledger.lock:
            self._ledger.tokens += spent


def _estimate(text: str) -> int:
    """The number of tokens of a text, rounded up."""
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def _message_text(content: Any) -> Any:
    """The text of a chat message: thoughts are left out, parts are joined, an empty message is an empty text."""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return _THOUGHTS.sub("", content).strip() if isinstance(content, str) else ("" if content is None else content)


def _is_about_choices(error: ServerError) -> bool:
    """Whether a server refused to write several choices at once (older llama.cpp answers 500)."""
    return bool(
        re.search(r"one completion choice|\bn\b.{0,40}(not supported|must be 1|unsupported)", error.message)
    )


def _asked_wait(answer: Any, wait: float) -> float:
    """The pause that the server asks for, within reason."""
    try:
        return min(max(float(answer.headers["Retry-After"]), wait), _LONGEST_WAIT)
    except (KeyError, ValueError):
        return wait


def _message(answer: Any) -> str:
    """What a server says about a refusal, usually in error.message."""
    try:
        error = answer.json()["error"]
        return str(error["message"] if isinstance(error, dict) else error)[:300]
    except (ValueError, KeyError, TypeError):
        return str(answer.text[:200])
