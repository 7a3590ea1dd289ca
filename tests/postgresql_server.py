"""A real PostgreSQL for tests: a new cluster in a temporary folder, on a socket in it, gone at the end."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def find_binaries() -> Path | None:
    """The folder of initdb and postgres, wherever the distribution puts it."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    return places[-1].parent if places else None


@contextmanager
def postgresql() -> Iterator[str]:
    """The URL of a database, for as long as the block runs; skips where PostgreSQL is not installed."""
    binaries = find_binaries()
    if binaries is None:
        absent("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    # The path of a socket may have 107 characters at most, which pytest's own folders can exceed.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
    try:
        if user:  # the server refuses to run as root
            shutil.chown(folder, "nobody", "nogroup")
        data = folder / "data"
        initdb = [binaries / "initdb", "-D", data, "-U", "cod3s", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **user)  # type: ignore[call-overload]
        # No TCP at all. Without fsync, because tests kill servers of their own, never this one.
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c max_connections=40 -c fsync=off"
        control = [binaries / "pg_ctl", "-D", data, "-w", "-t", "120"]
        start = [*control, "-l", folder / "log", "-o", options, "start"]
        subprocess.run(start, check=True, stdout=subprocess.DEVNULL, cwd=folder, **user)  # type: ignore[call-overload]
        try:
            yield f"postgresql://cod3s@/postgres?host={folder}"
        finally:
            stop = [*control, "-m", "immediate", "stop"]
            subprocess.run(stop, check=False, capture_output=True, cwd=folder, **user)  # type: ignore[call-overload]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def absent(reason: str) -> None:
    """Skip for a plain reason; where CI runs the tests, everything has to be there."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; it has to be there in CI")
    pytest.skip(reason)
