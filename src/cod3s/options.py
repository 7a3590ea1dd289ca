"""Declare each option once, in its config field: default, bounds, choices and help.

The command line (`cod3s.cli.parameters`) and the web requests (`cod3s.web.requests`) are derived from the fields.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from cod3s.errors import UsageError, did_you_mean

SEED = 1234  # the original's
MAX_SEED = 2**32 - 1
BITS = 16  # per signature, as in the paper
MAX_BITS = 256

Config = TypeVar("Config")
_KEY = "option"
_KINDS: dict[type, tuple[type, str]] = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (object, ""),  # text, or what was parsed from it
}


@dataclass(frozen=True)
class Option:
    """What a config field declares, and `kind`, which says what its values are."""

    name: str
    kind: type  # int, float, bool or str; str also where the command line has to parse its text
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    above: float | None = None  # like `least`, but the bound itself is refused
    most: float | None = None
    panel: str = ""  # the heading it appears under in --help
    flags: tuple[str, ...] = ()  # on the command line, if it is not simply --its-name
    optional: bool = False  # None is a value

    def problem(self, value: Any, label: str = "") -> tuple[str, str] | None:
        """What is wrong with a value and how to fix it, or None; `label` is the option's name for the user."""
        label = label or self.name
        if self.optional and value is None:
            return None
        if self.choices and value not in self.choices:
            return f"{label} cannot be {value!r}", did_you_mean(str(value), self.choices)
        accepted, words = _KINDS[self.kind]
        if not isinstance(value, accepted) or (isinstance(value, bool) and self.kind is not bool):
            return (f"{label} is {value!r}, but it must be {words}", "") if words else None
        if self.kind in (int, float) and not self._in_bounds(value):
            return f"{label} is {value}, but it must be {self.bounds}", ""
        return None

    @property
    def bounds(self) -> str:
        """The bounds in words; empty if there are none."""
        if self.least is not None and self.most is not None:
            return f"from {_figure(self.least)} to {_figure(self.most)}"
        parts = [] if self.least is None else [f"at least {_figure(self.least)}"]
        parts += [] if self.above is None else [f"above {_figure(self.above)}"]
        parts += [] if self.most is None else [f"at most {_figure(self.most)}"]
        return " and ".join(parts)

    def _in_bounds(self, value: Any) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
        )


def option(
    default: Any,
    help: str,
    *,
    choices: Collection[str] = (),
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    panel: str = "",
    flags: tuple[str, ...] = (),
) -> Any:
    """A dataclass field that is an option. With a type as default, each config gets its own empty value of it.

    The choices of a `Literal` field are its type's.
    """
    declared = {"help": help, "choices": tuple(choices), "least": least, "above": above, "most": most}
    metadata = {_KEY: {**declared, "panel": panel, "flags": flags}}
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def seed_option(help: str, **more: Any) -> Any:
    """The field of a random seed."""
    return option(SEED, help, least=0, most=MAX_SEED, **more)


@cache
def options_of(config: type) -> dict[str, Option]:
    """The options of a config class by name, in the order of its fields."""
    hints = get_type_hints(config)
    declared = (field for field in fields(config) if _KEY in field.metadata)
    return {field.name: _option(field, hints[field.name]) for field in declared}


def check_options(config: Any) -> None:
    """Raise a UsageError that names the first value its field does not allow."""
    declared_by: type = type(config)
    for name, declared in options_of(declared_by).items():
        if problem := declared.problem(getattr(config, name)):
            raise UsageError(*problem)


def with_values(config: Config, what: str, values: dict[str, Any]) -> Config:
    """A copy of `config` with some values changed; an unknown name is an error that suggests the nearest."""
    known = [field.name for field in fields(config)]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise UsageError(f"{what} has no option {name!r}", hint=did_you_mean(name, known))
    return replace(config, **values)  # type: ignore[type-var]


def changed_values(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """For messages: each of the values that differ from those of an earlier run."""
    return [
        f"{name} was {before.get(name)!r}, is now {value!r}"
        for name, value in now.items()
        if before.get(name) != value
    ]


def find_name(what: str, name: str, known: Iterable[str]) -> str:
    """`name` if it is known, else an error that suggests the nearest."""
    names = list(known)
    if name not in names:
        raise UsageError(f"no {what} is called {name!r}", hint=did_you_mean(name, names))
    return name


def check_seed(seed: int) -> int:
    """`seed`, or an error if a generator of random numbers cannot take it."""
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"the seed must be a whole number from 0 to {MAX_SEED}, not {seed}")
    return seed


def _option(declared: "Field[Any]", hint: Any) -> Option:
    metadata = dict(declared.metadata[_KEY])
    inner = [part for part in get_args(hint) if part is not type(None)]
    optional = get_origin(hint) in (Union, UnionType) and type(None) in get_args(hint)
    hint = inner[0] if optional else hint
    if get_origin(hint) is Literal:
        metadata["choices"] = get_args(hint)
    kind = hint if hint in (int, float, bool) else str
    default = declared.default
    if declared.default_factory is not MISSING:
        default = declared.default_factory()
    return Option(declared.name, kind, default, optional=optional, **metadata)


def _figure(number: float) -> str:
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else f"{number:g}"
