"""The benchmark of training counts the work that steps do."""

import json

import torch

from cod3s.bench.training import bench_training
from cod3s.train.config import PRESETS
from conftest import Run


def test_work_a_pair_does_not_depend_on_the_batch() -> None:
    """A step of four times the pairs does four times the work, whatever the machine does meanwhile."""
    presets = {str(tokens): PRESETS["tiny"].with_values(batch_tokens=tokens) for tokens in (512, 2048)}
    found, limit = bench_training(presets, steps=1, compiled=False, progress=lambda _: None)
    few, many = (row.gflops / row.pairs_per_second for row in found)
    assert 0.5 < few / many < 2  # sentences differ in length
    assert limit > 0
    assert all(0 < row.share == row.gflops / limit for row in found)


def test_the_command_leaves_the_threads_as_they_were(cod3s: Run) -> None:
    before = torch.get_num_threads()
    done = cod3s("bench", "train", "--preset", "tiny", "--steps", "1", "--threads", "1", "--json")
    record = json.loads(done.stdout)
    assert [row["name"] for row in record["rows"]] == ["tiny"]
    assert record["settings"]["threads"] == 1
    assert torch.get_num_threads() == before
