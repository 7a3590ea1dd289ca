"""Roles: what one model scores, and how a pair is written for each. Knows nothing about tokens or torch."""

from dataclasses import dataclass

ROLES = ("plain", "signature", "sentence", "inverse")


@dataclass(frozen=True)
class Written:
    """A pair as one role sees it: what is read, what is given, and what is to be written after it.

    `source` is None where the encoder reads nothing. `given` and `written` are (signature, text), each part maybe
    absent: the model is told `given` and learns, or scores, `written`.
    """

    source: str | None
    given: tuple[str | None, str | None]
    written: tuple[str | None, str | None]


def tag(relation: str, role: str) -> str:
    """The first decoder token: it tells a shared model which role and relation it plays."""
    return f"<{relation}:{role}>"


def write_pair(role: str, source: str, target: str, signature: str) -> Written:
    """The pair in the role's form.

    `plain` models p(target | source), `signature` p(signature | source), `sentence` p(signature + target | source)
    and `inverse` p(source | signature), whose encoder reads nothing.
    """
    match role:
        case "plain":
            return Written(source, (None, None), (None, target))
        case "signature":
            return Written(source, (None, None), (signature, None))
        case "sentence":
            return Written(source, (None, None), (signature, target))
        case "inverse":
            return Written(None, (signature, None), (None, source))
    raise AssertionError(f"no role is called {role!r}")
