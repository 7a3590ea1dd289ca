"""The table of all commands, and the root command, which turns errors into a message and a hint."""

import inspect
import logging
import os
import sys
import traceback
from collections.abc import Callable

import typer

from cod3s import __version__
from cod3s.cli import (
    bins,
    bundle,
    critic,
    diversify,
    evaluate,
    generate,
    harvest,
    prepare,
    run,
    select,
    serve,
    sign,
    study,
    train,
)
from cod3s.errors import Cod3sError, UsageError

app = typer.Typer(
    name="cod3s",
    help="Get k answers that mean different things, with semantic signatures and bins.",
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
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
    debug: bool = typer.Option(False, "--debug", help="On an error, print the full traceback."),
) -> None:
    global _debug  # noqa: PLW0603 - read by main() after the command has failed
    _debug = debug


Commands = tuple[tuple[str, Callable[..., None], str], ...]
"""Name, function, and the arguments of an example, which --help shows."""

_COMMANDS: Commands = (
    ("generate", generate.generate, 'effect "the tenant misplaced his keys" -k 5'),
    ("run", run.run, "cause -k 5"),
    ("select", select.select, "outputs.jsonl -k 5 --by prompt --score-field logprob"),
    (
        "diversify",
        diversify.diversify,
        '"Name a use for a brick." -k 10 --server http://localhost:11434/v1 --model llama3.2',
    ),
    ("serve", serve.serve, "--port 8001 --open"),
    ("mcp", serve.mcp, "(as the command in an agent's settings)"),
    ("sign", sign.sign, '"He lost his keys." "He could not get in."'),
    ("sts", evaluate.sts, "sts-dev.tsv --encoder fast --encoder static --plot rho.png"),
    ("harvest", harvest.harvest, "novel.txt talks.jsonl.gz -o pairs.parquet --workers 2"),
    ("prepare", prepare.prepare, "pairs.tsv.gz -o corpus/ --relation both --bits 16 --filter paper"),
    ("train", train.train, "corpus/ -o run/ --max-minutes 30"),
    ("evaluate", evaluate.evaluate, "copa-dev.xml --bundle bundle/ --limit 100 -o report/"),
    ("sweep", evaluate.sweep, "copa-dev.xml --bundle bundle/ --limit 20 -o sweep/"),
)
_BINS: Commands = (
    ("build", bins.build, "sentences.txt -o bins.sqlite --bits 16"),
    ("stats", bins.stats, "sentences.txt --bits 4,8,12,16"),
    ("show", bins.show, "bins.sqlite 0110100111010010"),
    ("tree", bins.tree, "bins.sqlite --depth 3"),
)
_STUDY: Commands = (
    ("new", study.new, "outputs/*.jsonl -o study/ --copa copa-dev.xml"),
    ("serve", study.serve, "study/ --port 8001"),
    ("export", study.export, "study/ --to mturk -o batch/"),
    ("import", study.import_, "study/ results.csv --from mturk"),
    ("analyse", study.analyse, "study/ -o report/"),
)
_BUNDLE: Commands = (
    ("export", bundle.export, "run/ -o bundle/ --levels 63"),
    ("info", bundle.info, "bundle/"),
    ("fit-critic", critic.fit, "bundle/ --verdicts verdicts.tsv"),
    ("push", bundle.push, "bundle/ USER/NAME"),
)
_CRITIC: Commands = (("score", critic.score, "pairs.tsv --relation effect"),)
_GROUPS = (
    ("bundle", "Bundles: the folders that generation opens.", _BUNDLE),
    ("critic", "The critic: how plausible is an answer?", _CRITIC),
    ("bins", "Bins: all sentences that share a signature.", _BINS),
    ("study", "Human plausibility studies: create a study, collect ratings, analyse them.", _STUDY),
)


def _add(to: typer.Typer, commands: Commands, prefix: str = "") -> None:
    for name, command, arguments in commands:
        to.command(name, help=_help(command), epilog=f"Example: cod3s {prefix}{name} {arguments}")(command)


def _help(command: Callable[..., None]) -> str:
    """The docstring with a line per paragraph, so that it wraps at the terminal's width."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


_add(app, _COMMANDS)
for _name, _about, _commands in _GROUPS:
    _group = typer.Typer(help=_about)
    _add(_group, _commands, f"{_name} ")
    app.add_typer(_group, name=_name, no_args_is_help=True)


def main() -> None:
    """Run the command line; exit code 0 for success, 1 for an error, 2 for wrong usage, 130 for Ctrl-C."""
    # Libraries that call basicConfig themselves would otherwise mix their messages with ours.
    logging.basicConfig(level=logging.WARNING)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, because Python would report a broken pipe on its own at the end
    except BrokenPipeError:
        _leave_broken_pipe()
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):  # for which typer exits with 1
            raise
        _leave_broken_pipe()
    except Exception as error:
        if _debug:
            traceback.print_exc()
        _explain(error)
        sys.exit(2 if isinstance(error, UsageError) else 1)


def _leave_broken_pipe() -> None:
    """The reader of a pipe has all that it wants (`cod3s … | head -1`): no error, and nothing more to print."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _explain(error: Exception) -> None:
    if isinstance(error, Cod3sError):
        message, hint = error.message, error.hint
    elif isinstance(error, OSError):
        message, hint = (
            f"the operating system refused: {error}",
            "check that the path exists, is writable and has free space",
        )
    else:
        message, hint = f"{type(error).__name__}: {error}", "this is a bug in cod3s; --debug shows where"
    typer.echo(f"cod3s: {message}", err=True)
    if hint:
        typer.echo(f"  hint: {hint}", err=True)
