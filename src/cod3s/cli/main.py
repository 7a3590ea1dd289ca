"""The root command: gathers the groups, and turns errors into a message with the way out."""

import logging
import os
import sys
import traceback

import typer

from cod3s import __version__
from cod3s.cli import (
    bench,
    bins,
    codes,
    diversify,
    evaluate,
    generate,
    harvest,
    judge,
    mcp,
    prepare,
    run,
    select,
    serve,
    sign,
    sts,
    sweep,
    train,
)
from cod3s.errors import Cod3sError, UsageError

app = typer.Typer(
    name="cod3s",
    help="k answers that mean different things: semantic signatures, bins, and what is built on them.",
    epilog='Start with: cod3s generate effect "the power went out during dinner"',
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_debug = False


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cod3s {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
    ),
    debug: bool = typer.Option(False, "--debug", help="On an error, print the whole traceback."),
) -> None:
    global _debug  # noqa: PLW0603 - read by main() after the command has failed
    _debug = debug


_GROUPS = (
    generate,
    run,
    select,
    diversify,
    serve,
    mcp,
    sign,
    bins,
    codes,
    sts,
    harvest,
    prepare,
    train,
    evaluate,
    sweep,
    judge,
    bench,
)
for group in _GROUPS:
    group.register(app)


def main() -> None:
    """Run the command line: exit code 0 done, 1 a clear error, 2 wrong usage, 130 Ctrl-C."""
    # Libraries that call basicConfig for themselves would otherwise print their remarks among ours.
    logging.basicConfig(level=logging.WARNING)
    try:
        app()
    except BrokenPipeError:
        # The reader of a pipe went away (`cod3s … | head`): not an error worth a message.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if _debug:
            traceback.print_exc()
        _explain(error)
        sys.exit(2 if isinstance(error, UsageError) else 1)


def _explain(error: Exception) -> None:
    if isinstance(error, Cod3sError):
        message, hint = error.message, error.hint
    elif isinstance(error, OSError):
        message, hint = (
            f"the system refused: {error}",
            "check that the path exists, is writable and has room",
        )
    else:
        message, hint = f"{type(error).__name__}: {error}", "this is a bug in cod3s; --debug shows where"
    typer.echo(f"cod3s: {message}", err=True)
    if hint:
        typer.echo(f"  hint: {hint}", err=True)
