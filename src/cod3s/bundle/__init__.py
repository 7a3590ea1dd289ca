"""Bundles: the folder that generation opens, its facts and checksums."""

from cod3s.bundle.checksums import require_files, require_weights, sizes, verify
from cod3s.bundle.facts import NAME, BundleFacts, is_bundle, read_facts, write_facts
from cod3s.bundle.folder import (
    bins_path,
    default_bundle,
    find_bundle,
    model_folder,
    open_own_encoder,
    open_vocabulary,
)

__all__ = [
    "NAME",
    "BundleFacts",
    "bins_path",
    "default_bundle",
    "find_bundle",
    "is_bundle",
    "model_folder",
    "open_own_encoder",
    "open_vocabulary",
    "read_facts",
    "require_files",
    "require_weights",
    "sizes",
    "verify",
    "write_facts",
]
