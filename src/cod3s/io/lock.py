"""Let only one run at a time write into a folder; the lock ends with its process, however that ends."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cod3s.errors import Cod3sError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)


@contextmanager
def sole_writer(folder: Path) -> Iterator[bool]:
    """Hold `folder` alone; an error if another run on this machine holds it.

    The lock is on a hidden file next to the folder, because a folder may be replaced as a whole. The file is
    removed at the end; after a crash it stays, but its lock does not. If files cannot be locked, a warning says
    so, and the block is entered with False.
    """
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = folder.parent / f".{folder.name}.lock"
    try:
        descriptor = _acquire(path)
    except BlockingIOError as error:
        raise Cod3sError(
            f"another run is writing into {folder}", hint="wait until it has finished, or choose another folder"
        ) from error
    except OSError as error:  # a folder that cannot be written, or a file system without locks
        _log.warning("%s cannot be locked (%s): do not start a second run into it", folder, error)
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):
            path.unlink()  # while it is locked: a run that has just opened it will look again
        os.close(descriptor)


def _acquire(path: Path) -> int:
    """A descriptor that holds the lock on the file at `path`, which is made if it is missing."""
    if fcntl is None:
        raise OSError("this system has no flock")
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The run before may have removed the file between opening and locking: then lock the new file.
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
