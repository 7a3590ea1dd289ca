"""Errors that a user can act on: what happened, what was needed, what to do next."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from importlib import import_module
from typing import Any


class Cod3sError(Exception):
    """An error that a user can fix: `message` says what happened and what was needed, `hint` what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(Cod3sError):
    """An option, a name or a number that does not exist or does not fit; the command line exits with 2."""


class SentenceError(Cod3sError):
    """Text that cannot be used as a sentence."""


class VectorError(Cod3sError):
    """Vectors with the wrong shape, or values that are not finite."""


class SignatureError(Cod3sError):
    """A signature with the wrong number of bits, or characters other than 0 and 1."""


class EncoderError(Cod3sError):
    """An encoder that is unknown, missing, or not what it claims to be."""


class FileFormatError(Cod3sError):
    """A file whose content is not what its reader expects."""


class LocationError(Cod3sError):
    """A location that could not be read or written just now; finished work is still there."""


class BinsError(Cod3sError):
    """A bins file that cannot be opened, or a bin that it cannot have."""


class BundleError(Cod3sError):
    """A bundle that is damaged, incomplete, of another format, or does not fit what it is used with."""


class MissingExtraError(Cod3sError):
    """A library that belongs to an optional extra is not installed."""


def did_you_mean(name: str, options: Iterable[str]) -> str:
    """A hint with the option most similar to `name`, or with all of them if none is similar."""
    known = list(options)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"choose one of: {', '.join(known)}"


def require(module: str, extra: str) -> Any:
    """The imported `module`; if it is not installed, the error names the extra that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is None or not module.startswith(error.name.split(".")[0]):
            raise
        raise MissingExtraError(
            f"this needs {module.split('.', maxsplit=1)[0]!r}, which is not installed",
            hint=f"pip install 'cod3s[{extra}]'",
        ) from error


def require_all(extra: str, *modules: str) -> None:
    """Fail early if any of the modules is not installed; the error names the extra that installs them."""
    for module in modules:
        require(module, extra)


Progress = Callable[[int], None]
"""Called during long work with the number of items that were just finished."""

Stage = Callable[[str, int | None], AbstractContextManager[Progress]]
"""Called with a label and a total; returns what reports progress."""


def silent_stage(_label: str, _total: int | None) -> AbstractContextManager[Progress]:
    """A stage that shows nothing."""
    return nullcontext(lambda _done: None)
