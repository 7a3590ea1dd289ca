"""Signatures: the paper's hyperplanes, learned codes, packing and distances."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cod3s.errors import Cod3sError, FileFormatError, SignatureError, VectorError
from cod3s.signatures import (
    Code,
    check_bits,
    cosine_estimate,
    from_text,
    hamming,
    itq_code,
    load_code,
    median_code,
    pack,
    random_code,
    to_text,
    unpack,
)

bit_rows = st.integers(1, 256).flatmap(lambda bits: arrays(bool, (5, bits)))


@pytest.fixture(scope="module")
def cloud() -> np.ndarray:
    """Unit vectors around a centre away from the origin, as sentence embeddings are."""
    draw = np.random.default_rng(7)
    vectors = draw.standard_normal((2000, 48)) * np.linspace(2, 0.2, 48) + 0.5
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_hyperplanes_are_those_of_the_original_code() -> None:
    """The first three values for (16, 1024), as drawn by the authors' repository with seed 1234."""
    planes = random_code(16, 1024).planes
    assert planes[0, :3] == pytest.approx([0.47143516, -1.19097569, 1.43270697], abs=1e-8)


def test_the_all_ones_vector_hashes_as_in_the_original_code() -> None:
    assert to_text(random_code(16, 1024).sign(np.ones((1, 1024)))) == ["1110101110111110"]


def test_a_shorter_signature_is_a_prefix_of_a_longer_one(cloud: np.ndarray) -> None:
    whole = random_code(256, 48).sign(cloud)
    for bits in (1, 8, 15, 16, 255):
        assert (random_code(bits, 48).sign(cloud) == whole[:, :bits]).all()
        assert (random_code(256, 48).prefix(bits).sign(cloud) == whole[:, :bits]).all()


def test_a_projection_of_exactly_zero_is_a_one_as_in_appendix_a() -> None:
    assert random_code(8, 4).sign(np.zeros((1, 4))).all()


def test_scaling_a_vector_changes_no_bit(cloud: np.ndarray) -> None:
    code = random_code(64, 48)
    assert (code.sign(cloud) == code.sign(1000 * cloud)).all()


def test_hamming_distance_follows_the_angle(cloud: np.ndarray) -> None:
    packed = pack(random_code(256, 48).sign(cloud[:200]))
    estimate = cosine_estimate(hamming(packed[:, None], packed), 256)
    error = np.abs(estimate - cloud[:200] @ cloud[:200].T)
    # The sd of an estimate from 256 bits is at most pi / (2 * 16) = 0.098, its mean error 0.8 of that.
    assert error.mean() < 0.08


@given(bit_rows)
def test_packed_bits_and_text_give_back_the_bits(bits: np.ndarray) -> None:
    assert (unpack(pack(bits), bits.shape[1]) == bits).all()
    assert all((from_text(text) == row).all() for text, row in zip(to_text(bits), bits, strict=True))


@given(bit_rows)
def test_hamming_is_a_distance_and_equals_counting(bits: np.ndarray) -> None:
    packed = pack(bits)
    table = hamming(packed[:, None], packed)
    assert (table == (bits[:, None] != bits).sum(axis=2)).all()
    assert (table == table.T).all()
    assert (table[:, :, None] + table[None] >= table[:, None]).all()


def test_the_cosine_estimate_of_section_3() -> None:
    for distance, bits, cosine, reason in [
        (0, 16, 1.0, "equal signatures"),
        (8, 16, 0.0, "half the bits: a right angle"),
        (16, 16, -1.0, "all bits: opposite"),
        (2, 8, 2**-0.5, "a quarter: 45 degrees"),
    ]:
        assert cosine_estimate(distance, bits) == pytest.approx(cosine, abs=1e-12), reason


def test_median_bits_are_balanced_and_random_ones_are_not(cloud: np.ndarray) -> None:
    assert np.abs(median_code(cloud, 16).sign(cloud).mean(axis=0) - 0.5).max() < 0.001
    assert np.abs(random_code(16, 48).sign(cloud).mean(axis=0) - 0.5).max() > 0.1


def test_itq_planes_are_orthonormal_and_quantise_better_than_the_bare_axes(cloud: np.ndarray) -> None:
    code = itq_code(cloud, 16)
    assert code.planes @ code.planes.T == pytest.approx(np.eye(16), abs=1e-8)
    assert _loss(code, cloud) < _loss(_principal_axes(cloud, 16), cloud)


def _loss(code: Code, vectors: np.ndarray) -> float:
    projected = code.project(vectors)
    return float(((np.sign(projected) - projected) ** 2).mean())


def _principal_axes(vectors: np.ndarray, bits: int) -> Code:
    mean = vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(vectors - mean, full_matrices=False)
    return Code("itq", axes[:bits], axes[:bits] @ mean, 0)


def test_the_same_seed_gives_the_same_learned_code(cloud: np.ndarray) -> None:
    for fit in (median_code, itq_code):
        assert (fit(cloud, 8, 5).planes == fit(cloud, 8, 5).planes).all()


def test_a_saved_code_signs_the_same(cloud: np.ndarray, tmp_path: Path) -> None:
    for code in (random_code(12, 48), median_code(cloud, 12), itq_code(cloud, 12)):
        code.save(tmp_path / code.kind, "static:x")
        loaded, encoder = load_code(tmp_path / code.kind)
        assert (encoder, loaded.kind, loaded.seed) == ("static:x", code.kind, 1234)
        assert (loaded.sign(cloud) == code.sign(cloud)).all()


@pytest.mark.parametrize("damage", ["missing", "truncated", "pickle", "long header", "other bits", "not json"])
def test_a_damaged_code_folder_is_a_clear_error(damage: str, tmp_path: Path) -> None:
    folder = tmp_path / "code"
    random_code(12, 48).save(folder, "static:x")
    planes = folder / "hyperplanes.npy"
    match damage:
        case "missing":
            planes.unlink()
        case "truncated":
            planes.write_bytes(planes.read_bytes()[:200])
        case "pickle":
            np.save(planes, np.array([{"a": 1}], dtype=object), allow_pickle=True)
        case "long header":
            planes.write_bytes(planes.read_bytes()[:6] + b"\x02\0" + b"\xff" * 4)
        case "other bits":
            np.save(planes, np.zeros((11, 48)))
        case "not json":
            (folder / "code.json").write_text("{")
    with pytest.raises(FileFormatError):
        load_code(folder)


def test_the_margin_is_the_cosine_to_the_nearest_hyperplane() -> None:
    code = Code("random", np.array([[2.0, 0.0], [0.0, 3.0]]), np.zeros(2), 0)
    vectors = np.array([[3.0, 4.0], [5.0, 0.0], [0.0, 0.0]])
    assert code.margin(vectors) == pytest.approx([0.6, 0.0, 0.0])


def test_bad_vectors_are_a_clear_error() -> None:
    for vectors, message, reason in [
        (np.full((3, 4), np.nan), "NaN", "not a number"),
        (np.array([[0, 0, 0, np.inf]]), "NaN or infinity", "infinite"),
        (np.zeros((3, 5)), "(n, 4) is needed", "another dimension"),
        (np.zeros(4), "(n, 4) is needed", "a single vector without its axis"),
    ]:
        with pytest.raises(VectorError) as caught:
            random_code(8, 4).sign(vectors)
        assert message in caught.value.message, reason


def test_impossible_bits_and_texts_that_are_no_signature_are_clear_errors() -> None:
    for bits in (0, -1, 257):
        with pytest.raises(SignatureError) as caught:
            check_bits(bits)
        assert "1 to 256" in caught.value.hint
    for text in ("", "012", "ab", "0 1", "٠١"):
        with pytest.raises(SignatureError):
            from_text(text)


def test_more_itq_bits_than_dimensions_is_a_clear_error(cloud: np.ndarray) -> None:
    with pytest.raises(VectorError, match="49 bits needs 49 dimensions"):
        itq_code(cloud, 49)


def test_no_vectors_cannot_fit_a_code() -> None:
    for fit in (median_code, itq_code):
        with pytest.raises(Cod3sError):
            fit(np.zeros((0, 4), np.float32), 2)


def test_signatures_of_other_lengths_cannot_be_compared() -> None:
    with pytest.raises(SignatureError):
        hamming(np.zeros((1, 2), np.uint8), np.zeros((1, 3), np.uint8))


def test_seeds_have_32_bits() -> None:
    for seed in (-1, 2**32):
        with pytest.raises(Cod3sError, match="the seed must be"):
            random_code(4, 8, seed)
    assert random_code(4, 8, 2**32 - 1).planes.shape == (4, 8)
