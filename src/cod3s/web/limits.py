"""The limits of a server, from whose fields the command line derives its options; docs/serve.md lists them."""

from dataclasses import dataclass
from functools import partial

from cod3s.options import check_options, option

_limit = partial(option, least=1, panel="Limits")


@dataclass(frozen=True)
class Limits:
    """The limits of a server; only `waiting` may be 0. The defaults are those of the explorer."""

    at_once: int = _limit(2, "Requests that run at once.")
    waiting: int = option(32, "Requests that may wait.", least=0, panel="Limits")  # others must try again
    batch: int = _limit(40, "Answers of waiting requests with equal options that are decoded in one batch.")
    seconds: float = option(30.0, "Time that a request may wait, and that it may run.", above=0, panel="Limits")
    text: int = _limit(300, "Characters per sentence.", flags=("--max-text",))
    k: int = _limit(30, "Answers per request.", flags=("--max-k",))  # also of `select`, and bins by signature
    beams: int = _limit(100, "Width of a beam.", flags=("--max-beams",))  # also samples and answers per bin
    candidates: int = _limit(500, "Candidates per request to select.", flags=("--max-candidates",))
    body: int = _limit(64 * 1024, "Bytes per request.", flags=("--max-body",))
    calls: int = _limit(40, "--upstream: calls for one request.", flags=("--max-calls",))
    reply: int = _limit(32 * 1024 * 1024, "--upstream: bytes of a reply that is read.", flags=("--max-reply",))
    tokens: int = 60  # per answer

    def __post_init__(self) -> None:
        check_options(self)


# Another server writes, so many requests may run at once; messages may hold images, and answers take their time.
ENDPOINT: dict[str, int | float] = {"at_once": 64, "waiting": 256, "seconds": 600.0, "body": 20 * 1024 * 1024}
"""The defaults that differ in front of another server."""
