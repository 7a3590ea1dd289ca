"""A critic learns which targets fit their sources, ranks answers by it, and refuses what it cannot judge."""

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cod3s.bundle import read_facts, write_facts
from cod3s.corpus.questions import Question
from cod3s.critic.examples import LabelledPair, corpus_examples, question_examples, verdict_examples
from cod3s.critic.fitting import Fit, fit_critic, measure
from cod3s.critic.judge import Critic, load_critic, save_critic
from cod3s.critic.likelihoods import Pair
from cod3s.decode.config import DecodeConfig
from cod3s.decode.generator import Generator, load
from cod3s.decode.signatures import keep_signatures_apart
from cod3s.decode.systems import find_system
from cod3s.errors import BundleError, Cod3sError, FileFormatError, SentenceError
from cod3s.evaluate.grading import load_generator, open_grader
from cod3s.io.disk import read_json, write_json
from cod3s.records import AnswerMade, AnswerSet, ChosenSignature, SignaturesChosen
from cod3s.signatures import from_text
from conftest import Run
from tiny_bundle import SOURCES, TinyBundle

QUICK = DecodeConfig(k=3, signature_beam=20, beam=6, max_tokens=16)


@pytest.fixture(scope="module")
def fit(tiny_bundle: TinyBundle) -> Fit:
    generator = load(tiny_bundle.exact)
    examples = corpus_examples(tiny_bundle.run.parent / "corpus", generator.encoder, limit=50, seed=1)
    return fit_critic(examples, generator.models, generator.signer)


@pytest.fixture(scope="module")
def bundle(tiny_bundle: TinyBundle, fit: Fit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny bundle with its critic."""
    folder = tmp_path_factory.mktemp("critic") / "bundle"
    shutil.copytree(tiny_bundle.exact, folder)
    return attached(folder, replace(fit.critic, floor=0.0))


def attached(folder: Path, critic: Critic) -> Path:
    save_critic(folder / "critic", critic)
    write_facts(folder, replace(read_facts(folder), critic="critic"))
    return folder


@pytest.fixture(scope="module")
def generator(bundle: Path) -> Generator:
    return load(bundle)


def test_it_tells_right_targets_from_wrong_ones_that_it_was_not_fitted_on(fit: Fit) -> None:
    (whole,) = [row for row in fit.measured if not row.relation]
    assert whole.questions >= 20
    assert whole.accuracy >= 0.8  # the grammar decides most of them; a coin gets half
    assert whole.auc >= 0.8


def test_negatives_answer_another_source_of_the_same_corpus(tiny_bundle: TinyBundle) -> None:
    encoder = load(tiny_bundle.exact).encoder
    examples = corpus_examples(tiny_bundle.run.parent / "corpus", encoder, limit=20, seed=1)
    for right, wrong in zip(examples[::2], examples[1::2], strict=True):
        assert right.plausible
        assert not wrong.plausible
        assert right.pair.source == wrong.pair.source
        assert right.question == wrong.question
        assert right.pair.target != wrong.pair.target


def test_answers_are_ranked_by_plausibility_if_the_bundle_has_a_critic(generator: Generator) -> None:
    answers = generator.generate(SOURCES[0], "effect", options=QUICK)
    assert answers.settings["rerank_sentences"] == "critic"
    for answer in answers:
        assert answer.plausibility is not None
        assert 0 <= answer.plausibility <= 1
        assert math.isclose(answer.score, math.log(answer.plausibility))


def test_judged_alone_and_among_others_a_target_is_as_plausible(generator: Generator) -> None:
    targets = ["the baker phoned a locksmith at home", "the pilot drank hot tea", "the baker slept in the garden"]
    together = generator.plausibility(SOURCES[0], "effect", targets)
    alone = [generator.plausibility(SOURCES[0], "effect", [target])[0] for target in targets]
    assert np.allclose(together, alone, atol=1e-4)
    assert together[0] > together[1]
    assert generator.plausibility(SOURCES[0], "effect", []) == []


@pytest.mark.parametrize(("target", "error"), [("", SentenceError), ("word " * 10_000, SentenceError)])
def test_a_side_that_is_no_sentence_is_an_error(generator: Generator, target: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        generator.plausibility(SOURCES[0], "effect", [target])


@pytest.mark.parametrize("bin_fit", ["none", "weigh"])
def test_more_bins_than_answers_keep_the_best_that_lie_apart(generator: Generator, bin_fit: str) -> None:
    options = QUICK.with_values(bin_fit=bin_fit, min_hamming=1, bins_per_answer=1)
    usual = generator.generate(SOURCES[1], "effect", options=options)
    chosen = generator.generate(SOURCES[1], "effect", options=options.with_values(bins_per_answer=3))
    assert len(chosen) == 3
    assert sum(answer.plausibility or 0 for answer in chosen) >= sum(a.plausibility or 0 for a in usual) - 0.3
    for a, b in combinations([from_text(answer.signature) for answer in chosen], 2):
        assert int((a != b).sum()) > 1


def test_spare_bins_do_not_relax_the_rule_that_the_answers_obey() -> None:
    signatures = ["00000000", "11110000", "10000000", "00001111", "11111110", "00001110"]
    ranking = [ChosenSignature(bits, n, -n, -n, None, 0, "") for n, bits in enumerate(signatures)]
    remarks: list[str] = []
    config = DecodeConfig(k=2, bins_per_answer=3, min_hamming=2)
    kept = [chosen.signature for chosen in keep_signatures_apart(ranking, config, remarks)]
    assert kept == [
        "00000000",
        "11110000",
        "00001111",
        "11111110",
    ]  # the third and the last lie one bit off others
    assert not remarks
    (first, second) = keep_signatures_apart(ranking, config.with_values(k=2, bins_per_answer=1), remarks)
    assert [first.signature, second.signature] == kept[:2]


@pytest.mark.parametrize("bins_per_answer", [1.0, 2.0])
def test_a_stream_ends_with_what_generate_gives(generator: Generator, bins_per_answer: float) -> None:
    options = QUICK.with_values(bins_per_answer=bins_per_answer)
    first, *events, last = generator.stream(SOURCES[2], "effect", options=options)
    assert isinstance(first, SignaturesChosen)
    assert len(first.signatures) == 3
    assert isinstance(last, AnswerSet)
    assert last.texts == generator.generate(SOURCES[2], "effect", options=options).texts
    assert [event.answer.text for event in events if isinstance(event, AnswerMade)] == [*last.texts]


def test_implausible_answers_are_left_out_and_counted_unless_all_are_wanted(
    tiny_bundle: TinyBundle, fit: Fit, tmp_path: Path
) -> None:
    shutil.copytree(tiny_bundle.exact, tmp_path / "strict")
    strict = load(attached(tmp_path / "strict", replace(fit.critic, floor=1.0)))
    options = QUICK.with_values(k=5)
    everything = strict.generate(SOURCES[0], "effect", options=options.with_values(show_doubtful=True))
    assert len(everything) == 5
    answers = strict.generate(SOURCES[0], "effect", options=options)
    assert [*answers.texts] == [text for text in everything.texts if text in answers.texts]
    best = sorted((answer.plausibility or 0.0 for answer in everything), reverse=True)
    assert sorted((answer.plausibility or 0.0 for answer in answers), reverse=True) == best[:3]
    assert any("left out 2 implausible" in remark for remark in answers.remarks)
    *_, streamed = strict.stream(SOURCES[0], "effect", options=options)
    assert isinstance(streamed, AnswerSet)
    assert streamed.remarks == answers.remarks


def test_an_evaluation_judges_as_the_critic_does_alone(bundle: Path) -> None:
    generator = load_generator(bundle)
    grader = open_grader(["bundle"], generator)
    pairs = [
        Pair("effect", source, target) for source in SOURCES for target in ("the baker drank hot tea", source)
    ]
    grader.grade(pairs)
    alone = generator.judge(pairs).tolist()
    assert [grader.grades(pair)["critic"] for pair in pairs] == pytest.approx(alone, abs=1e-5)


def test_without_a_critic_the_ranking_is_an_error_with_the_way_out(tiny_bundle: TinyBundle) -> None:
    plain = load(tiny_bundle.exact)
    with pytest.raises(BundleError, match="no critic"):
        plain.generate(SOURCES[0], "effect", options=QUICK.with_values(rerank_sentences="critic"))
    with pytest.raises(Cod3sError, match="no critic"):
        plain.plausibility(SOURCES[0], "effect", ["the baker slept"])


BROKEN: list[tuple[str, Callable[[dict[str, Any]], Any], str]] = [
    ("not a number", lambda c: c["weights"].update(pmi=float("nan")), "not a number"),
    ("unknown feature", lambda c: c["weights"].update(charm=1.0), "charm"),
    ("no bias", lambda c: c.pop("bias"), "does not describe"),
    ("weights as a list", lambda c: c.update(weights=[1]), "does not describe"),
]


@pytest.mark.parametrize(("damage", "message"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_damaged_critic_is_a_clear_error(
    fit: Fit, tmp_path: Path, damage: Callable[[dict[str, Any]], Any], message: str
) -> None:
    save_critic(tmp_path, fit.critic)
    content = read_json(tmp_path / "critic.json")
    damage(content)
    write_json(tmp_path / "critic.json", content)
    with pytest.raises(BundleError, match=message):
        load_critic(tmp_path)


def test_a_saved_critic_is_read_as_it_was(fit: Fit, tmp_path: Path) -> None:
    save_critic(tmp_path, fit.critic)
    assert load_critic(tmp_path) == fit.critic


def test_pairs_of_one_kind_only_cannot_be_fitted(tiny_bundle: TinyBundle) -> None:
    generator = load(tiny_bundle.exact)
    one = [LabelledPair(Pair("effect", SOURCES[0], "the baker slept"), True, "made", "1")]
    with pytest.raises(Cod3sError, match="implausible"):
        fit_critic(one, generator.models, generator.signer)


def test_a_small_set_of_data_counts_as_much_as_a_large_one(tiny_bundle: TinyBundle) -> None:
    generator = load(tiny_bundle.exact)
    few = corpus_examples(tiny_bundle.run.parent / "corpus", generator.encoder, limit=10, seed=1)
    contrary = [replace(example, data="contrary", plausible=not example.plausible) for example in few]
    fitted = fit_critic([*few, *contrary * 5], generator.models, generator.signer)
    assert list(fitted.critic.weights.values()) == pytest.approx([0.0] * len(fitted.critic.weights), abs=1e-6)


def test_verdicts_are_read_from_a_table_and_stay_together_by_source(tmp_path: Path) -> None:
    rows = "\n".join(
        [
            "source\trelation\ttarget\tplausible\tnote",
            "The kettle whistled.\teffect\tshe made tea\tyes\t",
            "The kettle whistled.\teffect\tthe moon fell\tno\tnonsense",
            "The kettle whistled.\tcause\tthe water boiled\tyes\t",
        ]
    )
    (tmp_path / "read.tsv").write_text(rows)
    examples = verdict_examples(tmp_path / "read.tsv")
    assert [example.plausible for example in examples] == [True, False, True]
    assert [example.question == examples[0].question for example in examples] == [True, True, False]
    (tmp_path / "read.tsv").write_text(rows.replace("\tno\t", "\tperhaps\t"))
    with pytest.raises(FileFormatError, match="line 3: 'perhaps' is not a verdict"):
        verdict_examples(tmp_path / "read.tsv")


def test_of_verdicts_with_splits_those_of_dev_count(tmp_path: Path) -> None:
    rows = [f"{split}\tit rained\teffect\tI got wet {split}\tyes" for split in ("train", "dev", "test")]
    (tmp_path / "read.tsv").write_text("\n".join(["split\tsource\trelation\ttarget\tplausible", *rows]) + "\n")
    assert [example.pair.target for example in verdict_examples(tmp_path / "read.tsv")] == ["I got wet dev"]


def test_figures_are_those_of_counting() -> None:
    random = np.random.default_rng(5)
    questions = [Question(str(n), f"source {n}", "effect", (f"a {n}", f"b {n}"), n % 2) for n in range(40)]
    examples = question_examples("made", questions)
    probabilities = random.random(len(examples)).round(1)  # with ties
    (whole, effect) = measure(examples, probabilities)
    right = [p for p, example in zip(probabilities, examples, strict=True) if example.plausible]
    wrong = [p for p, example in zip(probabilities, examples, strict=True) if not example.plausible]
    couples = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in product(right, wrong)]
    assert math.isclose(whole.auc, sum(couples) / len(couples))
    credits = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in zip(right, wrong, strict=True)]
    assert math.isclose(whole.accuracy, sum(credits) / 40)
    assert (whole.questions, effect.relation) == (40, "effect")


def test_the_command_line_fits_and_scores(here: Run, tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    shutil.copytree(tiny_bundle.exact, tmp_path / "bundle")
    corpus = tiny_bundle.run.parent / "corpus"
    fitted = here("bundle", "fit-critic", "bundle", "--corpus", corpus, "--limit", "20", "--json")
    assert fitted.returncode == 0, fitted.stderr
    assert {row["data"] for row in json.loads(fitted.stdout)["measured"]} == {"corpus"}
    again = here("bundle", "fit-critic", "bundle", "--corpus", corpus)
    assert again.returncode == 1
    assert "--force" in again.stderr
    rows = f"source\ttarget\n{SOURCES[0]}\tthe baker slept in the garden at home\n{SOURCES[0]}\tthe pilot slept\n"
    (tmp_path / "pairs.tsv").write_text(rows)
    scored = here("critic", "score", "-", "--bundle", "bundle", "--json", stdin=rows)
    assert scored.returncode == 0, scored.stderr
    first, second = map(json.loads, scored.stdout.splitlines())
    assert first["plausibility"] > second["plausibility"]
    mixed = [
        {"id": 7, "source": SOURCES[0], "relation": "cause", "target": "the pilot slept"},
        {"id": 8, "source": SOURCES[0], "target": "the pilot slept"},
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mixed))
    rescored = here("critic", "score", "pairs.jsonl", "--bundle", "bundle", "--json")
    assert rescored.returncode == 0, rescored.stderr
    cause, effect = map(json.loads, rescored.stdout.splitlines())
    assert (cause["id"], cause["relation"], effect["id"], effect["relation"]) == (7, "cause", 8, "effect")
    assert effect["plausibility"] == pytest.approx(second["plausibility"], abs=1e-4)
    assert cause["plausibility"] != pytest.approx(effect["plausibility"], abs=1e-6)
    kept = here(
        *("select", "pairs.tsv", "-k", "1", "--score-with", "critic", "--text-field", "target"),
        *("--score-weight", "0.9", "--bundle", "bundle", "--format", "tsv"),
    )
    assert kept.returncode == 0, kept.stderr
    assert "the baker slept" in kept.stdout
    table = here("generate", "effect", SOURCES[0], "--bundle", "bundle", "-k", "2", "--show-doubtful", "-v")
    assert table.returncode == 0, table.stderr
    assert "critic" in table.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("bundle", "fit-critic", "bundle"), 2, "nothing to fit"),
        (("bundle", "fit-critic", "nowhere", "--questions", "x.xml"), 1, "not a bundle"),
        (("bundle", "fit-critic", "bundle", "--questions", "x.xml", "--features", "charm"), 2, "charm"),
    ],
)
def test_wrong_calls_say_what_to_do(here: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    called = here(*arguments)
    assert called.returncode == code
    assert message in called.stderr
    assert "hint" in called.stderr


@pytest.mark.parametrize(
    ("name", "search"), [("cod3s-mmi-critic", "beam"), ("cod3s-beam-critic-rs-fresh", "sample")]
)
def test_names_of_systems_ask_for_the_critic(name: str, search: str) -> None:
    config = find_system(name).configure(QUICK)
    assert (config.rerank_sentences, config.search) == ("critic", search)
