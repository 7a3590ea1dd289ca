"""The limits of the explorer; docs/serve.md gives the reasons for the numbers.

This module loads no server, because the command line derives its options from the fields.
"""

from dataclasses import dataclass
from functools import partial

from cod3s.options import check_options, option

_limit = partial(option, least=1, panel="Limits")


@dataclass(frozen=True)
class Limits:
    """The limits of a server; only `waiting` may be 0."""

    at_once: int = _limit(2, "Requests that run at once.")
    waiting: int = option(32, "Requests that may wait.", least=0, panel="Limits")  # others must try again
    together: int = _limit(40, "How many answers of waiting requests with the same options are decoded together.")
    seconds: float = option(30.0, "Time that a request may wait, and that it may run.", above=0, panel="Limits")
    text: int = _limit(300, "Characters per sentence.", flags=("--max-text",))
    k: int = _limit(30, "Answers per sentence.", flags=("--max-k",))  # also of `select`, and bins by signature
    beams: int = _limit(100, "Width of a beam.", flags=("--max-beams",))  # also samples and answers per bin
    candidates: int = _limit(500, "Candidates per request to select.", flags=("--max-candidates",))
    body: int = _limit(64 * 1024, "Bytes per request.", flags=("--max-body",))
    tokens: int = 60  # per answer

    def __post_init__(self) -> None:
        check_options(self)
