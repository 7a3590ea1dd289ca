"""Read .npy files without trusting them."""

from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.errors import BundleError
from cod3s.io.disk import replaced_file

_VERSION = (1, 0)  # what numpy writes; headers of later versions may claim to be gigabytes long


def load_array(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The array in a file; OSError or ValueError if it holds no array of this type.

    It is mapped first, so a header that lies about its size takes no memory.
    """
    with path.open("rb") as file:
        if np.lib.format.read_magic(file) != _VERSION:
            raise ValueError(f"{path.name} is not of version 1.0 of the .npy format")
    try:
        array = np.array(np.lib.format.open_memmap(path, mode="r"))
    except (KeyError, TypeError, OverflowError, TokenError) as error:
        raise ValueError(f"the header of {path.name} is damaged: {error}") from error
    if array.dtype != dtype:
        raise ValueError(f"{path.name} holds {array.dtype}, but must hold {np.dtype(dtype)}")
    return array


def save_half(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an array of a bundle in half precision."""
    with replaced_file(path) as partial, partial.open("wb") as stream:
        np.save(stream, array.astype(np.float16))


def load_half(path: Path) -> npt.NDArray[np.float32]:
    """What `save_half` wrote; an error if the file cannot be read."""
    try:
        return load_array(path, np.float16).astype(np.float32)
    except (OSError, ValueError) as error:
        raise BundleError(f"{path} cannot be read", hint="copy the bundle again") from error
