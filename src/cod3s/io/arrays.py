"""Read .npy files without trusting them."""

from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt

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
