"""The commands that write results, on the tiny bundle, and digests that tell whether two results are equal."""

import argparse
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.forked import ForkedCommand
from campaign.material import material
from campaign.tally import Budget, Tally, budget_of
from cod3s.io.disk import sha256


@dataclass(frozen=True)
class Command:
    """A command with its output folder or file last; `again` is added to continue a killed run.

    `timed` are the beginnings of names of files that hold times, so that no two runs write the same. If a run that
    goes on decodes other batches than a whole run, its scores differ from about the seventh digit on (`rounded`).
    """

    name: str
    arguments: Sequence[str | Path]
    again: tuple[str, ...] = ()
    timed: tuple[str, ...] = ()
    rounded: bool = False

    def start(self, output: Path, *more: str, **options: Any) -> ForkedCommand:
        """Start the command; `options` are those of ForkedCommand."""
        return ForkedCommand((*self.arguments, "-o", output, *more), output.parent, **options)


def commands(scratch: Path, made: Path | None = None) -> list[Command]:
    """Every command that can be killed; their inputs are written into `scratch`, or are the material in `made`."""
    made = made or material()
    sources = [
        f"the {who} lost the key at home" for who in ("baker", "pilot", "judge", "nurse", "clerk", "singer")
    ]
    (scratch / "sources.txt").write_text("".join(f"{source}\n" for source in sources * 6))
    (scratch / "table.tsv").write_text("source\trelation\n" + "".join(f"{text}\teffect\n" for text in sources[:3]))
    table, bundle = scratch / "table.tsv", made / "small"
    corpus_options = ("--bits", "8", "--dev", "20", "--test", "0", "--held-out", "0.1", "--filter", "none")
    quick = ("--bundle", bundle, "--encoders", "bundle")
    return [
        Command("prepare", ("prepare", made / "pairs.tsv", "--encoder", "static", *corpus_options)),
        Command("train", ("train", made / "corpus", "--preset", "tiny", *_SHORT), ("--resume",), _TIMED),
        Command("export", ("bundle", "export", made / "run", "--name", "tiny"), ("--force",)),
        Command("evaluate", ("evaluate", table, *quick, "--systems", "cod3s,s2s", *_SETS), _FORCE, rounded=True),
        Command(
            "sweep", ("sweep", table, *quick, "--min-hamming", "0,2", *_FIXED, "-k", "2"), _FORCE, rounded=True
        ),
        Command(
            "generate",
            (
                *("generate", "effect", "--input", scratch / "sources.txt"),
                *("--bundle", bundle, "-k", "2", "--shard-size", "8"),
            ),
        ),
    ]


_SHORT = (
    *("--bits-per-token", "3", "--max-steps", "6", "--evaluate-every", "2"),
    *("--batch-tokens", "512", "--validate-pairs", "10"),
)
_TIMED = ("checkpoint-", "figures.json", "log.csv")
_SETS, _FORCE = ("--sets", "2"), ("--force",)
_FIXED = ("--signature-weight", "-", "--sentence-weight", "-")


_ANY_COMMAND = Command("any", ())


def digest(output: Path, command: Command = _ANY_COMMAND) -> dict[str, str]:
    """The checksum of every file of a result; hidden leftovers of a killed run are no part of it."""
    if output.is_file():
        return {output.name: sha256(output)}
    paths = [path.relative_to(output) for path in output.rglob("*") if path.is_file()]
    left_out = (".", *command.timed)
    return {
        str(path): _rounded_sum(output / path) if command.rounded else sha256(output / path)
        for path in paths
        if not any(part.startswith(left_out) for part in path.parts)
    }


def _rounded_sum(path: Path) -> str:
    """The checksum of a file, in JSON lines with all numbers rounded to three places."""
    if path.suffix != ".jsonl":
        return sha256(path)
    lines = path.read_text().splitlines()
    rows = [json.loads(line, parse_float=lambda number: round(float(number), 3)) for line in lines]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def difference(result: dict[str, str], expected: dict[str, str]) -> str:
    """Which files differ, or nothing."""
    names = sorted(name for name in {*result, *expected} if result.get(name) != expected.get(name))
    return f"{', '.join(names)} differ from an uninterrupted run" if names else ""


def whole_run(command: Command, output: Path, *more: str) -> dict[str, str]:
    """The digest of an uninterrupted run."""
    finished(command, command.start(output, *more))
    return digest(output, command)


def finished(command: Command, process: ForkedCommand) -> ForkedCommand:
    """The process after its end, which must be a success."""
    _, complaint = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{command.name} failed: {complaint.strip()[-300:]}")
    return process


def practised(command: Command, folder: Path) -> tuple[dict[str, str], float]:
    """The digest of an uninterrupted run, and the processor seconds of another one that had its imports done.

    An error if the two runs differ.
    """
    for name in ("first", "second"):
        (folder / name).mkdir()
    finished(command, process := command.start(folder / "first" / "out", learn=True))
    process.import_the_same()
    expected = digest(folder / "first" / "out", command)
    process = finished(command, command.start(folder / "second" / "out"))
    if fault := difference(digest(folder / "second" / "out", command), expected):
        raise RuntimeError(f"{command.name}: {fault}, and nothing interrupted it")
    return expected, process.used


def try_each(options: argparse.Namespace, attempt: Callable[[Command, Path, Budget], Tally]) -> Iterator[Tally]:
    """The tally of each command that --only names, tried in a folder of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        for number, command in enumerate(commands(Path(scratch))):
            if options.only in command.name:
                folder = Path(scratch) / f"command-{number}"
                folder.mkdir()
                yield attempt(command, folder, budget_of(options))
