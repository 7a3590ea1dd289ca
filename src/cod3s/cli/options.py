"""Options that several commands share, so that they read and mean the same everywhere."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cod3s.errors import UsageError
from cod3s.seeds import MAX_SEED

EncoderOption = Annotated[
    str,
    typer.Option(
        "--encoder", "-e", help="static, fast, fast-int8 or sbert; fast:FOLDER, sbert:NAME or sbert:FOLDER."
    ),
]
BitsOption = Annotated[int, typer.Option("--bits", "-b", help="Bits of a signature, 1 to 256.")]
CodeBitsOption = Annotated[
    int | None,
    typer.Option("--bits", "-b", help="Bits of a signature, 1 to 256; default 16, or those of a fitted code."),
]


def seed_option(help: str, **more: Any) -> Any:
    """`--seed`, of whatever `help` says, within the numbers that are seeds."""
    return typer.Option("--seed", min=0, max=MAX_SEED, help=help, **more)


SeedOption = Annotated[int, seed_option("Seed of the hyperplanes; 1234 is the original's.")]
CodeOption = Annotated[str, typer.Option("--code", help="random, or a folder made by `cod3s codes fit`.")]
ColumnOption = Annotated[
    str | None, typer.Option("--column", help="The column or field to read, for .tsv, .csv and .jsonl files.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the output if it exists already.")]
BundleOption = Annotated[
    Path | None, typer.Option("--bundle", help="A bundle folder; default the one in the package.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]
SentencesArgument = Annotated[
    Path,
    typer.Argument(help="Sentences, one per line (also .gz, .zst), a table with --column, or - for stdin."),
]


def numbers(text: str, option: str) -> list[int]:
    """The whole numbers of a comma-separated list, in order, each once."""
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise UsageError(f"{option} takes whole numbers with commas between them, not {text!r}") from None
