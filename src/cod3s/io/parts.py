"""Keep a large file in parts: hosts of repositories refuse files of 100 MB."""

from pathlib import Path

from cod3s.errors import FileFormatError

PART_BYTES = 90_000_000


def split_file(path: Path) -> None:
    """Replace a file of more than PART_BYTES by its parts, `NAME.0`, `NAME.1` …"""
    if path.stat().st_size <= PART_BYTES:
        return
    with path.open("rb") as file:
        number = 0
        while content := file.read(PART_BYTES):
            path.with_name(f"{path.name}.{number}").write_bytes(content)
            number += 1
    path.unlink()


def parts_of(path: Path) -> list[Path]:
    """The parts of a file that was split, in order; none if it is whole."""
    return sorted(path.parent.glob(f"{path.name}.[0-9]*"), key=lambda part: int(part.suffix[1:]))


def read_whole(path: Path) -> bytes:
    """The content of a file, or of its parts."""
    parts = [path] if path.is_file() else parts_of(path)
    if not parts:
        raise FileFormatError(f"there is no file {path}, and no part of it", hint="copy or export it again")
    return b"".join(part.read_bytes() for part in parts)
