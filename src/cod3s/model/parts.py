"""Keep an engine's weights in compressed parts of bounded size: some stores refuse large files.

Weights that use few of int8's levels shrink by a third; each part is compressed by itself, so that all cores can
open them.
"""

import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import accumulate
from pathlib import Path

from cod3s.errors import BundleError
from cod3s.io.disk import read_json, write_json

PART_BYTES = 15 * 10**6
_READ_BYTES = 65_536  # of a compressed part at a time: what comes out is still in the processor's cache
_MOST_TIMES = 1032  # zlib never shortens content more than this many times
_INDEX = "model.bin.json"


def split_weights(folder: Path, limit: int = PART_BYTES) -> None:
    """Replace `model.bin` in `folder` by compressed parts of at most `limit` bytes each."""
    weights = folder / "model.bin"
    sizes: list[int] = []
    with weights.open("rb") as file:
        while part := file.read(limit):
            _part(folder, len(sizes)).write_bytes(_compress(part))
            sizes.append(len(part))
    write_json(folder / _INDEX, {"compressed": True, "parts": sizes})
    weights.unlink()


def joined_parts(folder: Path) -> dict[str, bytes] | None:
    """Every file of an engine's model by name, its parts joined; None if the weights are a single file."""
    if not (folder / _INDEX).is_file():
        return None
    index = read_json(folder / _INDEX)
    sizes = index.get("parts") if isinstance(index, dict) else None
    if not isinstance(sizes, list) or not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise _broken(folder / _INDEX)
    weights = _joined(folder, sizes, compressed=bool(index.get("compressed")))
    others = [path for path in folder.iterdir() if path.suffix == ".json" and path.name != _INDEX]
    return {"model.bin": weights, **{path.name: path.read_bytes() for path in others}}


def model_files(folder: Path) -> dict[str, bytes]:
    """Every file of an engine's model by name, whether its weights are in parts or in a single file."""
    return joined_parts(folder) or {path.name: path.read_bytes() for path in folder.iterdir()}


def _compress(part: bytes) -> bytes:
    """Weights hold no repeated strings, so Huffman codes alone are the smallest, and the fastest to read."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_HUFFMAN_ONLY)
    return compressor.compress(part) + compressor.flush()


def _joined(folder: Path, sizes: Sequence[int], *, compressed: bool) -> bytes:
    """The parts one after the other. The threads fill one buffer, so that no part is held twice."""
    read = _read_compressed if compressed else _read_plain
    for number, size in enumerate(sizes):
        _require_room_for(_part(folder, number), size)
    *starts, total = accumulate(sizes, initial=0)
    buffer = BytesIO()
    if total:  # makes room for all of them
        buffer.seek(total - 1)
        buffer.write(b"\0")
    with buffer.getbuffer() as room, ThreadPoolExecutor() as threads:
        jobs = [
            threads.submit(read, _part(folder, number), room[start : start + size])
            for number, (start, size) in enumerate(zip(starts, sizes, strict=True))
        ]
        for job in jobs:
            job.result()
    return buffer.getvalue()


def _require_room_for(path: Path, size: int) -> None:
    """Refuse a size that the part cannot have before memory is taken for it."""
    if not path.is_file() or size > path.stat().st_size * _MOST_TIMES:
        raise _broken(path)


def _read_compressed(path: Path, room: memoryview) -> None:
    """Fill `room` with the content of a part; never more than fits is unpacked."""
    decompressor = zlib.decompressobj()
    filled = 0
    try:
        with path.open("rb") as file:
            while piece := file.read(_READ_BYTES):
                content = decompressor.decompress(piece, len(room) - filled + 1)  # 0 would mean no limit
                if filled + len(content) > len(room):
                    raise _broken(path)
                room[filled : filled + len(content)] = content
                filled += len(content)
    except (OSError, zlib.error) as error:
        raise _broken(path) from error
    if filled != len(room) or not decompressor.eof:
        raise _broken(path)


def _read_plain(path: Path, room: memoryview) -> None:
    if not path.is_file() or path.stat().st_size != len(room):
        raise _broken(path)
    room[:] = path.read_bytes()


def _broken(path: Path) -> BundleError:
    return BundleError(f"{path} is missing or damaged", hint="copy or export the bundle again")


def _part(folder: Path, number: int) -> Path:
    return folder / f"model.bin.{number}"
