"""Evaluation of stored outputs: from records to figures, tables and a page, with nothing generated."""

import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cod3s.encode import Encoder
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.evaluate.comparison import compare_reports
from cod3s.evaluate.evaluation import evaluate_outputs
from cod3s.evaluate.items import EvaluationData, Item, read_data
from cod3s.evaluate.judges import Judges
from cod3s.evaluate.outputs import read_outputs, read_systems, write_outputs
from cod3s.evaluate.report import METRICS, PAGE, TABLES, write_report
from cod3s.evaluate.report_tables import all_tables, distinct_table, diversity_table
from cod3s.evaluate.scores import Column
from cod3s.evaluate.summary import Summary
from cod3s.metrics.lexical import bleu_diversity
from cod3s.records import Answer, AnswerSet
from cod3s.signatures import random_code
from cod3s.signatures.signer import sign

COPA = """<copa-corpus>
<item id="1" asks-for="effect" most-plausible-alternative="1">
 <p>The well ran dry.</p><a1>The farmers carried water.</a1><a2>The choir sang a song.</a2></item>
<item id="2" asks-for="cause" most-plausible-alternative="2">
 <p>The boy is crying.</p><a1>The shop sells paint.</a1><a2>The boy fell off his bike.</a2></item>
<item id="3" asks-for="effect" most-plausible-alternative="2">
 <p>The soup was cold.</p><a1>The moon is round.</a1><a2>He warmed the soup.</a2></item>
</copa-corpus>"""
SOURCES = ("The well ran dry", "The soup was cold", "It rained")
DIVERSE = ("the farmers dug a deeper one", "the cattle died", "a letter was written to the king")
ALIKE = ("the farmers dug a deeper one", "the farmers dug a deep one", "the farmers dug one")


def answered(system: str, source: str, texts: tuple[str, ...], relation: str = "effect") -> AnswerSet:
    answers = tuple(Answer(text, -float(rank), -float(rank)) for rank, text in enumerate(texts))
    return AnswerSet(source, relation, system, {"beam": 5}, answers)


def outputs() -> dict[str, list[AnswerSet]]:
    return {
        "diverse": [answered("diverse", source, DIVERSE) for source in SOURCES],
        "alike": [answered("alike", source, ALIKE) for source in SOURCES],
    }


@pytest.fixture
def copa(tmp_path: Path) -> EvaluationData:
    (tmp_path / "copa.xml").write_text(COPA)
    return read_data(tmp_path / "copa.xml")


@pytest.fixture
def summary(static: Encoder, copa: EvaluationData) -> Summary:
    return evaluate_outputs(outputs(), copa, Judges(static, second=static), sizes=(2, 3))


def test_questions_become_items_with_their_gold_answer(copa: EvaluationData) -> None:
    assert copa.items[0] == Item("effect", "The well ran dry.", "The farmers carried water.")
    assert copa.counts == {"effect": 2, "cause": 1}
    assert [item.source for item in copa.first(1).items] == ["The well ran dry.", "The boy is crying."]
    assert len(copa.first(1).questions) == 3
    assert [question.premise for question in copa.first(1).asked] == ["The well ran dry.", "The boy is crying."]
    assert copa.asked == copa.questions
    assert copa.first(None).items == copa.items


@pytest.mark.parametrize(
    ("name", "content", "relation"),
    [
        ("a.tsv", "source\trelation\ttarget\nIt rained.\teffect\tWe got wet.\n", ""),
        ("a.tsv", "target\tsource\nWe got wet.\tIt rained.\n", "effect"),
        ("a.jsonl", '{"source": "It rained.", "relation": "effect", "target": "We got wet."}\n', ""),
        ("a.csv", 'source,relation,target\n"It rained.",effect,"We got wet."\n', ""),
    ],
)
def test_tables_of_sources_are_read(tmp_path: Path, name: str, content: str, relation: str) -> None:
    (tmp_path / name).write_text(content)
    assert read_data(tmp_path / name, relation).items == (Item("effect", "It rained.", "We got wet."),)


def test_a_question_that_only_speaks_of_a_source_is_a_question(tmp_path: Path) -> None:
    record = {"premise": "the source ran dry", "question": "effect", "choice1": "a", "choice2": "b", "label": 0}
    (tmp_path / "copa.jsonl").write_text(json.dumps({**record, "idx": 1}))
    assert read_data(tmp_path / "copa.jsonl").items == (Item("effect", "the source ran dry", "a"),)


def test_effects_come_before_causes_as_in_the_paper(static: Encoder, copa: EvaluationData) -> None:
    sets = [answered("s", "It rained", DIVERSE, relation) for relation in ("cause", "effect")]
    found = evaluate_outputs({"s": sets}, copa, Judges(static), sizes=(3,))
    assert diversity_table(found, 3).columns == ("system", "C→E", "E→C")


def test_plain_text_is_a_source_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It rained.\n\nSnow fell.\n")
    assert read_data(tmp_path / "a.txt", "cause").items == (
        Item("cause", "It rained."),
        Item("cause", "Snow fell."),
    )
    with pytest.raises(Cod3sError, match="does not name the relation"):
        read_data(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("content", "items"),
    [
        ("source\trelation\nIt rained.\tcause\n", [Item("cause", "It rained.")]),
        ("source,relation\nIt rained.,cause\n", [Item("cause", "It rained.")]),
        ('{"source": "It rained."}\n', [Item("effect", "It rained.")]),
        ("It rained, again.\nSnow fell.\n", [Item("effect", "It rained, again."), Item("effect", "Snow fell.")]),
        (COPA, [Item("effect", "The well ran dry.", "The farmers carried water.")]),
    ],
    ids=["tsv", "csv", "jsonl", "lines", "xml"],
)
def test_data_on_standard_input_is_known_by_its_content(
    content: str, items: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    data = read_data(Path("-"), "effect")
    assert list(data.items[: len(items)]) == items
    assert (data.name, data.sha256) == ("standard input", hashlib.sha256(content.encode()).hexdigest())


def test_a_mistake_on_standard_input_is_not_looked_for_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"<copa-corpus><item>")))
    with pytest.raises(FileFormatError, match=r"^standard input, line 1: not well-formed XML"):
        read_data(Path("-"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "\n", "no sources"),
        ("a.tsv", "source\trelation\nonly one\n", "cells"),
        ("a.jsonl", '{"source": 5, "relation": "effect"}\n', "no text"),
        ("a.jsonl", '{"text": "x"}\n', "not a question"),
    ],
)
def test_data_that_cannot_be_read_is_a_clear_error(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(FileFormatError, match=message):
        read_data(tmp_path / name, "effect")


def test_outputs_come_back_as_they_were_written(tmp_path: Path) -> None:
    sets = [answered("s2s", "It rained", ("we got wet", "“naïve” 雨")), answered("s2s", "Snow fell", ())]
    write_outputs(tmp_path / "s2s.jsonl", sets)
    assert read_outputs(tmp_path / "s2s.jsonl") == sets


def test_outputs_of_other_models_may_be_plain_texts(tmp_path: Path) -> None:
    (tmp_path / "gpt.jsonl").write_text(
        '{"source": "It rained", "relation": "effect", "answers": ["wet", "mud"]}\n'
    )
    systems = read_systems([tmp_path])
    assert list(systems) == ["gpt"]
    assert [answer.text for answer in systems["gpt"][0].answers] == ["wet", "mud"]


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[]",
        '{"source": "x", "answers": []}',
        '{"source": 1, "relation": "effect", "answers": []}',
        '{"source": "x", "relation": "effect", "answers": [{"txt": "y"}]}',
    ],
)
def test_records_that_are_none_name_their_line(tmp_path: Path, line: str) -> None:
    good = '{"source": "x", "relation": "effect", "answers": ["y"]}'
    (tmp_path / "a.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(FileFormatError, match="line 2"):
        read_outputs(tmp_path / "a.jsonl")


def test_figures_are_means_over_the_first_answers(summary: Summary) -> None:
    figure = summary.figure("alike", "effect", Column("2", "bleu1"))
    assert figure is not None
    assert figure.mean == pytest.approx(bleu_diversity(ALIKE[:2], 1))
    assert summary.systems["alike"]["effect"].sets == 3


def test_different_answers_score_above_like_ones(summary: Summary) -> None:
    for column in (Column("3", "bleu2"), Column("3", "semantic"), Column("3", "vendi"), Column("distinct", "0.1")):
        diverse, alike = (summary.figure(name, "effect", column) for name in ("diverse", "alike"))
        assert diverse is not None
        assert alike is not None
        assert diverse.mean > alike.mean, column
        assert diverse.near_best


def test_three_sources_are_too_few_for_significance(summary: Summary) -> None:
    (row,) = summary.comparisons["effect"][Column("3", "semantic")]
    assert row.p > 0.05
    figure = summary.figure("alike", "effect", Column("3", "semantic"))
    assert figure is not None
    assert figure.near_best


def test_with_many_sources_only_the_better_system_is_marked(static: Encoder, copa: EvaluationData) -> None:
    sources = [f"It rained in town {number}" for number in range(12)]
    systems = {
        name: [answered(name, source, (*texts[:2], f"{texts[2]} {source}")) for source in sources]
        for name, texts in (("diverse", DIVERSE), ("alike", ALIKE))
    }
    found = evaluate_outputs(systems, copa, Judges(static), sizes=(3,))
    near = {
        (name, metric): figure.near_best
        for name in systems
        for metric in ("semantic", "self_bleu")
        if (figure := found.figure(name, "effect", Column("3", metric)))
    }
    assert near["diverse", "semantic"]
    assert not near["alike", "semantic"]
    assert near["diverse", "self_bleu"]  # lower is better
    assert not near["alike", "self_bleu"]


def test_the_effective_count_leaves_out_what_has_nothing_to_do_with_the_source(
    static: Encoder, copa: EvaluationData
) -> None:
    sets = [
        answered(
            "s",
            "The soup was cold",
            ("a guest warmed the soup", "the cook made another soup for the king", "planets orbit the sun"),
        )
    ]
    found = evaluate_outputs({"s": sets}, copa, Judges(static), sizes=(3,))
    counts = {
        column: figure.mean
        for column in (Column("distinct", "0.1"), Column("effective", "relevance"))
        if (figure := found.figure("s", "effect", column))
    }
    assert counts == {Column("distinct", "0.1"): 3, Column("effective", "relevance"): 2}


@pytest.mark.parametrize(
    ("texts", "semantic", "distinct", "short", "reason"),
    [
        ((), 0.0, 0, 1, "no answers"),
        (("it rained",), 0.0, 1, 1, "one answer"),
        (("", "  ", "\x00"), 0.0, 0, 1, "answers with nothing visible"),
        (("it rained", "", "it rained"), 0.0, 1, 1, "an empty answer takes a place but says nothing"),
        (("it rained",) * 3, 0.0, 1, 0, "identical answers"),
        (("雨", "雨", "雨"), 0.0, 1, 0, "identical answers in another script"),
    ],
)
def test_degenerate_sets_have_figures(
    texts: tuple[str, ...],
    semantic: float,
    distinct: int,
    short: int,
    reason: str,
    static: Encoder,
    copa: EvaluationData,
) -> None:
    found = evaluate_outputs({"s": [answered("s", "It rained", texts)]}, copa, Judges(static), sizes=(3,))
    own = found.systems["s"]["effect"]
    assert own.figures[Column("3", "semantic")].mean == pytest.approx(semantic, abs=1e-6), reason
    assert own.figures[Column("distinct", "0.1")].mean == distinct, reason
    assert own.short == short, reason
    assert all_tables(found)


def test_fidelity_is_measured_by_signing_the_answers(static: Encoder, copa: EvaluationData) -> None:
    code = random_code(16, static.dim)
    signatures = [row.signature for row in sign(DIVERSE, encoder=static, code=code).sentences]
    kept = answered("kept", "It rained", DIVERSE)
    kept = replace(
        kept,
        answers=tuple(replace(a, signature=s, count=3) for a, s in zip(kept.answers, signatures, strict=True)),
    )
    turned = replace(
        kept, system="turned", answers=tuple(replace(a, signature=signatures[0]) for a in kept.answers)
    )
    found = evaluate_outputs({"kept": [kept], "turned": [turned]}, copa, Judges(static, code=code), sizes=(3,))
    control = found.systems["kept"]["effect"].control
    assert control is not None
    assert (control.whole.in_bin, control.whole.hamming) == (1.0, 0.0)
    assert control.other_hamming is not None
    assert control.other_hamming > 2
    other = found.systems["turned"]["effect"].control
    assert other is not None
    assert other.whole.in_bin == pytest.approx(1 / 3)
    assert evaluate_outputs(outputs(), copa, Judges(static, code=code)).systems["alike"]["effect"].control is None


def test_relevance_chooses_the_alternative_about_the_same_thing(summary: Summary) -> None:
    assert {(row.relation, row.scorer): row.accuracy for row in summary.choices} == {
        ("effect", "relevance"): 1.0,
        ("cause", "relevance"): 1.0,
    }


def test_a_limit_leaves_the_bars_and_tests_the_scorers_on_fewer_questions(
    static: Encoder, copa: EvaluationData, summary: Summary
) -> None:
    limited = evaluate_outputs(outputs(), copa.first(1), Judges(static), sizes=(2, 3))
    assert limited.settings["bars"] == summary.settings["bars"]
    assert {(row.relation, row.questions) for row in limited.choices} == {("effect", 1), ("cause", 1)}
    assert {(row.relation, row.questions) for row in summary.choices} == {("effect", 2), ("cause", 1)}


def test_a_source_that_stands_twice_is_two_sources(static: Encoder, copa: EvaluationData) -> None:
    sets = [answered("s", "It rained", DIVERSE), answered("s", "It rained", ALIKE)]
    found = evaluate_outputs({"s": sets}, copa, Judges(static), sizes=(3,))
    figure = found.figure("s", "effect", Column("3", "bleu1"))
    assert figure is not None
    assert figure.mean == pytest.approx((bleu_diversity(DIVERSE, 1) + bleu_diversity(ALIKE, 1)) / 2)


def test_an_unknown_relation_needs_its_bundle(static: Encoder, copa: EvaluationData) -> None:
    with pytest.raises(Cod3sError, match="reply"):
        evaluate_outputs({"s": [answered("s", "Hello", ("hi", "ho"), "reply")]}, copa, Judges(static))


def test_the_record_has_the_names_that_others_parse(summary: Summary) -> None:
    record = summary.record()
    own = record["systems"]["alike"]["effect"]
    assert {"bleu1", "bleu2", "semantic", "semantic2", "vendi", "self_bleu", "relevance"} <= set(own["3"])
    assert list(own["distinct"]) == ["0", "0.1", "0.25", "0.5", "0.75"]
    assert record["data"]["name"] == "copa.xml"
    assert record["settings"]["encoder"] == "static:wordllama-l2-supercat-256"
    assert record["settings"]["systems"]["alike"] == {"beam": 5}
    assert json.loads(json.dumps(record)) == record


def test_the_papers_figures_stand_in_a_column_of_their_own(static: Encoder, copa: EvaluationData) -> None:
    systems = {"s2s": [answered("s2s", source, ALIKE) for source in SOURCES], **outputs()}
    found = evaluate_outputs(systems, copa, Judges(static), sizes=(3, 10))
    table = diversity_table(found, 3)
    assert table.columns == ("system", "C→E", "paper C→E")
    assert [row[2].text for row in table.rows] == ["50.9 / 61.2 / .397", "–", "–"]
    assert [row[2].published for row in table.rows] == [True] * 3
    assert distinct_table(found, "effect").rows[0][-1].text == "10.00 / 6.40 / 4.52 / 2.85 / 1.70"


def test_a_report_is_the_same_bytes_twice(tmp_path: Path, static: Encoder, copa: EvaluationData) -> None:
    for name in ("one", "two"):
        found = evaluate_outputs(outputs(), copa, Judges(static), sizes=(3,))
        write_report(tmp_path / name, found, outputs(), copa.items)
    for file in (METRICS, TABLES, PAGE):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_the_page_needs_nothing_else_and_escapes_what_models_write(
    tmp_path: Path, static: Encoder, copa: EvaluationData
) -> None:
    systems = {"s<2>s": [answered("s<2>s", "It rained", ("<script>alert(1)</script>", "mud & water"))]}
    found = evaluate_outputs(systems, copa, Judges(static), sizes=(2,))
    write_report(tmp_path, found, systems, copa.items)
    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "mud &amp; water" in page
    for start in (place for place in range(len(page)) if page.startswith("<svg", place)):
        ElementTree.fromstring(page[start : page.index("</svg>", start) + 6])  # drawings are whole
    assert "<svg" in page
    assert "currentColor" in page
    for outside in ("href=", "src=", "@import", "url("):
        assert outside not in page.replace("url(#", "").replace('href="#', "")
    assert "smooth:none" in page
    assert "default-src 'none'" in page, "no script could run even if one were written"


def test_the_page_opens_with_a_summary_contents_and_the_meaning_of_bold(
    tmp_path: Path, static: Encoder, copa: EvaluationData
) -> None:
    found = evaluate_outputs(outputs(), copa, Judges(static), sizes=(3,))
    write_report(tmp_path, found, outputs(), copa.items)
    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    first_table = page.index("<table")
    for opening in (
        "In short",
        "most distinct answers of ten: diverse (",
        "<strong>Bold</strong>: no other system",
    ):
        assert page.index(opening) < first_table
    for table in all_tables(found):
        assert f'href="#{table.anchor}"' in page[:first_table]
        assert f'id="{table.anchor}"' in page
    assert "Bold: no other system" in (tmp_path / TABLES).read_text(encoding="utf-8")


def test_classes_and_utility_are_among_the_figures(static: Encoder, copa: EvaluationData) -> None:
    record = evaluate_outputs(outputs(), copa, Judges(static), sizes=(3,)).record()
    alike, diverse = (record["systems"][name]["effect"]["3"] for name in ("alike", "diverse"))
    assert alike["classes"] < diverse["classes"] <= 3
    assert alike["utility"] < diverse["utility"] <= 1
    assert record["settings"]["patience"] == 0.8
    assert "cosine above 0.9" in record["settings"]["equivalence"]


def test_two_reports_are_compared_figure_by_figure(tmp_path: Path, static: Encoder, copa: EvaluationData) -> None:
    for name, system in (("one", "alike"), ("two", "diverse")):
        systems = {"mine": [replace(own, system="mine") for own in outputs()[system]]}
        write_report(
            tmp_path / name, evaluate_outputs(systems, copa, Judges(static), sizes=(3,), seed=len(name)), {}
        )
    table, settings = compare_reports(tmp_path / "one", tmp_path / "two")
    rows = {row[2].text: row for row in table.rows}
    semantic = rows["3 semantic"]
    assert float(semantic[4].text) - float(semantic[3].text) == pytest.approx(float(semantic[5].text), abs=0.0015)
    assert semantic[5].parts[0].strong  # no variation between sources, so the intervals are points
    assert "seed" not in settings
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(FileFormatError, match="figures"):
        compare_reports(tmp_path / "one", tmp_path / "other.json")
