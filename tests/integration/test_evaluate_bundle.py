"""Evaluation of a bundle: generating, going on after a stop, likelihoods, signature inference, sweeps."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from cod3s.corpus.questions import Question
from cod3s.critic.likelihoods import Pair
from cod3s.decode.config import DEFAULT, PAPER
from cod3s.decode.generator import Generator
from cod3s.errors import Cod3sError, UsageError
from cod3s.evaluate import EvaluateConfig, evaluate
from cod3s.evaluate.config import SweepConfig
from cod3s.evaluate.evaluation import evaluate_outputs
from cod3s.evaluate.generation import DEFAULT_SYSTEMS, Named, answered_blocks, check_run, name_systems
from cod3s.evaluate.grading import Grader, load_generator, open_grader
from cod3s.evaluate.inference import MOST_FREQUENT, guess_gold
from cod3s.evaluate.items import EvaluationData, Item
from cod3s.evaluate.outputs import Systems, append_outputs
from cod3s.evaluate.scores import Column
from cod3s.evaluate.sweep import sweep
from cod3s.io.disk import read_json, write_json
from cod3s.metrics.inference import Guess, score_inference
from conftest import Run
from tiny_bundle import EVENTS, SOURCES, WHERE, WHO, TinyBundle

FAST = PAPER.with_values(k=3, signature_beam=20, beam=4, samples=4, baseline_beam=4)
ITEMS = (
    Item("effect", "the baker lost the key at home", "the baker phoned a locksmith at home"),
    Item("cause", "the judge stayed in bed in town", "the judge caught a cold in town"),
    Item("effect", "the pilot won a prize by the sea", "the pilot cried with joy by the sea"),
)
DATA = EvaluationData("made up", "0" * 64, ITEMS)
OWN = ("--encoders", "bundle")


@pytest.fixture(scope="session")
def generator(tiny_bundle: TinyBundle) -> Generator:
    return load_generator(tiny_bundle.small)


@pytest.fixture(scope="session")
def grader(generator: Generator) -> Grader:
    return open_grader(["bundle"], generator)


def generated(generator: Generator, folder: Path, *named: Named, items: tuple[Item, ...] = ITEMS) -> Systems:
    systems: Systems = {row.name: [] for row in named}
    for _, answers in answered_blocks(generator, items, named, folder):
        for name, sets in answers.items():
            systems[name] += sets
    return systems


def fast(*systems: str) -> list[Named]:
    return [Named(system, system, FAST) for system in systems]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [f"{item.source}\t{item.relation}\t{item.target}\n" for item in ITEMS]
    (tmp_path / "data.tsv").write_text("source\trelation\ttarget\n" + "".join(rows))
    return tmp_path / "data.tsv"


def test_every_system_answers_every_item(generator: Generator, grader: Grader, tmp_path: Path) -> None:
    checked = Named("checked", "cod3s-mmi-mmi", FAST.with_values(check=True))
    systems = generated(generator, tmp_path, *fast("s2s", "cod3s-mmi-mmi"), checked)
    assert [(row.relation, row.source) for row in systems["s2s"]] == [(row.relation, row.source) for row in ITEMS]
    summary = evaluate_outputs(systems, DATA, grader, EvaluateConfig(sets=(3,)))
    assert summary.systems["s2s"]["effect"].control is None
    control = summary.systems["cod3s-mmi-mmi"]["effect"].control
    assert control is not None
    distances = [a.hamming or 0 for row in systems["checked"] for a in row.answers if row.relation == "effect"]
    assert control.whole.hamming == pytest.approx(np.mean(distances))
    for metric in ("likelihood", "backward_pmi", "relevance"):
        assert summary.figure("s2s", "cause", Column("3", metric)) is not None
    assert summary.systems["cod3s-mmi-mmi"]["effect"].own_grades == ("backward_pmi", "likelihood")
    assert summary.systems["s2s"]["effect"].own_grades == ()


def test_an_evaluation_goes_on_after_the_last_whole_answer(
    generator: Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = generated(generator, tmp_path / "whole", *fast("s2s", "s2s-sigs"))
    first = generated(generator, tmp_path, *fast("s2s"))
    append_outputs(tmp_path / "s2s-sigs.jsonl", whole["s2s-sigs"][:2])
    with (tmp_path / "s2s-sigs.jsonl").open("a") as stream:
        stream.write('{"source": "the pilot won')  # a kill in the middle of a line
    asked: list[tuple[str, str]] = []
    generate_many = Generator.generate_many

    def watched(self: Generator, sources: Any, relation: str, **options: Any) -> Iterator[Any]:
        asked.extend((options["system"], source) for source in sources)
        return generate_many(self, sources, relation, **options)

    monkeypatch.setattr(Generator, "generate_many", watched)
    assert generated(generator, tmp_path, *fast("s2s", "s2s-sigs")) == whole
    assert asked == [("s2s-sigs", ITEMS[2].source)]
    assert whole["s2s"] == first["s2s"]


def test_time_that_runs_out_leaves_a_report_that_the_same_command_continues(
    here: Run, tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    rows = [f"{who} {event} {where}\teffect\n" for who in WHO for where in WHERE for event in EVENTS]
    (tmp_path / "data.tsv").write_text("source\trelation\n" + "".join(rows))
    command = ("evaluate", "data.tsv", "--bundle", tiny_bundle.small, "-o", "report", "--systems", "s2s", *OWN)
    start = monotonic()
    stopped = here(*command, "--max-minutes", "0.01", "--json")
    assert stopped.returncode == 0, stopped.stderr
    assert monotonic() - start < 60, "one block is answered, whatever the limit"
    record = json.loads(stopped.stdout)
    answered, left = record["data"]["items"]["effect"], record["data"]["unanswered"]
    assert 1 <= answered < len(rows) == answered + left
    assert record["systems"]["s2s"]["effect"]["answers"]["sets"] == answered
    assert f"time ran out: {left} of {len(rows)} sources are left out" in stopped.stderr
    assert "time ran out" in (tmp_path / "report" / "report.md").read_text()
    first = (tmp_path / "report" / "outputs" / "s2s.jsonl").read_text()
    continued = here(*command, "--json")
    assert json.loads(continued.stdout)["data"]["items"] == {"effect": len(rows)}
    assert (tmp_path / "report" / "outputs" / "s2s.jsonl").read_text().startswith(first)
    assert "already exists" in here(*command).stderr


def test_outputs_of_other_settings_never_mix(tmp_path: Path) -> None:
    (tmp_path / "s2s.jsonl").touch()
    check_run(tmp_path, tmp_path, {"data": 1, "options": 2})
    check_run(tmp_path, tmp_path, {"data": 1, "options": 2}, force=True)
    with pytest.raises(Cod3sError, match="different options") as raised:
        check_run(tmp_path, tmp_path, {"data": 1, "options": 3})
    assert "--force" in raised.value.hint
    assert (tmp_path / "s2s.jsonl").exists()
    check_run(tmp_path, tmp_path, {"data": 1, "options": 3}, force=True)
    assert not (tmp_path / "s2s.jsonl").exists()
    check_run(tmp_path, tmp_path, {"data": 1, "options": 3})


def test_the_oracle_writes_in_the_gold_bin(generator: Generator, tmp_path: Path) -> None:
    (sets,) = generated(generator, tmp_path, *fast("cod3s-oracle-mmi")).values()
    gold = generator.signer.signatures([item.target for item in ITEMS])
    assert [[answer.signature for answer in row.answers] for row in sets] == [[signature] for signature in gold]
    with pytest.raises(Cod3sError, match="gold target"):
        generated(generator, tmp_path / "blind", *fast("cod3s-oracle-mmi"), items=(Item("effect", "it rained"),))


def test_likelihoods_are_those_of_the_engine_in_any_batch(generator: Generator, grader: Grader) -> None:
    pairs = [Pair(item.relation, item.source, item.target) for item in ITEMS]
    parts = ("forward", "target_alone", "backward", "source_alone")
    together = open_grader(["bundle"], generator)
    together.grade(pairs, parts)
    for pair in pairs:
        alone = open_grader(["bundle"], generator)
        alone.grade([pair], parts)
        assert alone.grades(pair) == pytest.approx(together.grades(pair), abs=0.02)
    player = generator.models.plain("effect")
    tokens = generator.models.vocabulary.encode_text(ITEMS[0].target)
    (score,) = player.engine.score([player.request(ITEMS[0].source)], [tokens])
    assert together.grades(pairs[0])["forward"] == pytest.approx(score.log_prob / score.length, abs=0.02)
    foreign = Pair("reply", "hello", "hi")
    grader.grade([foreign])
    assert set(grader.grades(foreign)) == {"relevance"}, "a relation that the bundle lacks has no likelihood"


def test_a_trained_model_prefers_the_effect_that_its_grammar_has(grader: Grader) -> None:
    preferred = []
    for event, effects in EVENTS.items():
        for other in EVENTS.keys() - {event}:
            right, wrong = (
                Pair("effect", f"the clerk {event} in town", f"the clerk {effect} in town")
                for effect in (effects[0], EVENTS[other][0])
            )
            grader.grade([right, wrong])
            preferred.append((grader.score(right, "backward") or 0) > (grader.score(wrong, "backward") or 0))
    assert np.mean(preferred) > 0.7


def test_questions_are_answered_by_every_scorer(grader: Grader) -> None:
    question = Question("1", SOURCES[0], "effect", ("the baker slept in the garden at home", "snow fell"), 0)
    data = EvaluationData("made up", "", (Item("effect", SOURCES[0]),), (question,))
    summary = evaluate_outputs({}, data, grader, EvaluateConfig(sets=(3,)))
    scorers = {"relevance", "forward", "pmi", "backward", "backward_pmi", "mmi"}
    assert {choice.scorer for choice in summary.choices} == scorers
    assert set(summary.settings["bars"]) == {"relevance", "backward_pmi"}


def test_signature_inference_is_better_than_guessing_the_largest_bins(generator: Generator) -> None:
    items = [
        Item("effect", f"the {who} {event} near the lake", f"the {who} {effect} near the lake")
        for who in ("nurse", "waiter")
        for event, effects in EVENTS.items()
        for effect in effects
    ]
    guesses: dict[str, list[Guess]] = {}
    for guesser, relation, guess in guess_gold(generator, items, FAST):
        assert relation == "effect"
        guesses.setdefault(guesser, []).append(guess)
    assert set(guesses) == {"beam", "mmi", MOST_FREQUENT}
    recalls = {}
    for name, rows in guesses.items():
        scores = score_inference(rows)
        assert scores.sources == 16
        recalls[name] = {(row.depth, row.radius): row.recall for row in scores.recalls}
    assert recalls["beam"][10, 0] > recalls[MOST_FREQUENT][10, 0]


def test_evaluate_is_called_from_python_and_runs_the_default_system_as_generate_does(
    generator: Generator, tiny_bundle: TinyBundle, data: Path, tmp_path: Path
) -> None:
    config = EvaluateConfig(systems=("cod3s", "cod3s-beam-mmi"), limit=1, sets=(2,), encoders=("bundle",))
    summary = evaluate(data, bundle=tiny_bundle.small, output=tmp_path / "report", config=config)
    assert summary.data["items"] == {"effect": 1, "cause": 1}
    settings = summary.settings["systems"]
    plain = generator.generate(SOURCES[0], "effect", options=DEFAULT.with_values(k=2, seed=1234))
    assert settings["cod3s"]["beam"] == plain.settings["beam"] == DEFAULT.beam
    assert settings["cod3s-beam-mmi"]["beam"] == PAPER.beam
    stored = tmp_path / "report" / "outputs"
    again = evaluate(outputs=[stored], config=EvaluateConfig(sets=(2,), encoders=("static",)))
    assert set(again.systems) == {"cod3s", "cod3s-beam-mmi"}
    with pytest.raises(UsageError, match="nothing to evaluate"):
        evaluate()


def test_answers_may_be_graded_by_a_bundle_that_did_not_write_them(tiny_bundle: TinyBundle, data: Path) -> None:
    config = EvaluateConfig(systems=("cod3s-mmi-mmi",), limit=1, sets=(2,), encoders=("static",), preset="quick")
    own = evaluate(data, bundle=tiny_bundle.small, config=config)
    foreign = evaluate(data, bundle=tiny_bundle.small, config=config.with_values(grader=str(tiny_bundle.exact)))
    assert foreign.settings["bundle"].startswith("small@")
    assert foreign.settings["grader"].startswith("exact@")
    marks = [run.systems["cod3s-mmi-mmi"]["effect"].own_grades for run in (own, foreign)]
    assert marks == [("backward_pmi", "likelihood"), ()]


def test_every_answer_of_the_default_system_has_a_likelihood(generator: Generator) -> None:
    (named, *_) = name_systems(DEFAULT_SYSTEMS, "", DEFAULT, k=3, seed=1234)
    answers = generator.generate(SOURCES[0], "effect", system=named.system, options=named.options)
    assert all(answer.forward is not None and answer.signature_forward is not None for answer in answers)


def test_only_the_default_system_runs_as_users_know_it() -> None:
    named = name_systems(DEFAULT_SYSTEMS, "", DEFAULT, k=10, seed=1234)
    assert (named[0].name, named[0].options.beam) == ("cod3s", DEFAULT.beam)
    assert {system.options.beam for system in named[1:]} == {PAPER.beam}
    assert name_systems(["cod3s"], "paper", DEFAULT, k=10, seed=1234)[0].options.beam == PAPER.beam
    quick = name_systems(DEFAULT_SYSTEMS, "quick", DEFAULT, k=10, seed=1234)
    assert quick[0] == named[0]
    before, now = asdict(named[-1].options), asdict(quick[-1].options)
    assert {name for name in before if before[name] != now[name]} == {"beam"}
    assert now["beam"] < before["beam"]


def test_evaluate_scores_again_from_its_outputs_to_the_same_bytes(
    here: Run, tiny_bundle: TinyBundle, data: Path, tmp_path: Path
) -> None:
    command = ("evaluate", data, "--bundle", tiny_bundle.small, "-o", "report", "--sets", "2,3", *OWN)
    made = here(*command, "--systems", "s2s,cod3s-beam-mmi", "--json")
    assert made.returncode == 0, made.stderr
    record = json.loads(made.stdout)
    assert set(record["systems"]) == {"s2s", "cod3s-beam-mmi"}
    assert "fidelity" in record["systems"]["cod3s-beam-mmi"]["effect"]
    assert record["settings"]["bundle"].startswith("small@")
    names = ("metrics.json", "report.html", "report.md")
    files = {name: (tmp_path / "report" / name).read_bytes() for name in names}
    again = here(*command, "--systems", "s2s,cod3s-beam-mmi")
    assert again.returncode == 1
    assert "report.html already exists" in again.stderr
    again = here(*command, "--systems", "s2s,cod3s-beam-mmi", "--force")
    assert again.returncode == 0, again.stderr
    assert {name: (tmp_path / "report" / name).read_bytes() for name in names} == files
    stored = here("evaluate", "--from", "report/outputs", "-o", "again", "--sets", "3", "--encoders", "static")
    assert stored.returncode == 0, stored.stderr
    assert "Diversity of 3-sets" in stored.stdout
    assert stored.stdout.count("encoder static:") == 1, "the settings stand below the last table"


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["evaluate", "data.tsv"], "-o report/", 2),
        (["evaluate", "-o", "report"], "no data was given", 2),
        (["evaluate", "data.tsv", "-o", "report", "--sets", "0,3"], "set of 0 answers", 2),
        (["evaluate", "--from", "missing.jsonl", "-o", "report"], "no file at missing.jsonl", 1),
        (["evaluate", "--from", ".", "-o", "report"], "no .jsonl files", 1),
        (["evaluate", "missing.xml", "-o", "report"], "missing.xml", 1),
        (["evaluate", "-", "-o", "report"], "standard input has no sources", 1),
        (["sweep", "data.tsv", "-o", "s", "--min-hamming", "a"], "takes whole numbers", 2),
        (["sweep", "data.tsv", "-o", "s", "-k", "1001"], "from 2 to 1000", 2),
    ],
)
def test_wrong_calls_say_the_way_out(here: Run, data: Path, arguments: list[str], message: str, code: int) -> None:
    done = here(*arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bundle_without_an_inverse_relation_is_evaluated_by_the_systems_it_can_run(
    here: Run, tiny_bundle: TinyBundle, data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(tiny_bundle.small, folder)
    facts = read_json(folder / "bundle.json")
    facts["relations"]["effect"]["inverse"] = ""  # as in a relation of a user's own
    write_json(folder / "bundle.json", facts)
    common = ("evaluate", data, "--bundle", folder, "--sets", "2", *OWN)
    done = here(*common, "-o", "report", "--json")
    assert done.returncode == 0, done.stderr
    assert "cod3s-mmi-mmi is skipped: MMI needs" in done.stderr
    record = json.loads(done.stdout)
    assert set(record["systems"]) == {"cod3s", "s2s", "s2s-rs"}
    assert record["remarks"][0].startswith("cod3s-mmi-mmi is skipped")
    named = here(*common, "-o", "other", "--systems", "s2s,cod3s-mmi-mmi")
    assert named.returncode == 1
    assert "MMI needs" in named.stderr
    assert not list((tmp_path / "other").rglob("*.jsonl")), "found before anything was generated"


def test_a_sweep_has_a_point_for_each_setting_and_a_curve_for_each_axis(
    here: Run, tiny_bundle: TinyBundle, data: Path, tmp_path: Path
) -> None:
    command = ("sweep", data, "--bundle", tiny_bundle.small, "-o", "sweep", "-k", "2", "--limit", "1")
    values = ("--signature-weight", "-", "--sentence-weight", "0.5", "--min-hamming")
    done = here(*command, *values, "0,4", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert [point["options"] for point in record["points"]] == [
        *({"min_hamming": value} for value in (0, 2, 4)),
        *({"sentence_weight": value} for value in (0.3, 0.5)),
    ]
    assert all(isinstance(point["in_bin"], float) for point in record["points"])
    assert record["points"][1]["semantic"] == record["points"][3]["semantic"], "the base is decoded once"
    assert (tmp_path / "sweep" / "sweep.html").read_text().count("<svg") == 2 * 4
    assert read_json(tmp_path / "sweep" / "sweep.json") == record
    assert "sweep.html already exists" in here(*command, *values, "3").stderr
    assert here(*command, *values, "3", "--seed", "5", "--force").returncode == 0
    with pytest.raises(UsageError, match="same name"):
        sweep(data, tmp_path / "twice", bundles=[tiny_bundle.small] * 2, config=SweepConfig(limit=1))


@pytest.mark.parametrize("command", ["evaluate", "sweep"])
def test_data_may_come_from_standard_input(
    command: str, here: Run, tiny_bundle: TinyBundle, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    options = ["--bundle", tiny_bundle.small, *OWN, "--limit", "1"]
    options += ["--systems", "s2s", "--sets", "2"] if command == "evaluate" else ["-k", "2", "--min-hamming", "2"]
    done = here(command, "-", "-o", "result", *options, stdin=data.read_text(encoding="utf-8"))
    assert done.returncode == 0, done.stderr
    assert "standard input" in done.stdout
    assert not list((tmp_path / "temporary").iterdir()), "the copy is removed"
