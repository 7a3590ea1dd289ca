"""Take the sentence encoder out of a seq2seq engine model that was built on it.

Such a model carries the whole encoder, so its answers can be signed even if the encoder itself is not installed.
"""

import json
from pathlib import Path

from cod3s.encode.engine_file import read_engine_file, write_engine_file

_SIDE = "encoder/"
_CONFIG = {"bos_token": "[CLS]", "eos_token": "[SEP]", "unk_token": "[UNK]"}
_SPEC, _REVISION = "TransformerEncoderSpec", 1


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
    whole = read_engine_file(path.read_bytes(), str(path))
    return write_engine_file(whole.part(_SIDE), _SPEC, _REVISION)
