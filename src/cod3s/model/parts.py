"""Keep an engine's weights in compressed parts of bounded size: some stores refuse large files.

Weights that use few of int8's levels shrink by a third; each part is compressed by itself, so that all cores can
open them.
"""

import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cod3s.errors import BundleError
from cod3s.files.disk import read_json, write_json

PART_BYTES = 15 * 10**6
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
    """Every file of an engine's model by name, its parts joined; None where the weights are a single file."""
    if not (folder / _INDEX).is_file():
        return None
    index = read_json(folder / _INDEX)
    sizes = index.get("parts") if isinstance(index, dict) else None
    if not isinstance(sizes, list) or not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise _broken(folder / _INDEX)
    read = _read_compressed if index.get("compressed") else _read_plain
    with ThreadPoolExecutor() as threads:
        weights = b"".join(threads.map(lambda part: read(_part(folder, part[0]), part[1]), enumerate(sizes)))
    others = [path for path in folder.iterdir() if path.suffix == ".json" and path.name != _INDEX]
    return {"model.bin": weights, **{path.name: path.read_bytes() for path in others}}


def _compress(part: bytes) -> bytes:
    """Weights hold no repeated strings, so Huffman codes alone are the smallest, and the fastest to read."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_HUFFMAN_ONLY)
    return compressor.compress(part) + compressor.flush()


def _read_compressed(path: Path, size: int) -> bytes:
    try:
        decompressor = zlib.decompressobj()
        content = decompressor.decompress(path.read_bytes(), size)  # never more than the index says
    except (OSError, zlib.error) as error:
        raise _broken(path) from error
    if len(content) != size or not decompressor.eof:
        raise _broken(path)
    return content


def _read_plain(path: Path, size: int) -> bytes:
    if not path.is_file() or path.stat().st_size != size:
        raise _broken(path)
    return path.read_bytes()


def _broken(path: Path) -> BundleError:
    return BundleError(
        f"{path.parent} lacks {path.name}, or it is damaged", hint="copy or export the bundle again"
    )


def _part(folder: Path, number: int) -> Path:
    return folder / f"model.bin.{number}"
