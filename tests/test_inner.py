"""The sentence encoder inside a bundle's model: the same as the installed one, but for the rounding of weights."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import cod3s
from cod3s.bundle import default_bundle, open_own_encoder, read_facts
from cod3s.encode import Encoder
from cod3s.encode.fast import open_inner_encoder
from cod3s.errors import BundleError
from cod3s.signatures import load_code

TEXTS = [
    "the kettle whistled",
    "my cousin moved to a village by the sea",
    "nobody had told the drummer that the concert was cancelled",
    "Two words",
    "the café's naïve owner sold 300 cakes, and smiled",
    "",
]


@pytest.fixture(scope="module")
def inner() -> Encoder:
    found = open_own_encoder(default_bundle(), read_facts(default_bundle()))
    assert found is not None
    return found


def test_it_gives_nearly_the_vectors_and_bits_of_the_installed_one(inner: Encoder, fast: Encoder) -> None:
    ours, theirs = inner.encode(TEXTS), fast.encode(TEXTS)
    assert np.einsum("nd,nd->n", ours, theirs).min() > 0.995, "the weights are kept in int8"
    code, _ = load_code(default_bundle() / "code")
    assert (code.sign(ours) == code.sign(theirs)).mean() > 0.95


def test_its_id_is_its_own(inner: Encoder, fast: Encoder) -> None:
    assert inner.id != fast.id
    assert inner.id.startswith("inner:")
    assert inner.dim == fast.dim


def test_the_default_answers_are_signed_by_it() -> None:
    model = cod3s.load()
    found = model.generate("the kettle whistled", "effect", k=3)
    assert model.encoder.id.startswith("inner:")
    assert all(len(answer.realised) == 16 for answer in found.answers)
    assert found.settings["faithful"] == "weigh"


@pytest.mark.parametrize("kept", [0, 3, 40, 5000, 20_000_000])
def test_a_truncated_model_is_a_clear_error(kept: int, tmp_path: Path) -> None:
    folder = default_bundle() / "models" / "shared"
    shutil.copytree(folder, tmp_path / "model")
    content = (folder / "model.bin").read_bytes()
    (tmp_path / "model" / "model.bin").write_bytes(content[:kept])
    with pytest.raises(BundleError, match="damaged"):
        open_inner_encoder(tmp_path / "model", default_bundle() / "source.json")


def test_a_newer_file_format_is_a_clear_error(tmp_path: Path) -> None:
    folder = default_bundle() / "models" / "shared"
    shutil.copytree(folder, tmp_path / "model")
    content = (folder / "model.bin").read_bytes()
    (tmp_path / "model" / "model.bin").write_bytes(b"\x63" + content[1:])
    with pytest.raises(BundleError, match="format 99"):
        open_inner_encoder(tmp_path / "model", default_bundle() / "source.json")
