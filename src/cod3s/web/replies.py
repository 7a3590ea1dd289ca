"""Replies to clients that are not records of the library; OpenAPI describes their fields."""

from dataclasses import dataclass

from cod3s.bins import MappedBin, NearBin


@dataclass(frozen=True)
class Explanation:
    """What was wrong, and what to do next."""

    message: str
    hint: str


@dataclass(frozen=True)
class ErrorReply:
    """The body of every error."""

    error: Explanation


@dataclass(frozen=True)
class BinReply:
    """One bin and the populated bins nearest to it; a bin may be empty."""

    signature: str
    relation: str
    count: int
    medoid: str
    samples: tuple[str, ...]
    neighbors: tuple[NearBin, ...]


@dataclass(frozen=True)
class MapReply:
    """The largest bins of a relation, largest first, with their positions."""

    relation: str
    bins: tuple[MappedBin, ...]


@dataclass(frozen=True)
class Relation:
    """A relation, the template of its completed statement, and the relation that asks the other way around."""

    name: str
    template: str
    inverse: str = ""


@dataclass(frozen=True)
class Info:
    """What is served, and what clients may ask for."""

    name: str
    version: str
    bits: int
    encoder: str
    critic: bool
    relations: tuple[Relation, ...]
    systems: tuple[str, ...]
    limits: dict[str, int | float]
    decoding: dict[str, str | int | float | bool]


@dataclass(frozen=True)
class Health:
    """The server is up, with so many requests running or waiting."""

    status: str
    requests: int
