"""Find a bundle and open its parts."""

from importlib.util import find_spec
from pathlib import Path

from cod3s.bundle.checksums import require_weights
from cod3s.bundle.facts import BundleFacts
from cod3s.bundle.hub import PREFIX, fetch_bundle
from cod3s.encode import Encoder
from cod3s.errors import BundleError
from cod3s.model.legacy_default import unpacked_folder
from cod3s.model.roles import all_tags
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary


def default_bundle() -> Path:
    """The bundle of the package `cod3s-bundle`."""
    spec = find_spec("cod3s_bundle")
    if spec is None or spec.origin is None:
        raise BundleError(
            "the default bundle is not installed",
            hint="pip install 'cod3s[write]', or give a bundle with --bundle FOLDER or cod3s.load(FOLDER)",
        )
    return Path(spec.origin).parent / "default"


def find_bundle(address: str | Path | None = None) -> Path:
    """The folder of a bundle: itself, one on the hub (`hf:USER/NAME@REVISION`), or the default one."""
    if address is None:
        return default_bundle()
    if str(address).startswith(PREFIX):
        return fetch_bundle(str(address))
    return Path(address)


def bins_path(folder: Path, relation: str) -> Path:
    """Where the bundle in `folder` keeps the relation's bins, if it has them."""
    return folder / "bins" / f"{relation}.sqlite"


def model_folder(folder: Path, name: str) -> Path:
    """Where the engine finds the model called `name` of the bundle in `folder`."""
    return unpacked_folder(folder / "models" / name)


def open_vocabulary(pieces: Path, facts: BundleFacts) -> Vocabulary:
    """The decoder's vocabulary, in the order in which training numbered it."""
    return Vocabulary(
        pieces, all_tags(facts.models), SignatureTokens(facts.bits, facts.bits_per_token, facts.positional)
    )


def open_own_encoder(folder: Path, facts: BundleFacts, threads: int | None = None) -> Encoder | None:
    """The bundle's copy of the encoder that signs; None if it has none."""
    if not facts.own_encoder:
        return None
    from cod3s.encode.small_copy import open_small_copy

    require_weights(folder, facts, facts.own_encoder)
    return open_small_copy(folder / "models" / facts.own_encoder, folder / "source.json", threads)
