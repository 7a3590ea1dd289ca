"""Learning from verdicts: adapters change a language model, verifiers judge, refined bundles write better."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cod3s import load
from cod3s.bundle import read_facts, write_facts
from cod3s.corpus import prepare
from cod3s.corpus.manifest import PrepareConfig
from cod3s.critic.answer_lessons import Row, lesson_batches
from cod3s.critic.examples import LabelledPair, answer_examples, contrasted_answers
from cod3s.critic.refining import build_model, refine, write_refined
from cod3s.critic.tune_config import RefineConfig, TuneConfig
from cod3s.critic.tuning import tune_verifier
from cod3s.decode.plausibility import BundleLikelihoods, Pair
from cod3s.errors import BundleError, Cod3sError
from cod3s.export.bundle_writer import export
from cod3s.model.adapter import NAME, Adapter, Change, Head, adapted_files, load_adapter, save_adapter
from cod3s.model.restore import restore_llama
from cod3s.model.verifier import NAME as VERIFIER
from cod3s.train import PRESETS, train
from conftest import Run
from test_causal import save_language_model
from tiny_bundle import SOURCES, TinyBundle, grammar

WIDTH, LAYERS = 64, 3


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of a tiny Llama that has seen a little of the grammar."""
    folder = tmp_path_factory.mktemp("llama")
    start = save_language_model(folder / "start")
    (folder / "pairs.tsv").write_text(grammar())
    config = PrepareConfig(
        relation="both", orders="all", filter="none", encoder="static", bits=8, dev=20, test=0, held_out=0.1
    )
    prepare([str(folder / "pairs.tsv")], str(folder / "corpus"), config)
    preset = PRESETS["causal"].with_values(
        init=str(start), lora_rank=0, precision="float32", shares=(), max_steps=20, learning_rate=5e-3
    )
    train(folder / "corpus", folder / "run", preset)
    export(folder / "run", folder / "bundle", quantization="float32")
    return folder / "bundle"


def change(weight: str = "layer_1/ffn/linear_0", rows: int = 128, row: int = 0) -> Change:
    random = np.random.default_rng(3)
    down, up = random.normal(size=(4, WIDTH)), random.normal(size=(rows, 4))
    return Change(weight, row, down.astype(np.float32), up.astype(np.float32))


def head(width: int = WIDTH) -> Head:
    return Head(np.linspace(-1, 1, width, dtype=np.float32), 0.5)


def copied(bundle: Path, folder: Path) -> Path:
    shutil.copytree(bundle, folder)
    return folder


def test_an_adapter_in_a_models_folder_changes_its_weights(bundle: Path, tmp_path: Path) -> None:
    model = copied(bundle, tmp_path / "bundle") / "models" / "shared"
    before = restore_llama(model).state_dict()
    changes = (change(), change("layer_2/self_attention/linear_0", 32, 64))  # the keys: behind 64 rows of queries
    save_adapter(model / NAME, Adapter(changes))
    after = restore_llama(model).state_dict()
    moved = {name: (after[name] - before[name]).numpy() for name in before if not before[name].equal(after[name])}
    assert set(moved) == {"model.layers.1.mlp.gate_proj.weight", "model.layers.2.self_attn.k_proj.weight"}
    for difference, wanted in zip(moved.values(), load_adapter(model / NAME).changes, strict=True):
        np.testing.assert_allclose(difference, wanted.up @ wanted.down, atol=1e-4)


def test_answers_come_from_the_changed_model(bundle: Path, tmp_path: Path) -> None:
    folder = copied(bundle, tmp_path / "bundle")
    before = load(folder, threads=1).generate(SOURCES[0], "effect", 2, system="s2s")
    save_adapter(folder / "models" / "shared" / NAME, Adapter((change(),)))
    after = load(folder, threads=1).generate(SOURCES[0], "effect", 2, system="s2s")
    assert before.texts != after.texts
    zero = replace(change(), up=np.zeros((128, 4), np.float32))
    save_adapter(folder / "models" / "shared" / NAME, Adapter((zero,)))
    assert load(folder, threads=1).generate(SOURCES[0], "effect", 2, system="s2s").texts == before.texts


def test_int8_weights_stay_int8_and_near_the_sum(bundle: Path, tmp_path: Path) -> None:
    export(bundle.parent / "run", tmp_path / "bundle", quantization="int8")
    model = tmp_path / "bundle" / "models" / "shared"
    before = restore_llama(model).state_dict()["model.layers.1.mlp.gate_proj.weight"].numpy()
    wanted = change()
    save_adapter(model / NAME, Adapter((wanted,)))
    (wanted,) = load_adapter(model / NAME).changes
    after = restore_llama(model).state_dict()["model.layers.1.mlp.gate_proj.weight"].numpy()
    steps = np.abs(after).max(axis=1, keepdims=True) / 127
    assert (np.abs(after - before - wanted.up @ wanted.down) <= 0.51 * steps).all()


def test_a_saved_adapter_is_read_as_it_was_but_for_rounding(tmp_path: Path) -> None:
    save_adapter(tmp_path / "a.npz", Adapter((change(),), layers=2, head=head()))
    loaded = load_adapter(tmp_path / "a.npz")
    assert (loaded.layers, loaded.head and loaded.head.bias) == (2, 0.5)
    (read,), wanted = loaded.changes, change()
    assert (read.weight, read.row) == (wanted.weight, wanted.row)
    exact = wanted.up @ wanted.down
    assert np.abs(read.up @ read.down - exact).max() < 0.02 * np.abs(exact).max()


def test_adapters_that_do_not_fit_are_clear_errors(bundle: Path, tmp_path: Path) -> None:
    model = bundle / "models" / "shared"
    for adapter, message in [
        (Adapter((change("layer_9/ffn/linear_0"),)), "layer_9"),
        (Adapter((change(row=100),)), "another size"),
        (Adapter((), layers=2, head=head(32)), "32 numbers"),
    ]:
        with pytest.raises(BundleError, match=message):
            adapted_files(model, adapter)
    with pytest.raises(BundleError, match="no head"):
        load(bundle).models.verifier(Adapter(()))
    with pytest.raises(BundleError, match="lacks"):
        load_adapter(tmp_path / VERIFIER)
    save_adapter(tmp_path / VERIFIER, Adapter((), head=Head(np.full(8, np.nan, np.float32), 0.0)))
    with pytest.raises(BundleError, match="not a number"):
        load_adapter(tmp_path / VERIFIER)
    whole = (tmp_path / VERIFIER).read_bytes()
    for damaged in (b"", b"PK", whole[: len(whole) // 2]):
        (tmp_path / VERIFIER).write_bytes(damaged)
        with pytest.raises(BundleError, match="not an adapter"):
            load_adapter(tmp_path / VERIFIER)
    with (tmp_path / VERIFIER).open("wb") as file:
        np.savez(file, layers=np.array([{}], dtype=object))  # a pickle is never opened
    with pytest.raises(BundleError, match="not an adapter"):
        load_adapter(tmp_path / VERIFIER)


def verdicts() -> list[tuple[str, str, str]]:
    """Targets that name the source's person are plausible, others are not."""
    people = ("baker", "pilot", "farmer", "nurse")
    rows = []
    for number in range(60):
        who, other = people[number % 4], people[(number + 1) % 4]
        source = f"the {who} lost the key number {number}"
        rows += [(source, f"the {who} phoned a locksmith", "yes"), (source, f"the {other} drank tea", "no")]
    return rows


def examples() -> list[LabelledPair]:
    return [
        LabelledPair(Pair("effect", source, target), verdict == "yes", "verdicts", f"effect {source}")
        for source, target, verdict in verdicts()
    ]


QUICK = TuneConfig(layers=2, rank=4, epochs=8, learning_rate=5e-3, batch_tokens=512, evaluate_every=10)


@pytest.fixture(scope="module")
def tuned(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    folder = tmp_path_factory.mktemp("verifier")
    return folder, tune_verifier(examples(), load(bundle).models, folder, QUICK, clock=lambda: 0.0)


def test_a_verifier_learns_what_it_was_not_shown(bundle: Path, tuned: tuple[Path, dict[str, float]]) -> None:
    folder, figures = tuned
    assert figures["auc"] > 0.9
    verifier = load(bundle).models.verifier(load_adapter(folder / VERIFIER))
    model = load(bundle).models
    plain = model.plain("effect")
    unseen = [example for example in examples() if example.is_held_out]
    assert len(unseen) > 10
    requests = [plain.request(example.pair.source) for example in unseen]
    targets = [model.vocabulary.encode_text(example.pair.target) for example in unseen]
    together = verifier.log_odds(requests, targets)
    right = [odds for odds, example in zip(together, unseen, strict=True) if example.plausible]
    wrong = [odds for odds, example in zip(together, unseen, strict=True) if not example.plausible]
    assert np.mean([a > b for a in right for b in wrong]) > 0.9
    alone = [verifier.log_odds([request], [target])[0] for request, target in zip(requests, targets, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-3)


def test_a_verifier_of_a_refined_bundle_reads_with_the_refined_weights(
    bundle: Path, tuned: tuple[Path, dict[str, float]], tmp_path: Path
) -> None:
    adapter = load_adapter(tuned[0] / VERIFIER)
    folder = copied(bundle, tmp_path / "bundle")
    save_adapter(
        folder / "models" / "shared" / NAME,
        Adapter((change("layer_0/ffn/linear_0"), change("layer_2/ffn/linear_0"))),
    )
    odds = []
    for place in (bundle, folder):
        models = load(place, threads=1).models
        request = models.plain("effect").request(SOURCES[0])
        odds.append(
            models.verifier(adapter).log_odds([request], [models.vocabulary.encode_text("the baker slept")])
        )
    assert not np.allclose(*odds, atol=1e-3)


def test_a_killed_tuning_goes_on_and_ends_with_the_same_adapter(
    bundle: Path, tuned: tuple[Path, dict[str, float]], tmp_path: Path
) -> None:
    ticks = iter(range(10_000))
    models = load(bundle).models
    tune_verifier(examples(), models, tmp_path, QUICK, seconds=4, clock=lambda: float(next(ticks)))
    tune_verifier(examples(), models, tmp_path, QUICK, resume=True, clock=lambda: 0.0)
    whole, resumed = (load_adapter(folder / VERIFIER) for folder in (tuned[0], tmp_path))
    assert whole.head
    assert resumed.head
    np.testing.assert_allclose(whole.head.weights, resumed.head.weights, atol=1e-5)


def test_a_verifier_needs_a_language_model_and_both_verdicts(
    bundle: Path, tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    with pytest.raises(Cod3sError, match="language model"):
        tune_verifier(examples(), load(tiny_bundle.exact).models, tmp_path, QUICK, clock=lambda: 0.0)
    kind = [example for example in examples() if example.plausible]
    with pytest.raises(Cod3sError, match="plausible and implausible"):
        tune_verifier(kind, load(bundle).models, tmp_path, QUICK, clock=lambda: 0.0)
    with pytest.raises(Cod3sError, match="3 layers"):
        tune_verifier(examples(), load(bundle).models, tmp_path, replace(QUICK, layers=9), clock=lambda: 0.0)


REFINE = RefineConfig(first_layer=1, rank=4, rivals=1, epochs=6, learning_rate=1e-2, batch_tokens=512)


def test_a_refined_bundle_prefers_what_was_accepted(bundle: Path, tmp_path: Path) -> None:
    generator = load(bundle)
    figures = refine(examples(), generator.models, generator.signer, tmp_path / "work", REFINE, clock=lambda: 0.0)
    assert figures["accuracy"] > 0.9
    write_refined(bundle, tmp_path / "work", tmp_path / "refined")
    assert not (bundle / "models" / "shared" / NAME).exists()
    unseen = [example for example in examples() if example.is_held_out]

    def margins(folder: Path) -> list[float]:
        scores = BundleLikelihoods(load(folder).models).score_pairs(
            [example.pair for example in unseen], ["forward"]
        )
        forward = [score.forward or 0.0 for score in scores]
        return [right - wrong for right, wrong in zip(forward[::2], forward[1::2], strict=True)]

    before, after = np.array(margins(bundle)), np.array(margins(tmp_path / "refined"))
    assert (after > before).all()
    assert (after > 0).all()
    # What is refined again keeps what it learned before.
    again = load(tmp_path / "refined")
    refine(examples(), again.models, again.signer, tmp_path / "more", REFINE, clock=lambda: 0.0)
    first, both = (load_adapter(tmp_path / name / NAME).changes for name in ("work", "more"))
    assert len(both) == 2 * len(first)


def test_the_command_line_refines_a_copy(here: Run, bundle: Path, tmp_path: Path) -> None:
    copied(bundle, tmp_path / "bundle")
    rows = "\n".join(f"{source}\teffect\t{target}\t{verdict}" for source, target, verdict in verdicts())
    (tmp_path / "read.tsv").write_text(f"source\trelation\ttarget\tplausible\n{rows}\n")
    called = ["refine", "bundle", "--verdicts", "read.tsv", "--first-layer", "1", "--rivals", "1"]
    refined = here(*called, "-o", "refined", "--json")
    assert refined.returncode == 0, refined.stderr
    assert json.loads(refined.stdout)["figures"]["accuracy"] >= 0
    assert read_facts(tmp_path / "refined").files["models/shared/adapter.npz"]
    assert here("info", "refined").returncode == 0
    assert here("generate", "effect", SOURCES[0], "-k", "2", "--bundle", "refined").returncode == 0
    for arguments, message in [
        (["-o", "refined"], "--force"),
        (["-o", "bundle", "--force"], "in place"),
        (["-o", "third", "--first-layer", "9"], "3 layers"),
    ]:
        wrong = here(*called, *arguments)
        assert wrong.returncode in (1, 2)
        assert message in wrong.stderr
    (tmp_path / "read.tsv").write_text("source\trelation\ttarget\tplausible\na\teffect\tb\tno\n")
    assert "too few sources" in here(*called, "-o", "third").stderr
    nothing = here("refine", "bundle", "-o", "third")
    assert nothing.returncode == 2
    assert "--answers" in nothing.stderr


def test_the_command_line_learns_from_good_answers_alone(here: Run, bundle: Path, tmp_path: Path) -> None:
    copied(bundle, tmp_path / "bundle")
    rows = [f"{source}\teffect\t{target}\n" for source, target, verdict in verdicts() if verdict == "yes"]
    (tmp_path / "good.tsv").write_text("source\trelation\ttarget\n" + "".join(rows))
    options = ["--first-layer", "1", "--learning-rate", "0.01", "--epochs", "4", "--evaluate-every", "2"]
    refined = here("refine", "bundle", "--answers", "good.tsv", "-o", "refined", *options, "--json")
    assert refined.returncode == 0, refined.stderr
    figures = json.loads(refined.stdout)["figures"]
    assert "accuracy" not in figures
    with (tmp_path / "refined.work" / "log.csv").open() as log:
        losses = [float(row["value"]) for row in csv.DictReader(log) if row["figure"] == "eval_loss"]
    assert figures["loss"] == pytest.approx(min(losses), abs=1e-3)
    assert min(losses) < losses[0]


def test_a_lesson_read_as_one_sequence_teaches_what_its_rows_would(bundle: Path) -> None:
    models = load(bundle).models
    role = models.sentence("effect")
    source, words = models.vocabulary.encode_text("the nurse lost the key"), models.vocabulary.encode_text
    tokens = [[*source, *role.start, *words(text), models.vocabulary.end] for text in ("tea", "the tea", "a key")]
    start = len(source) + 1
    model = build_model(models, REFINE)

    def losses(*lessons: list[Row]) -> list[float]:
        batch = lesson_batches(lessons, models.vocabulary.pad, REFINE)[0]
        return sorted(model.eval()(**batch)["losses"].tolist())

    first, second, third = (Row(row, start, start) for row in tokens)
    alone = sorted(loss for row in (first, second, third) for loss in losses([row]))
    assert losses([first, second, third]) == pytest.approx(alone, rel=0.02)  # in bfloat16
    assert losses([first], [third, second]) == pytest.approx(alone, rel=0.02)
    (compared,) = losses([first, Row(tokens[2], start, start, rival=0)])
    assert compared > losses([first])[0]


def test_the_command_line_tunes_fits_and_attaches(here: Run, bundle: Path, tmp_path: Path) -> None:
    copied(bundle, tmp_path / "bundle")
    rows = "\n".join(f"{source}\teffect\t{target}\t{verdict}" for source, target, verdict in verdicts())
    (tmp_path / "read.tsv").write_text(f"source\trelation\ttarget\tplausible\n{rows}\n")
    options = [
        "--layers",
        "2",
        "--rank",
        "4",
        "--epochs",
        "8",
        "--learning-rate",
        "0.005",
        "--batch-tokens",
        "512",
    ]
    tuned = here(
        "critic", "tune", "--verdicts", "read.tsv", "--bundle", "bundle", "-o", "verifier", *options, "--json"
    )
    assert tuned.returncode == 0, tuned.stderr
    assert json.loads(tuned.stdout)["figures"]["auc"] > 0.9
    fitted = here(
        *("critic", "train", "--seen", "read.tsv", "--bundle", "bundle", "--verifier", "verifier"),
        *("-o", "critic", "--features", "verifier", "--json"),
    )
    assert fitted.returncode == 0, fitted.stderr
    record: dict[str, Any] = json.loads(fitted.stdout)
    assert record["critic"]["weights"]["verifier"] > 0
    held_out = sum(example.is_held_out for example in examples())
    assert record["critic"]["facts"]["pairs"] == held_out
    assert here("critic", "attach", "critic", "bundle").returncode == 0
    assert read_facts(tmp_path / "bundle").files["critic/verifier.npz"]
    odds = load(tmp_path / "bundle").plausibility(
        "the nurse lost the key", "effect", ["the nurse phoned a locksmith", "the baker drank tea"]
    )
    assert odds[0] > odds[1]
    answers = load(tmp_path / "bundle").generate(SOURCES[0], "effect", 2)
    assert all(answer.plausibility is not None for answer in answers)
    (tmp_path / "bundle" / "critic" / VERIFIER).unlink()
    write_facts(tmp_path / "bundle", read_facts(tmp_path / "bundle"))
    with pytest.raises(BundleError, match="lacks verifier"):
        load(tmp_path / "bundle").generate(SOURCES[0], "effect", 2)


def test_wrong_answers_stand_beside_good_ones(bundle: Path, tmp_path: Path) -> None:
    """Each is an answer of the other relation, or one to another source; none is right."""
    rows = [
        (f"the {who} lost the {thing}", relation, f"the {who} {verb} the {thing} {when}")
        for who in ("baker", "pilot", "nurse")
        for thing in ("key", "map", "hat")
        for relation, verb in (("effect", "missed"), ("cause", "dropped"))
        for when in ("at noon", "all day")
    ]
    (tmp_path / "good.tsv").write_text("\n".join(["source\trelation\ttarget", *map("\t".join, rows)]))
    good = answer_examples(tmp_path / "good.tsv")
    encoder = load(bundle).encoder
    examples = contrasted_answers(good, encoder, limit=30, seed=3)
    assert examples == contrasted_answers(good, encoder, limit=30, seed=3)
    right, wrong = examples[::2], examples[1::2]
    assert len(right) > 20
    assert set(right) <= set(good)
    assert not {example.pair for example in wrong} & {example.pair for example in good}
    assert [example.plausible for example in examples] == [True, False] * len(right)
    turned = [
        example for example in wrong if ("dropped" in example.pair.target) == (example.pair.relation == "effect")
    ]
    assert 0 < len(turned) < len(wrong)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("critic", "tune", "-o", "v"), "nothing to learn from"),
        (("critic", "tune", "-o", "v", "--verdicts", "x.tsv", "--rank", "0"), "--rank"),
        (("critic", "train", "-o", "c", "--questions", "x.xml", "--features", "verifier"), "needs a verifier"),
    ],
)
def test_wrong_calls_say_what_to_do(here: Run, arguments: tuple[str, ...], message: str) -> None:
    called = here(*arguments)
    assert called.returncode == 2
    assert message in called.stderr
