"""Training end to end on a small made-up corpus: it learns, resumes, and exports what it learned."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

from cod3s.bundle import verify
from cod3s.bundle.export import export
from cod3s.cli.train import train as command
from cod3s.corpus import prepare
from cod3s.corpus.manifest import PrepareConfig
from cod3s.errors import Cod3sError, MissingExtraError
from cod3s.train import PRESETS, train
from cod3s.train.run_folder import FINISHED, clear_disk_errors
from conftest import ROOT, Run

FIRST = [
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gia",
    "Hugo",
    "Ida",
    "Jon",
    "Kim",
    "Leo",
    "Mia",
    "Ned",
    "Olga",
]
FIRST += ["Pia", "Rosa", "Sam", "Tess", "Uma"]
LAST = ["Abel", "Brook", "Cole", "Drew", "Ellis", "Frost", "Grant", "Hale", "Irwin", "James", "Knox", "Lane"]
LAST += ["Marsh", "Nash", "Owens", "Price"]
EVENTS = {
    "lost the key": ("called a locksmith", "slept outside"),
    "missed the bus": ("was late for work", "took a taxi"),
    "won a prize": ("threw a party", "bought a car"),
    "caught a cold": ("stayed in bed", "drank hot tea"),
}


def made_up_pairs(number: int) -> str:
    """Causes with two possible effects each; every name is used once, so that no sentence repeats."""
    draw = random.Random(0)
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    draw.shuffle(names)
    rows = ["cause\teffect\torder"]
    for name in names[:number]:
        event = draw.choice(list(EVENTS))
        rows.append(f"{name} {event}\t{name} {draw.choice(EVENTS[event])}\tso")
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(made_up_pairs(320), tmp_path_factory.mktemp("corpus"))


def prepared(pairs: str, folder: Path) -> Path:
    (folder / "pairs.tsv").write_text(pairs)
    config = PrepareConfig(
        relation="effect", orders="all", filter="none", encoder="static", dev=30, test=0, held_out=0.15
    )
    prepare([str(folder / "pairs.tsv")], str(folder / "corpus"), config)
    return folder / "corpus"


TINY = PRESETS["tiny"].with_values(evaluate_every=10, epochs=2, batch_tokens=512)


@pytest.fixture(scope="module")
def finished(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("run") / "run"
    train(corpus, run, TINY)
    return run


def weights(run: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(run / "shared" / "model" / "model.safetensors")


def test_a_run_explains_itself(finished: Path) -> None:
    assert json.loads((finished / "config.json").read_text())["config"]["shape"] == "tiny"
    figures = json.loads((finished / "shared" / "figures.json").read_text())
    assert {"loss", "plain_nats", "signature_bit_accuracy", "inverse_nats"} <= set(figures)
    assert (finished / "shared" / "log.csv").read_text().startswith("step,figure,value\n")
    assert (finished / "shared" / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_killed_run_resumes_to_the_same_weights(corpus: Path, finished: Path, tmp_path: Path) -> None:
    """kill -9 as soon as the first checkpoint is there; the rest is done by --resume."""
    script = (
        "import sys; from pathlib import Path; from cod3s.train import PRESETS, train;"
        "train(Path(sys.argv[1]), Path(sys.argv[2]),"
        " PRESETS['tiny'].with_values(evaluate_every=10, epochs=2, batch_tokens=512))"
    )
    run = tmp_path / "run"
    threads = str(torch.get_num_threads())  # sums are rounded by them, so both parts need the same number
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(corpus), str(run)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": threads},
    )
    deadline = time.monotonic() + 120
    while not list(run.glob("shared/checkpoint-*/trainer_state.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (run / "shared" / "figures.json").exists(), "it was to be killed before it had finished"
    half = run / "shared" / "checkpoint-9999"  # a kill may also come while a checkpoint is written
    half.mkdir()
    (half / "trainer_state.json").write_text('{"global_step": 99')
    train(corpus, run, TINY, resume=True)
    wanted, found = weights(finished), weights(run)
    assert all((wanted[name] == found[name]).all() for name in wanted)
    log = (run / "shared" / "log.csv").read_text()
    assert log.count(",eval_loss,") == (finished / "shared" / "log.csv").read_text().count(",eval_loss,")


@pytest.mark.parametrize(
    "options",
    [{"max_steps": 4}, {"patience": 1, "learning_rate": 1e-12}],
    ids=["all steps taken", "no patience left"],
)
def test_a_run_killed_after_its_last_step_takes_no_further_step(
    options: dict[str, float], corpus: Path, tmp_path: Path
) -> None:
    config = TINY.with_values(evaluate_every=2, validate_pairs=5, **options)
    train(corpus, tmp_path / "run", config)
    folder = tmp_path / "run" / "shared"
    wanted, log = weights(tmp_path / "run"), (folder / "log.csv").read_text()
    for name in ("finished", "figures.json"):
        (folder / name).unlink()
    shutil.rmtree(folder / "model")
    train(corpus, tmp_path / "run", config, resume=True)
    resumed = weights(tmp_path / "run")
    assert all((wanted[name] == resumed[name]).all() for name in wanted)
    assert (folder / "log.csv").read_text() == log
    assert (folder / "finished").exists()


def test_a_disk_that_is_full_while_torch_writes_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="could not be written") as raised, clear_disk_errors(tmp_path):
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 649216 vs 649104")
    assert "--resume" in raised.value.hint
    with pytest.raises(RuntimeError, match="size mismatch"), clear_disk_errors(tmp_path):
        raise RuntimeError("size mismatch for a tensor")


def test_two_processes_reach_the_loss_of_one(corpus: Path, tmp_path: Path) -> None:
    """Two processes with one batch each make the steps of one process with two; only dropout differs."""
    script = tmp_path / "two.py"
    script.write_text(
        "import sys; from pathlib import Path; from cod3s.train import PRESETS, train\n"
        "config = PRESETS['tiny'].with_values(evaluate_every=10, epochs=2, batch_tokens=512)\n"
        "train(Path(sys.argv[1]), Path(sys.argv[2]), config)\n"
    )
    subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            "2",
            script,
            corpus,
            tmp_path / "two",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        check=True,
    )
    two = json.loads((tmp_path / "two" / "shared" / "figures.json").read_text())
    one = train(corpus, tmp_path / "one", TINY.with_values(accumulate=2))["shared"]
    assert two["loss"] == pytest.approx(one["loss"], rel=0.05)
    last = [
        (run / "shared" / "log.csv").read_text().splitlines()[-1] for run in (tmp_path / "one", tmp_path / "two")
    ]
    assert last[0].split(",")[0] == last[1].split(",")[0], "both made the same number of steps"


def test_a_finished_run_is_neither_repeated_nor_mixed_with_another(corpus: Path, finished: Path) -> None:
    before = (finished / "shared" / "model" / "model.safetensors").stat().st_mtime_ns
    train(corpus, finished, TINY, resume=True)
    assert (finished / "shared" / "model" / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(Cod3sError, match="different config"):
        train(corpus, finished, TINY.with_values(seed=2), resume=True)
    with pytest.raises(Cod3sError, match="already holds a run"):
        train(corpus, finished, TINY)


def test_a_run_may_end_before_its_epochs_with_its_rate_at_zero(corpus: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    config = TINY.with_values(max_steps=6, schedule="linear", warmup_steps=2, evaluate_every=3)
    train(corpus, tmp_path / "run", config, report=lambda step, last, *_: seen.append((step, last)))
    assert seen[-1] == (6, 6)
    rates = [line.split(",") for line in (tmp_path / "run" / "shared" / "log.csv").read_text().splitlines()]
    assert float([value for step, figure, value in rates if figure == "learning_rate"][-1]) < 0.3 * 1e-3
    assert (tmp_path / "run" / "shared" / FINISHED).exists()


def test_a_run_that_is_out_of_time_can_go_on(corpus: Path, tmp_path: Path) -> None:
    endless = TINY.with_values(epochs=1000, patience=1000)
    ticks = count()  # a clock that moves by a second whenever it is read
    first = train(corpus, tmp_path / "run", endless, seconds=20, clock=lambda: float(next(ticks)))
    again = train(corpus, tmp_path / "run", endless, seconds=20, clock=lambda: float(next(ticks)), resume=True)
    assert again["shared"]["loss"] < first["shared"]["loss"]


def test_the_time_of_a_run_holds_for_all_of_its_models(corpus: Path, tmp_path: Path) -> None:
    config = TINY.with_values(layout="separate", roles=("plain", "inverse"), epochs=1000)
    assert list(train(corpus, tmp_path / "run", config, seconds=1e-9)) == ["effect-plain"]


def test_a_separate_layout_trains_one_model_a_role(corpus: Path, tmp_path: Path) -> None:
    config = TINY.with_values(layout="separate", roles=("plain", "signature"), epochs=1, bits_per_token=16)
    figures = train(corpus, tmp_path / "run", config)
    assert sorted(figures) == ["effect-plain", "effect-signature"]
    facts = export(tmp_path / "run", tmp_path / "bundle", quantization="float32")
    assert facts.models == {"effect": {"plain": "effect-plain", "signature": "effect-signature"}}
    verify(tmp_path / "bundle", facts)


def test_a_bundle_has_a_card_its_licence_and_its_levels(finished: Path, tmp_path: Path) -> None:
    options = {"beam": 4}
    facts = export(
        finished, tmp_path / "bundle", licence="CC0-1.0", about="Likes names.", levels=63, decoding=options
    )
    verify(tmp_path / "bundle", facts)
    assert (facts.licence, facts.levels, facts.decoding) == ("CC0-1.0", 63, options)
    card = (tmp_path / "bundle" / "MODEL_CARD.md").read_text()
    assert all(part in card for part in ("CC0-1.0", "Likes names.", "int8 with 63 levels"))


def test_an_unfinished_run_is_not_exported(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text((finished / "config.json").read_text())
    with pytest.raises(Cod3sError, match="has not finished"):
        export(tmp_path / "run", tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_the_commands_go_from_corpus_to_bundle(corpus: Path, here: Run) -> None:
    options = ("--preset", "tiny", "--epochs", "1", "--roles", "plain,sentence", "--json")
    trained = here("train", corpus, "-o", "run", *options)
    assert json.loads(trained.stdout)["figures"]["shared"]["loss"] > 0, trained.stderr
    exported = here("bundle", "export", "run", "-o", "bundle", "--json")
    assert json.loads(exported.stdout)["bytes"] > 100_000, exported.stderr
    again = here("bundle", "export", "run", "-o", "bundle")
    assert again.returncode == 1
    assert "bundle already exists" in again.stderr
    assert "--force" in again.stderr
    assert here("bundle", "export", "run", "-o", "bundle", "--force").returncode == 0
    shown = json.loads(here("bundle", "info", "bundle", "--json").stdout)
    assert shown["checksums_hold"]
    assert shown["models"] == {"effect": {"plain": "shared", "sentence": "shared"}}
    assert "16 bits of static" in here("bundle", "info", "bundle").stdout
    wrong = here("train", corpus, "-o", "other", "--preset", "smal")
    assert wrong.returncode == 2
    assert "did you mean 'small'?" in wrong.stderr
    two_starts = here("train", corpus, "-o", "other", "--init", "smollm2", "--start-run", "run")
    assert two_starts.returncode == 2
    assert "leave one of them out" in two_starts.stderr


def test_a_run_that_a_wrong_option_ended_can_be_begun_anew(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="called 'nope'"):
        train(corpus, tmp_path / "run", TINY.with_values(corpora={"nope": 0.5}))
    assert train(corpus, tmp_path / "run", TINY, seconds=1e-9)["shared"]["loss"] > 0


def test_a_folder_that_holds_other_things_is_not_trained_into(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("ten years")
    with pytest.raises(Cod3sError, match="contains other files"):
        train(corpus, tmp_path, TINY)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_long_pairs_are_left_out_and_counted_and_nothing_but_long_ones_is_an_error(tmp_path: Path) -> None:
    story = " and then slept outside" * 60
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    (tmp_path / "some").mkdir()
    long = "".join(f"it rained on {name}\t{name} fell{story}\tso\n" for name in FIRST)
    corpus = prepared(made_up_pairs(320) + long, tmp_path / "some")
    figures = train(corpus, tmp_path / "run", TINY)["shared"]
    assert 10 <= figures["pairs_too_long"] <= 20  # the others are held out, and left out there too
    assert np.isfinite(figures["loss"])
    (tmp_path / "all").mkdir()
    pairs = "cause\teffect\torder\n" + "".join(f"{name} fell{story}\t{name} rose{story}\tso\n" for name in names)
    with pytest.raises(Cod3sError, match="too long"):
        train(prepared(pairs, tmp_path / "all"), tmp_path / "run-of-all", TINY)


def test_a_share_of_no_corpus_is_an_error(corpus: Path, tmp_path: Path) -> None:
    """A misspelled name; and these pairs do not name their corpus, so none is left."""
    for corpora, says in [({"lettres": 0.5}, "called 'lettres'"), ({"": 0.0}, "nothing to learn")]:
        with pytest.raises(Cod3sError, match=says):
            train(corpus, tmp_path / "run", PRESETS["tiny"].with_values(corpora=corpora))


def test_a_run_can_start_from_the_weights_of_another(corpus: Path, finished: Path, tmp_path: Path) -> None:
    """It is better after one step than a new one, and has the pieces of the first."""
    short = PRESETS["tiny"].with_values(evaluate_every=1, batch_tokens=256, warmup_steps=100)
    going_on = train(corpus, tmp_path / "on", short.with_values(start_run=str(finished)), seconds=1e-9)
    new = train(corpus, tmp_path / "new", short, seconds=1e-9)
    assert going_on["shared"]["loss"] < 0.8 * new["shared"]["loss"]
    assert (tmp_path / "on" / "tokens.model").read_bytes() == (finished / "tokens.model").read_bytes()
    facts = export(tmp_path / "on", tmp_path / "bundle")
    assert facts.training["config"]["start_run"] == finished.name, "a bundle tells no one's folders"


def test_weights_of_another_shape_are_refused(corpus: Path, finished: Path, tmp_path: Path) -> None:
    other = PRESETS["tiny"].with_values(bits_per_token=1, start_run=str(finished))
    with pytest.raises(Cod3sError, match="do not fit"):
        train(corpus, tmp_path / "run", other)


def test_the_log_can_also_be_written_for_tensorboard(corpus: Path, tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    train(corpus, tmp_path / "run", TINY.with_values(epochs=1, roles=("plain",), tensorboard=True))
    found = events.EventAccumulator(str(tmp_path / "run" / "shared" / "tensorboard"))
    found.Reload()
    assert "eval/plain_nats" in found.Tags()["scalars"]


def test_without_tensorboard_the_option_says_what_to_install(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtraError) as caught:
        command(corpus=corpus, output=tmp_path / "run", tensorboard=True)
    assert caught.value.hint == "pip install 'cod3s[tensorboard]'"
    assert not (tmp_path / "run").exists()
