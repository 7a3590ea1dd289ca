"""The commands that write results, on the tiny bundle, and digests that tell whether two results are equal."""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from campaign.material import ENVIRONMENT, material
from campaign.tally import Budget, Tally, budget_of
from cod3s.files.disk import sha256


@dataclass(frozen=True)
class Command:
    """A command with its output folder or file last; `again` is added to continue a killed run."""

    name: str
    arguments: Sequence[str | Path]
    again: tuple[str, ...] = ()

    def start(self, output: Path, *more: str) -> "subprocess.Popen[str]":
        line = [sys.executable, "-m", "cod3s", *map(str, self.arguments), "-o", str(output), *more]
        return subprocess.Popen(
            line, env=ENVIRONMENT, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=output.parent
        )


def commands(scratch: Path) -> list[Command]:
    """Every command that can be killed; their inputs are written into `scratch`."""
    made = material()
    sources = [
        f"the {who} lost the key at home" for who in ("baker", "pilot", "judge", "nurse", "clerk", "singer")
    ]
    (scratch / "sources.txt").write_text("".join(f"{source}\n" for source in sources * 6))
    (scratch / "table.tsv").write_text("source\trelation\n" + "".join(f"{text}\teffect\n" for text in sources[:3]))
    table, bundle = scratch / "table.tsv", made / "small"
    corpus_options = ("--bits", "8", "--dev", "20", "--test", "0", "--held-out", "0.1", "--filter", "none")
    quick = ("--bundle", bundle, "--second-encoder", "none")
    return [
        Command("prepare", ("prepare", made / "pairs.tsv", "--encoder", "static", *corpus_options)),
        Command("export", ("export", made / "run", "--name", "tiny"), ("--force",)),
        Command("evaluate", ("evaluate", table, *quick, "--systems", "cod3s,s2s", "--sets", "2")),
        Command("sweep", ("sweep", table, *quick, "--min-hamming", "0,2", *_FIXED, "-k", "2")),
        Command(
            "bins reword", ("bins", "reword", bundle, "--corpus", made / "corpus", "--sources", "6"), ("--force",)
        ),
        Command(
            "codes fit",
            ("codes", "fit", scratch / "sources.txt", "--encoder", "static", "--bits", "8"),
            ("--force",),
        ),
        Command(
            "generate",
            (
                *("generate", "effect", "--input", scratch / "sources.txt"),
                *("--bundle", bundle, "-k", "2", "--shard-size", "8"),
            ),
        ),
    ]


_FIXED = ("--signature-weight", "-", "--sentence-weight", "-")


def digest(output: Path) -> dict[str, str]:
    """The checksum of every file of a result; hidden leftovers of a killed run are no part of it."""
    if output.is_file():
        return {output.name: sha256(output)}
    paths = [path.relative_to(output) for path in output.rglob("*") if path.is_file()]
    return {str(path): sha256(output / path) for path in paths if not any(part[0] == "." for part in path.parts)}


def difference(result: dict[str, str], expected: dict[str, str]) -> str:
    """Which files differ, or nothing."""
    names = sorted(name for name in {*result, *expected} if result.get(name) != expected.get(name))
    return f"{', '.join(names)} differ from an uninterrupted run" if names else ""


def whole_run(command: Command, output: Path, *more: str) -> dict[str, str]:
    """The digest of an uninterrupted run."""
    process = command.start(output, *more)
    _, complaint = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{command.name} failed: {complaint.strip()[-300:]}")
    return digest(output)


def try_each(options: argparse.Namespace, attempt: Callable[[Command, Path, Budget], Tally]) -> Iterator[Tally]:
    """The tally of each command that --only names, tried in a folder of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        for number, command in enumerate(commands(Path(scratch))):
            if options.only in command.name:
                folder = Path(scratch) / f"command-{number}"
                folder.mkdir()
                yield attempt(command, folder, budget_of(options))
