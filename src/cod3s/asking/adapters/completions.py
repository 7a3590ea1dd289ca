"""A generator that asks a server with the OpenAI-compatible completion API. A prompt in, sampled texts out.

OpenAI, vLLM, llama.cpp, Ollama, TGI and others speak it. Extra `http`.
"""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from cod3s.errors import Cod3sError, require

_HINTS = {
    401: "give the server's key: CompletionServer(…, key=…)",
    403: "give the server's key: CompletionServer(…, key=…)",
    404: "check the address (it mostly ends in /v1) and the model's name",
    429: "the server is busy: ask later, or with fewer calls at once",
}


@dataclass(frozen=True)
class CompletionServer:
    """Called with a prompt it returns `samples` texts, as (text, mean log-probability a token) `with_scores`.

    `url` is the address up to `/completions`, mostly ending in /v1. `chat` sends the prompt as a user's message.
    With `seed` each call sends the next number, so that a server that obeys it repeats a whole run.
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
    _numbers: "count[int]" = field(default_factory=count, repr=False, compare=False)

    def __call__(self, prompt: str) -> list[str] | list[tuple[str, float]]:
        httpx = require("httpx", "http")
        address = f"{self.url.rstrip('/')}/{'chat/' if self.chat else ''}completions"
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            answer = httpx.post(address, json=self._request(prompt), headers=headers, timeout=self.timeout)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Cod3sError(
                f"{address} did not answer: {error or type(error).__name__}",
                hint="check that the server runs and that the address is right",
            ) from error
        if not answer.is_success:
            raise Cod3sError(
                f"{address} answered {answer.status_code}: {answer.text[:200]}",
                hint=_HINTS.get(answer.status_code, ""),
            )
        return self._texts(address, answer)

    def _request(self, prompt: str) -> dict[str, Any]:
        request = {
            "model": self.model,
            "n": self.samples,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
        }
        if self.chat:
            request |= {"messages": [{"role": "user", "content": prompt}]}
        else:
            request |= {"prompt": prompt}
        if self.with_scores:
            request |= {"logprobs": True if self.chat else 1}
        if self.seed is not None:
            request |= {"seed": self.seed + next(self._numbers)}
        return request

    def _texts(self, address: str, answer: Any) -> list[str] | list[tuple[str, float]]:
        try:
            choices = answer.json()["choices"]
            texts = [choice["message"]["content"] if self.chat else choice["text"] for choice in choices]
            if not self.with_scores:
                return texts
            return list(zip(texts, map(self._score, choices), strict=True))
        except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
            wanted = "completions with log-probabilities" if self.with_scores else "completions"
            raise Cod3sError(
                f"{address} answered something else than {wanted}",
                hint=f"it begins {answer.text[:120]!r}",
            ) from error

    def _score(self, choice: dict[str, Any]) -> float:
        if self.chat:
            values = [token["logprob"] for token in choice["logprobs"]["content"]]
        else:
            values = [value for value in choice["logprobs"]["token_logprobs"] if value is not None]
        return float(sum(values) / len(values))
