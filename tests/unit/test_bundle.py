"""A bundle's facts, its checksums, and the way to it: a folder, or the cache of the hub."""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cod3s.bundle import BundleFacts, find_bundle, read_facts, require_weights, verify, write_facts
from cod3s.bundle.hub import push_bundle
from cod3s.decode.config import DecodeConfig, defaults_of, parse_defaults
from cod3s.errors import BundleError, UsageError
from conftest import Run

FACTS = BundleFacts(
    name="replies",
    encoder="static:wordllama-l2-supercat-256",
    bits=16,
    bits_per_token=4,
    positional=True,
    shape="causal",
    quantization="int8",
    relations={"reply": {"template": "{source} - {target}", "inverse": ""}},
    models={"reply": {"sentence": "shared", "inverse": "shared"}},
    licence="CC0-1.0",
    decoding={"beam": 4},
)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle whose files are there, whatever is in them."""
    folder = tmp_path / "bundle"
    for name in ("tokens.model", "models/shared/model.bin", "models/shared/config.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"the content of {name}")
    write_facts(folder, FACTS)
    return folder


def test_facts_are_read_as_they_were_written_with_a_checksum_per_file(bundle: Path) -> None:
    facts = read_facts(bundle)
    assert replace(facts, files={}) == FACTS
    assert set(facts.files) == {"tokens.model", "models/shared/model.bin", "models/shared/config.json"}
    assert facts.model_names == ["shared"]
    verify(bundle, facts)


WRONG_FACTS: list[tuple[dict[str, Any], str]] = [
    ({"format": 1}, "bundle format 1, but this version of cod3s reads format 2"),
    ({"format": 99}, "bundle format 99"),
    ({"format": "2"}, "does not describe a bundle"),
    ({"bits": "16"}, "bits is str, but must be int"),
    ({"surprise": 1}, "unknown field 'surprise'"),
    ({"models": {"reply": {"sentence": "../elsewhere"}}}, "cannot be the name"),
    ({"files": {"../../etc/passwd": "0"}}, "names a file that cannot be in a bundle"),
    ({"relations": {}}, "the relation 'reply' has no template"),
]


def test_facts_that_are_wrong_say_what_is_wrong(bundle: Path, tmp_path: Path) -> None:
    path = bundle / "bundle.json"
    whole = json.loads(path.read_text())
    for change, message in WRONG_FACTS:
        path.write_text(json.dumps({**whole, **change}))
        with pytest.raises(BundleError) as caught:
            read_facts(bundle)
        assert message in caught.value.message
        assert caught.value.hint
    path.write_text('"nothing"')
    with pytest.raises(BundleError, match="does not describe a bundle"):
        read_facts(bundle)
    with pytest.raises(BundleError, match="it has no bundle"):
        read_facts(tmp_path)


def test_missing_changed_and_foreign_files_are_refused(bundle: Path, tmp_path: Path) -> None:
    facts, weights = read_facts(bundle), bundle / "models/shared/model.bin"
    content = weights.read_bytes()
    for damaged, message in [(content[:-1], "has changed"), (b"", "is missing"), (None, "is missing")]:
        weights.write_bytes(damaged) if damaged is not None else weights.unlink()
        with pytest.raises(BundleError, match=message):
            verify(bundle, facts)
    (tmp_path / "secret").write_bytes(content)
    for target in (tmp_path / "secret", tmp_path / "nowhere", weights):
        weights.unlink(missing_ok=True)
        weights.symlink_to(target)
        with pytest.raises(BundleError, match="does not lead to a file of the bundle"):
            verify(bundle, facts)
    weights.unlink()
    weights.write_bytes(content * (1 << 20))  # so large that it is only read when it is opened
    verify(bundle, facts, largest=1 << 20)
    with pytest.raises(BundleError, match="has changed"):
        require_weights(bundle, facts, "shared")


def in_hub_cache(bundle: Path, cache: Path) -> Path:
    """The bundle as the hub's library keeps `somebody/replies`: links into a folder of blobs."""
    repository = cache / "models--somebody--replies"
    snapshot = repository / "snapshots" / ("a" * 40)
    (repository / "blobs").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    for path in (path for path in bundle.rglob("*") if path.is_file()):
        blob = repository / "blobs" / hashlib.sha256(path.read_bytes()).hexdigest()
        blob.write_bytes(path.read_bytes())
        link = snapshot / path.relative_to(bundle)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    return snapshot


def test_a_bundle_of_the_hub_is_opened_and_verified(cod3s: Run, bundle: Path, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    snapshot = in_hub_cache(bundle, tmp_path / "hub")
    offline = {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    shown = cod3s("bundle", "info", "hf:somebody/replies@main", "--json", **offline)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["name"] == "replies"
    (snapshot / "tokens.model").resolve().write_text("something else")
    damaged = cod3s("bundle", "info", "hf:somebody/replies", "--json", **offline)
    assert (damaged.returncode, "has changed since it was exported" in damaged.stderr) == (1, True)
    absent = cod3s("generate", "reply", "hello", "--bundle", "hf:nobody/nothing@v2", **offline)
    assert absent.returncode == 1
    assert "no bundle could be fetched from hf:nobody/nothing@v2" in absent.stderr
    pushed = cod3s("bundle", "push", str(bundle), "somebody/replies", **offline)
    assert pushed.returncode == 1
    assert "could not be uploaded to somebody/replies" in pushed.stderr


def test_addresses_and_bundles_that_cannot_be_published_are_refused(bundle: Path) -> None:
    for address in ("hf:replies", "hf:a/b/c", "hf:/replies"):
        with pytest.raises(UsageError, match="does not name a bundle on the hub"):
            find_bundle(address)
    with pytest.raises(UsageError, match="does not name a bundle"):
        push_bundle(bundle, "replies")
    (bundle / "tokens.model").write_text("something else")
    with pytest.raises(BundleError, match="has changed"):
        push_bundle(bundle, "somebody/replies")
    assert find_bundle(bundle) == bundle


def test_a_bundle_has_defaults_of_its_own_for_decoding() -> None:
    assert defaults_of(FACTS) == DecodeConfig(beam=4)
    assert defaults_of(replace(FACTS, decoding={})) == DecodeConfig()
    written = parse_defaults("beam=4, bins-per-answer=3,check=true,search=sample")
    assert written == {"beam": 4, "bins_per_answer": 3.0, "check": True, "search": "sample"}


WRONG_DEFAULTS = [
    ({"beem": 4}, "has no option 'beem'; did you mean 'beam'"),
    ({"beam": 0}, "beam is 0, but it must be at least 1"),
    ({"beam": "wide"}, "beam is 'wide'"),
    ({"unfiltered": True}, "which only the user may decide"),
    ({"sensitive": True}, "which only the user may decide"),
]


@pytest.mark.parametrize(("decoding", "message"), WRONG_DEFAULTS, ids=[str(row[0]) for row in WRONG_DEFAULTS])
def test_defaults_that_a_bundle_cannot_have_are_refused(decoding: dict[str, Any], message: str) -> None:
    with pytest.raises(BundleError, match=message):
        defaults_of(replace(FACTS, decoding=decoding))
    with pytest.raises(BundleError, match=message):
        parse_defaults(",".join(f"{name}={value}" for name, value in decoding.items()))


def test_a_default_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match="NAME=VALUE"):
        parse_defaults("beam")
