"""Change a language model's weights by an adapter of a few megabytes: low-rank matrices, merged in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.encode.engine_file import read_engine_file
from cod3s.errors import BundleError
from cod3s.io.disk import replaced_file
from cod3s.model.parts import joined_parts, model_files

NAME = "adapter.npz"
"""The file in a model's folder that holds its adapter."""

_LEVELS = 127  # of int8
_STORED_LEVELS = 15  # of an adapter: less than half of int8's size, and 7 % off in what it changes
_ROWS_AT_ONCE = 64
_SINGLE_THREADED = 2**18  # multiplications: for more of them, OpenBLAS uses several threads
_MOST_BYTES = 1 << 28  # of an adapter, unpacked

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Change:
    """A low-rank change of some rows of a weight of the engine: `up @ down` is added from `row` on."""

    weight: str  # such as layer_0/ffn/linear_0
    row: int
    down: Matrix  # (rank, inputs)
    up: Matrix  # (outputs, rank)


def save_adapter(path: Path, changes: Sequence[Change]) -> None:
    """Write an adapter as an .npz file; its numbers get 31 levels, each component with its own scale."""
    arrays: dict[str, Any] = {}
    for number, change in enumerate(changes):
        name = f"{number}:{change.weight}:{change.row}"
        down = np.abs(change.down).max(axis=1).clip(1e-12) / _STORED_LEVELS  # (rank,)
        up = np.abs(change.up).max(axis=0).clip(1e-12) / _STORED_LEVELS
        arrays |= {
            f"{name}:down": np.rint(change.down / down[:, None]).astype(np.int8),
            f"{name}:up": np.rint(change.up / up).astype(np.int8),
            f"{name}:scale": (down * up).astype(np.float32),
        }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **arrays)


def load_adapter(path: Path) -> tuple[Change, ...]:
    """The changes in an adapter's file; an error if it is missing or damaged."""
    if not path.is_file():
        raise BundleError(f"{path.parent} lacks {path.name}", hint="copy the folder again")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            changes = tuple(_changes(arrays))
    except Exception as error:  # numpy and zipfile raise many kinds on damage
        raise BundleError(f"{path} is not an adapter: {error}", hint="copy the file again") from error
    if not all(np.isfinite(part).all() for change in changes for part in (change.down, change.up)):
        raise BundleError(f"{path} has a weight that is not a number", hint="refine the bundle again")
    return changes


def _changes(arrays: Any) -> Iterator[Change]:
    if sum(member.file_size for member in arrays.zip.infolist()) > _MOST_BYTES:
        raise ValueError(f"unpacked, it is larger than {_MOST_BYTES:,} bytes")
    for name in (name.removesuffix(":down") for name in arrays.files if name.endswith(":down")):
        _, weight, row = name.split(":")
        down, up, scale = (arrays[f"{name}:{side}"].astype(np.float32) for side in ("down", "up", "scale"))
        if down.ndim != 2 or up.ndim != 2 or not len(down) == up.shape[1] == scale.size:
            raise ValueError(f"the parts of {name} do not fit together")
        yield Change(weight, int(row), down, up * scale)


def stored_changes(folder: Path) -> tuple[Change, ...]:
    """What the adapter in a model's folder changes; nothing if there is none."""
    path = folder / NAME
    return load_adapter(path) if path.is_file() else ()


def adapted_files(folder: Path) -> dict[str, bytes]:
    """The engine's files of the model in `folder`, by name, with its adapter merged in."""
    files = model_files(folder)
    weights = BytesIO(files.pop("model.bin"))  # it changes them where they are
    file = read_engine_file(weights.getbuffer(), str(folder / "model.bin"))
    try:
        for change in stored_changes(folder):
            name = f"decoder/{change.weight}/weight"
            if name not in file.variables:
                raise _other_model(folder, f"changes {name}, which the model lacks")
            _add(change, file.stored(name), file.scales(name))
    except ValueError as error:  # the shapes differ
        raise _other_model(folder, "changes weights of another size") from error
    del file
    return {**files, "model.bin": weights.getvalue()}


def opened_files(folder: Path) -> dict[str, bytes] | None:
    """The files of a model that the engine cannot open by itself: in parts, or with an adapter; None if it can."""
    return adapted_files(folder) if (folder / NAME).is_file() else joined_parts(folder)


def _other_model(folder: Path, what: str) -> BundleError:
    return BundleError(
        f"the adapter in {folder} belongs to another model: it {what}",
        hint="use it with the bundle that it was made for",
    )


def _add(change: Change, weight: npt.NDArray[Any], scales: Matrix | None) -> None:
    """Change a weight in place. Rows in int8 are scaled and rounded again, as many at a time as the cache holds.

    Several threads would wait for each other's memory.
    """
    rows = weight[change.row : change.row + len(change.up)]
    if len(rows) < len(change.up):
        raise ValueError("the weight has too few rows")
    if scales is None:
        rows += change.up @ change.down
        return
    scales = scales[change.row : change.row + len(change.up)]
    up = change.up * scales[:, None]
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        values = _product(up[block], change.down) + rows[block]
        growth = _LEVELS / np.maximum(values.max(axis=1), -values.min(axis=1)).clip(1e-12)
        values *= growth[:, None]
        rows[block] = np.rint(values, out=values)
        scales[block] *= growth


def _product(left: Matrix, right: Matrix) -> Matrix:
    """`left @ right`, a few rows at a time, so that BLAS uses a single thread.

    Several threads wait for each other by spinning: on a busy machine, ten times as long as the products take.
    """
    rank, inputs = right.shape
    count = max(1, _SINGLE_THREADED // max(1, right.size))
    blocks = len(left) // count
    even = blocks * count
    product = np.empty((len(left), inputs), np.float32)
    np.matmul(left[:even].reshape(blocks, count, rank), right, out=product[:even].reshape(blocks, count, inputs))
    np.matmul(left[even:], right, out=product[even:])
    return product
