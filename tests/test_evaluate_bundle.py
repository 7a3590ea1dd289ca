"""Evaluation of a bundle: generating, going on after a stop, likelihoods, signature inference, sweeps."""

import json
import shutil
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from cod3s.corpus.questions import Question
from cod3s.decode.decode_config import DEFAULT, PAPER
from cod3s.decode.generator import Generator
from cod3s.decode.pair_likelihoods import Pair
from cod3s.errors import Cod3sError, Progress, UsageError, silent_stage
from cod3s.evaluate import evaluate
from cod3s.evaluate.evaluation import evaluate_outputs
from cod3s.evaluate.generation import DEFAULT_SYSTEMS, Named, check_run, generate_outputs, name_systems
from cod3s.evaluate.items import EvaluationData, Item
from cod3s.evaluate.judges import OpenBundle, open_bundle
from cod3s.evaluate.recall import MOST_FREQUENT, score_recall
from cod3s.evaluate.scores import Column
from cod3s.evaluate.sweep import pareto_front, plan, sweep, write_sweep
from cod3s.io.disk import read_json, write_json
from cod3s.metrics.pair_scores import combine
from conftest import Run
from tiny_bundle import EVENTS, SOURCES, TinyBundle

FAST = PAPER.with_values(k=3, signature_beam=20, beam=4, samples=4, baseline_beam=4)
ITEMS = (
    Item("effect", "the baker lost the key at home", "the baker phoned a locksmith at home"),
    Item("effect", "the pilot won a prize by the sea", "the pilot cried with joy by the sea"),
    Item("cause", "the judge stayed in bed in town", "the judge caught a cold in town"),
)
DATA = EvaluationData("made up", "0" * 64, ITEMS)


@pytest.fixture(scope="session")
def opened(tiny_bundle: TinyBundle) -> OpenBundle:
    return open_bundle(tiny_bundle.small, "none")


def named(*systems: str) -> list[Named]:
    return [Named(system, system, FAST) for system in systems]


def test_every_system_answers_every_item(opened: OpenBundle, tmp_path: Path) -> None:
    written = generate_outputs(opened.generator, DATA, named("s2s", "cod3s-mmi-mmi"), tmp_path)
    assert [(own.relation, own.source) for own in written["s2s"]] == [(one.relation, one.source) for one in ITEMS]
    assert (tmp_path / "s2s.jsonl").is_file()
    summary = evaluate_outputs(written, DATA, opened.judges, sizes=(3,))
    assert summary.systems["s2s"]["effect"].control is None
    assert summary.systems["cod3s-mmi-mmi"]["effect"].control is not None
    checked = generate_outputs(
        opened.generator, DATA, [Named("checked", "cod3s-mmi-mmi", FAST.with_values(check=True))], tmp_path
    )["checked"]
    distances = [answer.hamming or 0 for own in checked for answer in own.answers if own.relation == "effect"]
    assert summary.systems["cod3s-mmi-mmi"]["effect"].control.whole.hamming == pytest.approx(np.mean(distances))
    for metric in ("likelihood", "backward_pmi", "relevance"):
        assert summary.figure("s2s", "cause", Column("3", metric)) is not None


def test_an_evaluation_goes_on_after_the_last_whole_system(
    opened: OpenBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = generate_outputs(opened.generator, DATA, named("s2s"), tmp_path)
    stamp = (tmp_path / "s2s.jsonl").stat().st_mtime_ns
    asked: list[str] = []
    whole = Generator.generate_many

    def watched(self: Generator, sources, relation, k=None, *, system="cod3s", **options):  # type: ignore[no-untyped-def]
        asked.append(system)
        if system == "s2s-sigs" and relation == "cause":
            raise KeyboardInterrupt
        return whole(self, sources, relation, k, system=system, **options)

    monkeypatch.setattr(Generator, "generate_many", watched)
    with pytest.raises(KeyboardInterrupt):
        generate_outputs(opened.generator, DATA, named("s2s", "s2s-sigs"), tmp_path)
    assert set(asked) == {"s2s-sigs"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s2s.jsonl"]  # half a system leaves nothing
    monkeypatch.undo()
    again = generate_outputs(opened.generator, DATA, named("s2s", "s2s-sigs"), tmp_path)
    assert again["s2s"] == first["s2s"]
    assert (tmp_path / "s2s.jsonl").stat().st_mtime_ns == stamp
    assert len(again["s2s-sigs"]) == 3


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


def test_the_oracle_writes_in_the_gold_bin(opened: OpenBundle, tmp_path: Path) -> None:
    written = generate_outputs(opened.generator, DATA, named("cod3s-oracle-mmi"), tmp_path)
    gold = opened.generator.signer.signatures([item.target for item in ITEMS])
    assert [[answer.signature for answer in own.answers] for own in written["cod3s-oracle-mmi"]] == [
        [signature] for signature in gold
    ]
    blind = EvaluationData("blind", "", (Item("effect", "it rained"),))
    with pytest.raises(Cod3sError, match="gold target"):
        generate_outputs(opened.generator, blind, named("cod3s-oracle-mmi"), tmp_path / "blind")


def test_likelihoods_are_those_of_the_engine_in_any_batch(opened: OpenBundle) -> None:
    model = opened.judges.model
    assert model is not None
    pairs = [Pair(item.relation, item.source, item.target) for item in ITEMS]
    together = model.score_pairs(pairs)
    for pair, scores in zip(pairs, together, strict=True):
        (alone,) = model.score_pairs([pair])
        for name in ("forward", "target_alone", "backward", "source_alone"):
            assert getattr(alone, name) == pytest.approx(getattr(scores, name), abs=0.02)
    models = opened.generator.models
    player = models.plain("effect")
    (score,) = player.engine.score(
        [player.request(ITEMS[0].source)], [models.vocabulary.encode_text(ITEMS[0].target)]
    )
    assert together[0].forward == pytest.approx(score.log_prob / score.length, abs=0.02)


def test_a_trained_model_prefers_the_effect_that_its_grammar_has(opened: OpenBundle) -> None:
    model = opened.judges.model
    assert model is not None
    right, wrong = [], []
    for event, effects in EVENTS.items():
        for other in EVENTS:
            if other != event:
                source = f"the clerk {event} in town"
                right.append(Pair("effect", source, f"the clerk {effects[0]} in town"))
                wrong.append(Pair("effect", source, f"the clerk {EVENTS[other][0]} in town"))
    scores = zip(model.score_pairs(right), model.score_pairs(wrong), strict=True)
    preferred = [(combine(a, "backward") or 0) > (combine(b, "backward") or 0) for a, b in scores]
    assert np.mean(preferred) > 0.7


def test_a_relation_that_the_bundle_lacks_has_no_likelihood(opened: OpenBundle) -> None:
    model = opened.judges.model
    assert model is not None
    (scores,) = model.score_pairs([Pair("reply", "hello", "hi")])
    assert scores.forward is None
    assert scores.backward is None


def test_questions_are_answered_by_every_scorer(opened: OpenBundle) -> None:
    question = Question("1", SOURCES[0], "effect", ("the baker slept in the garden at home", "snow fell"), 0)
    data = EvaluationData("made up", "", (Item("effect", SOURCES[0]),), (question,))
    summary = evaluate_outputs({}, data, opened.judges, sizes=(3,))
    assert {choice.scorer for choice in summary.choices} == {
        "relevance",
        "forward",
        "pmi",
        "backward",
        "backward_pmi",
        "mmi",
    }
    assert set(summary.settings["bars"]) == {"relevance", "backward_pmi"}


def test_signature_inference_is_better_than_guessing_the_largest_bins(
    opened: OpenBundle, tiny_bundle: TinyBundle
) -> None:
    items = [
        Item("effect", f"the {who} {event} near the lake", f"the {who} {effect} near the lake")
        for who in ("nurse", "waiter")
        for event, effects in EVENTS.items()
        for effect in effects
    ]
    found = score_recall(opened, items, FAST)
    assert set(found) == {"beam", "mmi", MOST_FREQUENT}
    recalls = {
        name: {(row.depth, row.radius): row.recall for row in own["effect"].recalls} for name, own in found.items()
    }
    assert recalls["beam"][10, 0] > recalls[MOST_FREQUENT][10, 0]
    assert found["beam"]["effect"].sources == 16


def test_a_sweep_goes_around_the_base_or_over_the_grid() -> None:
    axes = {"min_hamming": [0, 4], "sentence_weight": [1.0]}
    names = [setting.name for setting in plan(["b"], axes, FAST, grid=False)]
    assert names == [
        "b-min_hamming=0",
        "b-base",
        "b-min_hamming=4",
        "b-base",
        "b-sentence_weight=1",
    ]
    grid = [setting.name for setting in plan(["b", "c"], axes, FAST, grid=True)]
    assert grid[0] == "b-min_hamming=0-sentence_weight=1"
    assert len(grid) == 4


@pytest.mark.parametrize(
    ("points", "front", "reason"),
    [
        ([], set(), "no points"),
        ([(1, 1)], {0}, "nothing beats it"),
        ([(1, 3), (2, 2), (3, 1), (1, 1)], {0, 1, 2}, "the last is beaten by all"),
        ([(1, 1), (1, 1)], {0, 1}, "equal points do not beat each other"),
        ([(1, 1), (1, 2)], {1}, "as good in one, better in the other"),
    ],
)
def test_the_pareto_front(points: list[tuple[float, float]], front: set[int], reason: str) -> None:
    assert pareto_front(points) == front, reason


def test_a_sweep_has_a_point_for_each_setting_and_a_curve_for_each_axis(
    opened: OpenBundle, tmp_path: Path
) -> None:
    found = sweep({"tiny": opened}, DATA, tmp_path, axes={"min_hamming": [0, 4]}, base=FAST)
    write_sweep(tmp_path, found)
    record = json.loads((tmp_path / "sweep.json").read_text())
    assert [point["options"] for point in record["points"]] == [{"min_hamming": value} for value in (0, 2, 4)]
    assert any(point["on_front"] for point in record["points"])
    assert all(isinstance(point["in_bin"], float) for point in record["points"])
    page = (tmp_path / "sweep.html").read_text()
    assert page.count("<svg") == 3
    again = sweep({"tiny": opened}, DATA, tmp_path, axes={"min_hamming": [0, 4]}, base=FAST)
    assert again.record() == found.record()


def write_data(folder: Path) -> Path:
    rows = [f"{item.source}\t{item.relation}\t{item.target}\n" for item in ITEMS]
    (folder / "data.tsv").write_text("source\trelation\ttarget\n" + "".join(rows))
    return folder / "data.tsv"


def test_evaluate_is_called_from_python_and_runs_the_default_system_as_generate_does(
    opened: OpenBundle, tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    data = write_data(tmp_path)
    stages: list[str] = []

    def noted(label: str, total: int | None) -> AbstractContextManager[Progress]:
        stages.append(label)
        return silent_stage(label, total)

    summary = evaluate(
        data,
        bundle=tiny_bundle.small,
        systems=["cod3s", "cod3s-beam-mmi"],
        limit=1,
        output=tmp_path / "report",
        sizes=[2],
        second_encoder="none",
        stage=noted,
    )
    assert summary.data["items"] == dict.fromkeys(summary.data["items"], 1)
    assert stages[:2] == ["generating 1/2: cod3s", "generating 2/2: cod3s-beam-mmi"]
    assert stages[-1] == "writing the report"
    assert stages.index("judging questions") < stages.index("judging answers") < stages.index("scoring systems")
    settings = summary.settings["systems"]
    plain = opened.generator.generate(SOURCES[0], "effect", options=DEFAULT.with_values(k=2, seed=1234))
    assert settings["cod3s"]["beam"] == plain.settings["beam"] == DEFAULT.beam
    assert settings["cod3s-beam-mmi"]["beam"] == PAPER.beam
    again = evaluate(outputs=[tmp_path / "report" / "outputs"], encoder="static", sizes=[2], output=None)
    assert set(again.systems) == {"cod3s", "cod3s-beam-mmi"}
    with pytest.raises(UsageError, match="nothing to evaluate"):
        evaluate()


def test_the_default_system_is_among_the_default_systems() -> None:
    named = name_systems(DEFAULT_SYSTEMS, "", k=10, seed=1234)
    assert (named[0].name, named[0].options.beam) == ("cod3s", DEFAULT.beam)
    assert {system.options.beam for system in named[1:]} == {PAPER.beam}
    assert name_systems(["cod3s"], "paper", k=10, seed=1234)[0].options.beam == PAPER.beam


def test_quick_narrows_the_papers_beams_in_bins_and_leaves_the_default_system_alone() -> None:
    named = name_systems(["cod3s", "cod3s-mmi-mmi"], "", k=10, seed=1234)
    quick = name_systems(["cod3s", "cod3s-mmi-mmi"], "quick", k=10, seed=1234)
    assert quick[0] == named[0]
    before, now = asdict(named[1].options), asdict(quick[1].options)
    assert {name for name in before if before[name] != now[name]} == {"beam"}
    assert now["beam"] < before["beam"]


def test_evaluate_scores_again_from_its_outputs_to_the_same_bytes(
    here: Run, tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    data = write_data(tmp_path)
    made = here(
        *("evaluate", data, "--bundle", tiny_bundle.small, "-o", "report", "--systems", "s2s,cod3s-beam-mmi"),
        *("--sets", "2,3", "--second-encoder", "none", "--json"),
    )
    assert made.returncode == 0, made.stderr
    record = json.loads(made.stdout)
    assert set(record["systems"]) == {"s2s", "cod3s-beam-mmi"}
    assert "fidelity" in record["systems"]["cod3s-beam-mmi"]["effect"]
    assert record["settings"]["bundle"].startswith("small@")
    files = {name: (tmp_path / "report" / name).read_bytes() for name in ("metrics.json", "report.html")}
    again = here(
        *("evaluate", data, "--bundle", tiny_bundle.small, "-o", "report", "--systems", "s2s,cod3s-beam-mmi"),
        *("--sets", "2,3", "--second-encoder", "none", "--force"),
    )
    assert again.returncode == 0, again.stderr
    assert {name: (tmp_path / "report" / name).read_bytes() for name in files} == files
    stored = here("evaluate", "--from", "report/outputs", "-o", "again", "--sets", "3", "--encoder", "static")
    assert stored.returncode == 0, stored.stderr
    assert "Diversity of 3-sets" in stored.stdout
    compared = here("evaluate", "--compare", "report", "again")
    assert compared.returncode == 0, compared.stderr
    assert "3 bleu1" in compared.stdout
    assert "bundle differs" in compared.stderr


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
        (["sweep", "data.tsv", "-o", "s", "--min-hamming", "a"], "takes numbers", 2),
        (["sweep", "data.tsv", "-o", "s", "-k", "1001"], "equal to 1000", 2),
    ],
)
def test_wrong_calls_say_the_way_out(
    here: Run, tmp_path: Path, arguments: list[str], message: str, code: int
) -> None:
    write_data(tmp_path)
    done = here(*arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bundle_without_an_inverse_relation_is_evaluated_by_the_systems_it_can_run(
    here: Run, tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(tiny_bundle.small, folder)
    facts = read_json(folder / "bundle.json")
    facts["relations"]["effect"]["inverse"] = ""  # as in a relation of a user's own
    write_json(folder / "bundle.json", facts)
    data = write_data(tmp_path)
    common = (data, "--bundle", folder, "--sets", "2", "--second-encoder", "none", "--relation", "effect")
    done = here("evaluate", *common, "-o", "report", "--json")
    assert done.returncode == 0, done.stderr
    assert "cod3s-mmi-mmi is skipped: MMI needs" in done.stderr
    assert set(json.loads(done.stdout)["systems"]) == {"cod3s", "s2s", "s2s-rs"}
    everything = here("evaluate", *common, "-o", "whole", "--systems", "all", "--json")
    assert everything.returncode == 0, everything.stderr
    systems = ["cod3s", "s2s", "s2s-sigs", "s2s-rs", "cod3s-beam-beam"]
    assert list(json.loads(everything.stdout)["systems"]) == systems
    asked = here("evaluate", *common, "-o", "other", "--systems", "s2s,cod3s-mmi-mmi")
    assert asked.returncode == 1
    assert "MMI needs" in asked.stderr
    assert not list((tmp_path / "other").rglob("*.jsonl")), "found before anything was generated"


def test_a_finished_report_is_replaced_only_by_force(here: Run, tmp_path: Path) -> None:
    record = {"source": "the well ran dry", "relation": "effect", "answers": ["the cattle died", "we dug"]}
    (tmp_path / "outputs.jsonl").write_text(json.dumps(record), encoding="utf-8")
    command = ("evaluate", "--from", "outputs.jsonl", "-o", "report", "--sets", "2", "--encoder", "static")
    assert here(*command, "--second-encoder", "none").returncode == 0
    again = here(*command, "--second-encoder", "none", "--sets", "1")
    assert again.returncode == 1
    assert "report.html already exists" in again.stderr
    assert "--force" in again.stderr
    assert read_json(tmp_path / "report" / "metrics.json")["settings"]["sets"] == [2]
    assert here(*command, "--second-encoder", "none", "--sets", "1", "--force").returncode == 0
    (tmp_path / "report" / "report.html").unlink()  # as if it had been stopped before the end
    assert here(*command, "--second-encoder", "none").returncode == 0


def test_a_finished_sweep_is_replaced_only_by_force(here: Run, tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    data = write_data(tmp_path)
    command = ("sweep", data, "--bundle", tiny_bundle.small, "-o", "sweep", "-k", "2", "--limit", "1")
    values = ("--signature-weight", "-", "--sentence-weight", "-", "--min-hamming")
    assert here(*command, *values, "2").returncode == 0
    again = here(*command, *values, "3")
    assert again.returncode == 1
    assert "sweep.html already exists" in again.stderr
    assert here(*command, *values, "3", "--seed", "5", "--force").returncode == 0


@pytest.mark.parametrize("command", ["evaluate", "sweep"])
def test_data_may_come_from_standard_input(
    command: str, here: Run, tiny_bundle: TinyBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    text = write_data(tmp_path).read_text(encoding="utf-8")
    options = ["--bundle", tiny_bundle.small, "--second-encoder", "none"]
    options += ["--systems", "s2s", "--sets", "2"] if command == "evaluate" else ["-k", "2", "--limit", "1"]
    done = here(command, "-", "-o", "result", *options, stdin=text)
    assert done.returncode == 0, done.stderr
    assert "standard input" in done.stdout
    assert not list((tmp_path / "temporary").iterdir()), "the copy is removed"
