"""Open local paths and the URLs that pyarrow's file systems reach (s3://, gs://, hdfs://) alike."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

import pyarrow as pa
from pyarrow import fs

from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.binary import START_BYTES
from cod3s.io.disk import MAX_JSON_BYTES, display_name, parse_json, stream_sha256


@dataclass(frozen=True)
class Location:
    """A file or folder on some file system, with the few operations that corpora need."""

    path: str
    url: str  # as the user wrote it: for messages, and for Ray workers, which open it again

    def __truediv__(self, name: str) -> "Location":
        return Location(f"{self.path}/{name}", f"{self.url}/{name}")

    def with_suffix(self, suffix: str) -> "Location":
        """This location with `suffix` after its name."""
        return Location(self.path + suffix, self.url + suffix)

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def folder(self) -> str:
        """The name of the folder it is in."""
        return PurePosixPath(self.path).parent.name

    @property
    def system(self) -> fs.FileSystem:
        return _system(_root(self.url))

    @property
    def local(self) -> Path | None:
        """The path on this machine; None for other file systems."""
        return Path(self.path) if isinstance(self.system, fs.LocalFileSystem) else None

    def size(self) -> int | None:
        """The size in bytes; None if there is no file."""
        size: int | None = self.system.get_file_info(self.path).size
        return size

    def exists(self) -> bool:
        return bool(self.system.get_file_info(self.path).type != fs.FileType.NotFound)

    def is_folder(self) -> bool:
        return bool(self.system.get_file_info(self.path).type == fs.FileType.Directory)

    def files(self) -> list["Location"]:
        """All files below this folder in order of name, without hidden ones."""
        infos = self.system.get_file_info(fs.FileSelector(self.path, recursive=True, allow_not_found=True))
        names = sorted(info.path[len(self.path) :].lstrip("/") for info in infos if info.is_file)
        return [self / name for name in names if not any(part.startswith(".") for part in name.split("/"))]

    def remove(self) -> None:
        """Delete the file, or the folder with everything in it, if it exists."""
        with suppress(FileNotFoundError):
            if self.is_folder():
                self.system.delete_dir(self.path)
            else:
                self.system.delete_file(self.path)

    def read_json(self) -> Any:
        """The JSON value in the file; an error names it."""
        with self.opened(compression=None) as stream:
            content = stream.read(MAX_JSON_BYTES + 1)
        return parse_json(content, self.url)

    def write_json(self, content: Any) -> None:
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        with self.replaced() as stream:
            stream.write(text.encode())

    @contextmanager
    def replaced(self) -> Iterator[BinaryIO]:
        """A stream whose content is stored here if the block ends without an error, and is dropped otherwise."""
        folder, _, name = self.path.rpartition("/")
        partial = Location(f"{folder}/.{name}.part", self.url)
        self.system.create_dir(folder, recursive=True)
        try:
            with self.system.open_output_stream(partial.path, compression=None) as stream:
                yield cast(BinaryIO, stream)
            self.system.move(partial.path, self.path)
        except BaseException:
            with suppress(OSError):
                partial.remove()
            raise

    def start(self) -> bytes:
        """The first bytes of the file, unpacked, which are enough to recognise its format."""
        with self.opened() as stream:
            return stream.read(START_BYTES)

    def sha256(self) -> str:
        with self.opened(compression=None) as stream:
            return stream_sha256(stream)

    @contextmanager
    def opened(self, compression: str | None = "detect") -> Iterator[BinaryIO]:
        """A stream of the file's bytes, unpacked if its name ends in .gz or .zst; a damaged file is an error."""
        try:
            with self.system.open_input_stream(self.path, compression=compression) as stream:
                yield cast(BinaryIO, stream)
        except FileNotFoundError as error:
            raise Cod3sError(
                f"no file at {self.url}", hint="check the spelling, and whether it has been moved"
            ) from error
        except pa.ArrowInvalid as error:
            raise FileFormatError(f"{self.url} cannot be read: {error}") from error
        except OSError as error:
            if not any(word in str(error) for word in ("compress", "inflate", "ZSTD")):
                raise
            raise FileFormatError(
                f"{self.url} is damaged or cut short: {error}", hint="copy or download it again"
            ) from error


def locate(url: str | Path) -> Location:
    """The location of a local path or a URL."""
    url = str(url).rstrip("/")
    if "://" not in url:
        return Location(str(Path(url).absolute()), url)
    return Location(_from_uri(url)[1], url)


def locate_input(url: str | Path) -> Location:
    """The location of a file to read, with the name that messages have for it."""
    location = locate(url)
    return replace(location, url=display_name(location.url)) if location.local else location


def _root(url: str) -> str:
    """The part of a URL that names the file system: `s3://bucket`; empty for a local path."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.split('/', 1)[0]}/" if mark else ""


@cache
def _system(root: str) -> fs.FileSystem:
    """One client per file system, shared by all of its locations."""
    return _from_uri(root)[0] if root else fs.LocalFileSystem()


def _from_uri(url: str) -> tuple[fs.FileSystem, str]:
    try:
        system, path = fs.FileSystem.from_uri(url)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Cod3sError(f"{url} cannot be reached: {error}") from error
    return system, path
