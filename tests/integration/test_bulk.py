"""Many sources into a folder of shards that a later run continues; on Ray: test_ray.py."""

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from cod3s.bulk import BulkResult, Job, answer_in_bulk
from cod3s.decode.config import DecodeConfig
from cod3s.decode.generator import load
from cod3s.errors import Cod3sError, Progress, SentenceError, Stage, UsageError, silent_stage
from conftest import Run
from tiny_bundle import WHO, TinyBundle

QUICK = DecodeConfig(k=3, signature_beam=20, beam=4, max_tokens=12)
SOURCES = [f"{who} lost the key at home" for who in WHO]


def job_of(bundle: TinyBundle) -> Job:
    return Job("effect", bundle.exact, config=QUICK)


def answer(output: Path, job: Job, sources: list[str] = SOURCES, stage: Stage = silent_stage) -> BulkResult:
    return answer_in_bulk(sources, output, job, shard_size=3, threads=1, stage=stage)


def stopped_after_one_shard(label: str, _total: int | None) -> AbstractContextManager[Progress]:
    """A stage in which a user presses Ctrl-C once the first shard is there."""

    def progress(_done: int) -> None:
        if label == "shards":
            raise KeyboardInterrupt

    return nullcontext(progress)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def finished(tiny_bundle: TinyBundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The answers of an undisturbed run on this machine."""
    folder = tmp_path_factory.mktemp("bulk") / "local"
    answer(folder, job_of(tiny_bundle))
    return folder


def test_the_shards_hold_what_generate_gives_for_each_source(tiny_bundle: TinyBundle, finished: Path) -> None:
    assert sorted(files(finished)) == [*(f"answers-0000{shard}.jsonl" for shard in range(3)), "job.json"]
    lines = [line for path in sorted(finished.glob("*.jsonl")) for line in path.read_text().splitlines()]
    sets = load(tiny_bundle.exact, threads=1).generate(SOURCES, "effect", options=QUICK)
    assert [json.loads(line)["source"] for line in lines] == SOURCES
    assert [[entry["text"] for entry in json.loads(line)["answers"]] for line in lines] == [
        list(answers.texts) for answers in sets
    ]


def test_a_stopped_run_continues_to_the_same_bytes(
    tiny_bundle: TinyBundle, finished: Path, tmp_path: Path
) -> None:
    job = job_of(tiny_bundle)
    with pytest.raises(KeyboardInterrupt):
        answer(tmp_path / "out", job, stage=stopped_after_one_shard)
    first = tmp_path / "out" / "answers-00000.jsonl"
    made = first.stat().st_mtime_ns
    assert not (tmp_path / "out" / "answers-00001.jsonl").exists()
    assert answer(tmp_path / "out", job).written == 2
    assert first.stat().st_mtime_ns == made
    assert files(tmp_path / "out") == files(finished)


def test_a_finished_folder_is_left_alone(tiny_bundle: TinyBundle, finished: Path) -> None:
    before = files(finished)
    assert answer(finished, job_of(tiny_bundle)).written == 0
    assert files(finished) == before


def test_other_settings_or_sources_are_errors_that_say_what_changed(
    tiny_bundle: TinyBundle, finished: Path
) -> None:
    job = job_of(tiny_bundle)
    with pytest.raises(Cod3sError, match="k was 3, is now 4"):
        answer(finished, replace(job, config=QUICK.with_values(k=4)))
    with pytest.raises(Cod3sError, match="bundle was"):
        answer(finished, replace(job, bundle=tiny_bundle.small))
    with pytest.raises(Cod3sError, match="its 8 sources are different ones"):
        answer(finished, job, [*SOURCES[:-1], "the clerk won a prize in town"])


@pytest.mark.parametrize(
    ("sources", "change", "error", "match"),
    [
        ([], {}, Cod3sError, "no source"),
        (["it rained", "x" * 20_000], {}, SentenceError, "source 2: "),
        (SOURCES, {"relation": "efect"}, Cod3sError, "efect"),
        (SOURCES, {"system": "cod3s-bean-mmi"}, UsageError, "cod3s-bean-mmi"),
    ],
    ids=["nothing to answer", "too long", "unknown relation", "unknown system"],
)
def test_bad_input_fails_before_any_answer(
    tiny_bundle: TinyBundle, tmp_path: Path, sources: list[str], change: dict[str, str], error: type, match: str
) -> None:
    with pytest.raises(error, match=match):
        answer(tmp_path / "out", replace(job_of(tiny_bundle), **change), sources)  # type: ignore[arg-type]
    assert not list(tmp_path.glob("out/*.json*"))


def test_a_folder_with_other_files_is_not_touched(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(Cod3sError, match="already contains files"):
        answer(tmp_path, job_of(tiny_bundle))
    assert sorted(files(tmp_path)) == ["thesis.txt"]


def test_the_command_writes_a_folder_and_continues(cod3s: Run, tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    (tmp_path / "sources.txt").write_text("\n".join(SOURCES[:3]) + "\n\n")
    command = ["generate", "effect", "--bundle", tiny_bundle.exact, "--input", "sources.txt", "-k", "2"]
    done = cod3s(*command, "-o", "answers", "--shard-size", "2", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"folder": "answers", "sources": 3, "shards": 2, "written": 2}
    assert "skipped 1 blank line of" in done.stderr
    again = cod3s(*command, "-o", "answers", "--shard-size", "2")
    assert "nothing to do" in again.stderr
    assert cod3s(*command, "--engine", "ray").returncode == 2
