"""What one request may ask for, and how many may come: numbers only. See docs/serve.md for the reasons."""

from dataclasses import dataclass, fields

from cod3s.errors import Cod3sError


@dataclass(frozen=True)
class Limits:
    """The limits of one server; `waiting` may be 0, nothing else."""

    text: int = 300  # characters of a sentence
    k: int = 30  # answers, also of `select`, and bins asked for by signature
    beams: int = 100  # width of any beam, samples of a bin, answers of a bin
    tokens: int = 60  # of an answer
    candidates: int = 500  # of `select`
    body: int = 64 * 1024  # bytes of a request
    at_once: int = 2  # requests that the engine works on together
    waiting: int = 32  # requests that wait for it; one more is told to come again
    seconds: float = 30.0  # for a body to arrive, for the request to wait, and for it to be worked on, each

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name == "waiting" else 1
            if field.name == "seconds" and not value > 0:
                raise Cod3sError(f"the limit seconds is {value}, it must be above 0")
            if field.name != "seconds" and value < least:
                raise Cod3sError(f"the limit {field.name} is {value}, it must be at least {least}")
