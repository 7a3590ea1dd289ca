"""Bins: exact medoids, one SQLite file, the tree, and the paper's statistics."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cod3s.bins import BinsFile, BinStatistics, build_bins, open_bins
from cod3s.bins.binning import choose_samples
from cod3s.bins.medoids import group_medoids
from cod3s.errors import BinsError, Cod3sError, SignatureError
from cod3s.signatures import from_text, hamming, pack, random_code, to_text

DIM = 24
CODE = random_code(14, DIM)


def cloud(number: int, seed: int = 3) -> tuple[list[str], np.ndarray]:
    """Sentences with unit vectors; every tenth sentence occurs twice, with the same vector."""
    draw = np.random.default_rng(seed)
    vectors = draw.standard_normal((number, DIM)).astype(np.float32) + 0.3
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = [f"sentence {row}" for row in range(number)]
    for row in range(10, number, 10):
        texts[row], vectors[row] = texts[row - 1], vectors[row - 1]
    return texts, vectors


def blocks(texts: list[str], vectors: np.ndarray, size: int) -> Iterator[tuple[list[str], np.ndarray]]:
    for start in range(0, len(texts), size):
        yield texts[start : start + size], vectors[start : start + size]


def quadratic_medoid(vectors: np.ndarray) -> int:
    """The definition: least summed cosine distance to all others."""
    return int((1 - vectors.astype(np.float64) @ vectors.T.astype(np.float64)).sum(axis=1).argmin())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BinsFile:
    path = tmp_path_factory.mktemp("bins") / "bins.sqlite"
    build_bins(path, blocks(*cloud(3000), 700), CODE, "test:cloud", samples=3)
    return open_bins(path)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_the_linear_medoid_is_the_quadratic_one(seed: int, sizes: list[int]) -> None:
    _, vectors = cloud(sum(sizes), seed)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    for start, size, medoid in zip(starts, sizes, group_medoids(vectors, starts), strict=True):
        group = vectors[start : start + size]
        distances = (1 - group.astype(np.float64) @ group.T.astype(np.float64)).sum(axis=1)
        assert distances[medoid - start] == pytest.approx(distances.min(), abs=1e-5)


def test_every_sentence_is_in_the_bin_of_its_signature(built: BinsFile) -> None:
    texts, vectors = cloud(3000)
    signatures = np.array(to_text(CODE.sign(vectors)))
    found = list(built.bins())
    assert [row.signature for row in found] == sorted(set(signatures))
    assert sum(row.count for row in found) == len(texts) == built.facts.sentences
    assert built.populated == len(found)
    for row in found[::25]:
        members = np.flatnonzero(signatures == row.signature)
        assert row.count == len(members)
        assert row.medoid == texts[members[quadratic_medoid(vectors[members])]]
        assert set(row.samples) <= {texts[member] for member in members}
        assert len(row.samples) == len(set(row.samples)) == min(3, len({texts[m] for m in members}))


def test_inner_nodes_hold_exact_medoids_and_the_sum_of_their_children(built: BinsFile) -> None:
    texts, vectors = cloud(3000)
    signatures = np.array(to_text(CODE.sign(vectors)))
    nodes = {row.signature: row for row in built.tree(4)}
    assert nodes[""].count == 3000
    for prefix in ("", "0", "10", "110", "0101"):
        members = np.flatnonzero(np.char.startswith(signatures, prefix))
        assert nodes[prefix].count == len(members)
        assert nodes[prefix].medoid == texts[members[quadratic_medoid(vectors[members])]]


def test_the_tree_lists_parents_before_children_below_its_root(built: BinsFile) -> None:
    names = [row.signature for row in built.tree(4, root="01")]
    assert names[0] == "01"
    assert names == sorted(names)
    assert all(name.startswith("01") and len(name) <= 4 for name in names)


def test_neighbors_differ_in_one_bit(built: BinsFile) -> None:
    own = max(built.bins(), key=lambda row: row.count)
    near = built.neighbors(own.signature)
    assert near
    for row in near:
        assert hamming(pack(from_text(own.signature)), pack(from_text(row.signature))) == 1


def test_the_file_does_not_depend_on_how_the_stream_was_cut(tmp_path: Path) -> None:
    for name, size in (("a", 64), ("b", 3000)):
        build_bins(tmp_path / name, blocks(*cloud(500), size), CODE, "test:cloud")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("bits", [1, 2, 12, 13, 40])
def test_any_number_of_bits_can_be_built(bits: int, tmp_path: Path) -> None:
    build_bins(tmp_path / "bins", blocks(*cloud(200), 50), random_code(bits, DIM), "test:cloud")
    with open_bins(tmp_path / "bins") as file:
        assert sum(row.count for row in file.bins()) == 200
        assert next(file.tree(0)).count == 200
        depth = file.facts.tree_depth
        assert sum(row.count for row in file.tree(depth) if len(row.signature) == depth) == 200


def test_samples_do_not_depend_on_order_and_follow_the_seed() -> None:
    texts = [f"text {number}" for number in range(50)]
    assert choose_samples(texts, 5, seed=1) == choose_samples(texts[::-1], 5, seed=1)
    assert choose_samples(texts, 5, seed=1) != choose_samples(texts, 5, seed=2)


def test_a_bin_where_nothing_fell_is_none(built: BinsFile) -> None:
    populated = {row.signature for row in built.bins()}
    empty = next(s for n in range(2**14) if (s := f"{n:014b}") not in populated)
    assert built.get(empty) is None


@pytest.mark.parametrize(
    ("signature", "error"), [("012", SignatureError), ("", SignatureError), ("0" * 15, BinsError)]
)
def test_a_wrong_signature_is_a_clear_error(built: BinsFile, signature: str, error: type[Cod3sError]) -> None:
    with pytest.raises(error):
        built.get(signature)


def test_a_deeper_tree_than_the_file_keeps_is_a_clear_error(built: BinsFile) -> None:
    with pytest.raises(BinsError, match="depth 12"):
        list(built.tree(13))


def test_no_sentences_make_no_file(tmp_path: Path) -> None:
    with pytest.raises(BinsError):
        build_bins(tmp_path / "bins", [], CODE, "test:cloud")
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_the_stream_leaves_nothing_behind(tmp_path: Path) -> None:
    def broken() -> Iterator[tuple[list[str], np.ndarray]]:
        yield cloud(50)
        raise OSError("the file vanished")

    with pytest.raises(OSError, match="vanished"):
        build_bins(tmp_path / "bins", broken(), CODE, "test:cloud")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["text", "empty", "truncated", "middle", "other database", "newer"])
def test_a_damaged_file_is_a_clear_error(damage: str, built: BinsFile, tmp_path: Path) -> None:
    path = tmp_path / "bins.sqlite"
    content = built.path.read_bytes()
    match damage:
        case "text":
            path.write_text("this is not a database, it is only a text of some length")
        case "empty":
            path.write_bytes(b"")
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "middle":
            path.write_bytes(content[:8192] + b"\xff" * 60_000 + content[68_192:])
        case "other database":
            sqlite3.connect(path).execute("CREATE TABLE facts (content)").connection.commit()
        case "newer":
            path.write_bytes(content)
            with sqlite3.connect(path) as database:
                database.execute("UPDATE facts SET content = json_set(content, '$.format', 99)")
    with pytest.raises(BinsError):
        list(open_bins(path).bins())


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="no file at"):
        open_bins(tmp_path / "nowhere.sqlite")


def brute_force(texts: list[str], signatures: list[str], bits: int) -> tuple[list[int], list[int]]:
    sentences: dict[str, set[str]] = {}
    unigrams: dict[str, set[str]] = {}
    for text, signature in zip(texts, signatures, strict=True):
        sentences.setdefault(signature[:bits], set()).add(text)
        unigrams.setdefault(signature[:bits], set()).update(text.lower().split())
    return [len(own) for own in sentences.values()], [len(unigrams[name]) for name in sentences]


def test_statistics_equal_plain_counting() -> None:
    draw = np.random.default_rng(5)
    texts = [" ".join(f"Word{n}" for n in draw.integers(0, 60, 5)) for _ in range(800)] + ["Word1 word1"] * 3
    _, vectors = cloud(len(texts))
    vectors[-2:] = vectors[-3]
    signed = random_code(32, DIM).sign(vectors)
    statistics = BinStatistics([4, 9, 16, 32])
    for start in range(0, len(texts), 100):
        statistics.add(texts[start : start + 100], signed[start : start + 100])
    for row in statistics.rows():
        sentences, unigrams = brute_force(texts, to_text(signed), row.bits)
        assert row.populated == len(sentences)
        assert row.share_populated == len(sentences) / 2**row.bits
        assert (row.sentences_mean, row.sentences_sd) == pytest.approx((np.mean(sentences), np.std(sentences)))
        assert (row.unigrams_mean, row.unigrams_sd) == pytest.approx((np.mean(unigrams), np.std(unigrams)))
    assert statistics.sentences == 803


@pytest.mark.parametrize("bits", [[], [0], [65], [4, 100]])
def test_statistics_of_impossible_lengths_are_a_clear_error(bits: list[int]) -> None:
    with pytest.raises(SignatureError):
        BinStatistics(bits)


def test_statistics_of_nothing_are_a_clear_error() -> None:
    with pytest.raises(BinsError):
        BinStatistics([4]).rows()


@pytest.mark.slow
def test_a_hundred_thousand_sentences_stay_small_in_memory(tmp_path: Path) -> None:
    """A tenth of the million that must fit in 2 GiB; the build keeps one block of vectors, not all of them."""
    import tracemalloc

    def stream() -> Iterator[tuple[list[str], np.ndarray]]:
        draw = np.random.default_rng(0)
        for block in range(25):
            vectors = draw.standard_normal((4000, 384)).astype(np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            yield [f"block {block} row {row}" for row in range(4000)], vectors

    tracemalloc.start()
    build_bins(tmp_path / "bins", stream(), random_code(16, 384), "test:cloud")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6  # all vectors together are 154 MB
