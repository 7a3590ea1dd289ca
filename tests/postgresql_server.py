"""A real PostgreSQL for tests: a new cluster in a temporary folder, on a socket in it, gone at the end."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


def find_binaries() -> Path | None:
    """The folder of initdb and postgres, wherever the distribution puts it."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    return places[-1].parent if places else None


@dataclass(frozen=True)
class Cluster:
    """A PostgreSQL in a folder of its own, reached by a socket in it; there is no TCP at all."""

    folder: Path
    binaries: Path
    fsync: bool

    @property
    def url(self) -> str:
        return f"postgresql://cod3s@/postgres?host={self.folder}"

    def create(self) -> None:
        if os.getuid() == 0:  # the server refuses to run as root
            shutil.chown(self.folder, "nobody", "nogroup")
        self._run("initdb", "-U", "cod3s", "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c max_connections=40"
        options += " -c fsync=on" if self.fsync else " -c fsync=off"
        self._run("pg_ctl", "-w", "-t", "120", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-m", "immediate", "-w", "stop", check=False)

    def kill(self) -> None:
        """kill -9: the server's other processes notice and end."""
        server = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = [
            Path(f"/proc/{line}") for line in Path(f"/proc/{server}/task/{server}/children").read_text().split()
        ]
        os.kill(server, signal.SIGKILL)
        while any(child.exists() for child in children):
            time.sleep(0.05)

    def _run(self, program: str, *arguments: str, check: bool = True) -> None:
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
        command = [str(self.binaries / program), "-D", str(self.folder / "data"), *arguments]
        # A file and not a pipe, which the server would keep open.
        subprocess.run(command, check=check, stdout=subprocess.DEVNULL, cwd=self.folder, **user)  # type: ignore[call-overload]


@contextmanager
def cluster(*, fsync: bool) -> Iterator[Cluster]:
    """A running cluster for as long as the block runs; skips where PostgreSQL is not installed."""
    binaries = find_binaries()
    if binaries is None:
        absent("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    assert binaries is not None
    # The path of a socket may have 107 characters at most, which pytest's own folders can exceed.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    server = Cluster(folder, binaries, fsync)
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgresql() -> Iterator[str]:
    """The URL of a database. Without fsync, because nobody kills this server."""
    with cluster(fsync=False) as server:
        yield server.url


def absent(reason: str) -> None:
    """Skip for a plain reason; where CI runs the tests, everything has to be there."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; it has to be there in CI")
    pytest.skip(reason)
