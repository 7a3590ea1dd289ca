"""Commands on disks that fail: no space, read-only, fsync that fails, files that cannot be read.

    PYTHONPATH=benchmarks:tests python -m campaign.failing_disks --cases 3 --seconds 60

The command says what is wrong, an old result stays as it was, and once the disk is well again the same command
ends with the bytes of an uninterrupted run. Only root can mount the small disks; elsewhere those parts say so.
"""

import argparse
import ctypes
import errno
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from campaign.commands import Command, commands, difference, digest, practised, whole_run
from campaign.material import material
from campaign.tally import Budget, Tally, budget_of, parser, print_all

_DISK_BYTES = 64 << 20
_PAGE = 4096
_CAPABILITY_VERSION = 0x20080522
_RIGHTS_OF_ROOT = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: to use files whatever their modes say


@dataclass(frozen=True)
class Trial:
    """A command, its inputs and a disk for its output; `needed` bytes hold the whole result."""

    command: Command
    inputs: Path
    disk: Path
    needed: int
    draw: random.Random

    @property
    def output(self) -> Path:
        return self.disk / "out"


@dataclass(frozen=True)
class Fault:
    """What is wrong while the block runs, and what the command's own process does first.

    A command may succeed if the fault does not concern it: then its result must be whole.
    """

    name: str
    broken: Callable[[Trial], AbstractContextManager[None]]
    first: Callable[[], None] = lambda: None

    def strike(self, trial: Trial, expected: dict[str, str], *, old: bool) -> str:
        """Run the command on the broken disk, then on the mended one; what went wrong, or nothing."""
        command = trial.command
        if old:
            whole_run(command, trial.output)
        more = command.again if old else ()
        with self.broken(trial):
            process = command.start(trial.output, *more, first=self.first)
            complaint = process.communicate()[1]
            fault = difference(digest(trial.output, command), expected)
        if old and fault:
            return f"the old result is gone: {fault}"
        if process.returncode == 0 and fault:
            return f"it claims success: {fault}"
        if process.returncode and not _is_clear(process.returncode, complaint):
            return f"an unclear error: {complaint.strip()[-300:]}"
        try:
            again = command.again if trial.output.exists() else ()
            return difference(whole_run(command, trial.output, *again), expected)
        except RuntimeError as error:
            return f"on the mended disk: {error}"


def _is_clear(code: int, complaint: str) -> bool:
    return code in (1, 2) and "hint:" in complaint and "this is a bug" not in complaint


@contextmanager
def _no_space(trial: Trial) -> Iterator[None]:
    """Fill the disk but for a part of what the result needs."""
    filler = trial.disk / "filler"
    free = os.statvfs(trial.disk).f_bavail * os.statvfs(trial.disk).f_frsize
    left = int(trial.draw.uniform(0, 0.9) * trial.needed) // _PAGE * _PAGE
    with filler.open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, max(1, free - left))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def _read_only_disk(trial: Trial) -> Iterator[None]:
    _mount("-o", "remount,ro", trial.disk)
    try:
        yield
    finally:
        _mount("-o", "remount,rw", trial.disk)


@contextmanager
def _with_mode(path: Path, mode: int) -> Iterator[None]:
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(before)


def _read_only_folder(trial: Trial) -> AbstractContextManager[None]:
    return _with_mode(trial.disk, 0o555)


def _unreadable_input(trial: Trial) -> AbstractContextManager[None]:
    """One of the files that the command's arguments name, or that lie in the folders they name."""
    named = [path for path in trial.command.arguments if isinstance(path, Path)]
    files = [file for path in named for file in (path, *path.rglob("*")) if file.is_file()]
    return _with_mode(trial.draw.choice(sorted(files)), 0o000)


def _obey_modes() -> None:
    """Let the modes of files count for root, too."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, for two words of rights
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capget(header, sets) or not sets[0] & _RIGHTS_OF_ROOT:
        return
    sets[0] &= ~_RIGHTS_OF_ROOT
    if libc.capset(header, sets):
        raise OSError(ctypes.get_errno(), "capset failed")


def _fail_fsync() -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    os.fsync = fail  # type: ignore[assignment]  # only in the command's own process


FAULTS = (
    Fault("no space", _no_space),
    Fault("read-only disk", _read_only_disk),
    Fault("read-only folder", _read_only_folder, _obey_modes),
    Fault("fsync fails", lambda _trial: nullcontext(), _fail_fsync),
    Fault("unreadable input", _unreadable_input, _obey_modes),
)


def _mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", disk)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=False)


def try_command(command: Command, inputs: Path, folder: Path, budget: Budget) -> Iterator[Tally]:
    """A tally per fault: every case is tried on an empty disk and on one with an old result."""
    expected, _ = practised(command, folder)
    needed = sum(-(-path.stat().st_size // _PAGE) * _PAGE for path in (folder / "first").rglob("*"))
    for fault in FAULTS:
        tally = Tally(f"{fault.name}: {command.name}")
        for number in budget.numbers():
            draw = budget.draw(fault.name, command.name, number)
            for old in (False, True):
                try:
                    with _small_disk(folder) as disk:
                        finding = fault.strike(Trial(command, inputs, disk, needed, draw), expected, old=old)
                except subprocess.CalledProcessError:
                    tally.remark = "skipped: only root can mount a disk"
                    break
                tally.count(f"case {number}{', old result' * old}", finding)
        yield tally


def campaign(options: argparse.Namespace) -> Iterator[Tally]:
    with tempfile.TemporaryDirectory() as scratch:
        inputs = Path(scratch) / "made"
        shutil.copytree(material(), inputs)
        for number, command in enumerate(commands(Path(scratch), inputs)):
            if options.only in command.name:
                folder = Path(scratch) / f"command-{number}"
                folder.mkdir()
                yield from try_command(command, inputs, folder, budget_of(options))


if __name__ == "__main__":
    sys.exit(print_all(campaign(parser(__doc__, cases=3, seconds=60).parse_args())))
