"""Store many short texts compactly, as the numbers of the words that they share."""

import json
import lzma
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import overload

import numpy as np
import numpy.typing as npt

_PIECE = re.compile(r" ?[^\W_][\w']*|\n|[^\w\n ]+|.")
_END = "\n"  # of a text; the first piece
_MOST_BYTES = 1 << 28  # unpacked, and of memory for unpacking
_TYPES = {2: ">u2", 4: ">u4"}


class PackedTexts(Sequence[str]):
    """Texts that are put together from their pieces on access."""

    def __init__(self, pieces: Sequence[str], numbers: npt.NDArray[np.integer]) -> None:
        self._pieces, self._numbers = pieces, numbers
        self._ends = np.flatnonzero(numbers == 0)

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        row = range(len(self))[row]
        start = self._ends[row - 1] + 1 if row else 0
        return "".join(map(self._pieces.__getitem__, self._numbers[start : self._ends[row]].tolist()))


def save_texts(path: Path, texts: Sequence[str]) -> None:
    """Write texts without line breaks to a file."""
    if any(_END in text for text in texts):
        raise ValueError("a text has a line break")
    pieces = [piece for text in texts for piece in (*_PIECE.findall(text), _END)]
    frequent = [piece for piece, _ in Counter(pieces).most_common() if piece != _END]
    table = {piece: number for number, piece in enumerate([_END, *frequent])}
    width = 2 if len(table) <= 1 << 16 else 4
    header = json.dumps({"bytes": width, "pieces": [*table]})
    header += " " * (-(len(header) + 1) % width)  # so that numbers start where the compressor expects them
    numbers = np.array([table[piece] for piece in pieces], dtype=_TYPES[width])
    compressor = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 1, "pb": 1}
    content = header.encode() + b"\n" + numbers.tobytes()
    path.write_bytes(lzma.compress(content, filters=[compressor]))


def load_texts(path: Path) -> PackedTexts:
    """The texts in a file; OSError or ValueError if it is damaged."""
    try:
        unpacker = lzma.LZMADecompressor(memlimit=_MOST_BYTES)
        header, _, content = unpacker.decompress(path.read_bytes(), max_length=_MOST_BYTES).partition(b"\n")
        facts = json.loads(header)
        pieces, numbers = facts["pieces"], np.frombuffer(content, _TYPES[facts["bytes"]])
    except (EOFError, KeyError, TypeError, ValueError, RecursionError, lzma.LZMAError) as error:
        raise ValueError(f"{path.name} does not hold texts: {error}") from error
    are_texts = isinstance(pieces, list) and all(isinstance(piece, str) for piece in pieces)
    if not unpacker.eof or not are_texts or numbers.max(initial=0) >= len(pieces) or numbers[-1:].any():
        raise ValueError(f"{path.name} does not hold whole texts")
    return PackedTexts(pieces, numbers.astype(numbers.dtype.newbyteorder("=")))
