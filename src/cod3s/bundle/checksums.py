"""Check that a bundle's files are there and unchanged since the export."""

from pathlib import Path

from cod3s.bundle.facts import BundleFacts
from cod3s.errors import BundleError
from cod3s.io.disk import sha256

_QUICKLY_READ = 1 << 23  # bytes: everything but weights


def verify(folder: Path, facts: BundleFacts, largest: int | None = None) -> None:
    """Raise an error unless all files are there with their checksums; files above `largest` are not read.

    Links that lead out of the bundle are an error, because a bundle may come from a stranger.
    """
    inside = folder.resolve()
    blobs = inside.parent.parent / "blobs" if inside.parent.name == "snapshots" else inside  # the hub's cache
    for link in (path for path in folder.rglob("*") if path.is_symlink()):
        target = link.resolve() if link.exists() else None  # a link to itself cannot be resolved
        if target is None or not (target.is_relative_to(inside) or target.parent == blobs):
            raise BundleError(
                f"{link} does not lead to a file of the bundle", hint="replace the link with the file itself"
            )
    for name, checksum in facts.files.items():
        path = folder / name
        if not path.is_file() or not path.stat().st_size:
            raise BundleError(f"{folder} is missing {name}", hint="copy or export the bundle again")
        if largest is None or path.stat().st_size <= largest:
            _require_unchanged(path, checksum)


def _require_unchanged(path: Path, checksum: str) -> None:
    if sha256(path) != checksum:
        raise BundleError(f"{path} has changed since it was exported", hint="copy or export the bundle again")


def require_files(folder: Path, facts: BundleFacts) -> None:
    """The same check in milliseconds, for every start: it does not read weights."""
    verify(folder, facts, largest=_QUICKLY_READ)


def require_weights(folder: Path, facts: BundleFacts, model: str) -> None:
    """Raise an error if a large file of a model has changed; `require_files` has read the small ones."""
    for name, checksum in facts.files.items():
        path = folder / name
        if name.startswith(f"models/{model}/") and path.stat().st_size > _QUICKLY_READ:
            _require_unchanged(path, checksum)


def sizes(folder: Path, facts: BundleFacts) -> dict[str, int]:
    """The bytes of each file of the bundle."""
    return {name: (folder / name).stat().st_size for name in facts.files}
