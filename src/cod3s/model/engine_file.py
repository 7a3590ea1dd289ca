"""Read and write the engine's `model.bin`: named variables with shapes and types."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.errors import BundleError

_VERSION = 6  # of the engine's file format
_TYPES = [np.float32, np.int8, np.int16, np.int32, np.float16]

Stored = bytes | memoryview
"""A variable as it is stored: its shape, type and numbers."""


@dataclass(frozen=True)
class EngineFile:
    """Each variable as it is stored, without a copy. Equal variables are stored once."""

    variables: dict[str, Stored]
    aliases: dict[str, str]

    def part(self, prefix: str) -> dict[str, Stored]:
        """The variables whose names start with `prefix`, also those that are stored under another name."""
        part = {name: value for name, value in self.variables.items() if name.startswith(prefix)}
        for alias, name in self.aliases.items():
            if alias.startswith(prefix):
                part[alias] = self.variables[name]
                if (scales := self.variables.get(f"{name}_scale")) is not None:
                    part.setdefault(f"{alias}_scale", scales)
        return part

    def array(self, name: str) -> npt.NDArray[np.float32]:
        """A copy of a variable's numbers in float32; int8 weights are scaled back."""
        numbers = self.stored(name).astype(np.float32)
        if (scales := self.scales(name)) is not None:
            numbers /= scales[:, None]
        return numbers

    def stored(self, name: str) -> npt.NDArray[Any]:
        """A variable's numbers, not copied: they can be changed if the content can."""
        return _numbers(self.variables[self.aliases.get(name, name)])

    def scales(self, name: str) -> npt.NDArray[np.float32] | None:
        """What the rows of an int8 weight were multiplied by, not copied; None for other variables."""
        scales = self.variables.get(f"{name}_scale")
        return None if scales is None else _numbers(scales)

    def number(self, name: str) -> float:
        """The value of a variable that holds a single number."""
        return float(_numbers(self.variables[name]).item())


def read_engine_file(content: bytes | memoryview, name: str) -> EngineFile:
    """The variables in the content of the `model.bin` that messages call `name`."""
    reader = _Reader(memoryview(content))
    try:
        if (version := reader.number("I")) != _VERSION:
            raise BundleError(f"{name} has the engine's file format {version}, not {_VERSION}")
        reader.string()  # the kind of model
        reader.number("I")  # and its revision
        variables = dict(reader.variable() for _ in range(reader.number("I")))
        return EngineFile(variables, {reader.string(): reader.string() for _ in range(reader.number("I"))})
    except (struct.error, UnicodeDecodeError) as error:
        raise BundleError(f"{name} is damaged: {error}", hint="copy or export the bundle again") from error


def write_engine_file(variables: Mapping[str, Stored], spec: str, revision: int) -> bytes:
    """The content of a `model.bin` with these variables, as `EngineFile` holds them."""
    head = struct.pack("<I", _VERSION) + _string(spec) + struct.pack("<II", revision, len(variables))
    parts = (part for name, value in variables.items() for part in (_string(name), value))
    return b"".join([head, *parts, struct.pack("<I", 0)])  # no aliases


def packed_variable(numbers: npt.NDArray[Any]) -> bytes:
    """An array as a variable is stored."""
    array = np.ascontiguousarray(numbers)
    kind = _TYPES.index(array.dtype.type)
    return struct.pack(f"<B{array.ndim}IBI", array.ndim, *array.shape, kind, array.nbytes) + array.tobytes()


class _Reader:
    """Reads the content from its start on."""

    def __init__(self, content: memoryview) -> None:
        self._content, self._position = content, 0

    def take(self, size: int) -> memoryview:
        taken = self._content[self._position : self._position + size]
        if len(taken) < size:
            raise struct.error("the file ends too early")
        self._position += size
        return taken

    def number(self, kind: str) -> int:
        (value,) = struct.unpack(f"<{kind}", self.take(struct.calcsize(f"<{kind}")))
        return int(value)

    def string(self) -> str:
        return bytes(self.take(self.number("H"))[:-1]).decode()

    def variable(self) -> tuple[str, Stored]:
        name, start = self.string(), self._position
        self.take(4 * self.number("B") + 1)  # the dimensions and the type
        self.take(self.number("I"))
        return name, self._content[start : self._position]


def _numbers(variable: Stored) -> npt.NDArray[Any]:
    dimensions = variable[0]
    shape = struct.unpack_from(f"<{dimensions}I", variable, 1)
    kind = variable[1 + 4 * dimensions]
    start = 1 + 4 * dimensions + 1 + 4  # behind the type and the number of bytes
    return np.frombuffer(variable, _TYPES[kind], offset=start).reshape(shape)


def _string(text: str) -> bytes:
    encoded = text.encode() + b"\0"
    return struct.pack("<H", len(encoded)) + encoded
