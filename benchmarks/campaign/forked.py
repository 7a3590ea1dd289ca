"""Run `cod3s` in a fork of this process, which has its libraries imported already.

A command then starts within milliseconds, so that a kill at a random moment falls into its work and not into its
imports, and hundreds of kills take minutes.
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from cod3s.cli.main import main


class ForkedCommand:
    """A command that runs in a fork; the part of subprocess.Popen that campaigns use."""

    def __init__(
        self,
        arguments: Sequence[str | Path],
        folder: Path,
        learn: bool = False,
        first: Callable[[], None] = lambda: None,
    ) -> None:
        """`first` is called in the fork before the command; with `learn`, `import_the_same` works at the end."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the command
        self._modules = tempfile.TemporaryFile() if learn else None  # noqa: SIM115
        self._first = first
        self.returncode: int | None = None
        self.used = 0.0  # processor seconds, once it has ended
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._run([*map(str, arguments)], folder)
        self._handle = os.pidfd_open(self.pid)

    def _run(self, arguments: list[str], folder: Path) -> None:
        """In the fork: become the command, and never come back."""
        code: object = 70
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(self._errors.fileno(), 2)
            os.chdir(folder)
            sys.argv = ["cod3s", *arguments]
            self._first()
            try:
                main()
                code = 0
            except SystemExit as end:
                code = end.code or 0
            if self._modules:
                self._modules.write("\n".join(sys.modules).encode())
                self._modules.flush()
            sys.stderr.flush()
        finally:
            os._exit(code if isinstance(code, int) else 1)

    def wait(self, seconds: float | None = None) -> int:
        """The exit code, as soon as there is one; subprocess.TimeoutExpired if there is none by then."""
        if self.returncode is None:
            if not select.select([self._handle], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired("cod3s", seconds or 0)
            _, status, usage = os.wait4(self.pid, 0)
            self.returncode, self.used = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
            os.close(self._handle)
        return self.returncode

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def communicate(self) -> tuple[str, str]:
        """Nothing, and what the command said on stderr, once it has ended."""
        self.wait()
        return "", self.complaint()

    def complaint(self) -> str:
        """What the command has said on stderr so far."""
        return os.pread(self._errors.fileno(), 1 << 20, 0).decode(errors="replace")

    def processor_seconds(self) -> float:
        """What the command has used of all cores so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill_after(self, processor_seconds: float, moment: float) -> bool:
        """Kill the command once it has used so much of the processor, and `moment` of 10 ms; False if it ended."""
        while self.processor_seconds() < processor_seconds:
            with suppress(subprocess.TimeoutExpired):
                self.wait(0.002)
                return False
        time.sleep(moment / 100)
        self.kill()
        return self.wait() == -signal.SIGKILL

    def import_the_same(self) -> None:
        """Import all modules that the command had imported at its end."""
        assert self._modules is not None
        for name in os.pread(self._modules.fileno(), 1 << 22, 0).decode().split():
            if name not in sys.modules:
                with suppress(Exception):
                    import_module(name)
