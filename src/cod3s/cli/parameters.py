"""The parameters of commands: those that several commands share, and those derived from the fields of a config."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypeVar

import typer

from cod3s.errors import UsageError
from cod3s.options import BITS, MAX_BITS, MAX_SEED, SEED, Option, options_of

EncoderOption = Annotated[
    str,
    typer.Option(
        "--encoder", "-e", help="static, fast, fast-int8 or sbert; fast:FOLDER, sbert:NAME or sbert:FOLDER."
    ),
]
CodeBitsOption = Annotated[
    int | None,
    typer.Option(
        "--bits",
        "-b",
        help=f"Bits per signature, 1 to {MAX_BITS}; by default {BITS}, or as many as a fitted code has.",
    ),
]


def seed_option(help: str) -> Any:
    """`--seed` with the bounds of seeds; `help` says what it is for."""
    return typer.Option("--seed", min=0, max=MAX_SEED, help=help)


SeedOption = Annotated[int, seed_option(f"Seed for the hyperplanes; the original code uses {SEED}.")]
CodeOption = Annotated[str, typer.Option(help="random, or the folder of a fitted code, such as corpus/code.")]
ColumnOption = Annotated[
    str | None, typer.Option(help="The column or field to read, for .tsv, .csv, .jsonl and .parquet.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the output if it already exists.")]
BundleOption = Annotated[
    Path | None,
    typer.Option(help="A bundle's folder, or hf:USER/NAME@REVISION; by default, the one in the package."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]
SentencesArgument = Annotated[
    Path, typer.Argument(help="Sentences, one per line (also .gz), a table with --column, or - for stdin.")
]

Options = dict[str, Any]
"""As a command's parameter: the values that the user gave for the options of a config, by field name."""
_PARAMETER = "options"
Number = TypeVar("Number", int, float)


def takes_options(*configs: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a parameter per option of these configs, instead of its parameter `options`.

    The command gets those that were given as a dict, so that presets can fill in the others.
    """
    declared = {name: option for config in configs for name, option in options_of(config).items()}
    derived = [_parameter(option) for option in declared.values()]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**arguments: Any) -> None:
            values = {name: arguments.pop(name, None) for name in declared}
            values = {name: value for name, value in values.items() if value is not None}
            for name, value in values.items():
                if problem := declared[name].problem(value, _flags(declared[name])[0].partition("/")[0]):
                    raise UsageError(*problem)
            command(**arguments, **{_PARAMETER: values})

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            keyword = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            parameters += derived if parameter.name == _PARAMETER else [keyword]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameter(option: Option) -> inspect.Parameter:
    """The parameter that a field declares; None stands for not given."""
    kind = Literal[option.choices] if option.choices else option.kind
    shown = _shown(option.default)
    derived = typer.Option(
        *_flags(option),
        help=option.help + (f" [dim]\\[default: {shown}][/dim]" if shown else ""),
        show_default=False,
        rich_help_panel=option.panel or None,
    )
    annotation = Annotated[Optional[kind], derived]  # type: ignore[valid-type]  # noqa: UP045 - built at run time
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _flags(option: Option) -> tuple[str, ...]:
    if option.flags:
        return option.flags
    flag = option.name.replace("_", "-")
    return (f"--{flag}/--no-{flag}",) if option.kind is bool else (f"--{flag}",)


def _shown(default: Any) -> str:
    """A default as --help shows it; empty where there is nothing to show."""
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, float):
        return f"{default:g}"
    if isinstance(default, tuple):
        return ",".join(map(_shown, default))
    return str(default) if default or default == 0 else ""


def numbers(text: str, option: str, kind: type[Number] = int) -> list[Number]:
    """The numbers of a comma-separated list, in order, each once."""
    try:
        return sorted({kind(part) for part in text.split(",")})
    except ValueError:
        which = "whole numbers" if kind is int else "numbers"
        raise UsageError(f"{option} takes {which} separated by commas, not {text!r}") from None
