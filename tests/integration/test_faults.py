"""Machine-made faults, in the short form of the campaigns in benchmarks/campaign."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from campaign.configurations import try_configs
from campaign.crowds import send_crowd
from campaign.damaged_files import attack
from campaign.databases import rate_through_kills
from campaign.disks import DISK_FAULTS, DiskFault
from campaign.guarded import Guarded, refused_or_done
from campaign.material import ENVIRONMENT
from campaign.readers import Reader, make_readers
from campaign.strangers import spring_all
from campaign.tally import Budget
from campaign.watch import Sample, Watch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cod3s.cli.main import app
from cod3s.errors import Cod3sError
from cod3s.io.checked_records import parse_record
from cod3s.io.disk import replaced_folder
from cod3s.io.lock import sole_writer
from cod3s.study.folder import Item
from cod3s.web.limits import Limits
from postgresql_server import cluster
from tiny_bundle import TinyBundle

CASES = Budget(cases=20, seconds=20, seed=7)


@pytest.fixture(scope="module")
def readers(tiny_bundle: TinyBundle, tmp_path_factory: pytest.TempPathFactory) -> list[Reader]:
    corpus = tiny_bundle.run.parent / "corpus"
    return make_readers(tiny_bundle.small, corpus, tmp_path_factory.mktemp("readers"))


def test_damaged_files_are_read_or_refused_with_a_message(readers: list[Reader]) -> None:
    others = [content for reader in readers for content in reader.files.values() if content]
    tallies = [attack(reader, others, CASES) for reader in readers]
    assert [finding for tally in tallies for finding in tally.findings] == []
    assert sum(tally.tried for tally in tallies) > 10 * len(tallies)


def test_a_case_that_ends_its_process_is_found_and_the_others_are_tried() -> None:
    def attempt(number: int) -> str:
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return "odd" if number == 1 else ""

    with Guarded(lambda: attempt) as guarded:
        results = dict(guarded.try_all(range(5)))
    assert results == {0: "", 1: "odd", 2: "the process died (SIGKILL)", 3: "", 4: ""}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 99), content=st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused_with_a_message(readers: list[Reader], number: int, content: bytes) -> None:
    """Only readers that are Python to the end, because a crash would take the tests with it."""
    texts = [reader for reader in readers if len(reader.files) == 1 and "sqlite" not in str(reader.targets)]
    reader = texts[number % len(texts)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / reader.targets[0]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        assert refused_or_done(lambda: reader.read(Path(folder))) == ""


@pytest.mark.parametrize("kind", ["COPA:", "bundle:", "code:", "bins:", "CSV bomb", "pairs bomb", "text bomb"])
def test_files_made_to_do_harm_are_refused(kind: str, tiny_bundle: TinyBundle) -> None:
    tally = spring_all(tiny_bundle.small, kind)
    assert tally.tried > 0
    assert tally.findings == []


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ([], "JSON object"),
        ({"id": 1, "kind": "answer", "statement": "it rained"}, "id is int, but must be str"),
        ({"id": "a", "kind": "answer", "statement": "\ud800"}, "surrogates not allowed"),
        ({"id": "a", "kind": "answer", "statement": ["x"]}, "statement is list"),
        ({"id": "a", "kind": "answer", "statement": "x", "odd": 1}, "unknown field 'odd'"),
        ({"id": "a", "kind": "answer"}, "missing 1 required positional argument: 'statement'"),
    ],
)
def test_a_record_says_which_value_does_not_fit(content: object, fault: str) -> None:
    with pytest.raises((TypeError, ValueError), match=fault):
        parse_record(Item, content)


# Two runs into one folder


def test_a_folder_has_one_writer_at_a_time(tmp_path: Path) -> None:
    with sole_writer(tmp_path / "out") as held:
        assert held
        with pytest.raises(Cod3sError, match="another run is writing into"), sole_writer(tmp_path / "out"):
            pass
        with sole_writer(tmp_path / "other") as other_held:
            assert other_held
    with sole_writer(tmp_path / "out") as held_again:
        assert held_again
    assert list(tmp_path.iterdir()) == [], "the lock leaves nothing behind"


def test_a_crash_leaves_no_lock_behind(tmp_path: Path) -> None:
    crash = "import os, pathlib, sys; from cod3s.io.lock import sole_writer\n"
    crash += "with sole_writer(pathlib.Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", crash, tmp_path / "out"], env=ENVIRONMENT, check=False)
    assert (tmp_path / ".out.lock").exists(), "the file is left, but nobody holds it"
    with sole_writer(tmp_path / "out") as held:
        assert held


def test_a_file_system_without_locks_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("cod3s.io.lock.fcntl", None)
    with sole_writer(tmp_path / "out") as held:
        assert not held
    assert "do not start a second run" in caplog.text


def test_every_command_that_writes_a_folder_refuses_a_second_run(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    corpus, output = tiny_bundle.run.parent / "corpus", tmp_path / "out"
    data = tmp_path / "sources.tsv"
    data.write_text("source\trelation\nthe baker lost the key\teffect\n")
    small = ["--bundle", str(tiny_bundle.small), "--encoders", "bundle"]
    runs = [
        ["prepare", str(tiny_bundle.run.parent / "pairs.tsv"), "--encoder", "none"],
        ["train", str(corpus), "--preset", "tiny"],
        ["bundle", "export", str(tiny_bundle.run)],
        ["evaluate", str(data), *small, "--systems", "s2s"],
        ["sweep", str(data), *small],
        ["generate", "effect", "it rained", "--bundle", str(tiny_bundle.small)],
    ]
    with sole_writer(output):
        for arguments in runs:
            result = CliRunner().invoke(app, [*arguments, "-o", str(output)])
            assert isinstance(result.exception, Cod3sError), arguments[0]
            assert "another run is writing into" in result.exception.message
    assert not output.exists()


# Kills and disks


def test_what_killed_exports_left_is_removed_by_the_next(tmp_path: Path) -> None:
    for name in (".out.abcdefgh.part", ".out.abcdefgh.old", ".out.other.abcdefgh.part"):
        (tmp_path / name).mkdir()
    with replaced_folder(tmp_path / "out", "mark") as partial:
        (partial / "mark").touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.other.abcdefgh.part", "out"]


_FORKED = """
import sys
from pathlib import Path
from campaign.commands import commands
from campaign.failing_disks import try_command
from campaign.kills import kill_and_go_on
from campaign.tally import Budget

what, made, scratch = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
(command,) = [command for command in commands(scratch, made) if command.name == "prepare"]
(scratch / "cases").mkdir()
if what == "kills":
    tallies = [kill_and_go_on(command, scratch / "cases", Budget(cases=5, seconds=30, seed=7))]
else:
    tallies = [*try_command(command, made, scratch / "cases", Budget(cases=1, seconds=30, seed=7))]
assert all(tally.tried or tally.remark for tally in tallies)
sys.exit("\\n".join(finding for tally in tallies for finding in tally.findings) or 0)
"""


@pytest.mark.parametrize("what", ["kills", "failing disks"])
def test_a_command_survives(what: str, tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    """In a process without threads, because commands are forked from it; only root can mount failing disks."""
    line = [sys.executable, "-c", _FORKED, what, tiny_bundle.run.parent, tmp_path]
    subprocess.run(line, env=ENVIRONMENT, check=True)


@pytest.mark.parametrize("fault", DISK_FAULTS, ids=lambda fault: fault.name)
def test_a_failing_disk_leaves_the_old_result(fault: DiskFault, tmp_path: Path) -> None:
    assert fault.try_writers(tmp_path) == []


def test_a_killed_database_and_two_servers_lose_and_double_no_rating(tmp_path: Path) -> None:
    with cluster(fsync=True) as server:
        assert rate_through_kills(server, tmp_path, kills=1) == []


# Crowds


def test_a_crowd_of_good_and_bad_clients_gets_documented_replies(tiny_bundle: TinyBundle) -> None:
    tally = send_crowd(tiny_bundle.small, Budget(cases=1, seconds=5, seed=7), 12, Limits(seconds=5))
    assert tally.tried > 12
    assert tally.findings == []


def test_memory_that_grows_is_noticed() -> None:
    flat = Watch([Sample(second, 100.0, 8) for second in range(100)])
    growing = Watch([Sample(second, 100.0 + second, 8) for second in range(100)])
    leaking = Watch([Sample(second, 100.0, second) for second in range(100)])
    assert flat.growth(settled=0.2, width=0.1) == ""
    assert "memory grew from 124" in growing.growth(settled=0.2, width=0.1)
    assert "open files grew from 24" in leaking.growth(settled=0.2, width=0.1)


def test_random_configurations_obey_the_rule_and_do_not_depend_on_batches_or_threads(
    tiny_bundle: TinyBundle,
) -> None:
    tally = try_configs(tiny_bundle.small, Budget(cases=6, seconds=30, seed=3))
    assert tally.tried > 0
    assert tally.findings == []
