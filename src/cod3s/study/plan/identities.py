"""Ids, tokens, pseudonyms and timestamps of a study.

Only hashes of tokens are stored. A token has 192 random bits, so a plain hash cannot be reversed by guessing.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from datetime import datetime, timezone

from cod3s.study.plan.folder import Rater, Study

SIMULATED = "simulated"
"""The origin of simulated raters, and how their pseudonyms begin, wherever their ratings go."""
_CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that look alike


def new_token() -> str:
    """A token that nobody can guess and that fits in a link."""
    return secrets.token_urlsafe(24)


def new_id() -> str:
    """A random id that reveals nothing."""
    return secrets.token_hex(8)


def new_code() -> str:
    """A completion code that people can copy by hand."""
    return "".join(secrets.choice(_CODE_LETTERS) for _ in range(8))


def token_hash(token: str) -> str:
    """The hash that is stored instead of `token`."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def matches(token: str, stored: str) -> bool:
    """Whether `token` has the hash `stored`, compared in constant time."""
    return hmac.compare_digest(token_hash(token), stored)


def pseudonyms(study: Study, raters: Iterable[Rater]) -> dict[str, str]:
    """The pseudonym of every rater, by id: the same in every export and report of the study.

    It is made from the random id in the store, which no export shows, so nobody can test whether a name or a
    Prolific id belongs to it.
    """
    names = {}
    for rater in raters:
        digest = hashlib.sha256(f"{study.id} {rater.id}".encode()).hexdigest()[:10]
        names[rater.id] = f"{SIMULATED if rater.origin == SIMULATED else 'r'}-{digest}"
    return names


def is_simulated(name: str) -> bool:
    """Whether this is the pseudonym of a simulated rater."""
    return name.startswith(f"{SIMULATED}-")


def as_text(moment: datetime) -> str:
    """A moment as it is stored: UTC, ISO 8601 with milliseconds, so that sorting the texts sorts by time."""
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def timestamp() -> str:
    """The current time, as it is stored."""
    return as_text(datetime.now(timezone.utc))
