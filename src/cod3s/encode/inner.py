"""Take the sentence encoder out of a seq2seq engine model that was built on it.

Such a model carries the whole encoder, so its answers can be signed where the encoder itself is not installed.
"""

import json
import struct
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from cod3s.errors import BundleError

_VERSION = 6  # of the engine's file format
_SIDE = "encoder/"
_CONFIG = {"bos_token": "[CLS]", "eos_token": "[SEP]", "unk_token": "[UNK]"}
_SPEC, _REVISION = "TransformerEncoderSpec", 1


@dataclass(frozen=True)
class _EngineFile:
    """The parts of an engine's `model.bin`: each variable's shape, type and bytes, by name."""

    version: int
    variables: dict[str, bytes]
    aliases: dict[str, str]


def encoder_files(folder: Path) -> dict[str, bytes]:
    """The files of an encoder-only engine model, by name, made from the seq2seq model in `folder`."""
    config = json.loads((folder / "config.json").read_bytes())
    if not (folder / "source_vocabulary.json").is_file():  # an encoder by itself
        return {path.name: path.read_bytes() for path in folder.iterdir()}
    return {
        "model.bin": _encoder_only(folder / "model.bin"),
        "config.json": json.dumps({**_CONFIG, "layer_norm_epsilon": config["layer_norm_epsilon"]}).encode(),
        "vocabulary.json": (folder / "source_vocabulary.json").read_bytes(),
    }


def _encoder_only(path: Path) -> bytes:
    try:
        whole = _take_apart(path.read_bytes())
    except (struct.error, UnicodeDecodeError) as error:
        raise BundleError(f"{path} is damaged: {error}", hint="copy or export the bundle again") from error
    if whole.version != _VERSION:
        raise BundleError(f"{path} has the engine's file format {whole.version}, not {_VERSION}")
    encoder = {name: value for name, value in whole.variables.items() if name.startswith(_SIDE)}
    # Equal variables are stored once, so one of the encoder's may be stored under the decoder's name.
    encoder |= {alias: whole.variables[kept] for alias, kept in whole.aliases.items() if alias.startswith(_SIDE)}
    parts = [struct.pack("<I", _VERSION), _string(_SPEC), struct.pack("<II", _REVISION, len(encoder))]
    parts += [part for name, value in encoder.items() for part in (_string(name), value)]
    return b"".join([*parts, struct.pack("<I", 0)])


def _take_apart(content: bytes) -> _EngineFile:
    stream = BytesIO(content)

    def take(size: int) -> bytes:
        taken = stream.read(size)
        if len(taken) < size:
            raise struct.error("the file ends too early")
        return taken

    def number(kind: str) -> int:
        (value,) = struct.unpack(f"<{kind}", take(struct.calcsize(f"<{kind}")))
        return int(value)

    def string() -> str:
        return take(number("H"))[:-1].decode()

    def variable() -> tuple[str, bytes]:
        name, start = string(), stream.tell()
        take(4 * number("B") + 1)  # the dimensions and the type
        take(number("I"))
        return name, content[start : stream.tell()]

    version = number("I")
    string()  # the kind of model
    number("I")  # and its revision
    variables = dict(variable() for _ in range(number("I")))
    return _EngineFile(version, variables, {string(): string() for _ in range(number("I"))})


def _string(text: str) -> bytes:
    encoded = text.encode() + b"\0"
    return struct.pack("<H", len(encoded)) + encoded
