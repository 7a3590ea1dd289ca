"""Streams of bytes: unpacked, counted, and refused if they are not text."""

import gzip
import io
import zlib
from pathlib import Path
from typing import IO, Any, cast

from cod3s.errors import FileFormatError, require
from cod3s.io.binary import refuse_binary


def open_unpacked(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked if its name ends in .gz or .zst."""
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if path.suffix == ".zst":
        # Unlike zstandard's reader, pyarrow's reports a file that was cut short.
        return cast(IO[bytes], require("pyarrow", "corpus").CompressedInputStream(path.open("rb"), "zstd"))
    return path.open("rb")


class CountedBytes(io.RawIOBase):
    """A stream of bytes that counts them, so that an error can name a position.

    Damaged compressed files, binary formats and endless lines are refused.
    """

    def __init__(self, source: IO[bytes], name: str, max_line_bytes: int | None) -> None:
        # `read1` returns what has arrived already: a pipe is read while it is still being written.
        self._read = getattr(source, "read1", source.read)
        self._name = name
        self._max_line_bytes = max_line_bytes
        self._line_bytes = 0  # of the line that has not ended yet
        self.passed = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._next_block(len(buffer))
        if not self.passed:
            refuse_binary(block, self._name)
        buffer[: len(block)] = block
        self.passed += len(block)
        self._count_line(block)
        return len(block)

    def _next_block(self, size: int) -> bytes:
        try:
            block: bytes = self._read(size)
        except (EOFError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # the disk failed, not the unpacking
                raise
            kind = "zstandard" if self._name.endswith(".zst") else "gzip"
            raise FileFormatError(
                f"{self._name} is a damaged {kind} file: {error}", hint="copy or download it again"
            ) from error
        return block

    def _count_line(self, block: bytes) -> None:
        end = block.rfind(b"\n")
        self._line_bytes = len(block) - end - 1 if end >= 0 else self._line_bytes + len(block)
        if self._max_line_bytes is not None and self._line_bytes > self._max_line_bytes:
            raise FileFormatError(
                f"{self._name} has a line of more than {self._max_line_bytes >> 20} MB",
                hint="check that it is text with line breaks",
            )
