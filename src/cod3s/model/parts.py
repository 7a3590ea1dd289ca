"""Keep an engine's weights in parts of bounded size: some stores refuse large files."""

from pathlib import Path

from cod3s.errors import BundleError
from cod3s.files.disk import read_json, write_json

PART_BYTES = 45 * 10**6
_INDEX = "model.bin.json"


def split_weights(folder: Path, limit: int = PART_BYTES) -> None:
    """Replace `model.bin` in `folder` by numbered parts if it is larger than `limit` bytes."""
    weights = folder / "model.bin"
    if weights.stat().st_size <= limit:
        return
    sizes: list[int] = []
    with weights.open("rb") as file:
        while part := file.read(limit):
            _part(folder, len(sizes)).write_bytes(part)
            sizes.append(len(part))
    write_json(folder / _INDEX, {"parts": sizes})
    weights.unlink()


def joined_parts(folder: Path) -> dict[str, bytes] | None:
    """Every file of an engine's model by name, its parts joined; None where the weights are one file."""
    if not (folder / _INDEX).is_file():
        return None
    weights = bytearray()
    for number, size in enumerate(read_json(folder / _INDEX)["parts"]):
        path = _part(folder, number)
        if not path.is_file() or path.stat().st_size != size:
            raise BundleError(f"{folder} lacks {path.name}, or half of it", hint="copy or export the bundle again")
        weights += path.read_bytes()
    others = [path for path in folder.iterdir() if path.suffix == ".json" and path.name != _INDEX]
    return {"model.bin": bytes(weights), **{path.name: path.read_bytes() for path in others}}


def _part(folder: Path, number: int) -> Path:
    return folder / f"model.bin.{number}"
