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
from cod3s.errors import Cod3sError, MissingExtraError, UsageError
from cod3s.io.checked_records import parse_record
from cod3s.model.roles import ROLES
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary, train_pieces
from cod3s.train import PRESETS, TrainConfig, train
from cod3s.train.batches import BatchStream
from cod3s.train.config import find_preset, parse_roles
from cod3s.train.curves import Log
from cod3s.train.lessons import IGNORED, Examples, lesson
from cod3s.train.pairs import PairTable, Rows
from cod3s.train.run_folder import FINISHED, clear_disk_errors
from cod3s.train.training_run import members
from cod3s.train.validate import majority_bit_accuracy
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
    "Pia",
    "Rosa",
    "Sam",
    "Tess",
    "Uma",
]
LAST = [
    "Abel",
    "Brook",
    "Cole",
    "Drew",
    "Ellis",
    "Frost",
    "Grant",
    "Hale",
    "Irwin",
    "James",
    "Knox",
    "Lane",
    "Marsh",
    "Nash",
    "Owens",
    "Price",
]
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
    assert {"loss", "plain_text_loss", "signature_bit_accuracy", "inverse_text_loss"} <= set(figures)
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


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ("step,figure,value\n2,loss,5.0\n4,loss,4.0\n", "2,loss,5.0\n"),
        ("step,figure,value\n2,loss,5.0\n4,lo", "2,loss,5.0\n"),
        ("step,fig", ""),
        ("", ""),
    ],
    ids=["later steps", "half of a row", "half of a header", "nothing"],
)
def test_a_log_that_a_kill_left_half_written_is_mended(content: str, kept: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(content)
    Log(tmp_path / "log.csv").cut(2)
    assert (tmp_path / "log.csv").read_text() == f"step,figure,value\n{kept}"


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


def test_a_finished_run_is_not_trained_again(corpus: Path, finished: Path) -> None:
    before = (finished / "shared" / "model" / "model.safetensors").stat().st_mtime_ns
    train(corpus, finished, TINY, resume=True)
    assert (finished / "shared" / "model" / "model.safetensors").stat().st_mtime_ns == before


def test_another_config_does_not_resume_a_run(corpus: Path, finished: Path) -> None:
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


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(Cod3sError, match="'larning_rate'") as caught:
        TrainConfig().with_values(larning_rate=1)
    assert "learning_rate" in caught.value.hint
    with pytest.raises(Cod3sError):
        find_preset("papr")
    with pytest.raises(Cod3sError):
        TrainConfig(roles=())
    with pytest.raises(Cod3sError, match="'warm'"):
        TINY.with_values(shape="warm")


@pytest.mark.parametrize(
    "wrong",
    [{"learning_rate": -1.0}, {"learning_rate": float("nan")}, {"batch_tokens": 0}, {"epochs": 0}, {"seed": -1}],
)
def test_numbers_that_cannot_train_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        TINY.with_values(**wrong)


def test_a_run_that_a_wrong_option_ended_can_be_begun_anew(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(Cod3sError, match="called 'nope'"):
        train(corpus, tmp_path / "run", TINY.with_values(corpora={"nope": 0.5}))
    assert train(corpus, tmp_path / "run", TINY, seconds=1e-9)["shared"]["loss"] > 0


def test_a_folder_that_holds_other_things_is_not_trained_into(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("ten years")
    with pytest.raises(Cod3sError, match="contains other files"):
        train(corpus, tmp_path, TINY)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_members_of_both_layouts() -> None:
    assert [m.name for m in members(TrainConfig(), ["effect", "cause"])] == ["shared"]
    names = [member.name for member in members(PRESETS["paper"], ["effect", "cause"])]
    assert len(names) == 8
    assert "cause-inverse" in names


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    path = tmp_path_factory.mktemp("words") / "tokens.model"
    train_pieces(made_up_pairs(200).split("\n"), path, 300)
    return Vocabulary(path, [f"<effect:{role}>" for role in ROLES], SignatureTokens(4, 2, positional=True))


def make_table(words: Vocabulary, number: int, corpora: dict[str, float] | None = None) -> PairTable:
    rows = Rows(
        source=[f"Ada lost {n} keys" for n in range(number)],
        target=[f"she slept {n} nights outside" for n in range(number)],
        signature=[f"{n % 16:04b}" for n in range(number)],
        source_signature=[f"{15 - n % 16:04b}" for n in range(number)],
        corpus=["letters" if n % 2 else "diaries" for n in range(number)],
    )
    return PairTable(rows, words, lambda text: [*words.encode_text(text), words.end], corpora or {}, 128)


def make_examples(words: Vocabulary, number: int, share: float = 1.0) -> Examples:
    tables = {"effect": make_table(words, number)}
    return Examples([lesson("effect", role, tables, {}, share) for role in ROLES], words, [words.end])


@pytest.mark.parametrize("role", range(4), ids=ROLES)
def test_each_role_learns_its_part_of_a_pair(role: int, words: Vocabulary) -> None:
    example = make_examples(words, 3)[3 * role + 1]
    source, target = words.encode_text("Ada lost 1 keys"), words.encode_text("she slept 1 nights outside")
    bits, end = words.encode_signature("0001"), [words.end]
    learned = [target, bits, bits + target, source][role]
    assert [label for label in example.labels if label != IGNORED] == learned + end
    assert example.read == (end if ROLES[role] == "inverse" else source + end)
    assert example.given[0] == words.id(f"<effect:{ROLES[role]}>")
    assert len(example.given) == len(example.labels)
    assert example.given[1:] == (bits if ROLES[role] == "inverse" else []) + learned


def test_the_inverse_role_learns_from_the_other_relation(words: Vocabulary) -> None:
    """p(cause given the signature of its effect) comes from "EFFECT because CAUSE": its source's signature."""
    tables = {"effect": make_table(words, 2), "cause": make_table(words, 5)}
    own = lesson("effect", "inverse", tables, {"effect": "cause", "cause": "effect"})
    assert len(own) == 5
    example = Examples([own], words, [words.end])[3]
    bits, target = words.encode_signature("1100"), words.encode_text("she slept 3 nights outside")
    assert example.given == [words.id("<effect:inverse>"), *bits, *target]


def test_the_majority_of_bits_is_what_guessing_gets() -> None:
    """The commoner bits of the training signatures are 1, 0 and (a tie) 0; three of six held-out bits are."""
    assert majority_bit_accuracy(["101", "100", "110", "001"], ["100", "011"]) == pytest.approx(3 / 6)
    assert majority_bit_accuracy(["1", "1"], ["1", "1"]) == 1.0


def test_a_share_of_the_pairs_is_drawn_anew_each_epoch(words: Vocabulary) -> None:
    examples = make_examples(words, 500, share=0.25)
    stream = BatchStream(examples.lengths, examples.shares, 600, seed=1)
    number = stream.batches_per_epoch()
    first, second = (
        {place for n in span for place in stream[n]} for span in (range(number), range(number, 2 * number))
    )
    assert 0.2 < len(first) / len(examples) < 0.3
    assert len(first & second) < 0.5 * len(first)


def test_a_pair_that_the_decoder_cannot_hold_is_never_drawn(words: Vocabulary) -> None:
    targets = ["she slept" + " outside" * n for n in range(1, 11)]
    rows = Rows(["Ada lost the key"] * 10, targets, ["0110"] * 10, ["1001"] * 10, ["letters"] * 10)
    positions = 3 + len(words.encode_text(targets[6]))  # behind a tag and two tokens of the signature
    table = PairTable(rows, words, words.encode_text, {}, positions)
    examples = Examples([lesson("effect", "sentence", {"effect": table}, {})], words, [words.end])
    stream = BatchStream(examples.lengths, examples.shares, 600, seed=1)
    drawn = [place for n in range(stream.batches_per_epoch()) for place in stream[n]]
    assert sorted(drawn) == list(range(7))
    assert table.too_long == 3
    assert max(len(examples[place].given) for place in drawn) == positions


def test_a_run_with_long_pairs_leaves_them_out_and_says_how_many(tmp_path: Path) -> None:
    stories = [f"{name} fell" + " and then slept outside" * 60 for name in FIRST]
    long = "".join(f"it rained on {name}\t{story}\tso\n" for name, story in zip(FIRST, stories, strict=True))
    corpus = prepared(made_up_pairs(320) + long, tmp_path)
    figures = train(corpus, tmp_path / "run", TINY)["shared"]
    assert 10 <= figures["pairs_too_long"] <= 20  # the others are held out, and left out there too
    assert np.isfinite(figures["loss"])


def test_a_corpus_of_nothing_but_long_pairs_is_an_error(tmp_path: Path) -> None:
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    story = " and then slept outside" * 60
    pairs = "cause\teffect\torder\n" + "".join(f"{name} fell{story}\t{name} rose{story}\tso\n" for name in names)
    with pytest.raises(Cod3sError, match="too long"):
        train(prepared(pairs, tmp_path), tmp_path / "run", TINY)


def test_a_corpus_may_be_seen_less_often_than_the_others(words: Vocabulary) -> None:
    tables = {"effect": make_table(words, 400, {"letters": 0.25})}
    examples = Examples([lesson("effect", "plain", tables, {}, 0.5)], words, [words.end])
    stream = BatchStream(examples.lengths, examples.shares, 600, seed=1)
    drawn = [place for n in range(stream.batches_per_epoch()) for place in stream[n]]
    letters = sum(place % 2 for place in drawn)
    assert 10 <= letters <= 45  # of 200, an eighth: its share of the corpus times the role's
    assert 70 <= len(drawn) - letters <= 130  # of 200, the role's half


@pytest.mark.parametrize(
    ("corpora", "says"),
    [
        ({"letters": 1.5}, "the share of the corpus"),  # more than all of it
        ({"lettres": 0.5}, "called 'lettres'"),  # misspelt
        ({"": 0.0}, "nothing to learn"),  # these pairs do not name their corpus: none is left
    ],
)
def test_a_share_of_no_corpus_is_an_error(
    corpora: dict[str, float], says: str, corpus: Path, tmp_path: Path
) -> None:
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


@pytest.mark.parametrize(
    ("text", "roles", "shares"),
    [
        ("plain", ("plain",), (1.0,)),
        ("plain:0.5,sentence", ("plain", "sentence"), (0.5, 1.0)),
        ("plain:half", None, None),  # not a number
    ],
)
def test_roles_may_name_their_shares(text: str, roles: tuple[str, ...] | None, shares: tuple[float, ...]) -> None:
    if roles is None:
        with pytest.raises(Cod3sError, match="roles and shares"):
            parse_roles(text)
    else:
        assert parse_roles(text) == (roles, shares)


@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.0), (0.5, 2.0)], ids=["too few", "none", "too much"])
def test_wrong_shares_are_an_error(shares: tuple[float, ...]) -> None:
    with pytest.raises(Cod3sError, match="are not the shares of"):
        TrainConfig(roles=("plain", "sentence"), shares=shares)


def test_a_config_survives_its_record() -> None:
    config = TrainConfig(roles=("plain", "sentence"), shares=(0.5, 1.0), schedule="linear")
    assert parse_record(TrainConfig, json.loads(json.dumps(config.record()))) == config


def test_batches_hold_every_example_once_an_epoch_and_little_padding(words: Vocabulary) -> None:
    examples = make_examples(words, 500)
    stream = BatchStream(examples.lengths, examples.shares, 600, seed=1)
    number = stream.batches_per_epoch()
    batches = [stream[place] for place in range(number)]
    assert sorted(place for batch in batches for place in batch) == list(range(len(examples)))
    longest = [examples.lengths[batch].max(axis=0).sum() * len(batch) for batch in batches]
    assert max(longest) <= 600
    assert examples.lengths.sum() / sum(longest) > 0.9


def test_a_batch_is_the_same_whenever_it_is_asked_for(words: Vocabulary) -> None:
    own = make_examples(words, 50)
    one, two, other = (BatchStream(own.lengths, own.shares, 300, seed=seed) for seed in (1, 1, 2))
    forward = [one[place] for place in range(60)]
    assert [two[place] for place in reversed(range(60))] == forward[::-1]
    assert forward != [other[place] for place in range(60)]


def test_the_log_can_also_be_written_for_tensorboard(corpus: Path, tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    train(corpus, tmp_path / "run", TINY.with_values(epochs=1, roles=("plain",), tensorboard=True))
    found = events.EventAccumulator(str(tmp_path / "run" / "shared" / "tensorboard"))
    found.Reload()
    assert "eval/plain_text_loss" in found.Tags()["scalars"]


def test_without_tensorboard_the_option_says_what_to_install(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtraError) as caught:
        command(corpus=corpus, output=tmp_path / "run", tensorboard=True)
    assert caught.value.hint == "pip install 'cod3s[tensorboard]'"
    assert not (tmp_path / "run").exists()


def test_a_run_of_an_earlier_version_can_be_resumed(corpus: Path, finished: Path, tmp_path: Path) -> None:
    """Options that came later have their default in it; a run with another value is another run."""
    shutil.copytree(finished, tmp_path / "run")
    facts = json.loads((finished / "config.json").read_text())
    del facts["config"]["tensorboard"]
    (tmp_path / "run" / "config.json").write_text(json.dumps(facts))
    figures = json.loads((finished / "shared" / "figures.json").read_text())
    assert train(corpus, tmp_path / "run", TINY, resume=True) == {"shared": figures}
    with pytest.raises(Cod3sError, match="different config"):
        train(corpus, tmp_path / "run", TINY.with_values(tensorboard=True), resume=True)
