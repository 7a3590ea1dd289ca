"""Streams of bytes: unpacked, counted, and refused if they are not text."""

import gzip
import io
from pathlib import Path
from typing import IO, Any, cast

from cod3s.errors import FileFormatError, require
from cod3s.files.binary import refuse_binary


def open_unpacked(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked if its name ends in .gz or .zst."""
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if path.suffix == ".zst":
        return cast(IO[bytes], _ZstdFile(path))
    return path.open("rb")


class CountedBytes(io.RawIOBase):
    """A stream of bytes that counts them, so that an error can name a position.

    Binary formats and endless lines are refused.
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
        block = self._read(len(buffer))
        if not self.passed:
            refuse_binary(block, self._name)
        buffer[: len(block)] = block
        self.passed += len(block)
        self._count_line(block)
        return len(block)

    def _count_line(self, block: bytes) -> None:
        end = block.rfind(b"\n")
        self._line_bytes = len(block) - end - 1 if end >= 0 else self._line_bytes + len(block)
        if self._max_line_bytes is not None and self._line_bytes > self._max_line_bytes:
            raise FileFormatError(
                f"{self._name} has a line of more than {self._max_line_bytes >> 20} MB",
                hint="check that it is text with line breaks",
            )


class _ZstdFile(io.RawIOBase):
    """The bytes in a .zst file; unlike zstandard's reader, it reports a file that was cut short."""

    def __init__(self, path: Path) -> None:
        self._source = path.open("rb")  # first, because `close` needs it whatever fails next
        self._library = require("zstandard", "corpus")
        self._frame: Any = None  # the frame being read, None between frames
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            block = self._source.read(1 << 10)  # small, because four bytes can become 128 KB
            if not block:
                if self._frame is not None:
                    raise EOFError("it ends in the middle of a frame")
                return 0
            self._ready = memoryview(self._decompressed(block))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _decompressed(self, block: bytes) -> bytes:
        content: list[bytes] = []
        try:
            while block:
                self._frame = self._frame or self._library.ZstdDecompressor().decompressobj()
                content.append(self._frame.decompress(block))
                block = self._frame.unused_data if self._frame.eof else b""
                self._frame = None if self._frame.eof else self._frame
        except self._library.ZstdError as error:
            raise EOFError(str(error)) from error
        return b"".join(content)

    def close(self) -> None:
        self._source.close()
        super().close()
