"""The limits of the explorer, in a module that loads no server, since the command line shows their defaults.

docs/serve.md gives the reasons for the numbers.
"""

from dataclasses import dataclass, fields

from cod3s.errors import Cod3sError


@dataclass(frozen=True)
class Limits:
    """The limits of one server; only `waiting` may be 0."""

    text: int = 300  # characters of a sentence
    k: int = 30  # answers, also of `select`, and bins asked for by signature
    beams: int = 100  # width of any beam, samples per bin, answers per bin
    tokens: int = 60  # per answer
    candidates: int = 500  # of `select`
    body: int = 64 * 1024  # bytes of a request
    at_once: int = 2  # requests that the engine works on together
    waiting: int = 32  # requests that may wait for it; the next one is told to try again
    seconds: float = 30.0  # each: for the body to arrive, to wait, and to be worked on

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name == "waiting" else 1
            if field.name == "seconds" and not value > 0:
                raise Cod3sError(f"the limit seconds is {value}, which must be above 0")
            if field.name != "seconds" and value < least:
                raise Cod3sError(f"the limit {field.name} is {value}, which must be at least {least}")
