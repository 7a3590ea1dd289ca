"""Learning from verdicts: refined bundles write better, and judge."""

import csv
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cod3s import load
from cod3s.bundle import read_facts
from cod3s.bundle.export import export
from cod3s.corpus import prepare
from cod3s.corpus.manifest import PrepareConfig
from cod3s.critic.answer_lessons import Row
from cod3s.critic.examples import LabelledPair, answer_examples, contrasted_answers
from cod3s.critic.refine_config import RefineConfig
from cod3s.critic.refining import MODEL, build_model, refine, write_refined
from cod3s.critic.row_batches import lesson_batches
from cod3s.decode.pair_likelihoods import BundleLikelihoods, Pair
from cod3s.decode.plausibility import Critic, Judge
from cod3s.errors import BundleError, Cod3sError
from cod3s.model.restore import restore_llama
from cod3s.train import PRESETS, train
from conftest import Run
from test_causal import save_language_model
from tiny_bundle import SOURCES, TinyBundle, grammar


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


def copied(bundle: Path, folder: Path) -> Path:
    shutil.copytree(bundle, folder)
    return folder


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


REFINE = RefineConfig(first_layer=1, rank=4, rivals=1, epochs=6, learning_rate=1e-2, batch_tokens=512)


@pytest.fixture(scope="module")
def refined(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, generator = tmp_path_factory.mktemp("refined"), load(bundle)
    figures = refine(examples(), generator.models, generator.signer, folder / "work", REFINE, clock=lambda: 0.0)
    assert figures["accuracy"] > 0.9
    assert figures["auc"] > 0.9
    write_refined(bundle, folder / "work", folder / "bundle", judges=True)
    return folder / "bundle"


def test_a_refined_bundle_prefers_what_was_accepted(bundle: Path, refined: Path) -> None:
    unseen = [example for example in examples() if example.is_held_out]

    def margins(folder: Path) -> list[float]:
        scores = BundleLikelihoods(load(folder).models).score_pairs(
            [example.pair for example in unseen], ["forward"]
        )
        forward = [score.forward or 0.0 for score in scores]
        return [right - wrong for right, wrong in zip(forward[::2], forward[1::2], strict=True)]

    before, after = np.array(margins(bundle)), np.array(margins(refined))
    assert (after > before).all()
    assert (after > 0).all()


def log_odds(folder: Path, pairs: Sequence[Pair]) -> list[float]:
    scores = BundleLikelihoods(load(folder, threads=1).models).score_pairs(pairs, ["verdict"])
    return [score.verdict or 0.0 for score in scores]


def test_a_refined_bundle_judges_what_it_was_not_shown(refined: Path) -> None:
    unseen = [example for example in examples() if example.is_held_out]
    assert len(unseen) > 10
    together = log_odds(refined, [example.pair for example in unseen])
    right = [odds for odds, example in zip(together, unseen, strict=True) if example.plausible]
    wrong = [odds for odds, example in zip(together, unseen, strict=True) if not example.plausible]
    assert np.mean([a > b for a in right for b in wrong]) > 0.9
    alone = [log_odds(refined, [example.pair])[0] for example in unseen[:6]]
    np.testing.assert_allclose(together[:6], alone, atol=1e-3)


def test_a_target_of_any_length_gets_a_verdict(refined: Path) -> None:
    pairs = [Pair("effect", SOURCES[0], target) for target in ("tea", "the baker " * 500)]
    assert np.isfinite(log_odds(refined, pairs)).all()


def test_a_killed_run_goes_on_and_ends_with_the_same_weights(bundle: Path, tmp_path: Path) -> None:
    generator = load(bundle)
    config = replace(REFINE, evaluate_every=5)
    arguments = (examples(), generator.models, generator.signer)
    refine(*arguments, tmp_path / "whole", config, clock=lambda: 0.0)
    ticks = iter(range(10_000))
    refine(*arguments, tmp_path / "cut", config, seconds=4, clock=lambda: float(next(ticks)))
    refine(*arguments, tmp_path / "cut", config, resume=True, clock=lambda: 0.0)
    whole, cut = (restore_llama(tmp_path / name / MODEL).state_dict() for name in ("whole", "cut"))
    for name, weights in whole.items():
        steps = weights.abs().amax(-1, keepdim=True) / 127 if weights.dim() > 1 else 1e-5
        assert ((weights - cut[name]).abs() <= 1.01 * steps).all(), name


def test_only_a_language_model_can_be_refined(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    generator = load(tiny_bundle.exact)
    with pytest.raises(Cod3sError, match="language model"):
        refine(examples(), generator.models, generator.signer, tmp_path, REFINE, clock=lambda: 0.0)


def test_a_critic_that_asks_for_verdicts_needs_a_bundle_that_gives_them(bundle: Path, refined: Path) -> None:
    critic = Critic({"verdict": 1.0}, 0.0, 0.0, "static")
    unable, able = load(bundle), load(refined)
    assert Judge(critic, able.models, able.signer)([Pair("effect", SOURCES[0], "tea")]) > 0
    with pytest.raises(BundleError, match="not learned"):
        Judge(critic, unable.models, unable.signer)


def test_the_command_line_refines_a_copy(here: Run, bundle: Path, tmp_path: Path) -> None:
    copied(bundle, tmp_path / "bundle")
    rows = "\n".join(f"{source}\teffect\t{target}\t{verdict}" for source, target, verdict in verdicts())
    (tmp_path / "read.tsv").write_text(f"source\trelation\ttarget\tplausible\n{rows}\n")
    called = ["refine", "bundle", "--verdicts", "read.tsv", "--first-layer", "1", "--rivals", "1"]
    refined = here(*called, "-o", "refined", "--json")
    assert refined.returncode == 0, refined.stderr
    assert json.loads(refined.stdout)["figures"]["accuracy"] >= 0
    before, after = (read_facts(tmp_path / name).files for name in ("bundle", "refined"))
    assert before["models/shared/model.bin"] != after["models/shared/model.bin"]
    assert here("bundle", "info", "refined").returncode == 0
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


def test_the_command_line_refines_fits_and_attaches(here: Run, bundle: Path, tmp_path: Path) -> None:
    copied(bundle, tmp_path / "bundle")
    rows = "\n".join(f"{source}\teffect\t{target}\t{verdict}" for source, target, verdict in verdicts())
    (tmp_path / "read.tsv").write_text(f"source\trelation\ttarget\tplausible\n{rows}\n")
    options = ["--first-layer", "1", "--rank", "4", "--epochs", "6", "--learning-rate", "0.01"]
    options += ["--batch-tokens", "512"]
    refined = here("refine", "bundle", "--verdicts", "read.tsv", "-o", "refined", *options, "--json")
    assert refined.returncode == 0, refined.stderr
    assert json.loads(refined.stdout)["figures"]["auc"] > 0.9
    fitted = here(
        *("critic", "train", "--seen", "read.tsv", "--bundle", "refined"),
        *("-o", "critic", "--features", "verdict", "--json"),
    )
    assert fitted.returncode == 0, fitted.stderr
    record: dict[str, Any] = json.loads(fitted.stdout)
    assert record["critic"]["weights"]["verdict"] > 0
    held_out = sum(example.is_held_out for example in examples())
    assert record["critic"]["facts"]["pairs"] == held_out
    assert here("critic", "attach", "critic", "refined").returncode == 0
    assert "--force" in here("critic", "attach", "critic", "refined").stderr
    assert here("critic", "attach", "critic", "refined", "--force").returncode == 0
    odds = load(tmp_path / "refined").judge([example.pair for example in examples()])
    good = np.array([example.plausible for example in examples()])
    assert odds[good].mean() > odds[~good].mean() + 0.1
    answers = load(tmp_path / "refined").generate(SOURCES[0], "effect", 2)
    assert all(answer.plausibility is not None for answer in answers)
    unable = here(
        "critic", "train", "--seen", "read.tsv", "--bundle", "bundle", "-o", "c", "--features", "verdict"
    )
    assert unable.returncode == 1
    assert "not learned" in unable.stderr


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
    assert {example.pair for example in right} <= {example.pair for example in good}
    assert not {example.pair for example in wrong} & {example.pair for example in good}
    assert [example.plausible for example in examples] == [True, False] * len(right)
    turned = [
        example for example in wrong if ("dropped" in example.pair.target) == (example.pair.relation == "effect")
    ]
    assert 0 < len(turned) < len(wrong)
