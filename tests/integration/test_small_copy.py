"""The small copy of the encoder that a bundle carries: nearly the installed one's vectors and bits."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from cod3s.encode import Encoder
from cod3s.encode.small_copy import open_small_copy, write_small_copy
from cod3s.errors import EncoderError
from cod3s.signatures import random_code

TEXTS = [
    "the kettle whistled",
    "my cousin moved to a village by the sea",
    "nobody had told the drummer that the concert was cancelled",
    "Two words",
    "the café's naïve owner sold 300 cakes, and smiled",
    "",
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    write_small_copy(folder / "encoder", folder / "source.json", TEXTS)
    return folder


def test_it_gives_nearly_the_vectors_and_bits_of_the_installed_one(written: Path, fast: Encoder) -> None:
    copy = open_small_copy(written / "encoder", written / "source.json")
    assert copy.id.startswith("inner:")
    assert copy.id != fast.id
    ours, theirs = copy.encode(TEXTS), fast.encode(TEXTS)
    assert np.median(np.einsum("nd,nd->n", ours, theirs)) > 0.995, "the weights are kept in int8"
    code = random_code(16, copy.dim)
    assert (code.sign(ours) == code.sign(theirs)).mean() > 0.95


def test_it_is_small_and_its_weights_have_few_levels(written: Path) -> None:
    size = (written / "encoder" / "model.bin").stat().st_size
    assert size < 19e6


def test_a_truncated_or_newer_model_is_a_clear_error(written: Path, tmp_path: Path) -> None:
    shutil.copytree(written / "encoder", tmp_path / "encoder")
    content = (tmp_path / "encoder" / "model.bin").read_bytes()
    for damaged in (b"", content[:3], content[:5000], content[:-1], b"\x63" + content[1:]):
        (tmp_path / "encoder" / "model.bin").write_bytes(damaged)
        with pytest.raises(EncoderError, match="cannot be opened"):
            open_small_copy(tmp_path / "encoder", written / "source.json")
