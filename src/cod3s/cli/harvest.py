"""The `harvest` command: find pairs of cause and effect in raw text."""

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.cli.parameters import ForceOption, JsonOption
from cod3s.errors import UsageError
from cod3s.io.disk import require_new

if TYPE_CHECKING:
    from cod3s.harvest import Summary

_MEGABYTE = 1_000_000
_PLAIN = (".txt", ".md")


def harvest(
    files: Annotated[
        list[Path],
        typer.Argument(help="Text (.txt, .md), tables (.jsonl, .csv, .tsv, also .gz, .parquet); - for stdin."),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The file of pairs: .parquet; .tsv, .csv or .jsonl, also .gz."),
    ],
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", min=1, max=256, help="Processes; one per core by default.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many pairs.")] = None,
    min_words: Annotated[int, typer.Option(min=1, help="Minimum words per side.")] = 3,
    max_words: Annotated[int, typer.Option(min=1, help="Maximum words per side.")] = 20,
    column: Annotated[str, typer.Option(help="The column or field with the text, for tables.")] = "text",
    errors: Annotated[
        Literal["strict", "replace"], typer.Option(help="What to do with bytes that are not UTF-8.")
    ] = "strict",
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Find statements of cause and effect in raw text, and write them as pairs.

    A table with the columns cause, effect, pattern, order ("because": the text states the effect first; "so": the
    cause) and corpus (the file), which `cod3s prepare` reads. A doubtful statement is dropped.
    """
    if min_words > max_words:
        raise UsageError(f"--min-words {min_words} is more than --max-words {max_words}")
    from cod3s.harvest import Limits
    from cod3s.harvest import harvest as harvest_files

    if not output.is_dir():
        require_new(output, force)
    # SIGTERM ends the run like Ctrl-C: the unfinished file is removed on the way out.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))
    with progress("MB of text", _total_megabytes(files), unit=_MEGABYTE) as advance:
        summary = harvest_files(
            files,
            output,
            limits=Limits(min_words, max_words),
            workers=workers or os.cpu_count() or 1,
            limit=limit,
            column=column,
            errors=errors,
            progress=advance,
        )
    for name in summary.empty:
        say(f"{name} contains no text")
    if json:
        print_json({"output": str(output), **summary.as_record()})
    else:
        _print_summary(summary, output)


def _total_megabytes(files: list[Path]) -> int | None:
    """How much text there is; None where file sizes do not tell, as for compressed files and standard input."""
    if any(path.suffix not in _PLAIN or not path.is_file() for path in files):
        return None
    return sum(path.stat().st_size for path in files) // _MEGABYTE


def _print_summary(summary: "Summary", output: Path) -> None:
    rows = [(name, f"{count:,}") for name, count in summary.kept.most_common()]
    if rows:
        print_table("Pairs kept", ("pattern", "pairs"), [*rows, ("all", f"{summary.pairs:,}")])
    else:
        reason = (
            f"all {summary.matched:,} cues were dropped" if summary.matched else "no cue such as `so` was found"
        )
        say(f"no pairs, because {reason}: {output} has no rows")
    rows = [(reason, f"{count:,}") for reason, count in summary.dropped.most_common()]
    caption = (
        f"{summary.files} file{'' if summary.files == 1 else 's'} | {summary.bytes / _MEGABYTE:,.1f} MB | "
        f"{summary.sentences:,} sentences | "
        f"{summary.matched:,} cues = {summary.pairs:,} kept + {summary.dropped.total():,} dropped | {output}"
    )
    if rows:
        print_table("Cues dropped", ("reason", "cues"), rows, caption)
    else:
        typer.echo(caption)
