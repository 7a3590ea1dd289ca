"""Change a language model's weights by a small adapter: low-rank matrices that are merged in memory.

So a bundle can carry a tuned model, or a second model made of the first, in a few megabytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.encode.engine_file import packed_variable, read_engine_file, write_engine_file
from cod3s.errors import BundleError
from cod3s.files.disk import replaced_file
from cod3s.model.parts import joined_parts, model_files

NAME = "adapter.npz"
"""In a model's folder: what the model's weights are changed by."""

_SPEC, _REVISION = "TransformerDecoderSpec", 8
_HEAD_ROWS = 8  # the engine multiplies whole blocks of rows; all of them are equal
_LEVELS = 127  # of int8
_ROWS_AT_ONCE = 64
_PROJECTION = "decoder/projection/weight"

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Change:
    """A low-rank change of some rows of a weight of the engine: `up @ down` is added from `row` on."""

    weight: str  # such as layer_0/ffn/linear_0
    row: int
    down: Matrix  # (rank, inputs)
    up: Matrix  # (outputs, rank)


@dataclass(frozen=True)
class Head:
    """What a model writes instead of tokens: a single number made of its last state."""

    weights: Matrix  # (width,)
    bias: float


@dataclass(frozen=True)
class Adapter:
    """Changes of a model's weights. With a head, the model ends after its first `layers`, and the head follows."""

    changes: tuple[Change, ...]
    layers: int = 0  # 0 keeps all of them
    head: Head | None = None


def save_adapter(path: Path, adapter: Adapter) -> None:
    """Write the adapter as an .npz file; the changes are rounded to int8, each component with its own scale."""
    arrays: dict[str, Any] = {"layers": np.int32(adapter.layers)}
    if adapter.head:
        arrays |= {"head": adapter.head.weights, "bias": np.float32(adapter.head.bias)}
    for number, change in enumerate(adapter.changes):
        name = f"{number}:{change.weight}:{change.row}"
        down, up = np.abs(change.down).max(axis=1), np.abs(change.up).max(axis=0)  # (rank,)
        steps = [np.maximum(largest, 1e-12) / _LEVELS for largest in (down, up)]
        arrays |= {
            f"{name}:down": np.rint(change.down / steps[0][:, None]).astype(np.int8),
            f"{name}:up": np.rint(change.up / steps[1]).astype(np.int8),
            f"{name}:scale": (steps[0] * steps[1]).astype(np.float32),
        }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **arrays)


def load_adapter(path: Path) -> Adapter:
    """The adapter in a file; an error if it is missing or damaged."""
    if not path.is_file():
        raise BundleError(f"{path.parent} lacks {path.name}", hint="copy the folder again")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            layers = int(arrays["layers"])
            head = None
            if "head" in arrays.files:
                head = Head(arrays["head"].astype(np.float32), float(arrays["bias"]))
            adapter = Adapter(tuple(_changes(arrays)), layers, head)
    except Exception as error:  # numpy and zipfile raise many kinds on damage
        raise BundleError(f"{path} is not an adapter: {error}", hint="copy the file again") from error
    numbers = [part for change in adapter.changes for part in (change.down, change.up)]
    if head:
        numbers += [head.weights, np.array(head.bias)]
    if not all(np.isfinite(array).all() for array in numbers):
        raise BundleError(f"{path} has a weight that is not a number", hint="tune it again")
    return adapter


def _changes(arrays: Any) -> Iterator[Change]:
    for name in (name.removesuffix(":down") for name in arrays.files if name.endswith(":down")):
        _, weight, row = name.split(":")
        down, up, scale = (arrays[f"{name}:{side}"].astype(np.float32) for side in ("down", "up", "scale"))
        if down.ndim != 2 or up.ndim != 2 or not len(down) == up.shape[1] == scale.size:
            raise ValueError(f"the parts of {name} do not fit together")
        yield Change(weight, int(row), down, up * scale)


def own_changes(folder: Path) -> tuple[Change, ...]:
    """What the adapter in a model's folder changes; nothing if there is none."""
    path = folder / NAME
    return load_adapter(path).changes if path.is_file() else ()


def adapted_files(folder: Path, adapter: Adapter) -> dict[str, bytes]:
    """The engine's files of the model in `folder`, by name, with its own adapter and then this one merged in."""
    files = model_files(folder)
    weights = BytesIO(files.pop("model.bin"))  # it changes them where they are
    whole = read_engine_file(weights.getbuffer(), str(folder / "model.bin"))
    own = (change for change in own_changes(folder) if _is_kept(f"decoder/{change.weight}", adapter.layers))
    try:
        for change in _joined([*own, *adapter.changes]):
            name = f"decoder/{change.weight}/weight"
            if name not in whole.variables or not _is_kept(name, adapter.layers):
                raise _other_model(folder, f"changes {name}, which the model lacks")
            _add(change, whole.stored(name), whole.scales(name))
    except ValueError as error:  # the shapes differ
        raise _other_model(folder, "changes weights of another size") from error
    if adapter.head is None:
        del whole
        return {**files, "model.bin": weights.getvalue()}
    if adapter.head.weights.shape != whole.stored("decoder/layer_norm/gamma").shape:
        raise _other_model(folder, f"reads {adapter.head.weights.size} numbers, which the model does not write")
    kept = {name: value for name, value in whole.variables.items() if _is_kept(name, adapter.layers)}
    kept[_PROJECTION] = packed_variable(np.tile(adapter.head.weights, (_HEAD_ROWS, 1)))
    aliases = {alias: name for alias, name in whole.aliases.items() if alias != _PROJECTION}
    return {**files, "model.bin": write_engine_file(kept, _SPEC, _REVISION, aliases)}


def opened_files(folder: Path) -> dict[str, bytes] | None:
    """The files of a model that the engine cannot open by itself: in parts, or with an adapter; None if it can."""
    return adapted_files(folder, Adapter(())) if (folder / NAME).is_file() else joined_parts(folder)


def _other_model(folder: Path, what: str) -> BundleError:
    return BundleError(
        f"an adapter of another model was given for {folder}: it {what}",
        hint="use it with the bundle that it was tuned on",
    )


def _is_kept(name: str, layers: int) -> bool:
    """Whether a variable belongs to the first layers, or to none."""
    number = name.removeprefix("decoder/layer_").partition("/")[0]
    return not layers or not number.isdigit() or int(number) < layers


def _joined(changes: Sequence[Change]) -> list[Change]:
    """The changes, those of the same rows joined in one."""
    same: dict[tuple[str, int], list[Change]] = {}
    for change in changes:
        same.setdefault((change.weight, change.row), []).append(change)
    return [
        Change(weight, row, np.vstack([part.down for part in parts]), np.hstack([part.up for part in parts]))
        for (weight, row), parts in same.items()
    ]


def _add(change: Change, weight: npt.NDArray[Any], scales: Matrix | None) -> None:
    """Change a weight where it is. Rows in int8 are scaled and rounded anew.

    Some rows at a time stay in the processor's cache; several threads would wait for each other's memory.
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
        some = slice(start, start + _ROWS_AT_ONCE)
        values = up[some] @ change.down + rows[some]
        growth = _LEVELS / np.maximum(values.max(axis=1), -values.min(axis=1)).clip(1e-12)
        values *= growth[:, None]
        rows[some] = np.rint(values, out=values)
        scales[some] *= growth
