"""Save weights in the engine's format: specifications of CTranslate2, filled by numpy, in float32 or int8."""

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.errors import UsageError, require

Weights = dict[str, npt.NDArray[np.float32]]

QUANTIZATIONS = ("int8", "float32")
INT8_LEVELS = 255  # from -127 to 127
MIN_LEVELS = 7
_CUT_OFFS = (1.0, 0.9, 0.8, 0.7, 0.6)  # shares of a row's largest value where it may be cut off


@cache
def ctranslate2_specs() -> Any:
    """The `ctranslate2.specs` module, which describes models to be converted.

    It imports torch if torch happens to be installed, only to convert torch tensors, which this project never
    passes to it, and that adds seconds to every start. Hiding torch during that import avoids this.
    """
    hide = "torch" not in sys.modules
    if hide:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        return require("ctranslate2.specs", "engine")
    finally:
        if hide:
            del sys.modules["torch"]


def check_levels(levels: int) -> int:
    """`levels` itself, if int8 weights can have that many: an odd number, as zero is one of them."""
    if not MIN_LEVELS <= levels <= INT8_LEVELS or levels % 2 == 0:
        raise UsageError(
            f"weights cannot have {levels} levels",
            hint=f"choose an odd number from {MIN_LEVELS} to {INT8_LEVELS}; 63 saves a quarter when compressed",
        )
    return levels


def save_spec(spec: Any, folder: Path, *, quantization: str, levels: int = INT8_LEVELS) -> None:
    """Write a filled specification as the engine's model.

    In int8, every row has its own scale and at most `levels` different values around zero. Fewer levels are as
    fast and take less space where files are compressed, as in a wheel: 63 levels fit into six bits.
    """
    spec.validate()
    spec.optimize(quantization=None)  # equal weights are stored once
    if quantization == "int8":
        _quantize(spec, check_levels(levels))
    spec.save(str(folder))


def _quantize(spec: Any, levels: int) -> None:
    module = ctranslate2_specs().model_spec

    def store(layer: Any, name: str, value: Any) -> None:
        name = name.rpartition("/")[2]
        if hasattr(layer, f"{name}_scale") and isinstance(value, module.Variable):
            numbers, scales = nearest_levels(value.numpy(), levels)
            setattr(layer, name, module.NumpyVariable(numbers))
            setattr(layer, f"{name}_scale", module.NumpyVariable(scales))

    module.visit_spec(spec, store)


def nearest_levels(
    matrix: npt.NDArray[np.float32], levels: int = INT8_LEVELS
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """The rows in int8 with at most `levels` values, and what each row was multiplied by.

    With fewer levels than int8 has, a row is cut off where that costs the least squared error.
    """
    most = levels // 2  # on either side of zero
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    largest[largest == 0] = most
    scales = most / largest  # (rows, 1)
    if levels < INT8_LEVELS:
        least = np.full_like(scales, np.inf)
        for cut_off in _CUT_OFFS:
            scale = most / (largest * cut_off)
            rounded = np.rint(matrix * scale).clip(-most, most) / scale
            error = np.square(rounded - matrix).sum(axis=1, keepdims=True)
            scales = np.where(error < least, scale, scales)
            least = np.minimum(error, least)
    numbers = np.rint(matrix * scales).clip(-most, most).astype(np.int8)
    return numbers, scales[:, 0].astype(np.float32)


def fill_linear(spec: Any, weights: Weights, names: str | Sequence[str]) -> None:
    """Fill a linear layer with a layer, or with several whose outputs are joined; biases where there are any."""
    parts = [names] if isinstance(names, str) else names
    spec.weight = np.concatenate([weights[f"{part}.weight"] for part in parts])
    if f"{parts[0]}.bias" in weights:
        spec.bias = np.concatenate([weights[f"{part}.bias"] for part in parts])


def fill_norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma = weights[f"{name}.weight"]
    if f"{name}.bias" in weights:
        spec.beta = weights[f"{name}.bias"]
