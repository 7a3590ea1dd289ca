"""The sentence encoder inside a bundle's model: the same as the installed one, but for the rounding of weights."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from cod3s.bundle import default_bundle, open_own_encoder, open_vocabulary, read_facts
from cod3s.corpus import prepare
from cod3s.corpus.manifest import PrepareConfig
from cod3s.decode.generator import load
from cod3s.encode import Encoder
from cod3s.encode.fast import open_inner_encoder
from cod3s.errors import BundleError
from cod3s.export.bundle_writer import export
from cod3s.signatures import load_code
from cod3s.train import PRESETS, train
from earlier_bundles import make_earlier
from tiny_bundle import grammar

TEXTS = [
    "the kettle whistled",
    "my cousin moved to a village by the sea",
    "nobody had told the drummer that the concert was cancelled",
    "Two words",
    "the café's naïve owner sold 300 cakes, and smiled",
    "",
]


@pytest.fixture(scope="module")
def earlier_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of an earlier version: a seq2seq model that reads with the encoder."""
    folder = tmp_path_factory.mktemp("inner")
    (folder / "pairs.tsv").write_text(grammar())
    config = PrepareConfig(filter="none", orders="all", encoder="fast", dev=20, test=0, held_out=0.1)
    prepare([str(folder / "pairs.tsv")], str(folder / "corpus"), config)
    tiny = PRESETS["tiny"].with_values(roles=("plain", "sentence", "inverse"), epochs=1)
    train(folder / "corpus", folder / "run", tiny)
    export(folder / "run", folder / "bundle")
    return make_earlier(folder / "bundle", folder / "earlier")


@pytest.fixture(scope="module", params=["inside a model", "a copy beside it"])
def bundle(request: pytest.FixtureRequest, earlier_bundle: Path) -> Path:
    """A bundle of each kind: the default one has a language model, which needs a copy of the encoder."""
    return earlier_bundle if request.param == "inside a model" else default_bundle()


@pytest.fixture(scope="module")
def inner(bundle: Path) -> Encoder:
    encoder = open_own_encoder(bundle, read_facts(bundle))
    assert encoder is not None
    return encoder


def test_it_gives_nearly_the_vectors_and_bits_of_the_installed_one(
    inner: Encoder, fast: Encoder, bundle: Path
) -> None:
    ours, theirs = inner.encode(TEXTS), fast.encode(TEXTS)
    cosines = np.einsum("nd,nd->n", ours, theirs)
    assert np.median(cosines) > 0.995, "the weights are kept in int8"
    assert cosines.min() > 0.9, "a copy reads rare words in smaller pieces"
    code, _ = load_code(bundle / "code")
    assert (code.sign(ours) == code.sign(theirs)).mean() > 0.9


def test_its_id_is_its_own(inner: Encoder, fast: Encoder) -> None:
    assert inner.id != fast.id
    assert inner.id.startswith("inner:")
    assert inner.dim == fast.dim


def test_answers_are_signed_by_it(bundle: Path) -> None:
    model = load(bundle)
    answers = model.generate("the kettle whistled", "effect", k=3)
    assert model.encoder.id.startswith("inner:")
    assert all(len(answer.realised) == 16 for answer in answers)
    assert answers.settings["faithful"] == "weigh"


@pytest.mark.parametrize("kept", [0, 3, 40, 5000, 20_000_000])
def test_a_truncated_model_is_a_clear_error(kept: int, earlier_bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(earlier_bundle / "models" / "shared", tmp_path / "model")
    content = (tmp_path / "model" / "model.bin").read_bytes()
    (tmp_path / "model" / "model.bin").write_bytes(content[: min(kept, len(content) - 1)])
    with pytest.raises(BundleError, match="damaged"):
        open_inner_encoder(tmp_path / "model", earlier_bundle / "source.json")


def test_a_newer_file_format_is_a_clear_error(earlier_bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(earlier_bundle / "models" / "shared", tmp_path / "model")
    content = (tmp_path / "model" / "model.bin").read_bytes()
    (tmp_path / "model" / "model.bin").write_bytes(b"\x63" + content[1:])
    with pytest.raises(BundleError, match="format 99"):
        open_inner_encoder(tmp_path / "model", earlier_bundle / "source.json")


def test_an_earlier_bundle_writes_and_reads_the_encoders_pieces(earlier_bundle: Path) -> None:
    words = open_vocabulary(earlier_bundle / "tokens.model", read_facts(earlier_bundle))
    text = "the unlucky baker couldn't read the half-burnt menu, so he left"
    assert words.decode_text([*words.encode_text(text), words.end, words.pad]) == text
    assert words.encode_text("☃") == [words.unknown]
