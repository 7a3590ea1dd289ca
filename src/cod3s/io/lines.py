"""Read the numbered lines of a text file, a block at a time.

A line that is not text becomes a `Damaged` with its reason, so that no line is lost silently.
"""

import codecs
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

MAX_LINE_BYTES = 1 << 20
"""A pair of sentences is far shorter; the limit keeps memory flat for any file."""

_BLOCK_BYTES = 1 << 22


@dataclass(frozen=True)
class Damaged:
    """A line that holds no usable text, and why."""

    reason: str


def read_lines(stream: BinaryIO) -> Iterator[list[tuple[int, str | Damaged]]]:
    """The lines of `stream` that are not empty, with their numbers from 1, in blocks of bounded size.

    Line ends (\\n or \\r\\n) and a byte-order mark are removed. Only \\n ends a line; other Unicode separators
    stay inside it.
    """
    first = 1
    for block in _line_bytes(stream):
        if first == 1 and block[0] is not None:
            block[0] = block[0].removeprefix(codecs.BOM_UTF8)
        yield [(number, line) for number, line in enumerate(_decode(block), first) if line != ""]
        first += len(block)


def _line_bytes(stream: BinaryIO) -> Iterator[list[bytes | None]]:
    """Blocks of lines as bytes; None stands for a line that is longer than the limit."""
    rest, too_long = b"", False
    while data := stream.read(_BLOCK_BYTES):
        lines: list[bytes | None] = [*(rest + data).split(b"\n")]
        rest = lines.pop() or b""
        if too_long and lines:
            lines[0], too_long = None, False
        if len(rest) > MAX_LINE_BYTES or too_long:
            rest, too_long = b"", True
        if lines:
            yield [None if line is None or len(line) > MAX_LINE_BYTES else line for line in lines]
    if rest or too_long:
        yield [None if too_long else rest]


def _decode(lines: list[bytes | None]) -> list[str | Damaged]:
    if None not in lines:
        whole = b"\n".join(lines)  # type: ignore[arg-type]
        if b"\0" not in whole:
            with suppress(UnicodeDecodeError):  # a line is bad: find it below, line by line
                return [*whole.decode().replace("\r\n", "\n").removesuffix("\r").split("\n")]
    return [_decode_line(line) for line in lines]


def _decode_line(line: bytes | None) -> str | Damaged:
    if line is None:
        return Damaged(f"the line is longer than {MAX_LINE_BYTES:,} bytes")
    if b"\0" in line:
        return Damaged("the line contains a NUL byte")
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        return Damaged(f"the line is not UTF-8 ({error.reason} at byte {error.start + 1})")
