"""On Ray the corpus is the same, byte for byte."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cod3s.corpus import prepare
from cod3s.corpus.engines import RayEngine
from cod3s.corpus.manifest import PrepareConfig
from cod3s.errors import FileFormatError
from made_pairs import write_pairs

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'cod3s[ray]'")

CONFIG = PrepareConfig(encoder="static", shard_rows=300, held_out=0.1)


@pytest.fixture(scope="module")
def engine() -> Iterator[RayEngine]:
    # Workers import cod3s from where this process does; nothing is packed and shipped.
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield RayEngine(workers=2)
    ray.shutdown()


def files(corpus: Path) -> dict[str, bytes]:
    return {str(path.relative_to(corpus)): path.read_bytes() for path in corpus.rglob("*") if path.is_file()}


def test_two_workers_make_the_corpus_that_one_process_makes(engine: RayEngine, tmp_path: Path) -> None:
    pairs = [str(write_pairs(tmp_path / f"{seed}.tsv", 800, seed)) for seed in (1, 2, 3)]
    local, _ = prepare(pairs, str(tmp_path / "local"), CONFIG)
    spread, _ = prepare(pairs, str(tmp_path / "ray"), CONFIG, engine=engine)
    assert spread == local
    assert files(tmp_path / "ray") == files(tmp_path / "local")


def test_a_bad_row_on_a_worker_is_the_same_clear_error(engine: RayEngine, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("cause\teffect\nragged\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match="line 2: 1 columns"):
        prepare([str(tmp_path / "pairs.tsv")], str(tmp_path / "c"), CONFIG, engine=engine)
    assert not (tmp_path / "c").exists()
