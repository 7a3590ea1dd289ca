"""Fetch bundles from the Hugging Face hub, and publish them there. Files are data: nothing in them is executed."""

from pathlib import Path
from typing import Any

from cod3s.bundle.checksums import verify
from cod3s.bundle.facts import NAME, read_facts
from cod3s.errors import BundleError, UsageError, require

PREFIX = "hf:"


def fetch_bundle(address: str) -> Path:
    """The folder of the bundle at `hf:USER/NAME` or `hf:USER/NAME@REVISION`, downloaded once into the hub's cache.

    Only the files that its bundle.json names are fetched, and all checksums are verified.
    """
    repository, _, revision = address.removeprefix(PREFIX).partition("@")
    _check_repository(repository, address)
    hub = require("huggingface_hub", "hub")
    options = {"repo_id": repository, "revision": revision or None}
    try:
        facts = read_facts(Path(hub.hf_hub_download(filename=NAME, **options)).parent)
        folder = Path(hub.snapshot_download(allow_patterns=[NAME, *facts.files], **options))
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        raise BundleError(
            f"no bundle could be fetched from {address}: {str(error).strip().splitlines()[0]}",
            hint="check the name and the network, or give the folder of a bundle",
        ) from error
    verify(folder, facts)
    return folder


def push_bundle(folder: Path, repository: str, *, private: bool = False, message: str = "") -> str:
    """Upload a sound bundle to the hub, and return the address that `cod3s.load` takes."""
    _check_repository(repository, repository)
    facts = read_facts(folder)
    verify(folder, facts)
    hub = require("huggingface_hub", "hub")
    api: Any = hub.HfApi()
    try:
        api.create_repo(repository, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            allow_patterns=[NAME, *facts.files],
            commit_message=message or f"Upload the bundle {facts.name}",
        )
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        raise BundleError(
            f"the bundle could not be uploaded to {repository}: {str(error).strip().splitlines()[0]}",
            hint="log in with `hf auth login`, and check the name and the network",
        ) from error
    return f"{PREFIX}{repository}"


def _check_repository(repository: str, address: str) -> None:
    if repository.count("/") != 1 or not all(repository.split("/")):
        raise UsageError(
            f"{address!r} does not name a bundle on the hub", hint="write hf:USER/NAME or hf:USER/NAME@REVISION"
        )
