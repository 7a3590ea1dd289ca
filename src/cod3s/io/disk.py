"""Read and write files and folders: atomic writes, checksums, the cache folder, text and JSON, plain or gzip."""

import errno
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, Literal, TextIO, TypeVar, cast

from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.binary import START_BYTES, refuse_binary
from cod3s.io.lock import sole_writer

Record = TypeVar("Record")

MAX_JSON_BYTES = 1 << 26
"""The largest tokenizers have half as much."""
MAX_LINE_BYTES = 1 << 24
"""A line of text or a record; the limit keeps memory flat for any file, even for a decompression bomb."""
_STANDARD_INPUT = "standard input"


def cache_folder() -> Path:
    """Where converted models are kept: $COD3S_CACHE, else $XDG_CACHE_HOME/cod3s, else ~/.cache/cod3s."""
    if chosen := os.environ.get("COD3S_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cod3s"


def sha256(path: Path) -> str:
    """The file's SHA-256 in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def existing_file(path: Path) -> Path:
    """`path` itself; an error if there is no file."""
    if path.is_dir():
        raise Cod3sError(f"{path} is a folder, but a file is needed")
    if not path.is_file():
        raise Cod3sError(f"no file at {path}", hint="check the spelling; relative paths start at this folder")
    return path


def require_other(output: Path, inputs: Iterable[Path]) -> None:
    """Raise an error if `output` is among the files that are read."""
    for path in inputs:
        if str(path) != "-" and existing_file(path).resolve() == output.resolve():
            raise Cod3sError(f"{output} is also an input and would be overwritten", hint="choose another -o")


def require_new(output: Path, force: bool) -> None:
    """Raise an error if `output` already exists, unless it may be replaced (`--force`)."""
    if force or not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    raise Cod3sError(f"{output} already exists", hint="add --force to replace it, or choose another name")


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """A temporary path that replaces `path` if the block ends without an error, and is removed otherwise.

    Links are followed; a device, a pipe or a folder at `path` is an error.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise Cod3sError(f"{path} is not an ordinary file, so it cannot be replaced", hint="name another file")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        _flush(partial)
        partial.chmod(0o666 & ~_umask())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def replaced_folder(path: Path, mark: str = "") -> Iterator[Path]:
    """A temporary folder that replaces `path` if the block ends without an error, and is removed otherwise.

    `mark` names a file that every folder of this kind has: a folder with other content is left alone, with an
    error. Without `mark`, whatever is at `path` is replaced: only for folders that cod3s manages, as in the cache.
    """
    path = path.resolve()
    if mark:
        require_own(path, mark)
        if Path.cwd().is_relative_to(path):
            raise Cod3sError(f"{path} is the current folder", hint="change to another folder first")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Our own folders, such as conversions in the cache, may be made twice at once: the last one stays.
    with sole_writer(path) if mark else nullcontext(False) as is_sole:
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
        try:
            yield partial
            for file in partial.rglob("*"):
                if file.is_file():
                    _flush(file)
            partial.chmod(0o777 & ~_umask())
            _put(partial, path)
            if is_sole:
                _remove_leftovers(path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def require_own(path: Path, mark: str) -> None:
    """Raise an error if `path` holds anything but a folder of the kind that has a file called `mark`."""
    if path.exists() and not path.is_dir():
        raise Cod3sError(f"{path} is a file, but a folder is needed", hint="name another folder")
    if path.is_dir() and any(path.iterdir()) and not (path / mark).is_file():
        raise Cod3sError(
            f"{path} contains other files (and no {mark}), so it is not replaced",
            hint="name a folder that is new, empty or of this kind",
        )


def _remove_leftovers(path: Path) -> None:
    """Remove what killed runs left next to a folder, now that it is complete."""
    leftover = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.(part|old)")
    for other in path.parent.iterdir():
        if leftover.fullmatch(other.name):
            shutil.rmtree(other, ignore_errors=True)


def _flush(path: Path) -> None:
    """Wait until the file's content is on the disk, so that a power cut leaves the old file or the new."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put(partial: Path, path: Path) -> None:
    """Rename `partial` to `path`; an older folder is moved aside first, so that a kill loses neither."""
    while True:
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
        try:
            with suppress(FileNotFoundError):
                path.replace(old)
            partial.replace(path)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                if any(old.iterdir()):
                    old.replace(path)
                raise  # otherwise another process was faster: try again
        finally:
            shutil.rmtree(old, ignore_errors=True)


def write_json(path: Path, content: Any) -> None:
    """Write `content` to `path` as indented JSON, atomically."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` as UTF-8, atomically."""
    with replaced_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def read_json(path: Path) -> Any:
    """The JSON value in `path`; an error names the file."""
    with existing_file(path).open("rb") as stream:
        content = stream.read(MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        raise FileFormatError(
            f"{path} is larger than {MAX_JSON_BYTES >> 20} MB, which is too much for this kind of file"
        )
    try:
        return json.loads(content.decode())
    except (ValueError, RecursionError) as error:  # also for text that is not UTF-8, and endless digits
        raise FileFormatError(f"{path} does not contain valid JSON: {error}") from error


def write_json_lines(path: Path, records: Iterable[Any]) -> None:
    """Write a JSON value per line, atomically: the file appears only when it is complete."""
    with replaced_file(path) as partial, partial.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def read_json_lines(path: Path, parse: Callable[[Any], Record], what: str, hint: str = "") -> Iterator[Record]:
    """The records that `parse` makes of the JSON value in each line; where it fails, the error names the line."""
    with open_text(path) as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                record = parse(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                name = display_name(path)
                raise FileFormatError(
                    f"{name}, line {number}: not {what} ({reason_of(error)})", hint=hint
                ) from error
            yield record


def reason_of(error: Exception) -> str:
    """Why a JSON record could not be parsed, in plain words."""
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON: {error.msg}"
    return f"the field {error} is missing" if isinstance(error, KeyError) else str(error)


@contextmanager
def spooled(path: Path) -> Iterator[Path]:
    """`path` itself or, for `-`, a temporary copy of standard input, for data that is read more than once."""
    if str(path) != "-":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="cod3s-") as folder:
        copy = Path(folder) / _STANDARD_INPUT
        with copy.open("wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        yield copy


@contextmanager
def open_text(
    path: Path, errors: Literal["strict", "replace"] = "strict", *, max_line_bytes: int | None = MAX_LINE_BYTES
) -> Iterator[TextIO]:
    """UTF-8 text of a plain or .gz file, or of standard input for `-`; damaged and binary files are errors.

    A byte-order mark is skipped, and every line ends in \\n. Without `max_line_bytes`, a line may have any length.
    """
    name = display_name(path)
    binary = sys.stdin.buffer if str(path) == "-" else open_unpacked(path)
    counted = _TextBytes(binary, name, max_line_bytes)
    try:
        yield io.TextIOWrapper(io.BufferedReader(counted, START_BYTES), encoding="utf-8-sig", errors=errors)
    except UnicodeDecodeError as error:
        position = counted.passed - len(error.object) + error.start
        raise FileFormatError(
            f"{name} is not UTF-8 text: {error.reason} at byte {position}",
            hint="convert it with `iconv -t utf-8`; `cod3s harvest` also takes --errors replace",
        ) from error
    finally:
        if binary is not sys.stdin.buffer:
            binary.close()


def open_unpacked(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked if its name ends in .gz."""
    opened = gzip.open if path.suffix == ".gz" else open
    return cast(IO[bytes], opened(existing_file(path), "rb"))


def read_start(path: Path, most: int = START_BYTES) -> bytes:
    """The first bytes of a file, unpacked, such as those that tell its format."""
    with _whole_gzip(path), open_unpacked(path) as stream:
        return stream.read(most)


def check_gzip(path: Path) -> None:
    """Raise an error if a gzip file is damaged or cut short anywhere."""
    with _whole_gzip(path), open_unpacked(path) as stream:
        while stream.read(1 << 20):
            pass


@contextmanager
def _whole_gzip(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise damaged_gzip(display_name(path), error) from error


class _TextBytes(io.RawIOBase):
    """Counts bytes, so that errors can name a position, and refuses damage, binary formats and endless lines."""

    def __init__(self, source: IO[bytes], name: str, max_line_bytes: int | None) -> None:
        # `read1` returns what has arrived already: a pipe is read while it is still being written.
        self._read = getattr(source, "read1", source.read)
        self._name, self._max_line_bytes = name, max_line_bytes
        self._line_bytes = 0  # of the line that has not ended yet
        self.passed = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            block: bytes = self._read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise damaged_gzip(self._name, error) from error
        if not self.passed:
            refuse_binary(block, self._name)
        buffer[: len(block)] = block
        self.passed += len(block)
        end = block.rfind(b"\n")
        self._line_bytes = len(block) - end - 1 if end >= 0 else self._line_bytes + len(block)
        if self._max_line_bytes is not None and self._line_bytes > self._max_line_bytes:
            raise FileFormatError(
                f"{self._name} has a line of more than {self._max_line_bytes >> 20} MB",
                hint="check that it is text with line breaks",
            )
        return len(block)


def damaged_gzip(name: str, error: Exception) -> FileFormatError:
    """The error for a gzip file that is cut short or is no gzip file."""
    return FileFormatError(f"{name} is a damaged gzip file: {error}", hint="copy or download it again")


def display_name(path: str | Path) -> str:
    """The name of a file in messages: its path, or standard input for `-` and for a copy of it."""
    return _STANDARD_INPUT if str(path) == "-" or Path(path).name == _STANDARD_INPUT else str(path)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
