"""On Ray the corpus and the answers are the same, byte for byte."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cod3s.bulk import Job, ShardAnswerer, answer_in_bulk
from cod3s.corpus import prepare
from cod3s.corpus.engines import RayEngine
from cod3s.corpus.manifest import PrepareConfig
from cod3s.decode.config import DecodeConfig
from cod3s.errors import BundleError, FileFormatError
from made_pairs import write_pairs
from tiny_bundle import WHO, TinyBundle

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
    with pytest.raises(FileFormatError, match="line 2: it has fewer cells"):
        prepare([str(tmp_path / "pairs.tsv")], str(tmp_path / "c"), CONFIG, engine=engine)
    assert not (tmp_path / "c").exists()


def test_two_workers_finish_a_stopped_run_with_the_answers_that_one_process_gives(
    engine: RayEngine, tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    job = Job("effect", tiny_bundle.exact, config=DecodeConfig(k=3, signature_beam=20, beam=4, max_tokens=12))
    sources = [f"{who} lost the key at home" for who in WHO]
    answer_in_bulk(sources, tmp_path / "local", job, shard_size=3, threads=1)
    shutil.copytree(tmp_path / "local", tmp_path / "ray")
    for shard in (1, 2):
        (tmp_path / "ray" / f"answers-0000{shard}.jsonl").unlink()
    result = answer_in_bulk(sources, tmp_path / "ray", job, shard_size=3, threads=1, engine=engine)
    assert result.written == 2
    assert files(tmp_path / "ray") == files(tmp_path / "local")


def test_a_worker_that_opens_another_bundle_is_a_clear_error(
    engine: RayEngine, tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    make = partial(ShardAnswerer, Job("effect", tiny_bundle.exact), "0" * 64, 1)
    with pytest.raises(BundleError, match="a different one on this worker"):
        engine.run(make, [(tmp_path / "sources", tmp_path / "answers")], lambda _done: None)
