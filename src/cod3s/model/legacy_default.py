"""Open the weights of the first default bundle, which are packed in parts beside a low-rank adapter.

Delete this file together with that bundle, and its call in `cod3s.bundle.folder.model_folder`.
"""

import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.errors import BundleError
from cod3s.io.disk import cache_folder, read_json, replaced_folder, sha256
from cod3s.model.engine_file import read_engine_file

_INDEX, _ADAPTER = "model.bin.json", "adapter.npz"
_ROWS = 256  # adapted at a time

Matrix = npt.NDArray[np.float32]


def unpacked_folder(folder: Path) -> Path:
    """An ordinary folder of the engine, made in the cache if the weights in `folder` are in parts."""
    if not (folder / _INDEX).is_file():
        return folder
    keys = [sha256(path)[:12] for path in (folder / _INDEX, folder / _ADAPTER) if path.is_file()]
    cached = cache_folder() / "models" / "-".join(keys)
    if (cached / "model.bin").is_file():
        return cached
    weights = bytearray(
        b"".join(_part(folder, number) for number in range(len(read_json(folder / _INDEX)["parts"])))
    )
    if (folder / _ADAPTER).is_file():
        _adapt(weights, folder)
    with replaced_folder(cached) as partial:
        (partial / "model.bin").write_bytes(weights)
        for name in ("config.json", "vocabulary.json"):
            shutil.copyfile(folder / name, partial / name)
    return cached


def _part(folder: Path, number: int) -> bytes:
    try:
        return zlib.decompress((folder / f"model.bin.{number}").read_bytes())
    except (OSError, zlib.error) as error:
        raise BundleError(
            f"{folder / f'model.bin.{number}'} is missing or damaged", hint="copy the bundle again"
        ) from error


def _adapt(weights: bytearray, folder: Path) -> None:
    """Add the adapter's products to the weights, where they are."""
    file = read_engine_file(memoryview(weights), str(folder / "model.bin"))
    with np.load(folder / _ADAPTER, allow_pickle=False) as arrays:
        for name in (name.removesuffix(":down") for name in arrays.files if name.endswith(":down")):
            _, weight, row = name.split(":")
            down, up, scale = (arrays[f"{name}:{side}"].astype(np.float32) for side in ("down", "up", "scale"))
            rows = slice(int(row), int(row) + len(up))
            stored, scales = file.stored(f"decoder/{weight}/weight"), file.scales(f"decoder/{weight}/weight")
            assert scales is not None
            _add(up * scale, down, stored[rows], scales[rows])


def _add(up: Matrix, down: Matrix, stored: npt.NDArray[Any], scales: Matrix) -> None:
    for start in range(0, len(up), _ROWS):
        block = slice(start, start + _ROWS)
        values = (up[block] * scales[block, None]) @ down + stored[block]
        growth = 127 / np.abs(values).max(axis=1).clip(1e-12)
        stored[block] = np.rint(values * growth[:, None])
        scales[block] *= growth
