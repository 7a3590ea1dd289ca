"""Secrets of a study: tokens that open a rater's or the administrator's pages, and completion codes.

Only hashes are stored. A token has 192 random bits, so a plain hash cannot be turned back by guessing.
"""

import hashlib
import hmac
import secrets

_CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that look alike


def new_token() -> str:
    """A token that nobody can guess, fit for a link."""
    return secrets.token_urlsafe(24)


def new_id() -> str:
    """A random name that says nothing."""
    return secrets.token_hex(8)


def new_code() -> str:
    """A completion code that people can copy by hand."""
    return "".join(secrets.choice(_CODE_LETTERS) for _ in range(8))


def token_hash(token: str) -> str:
    """What is stored in place of `token`."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def matches(token: str, stored: str) -> bool:
    """Whether `token` has the hash `stored`; takes as long for a near miss as for a far one."""
    return hmac.compare_digest(token_hash(token), stored)
