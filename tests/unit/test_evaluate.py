"""Evaluation of stored outputs: from records to figures, tables and a page, with nothing generated."""

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from cod3s.encode import Encoder
from cod3s.errors import Cod3sError, FileFormatError, UsageError
from cod3s.evaluate.config import EvaluateConfig
from cod3s.evaluate.evaluation import evaluate_outputs
from cod3s.evaluate.generation import TimeLimit
from cod3s.evaluate.grading import Grader
from cod3s.evaluate.items import EvaluationData, Item, read_data
from cod3s.evaluate.outputs import Systems, append_outputs, read_outputs, read_systems, resume_outputs, sources_of
from cod3s.evaluate.paper import is_copa_dev
from cod3s.evaluate.report import MARKDOWN, METRICS, PAGE, report_line, write_report
from cod3s.evaluate.scores import Column
from cod3s.evaluate.summary import Figure, Summary
from cod3s.evaluate.tables import Cell, Table, all_tables, distinct_table, diversity_table, plausibility_table
from cod3s.metrics.lexical import bleu_diversity
from cod3s.records import Answer, AnswerSet
from cod3s.signatures import random_code
from cod3s.signatures.signer import Signer

COPA = """<copa-corpus>
<item id="1" asks-for="effect" most-plausible-alternative="1">
 <p>The well ran dry.</p><a1>The farmers carried water.</a1><a2>The choir sang a song.</a2></item>
<item id="2" asks-for="effect" most-plausible-alternative="2">
 <p>The soup was cold.</p><a1>The moon is round.</a1><a2>He warmed the soup.</a2></item>
<item id="3" asks-for="cause" most-plausible-alternative="2">
 <p>The boy is crying.</p><a1>The shop sells paint.</a1><a2>The boy fell off his bike.</a2></item>
</copa-corpus>"""
SOURCES = ("The well ran dry", "The soup was cold", "It rained")
DIVERSE = ("the farmers dug a deeper one", "the cattle died", "a letter was written to the king")
ALIKE = ("the farmers dug a deeper one", "the farmers dug a deep one", "the farmers dug one")


def answered(system: str, source: str, texts: tuple[str, ...], relation: str = "effect") -> AnswerSet:
    answers = tuple(Answer(text, -float(rank), -float(rank)) for rank, text in enumerate(texts))
    return AnswerSet(source, relation, system, {"beam": 5}, answers)


def outputs(sources: tuple[str, ...] = SOURCES) -> Systems:
    return {
        "diverse": [answered("diverse", source, DIVERSE) for source in sources],
        "alike": [answered("alike", source, ALIKE) for source in sources],
    }


def scored(systems: Systems, grader: Grader | Encoder, *sizes: int, data: EvaluationData | None = None) -> Summary:
    grader = grader if isinstance(grader, Grader) else Grader([grader])
    items = sources_of(systems, None)
    data = replace(data, items=items.items) if data else items
    return evaluate_outputs(systems, data, grader, EvaluateConfig(sets=sizes or (3,)))


def mean(summary: Summary, system: str, group: str, metric: str) -> float:
    return figure(summary, system, group, metric).mean


def figure(summary: Summary, system: str, group: str, metric: str) -> Figure:
    wanted = summary.figure(system, "effect", Column(group, metric))
    assert wanted is not None
    return wanted


@pytest.fixture
def copa(tmp_path: Path) -> EvaluationData:
    (tmp_path / "copa.xml").write_text(COPA)
    return read_data(tmp_path / "copa.xml")


@pytest.fixture
def summary(static: Encoder, copa: EvaluationData) -> Summary:
    return scored(outputs(), static, 2, 3, data=copa)


# Data


def test_questions_become_items_whose_relations_take_turns(copa: EvaluationData) -> None:
    assert [(item.relation, item.source) for item in copa.items] == [
        ("effect", "The well ran dry."),
        ("cause", "The boy is crying."),
        ("effect", "The soup was cold."),
    ]
    assert copa.items[0].target == "The farmers carried water."
    assert copa.counts == {"effect": 2, "cause": 1}
    limited = copa.first(1)
    assert [item.source for item in limited.items] == ["The well ran dry.", "The boy is crying."]
    assert len(limited.questions) == 3
    assert {question.premise for question in limited.asked} == {item.source for item in limited.items}
    assert copa.first(None) == copa


def test_copa_dev_is_recognized_by_its_sources_whatever_its_file_is_called(shared_data: Path) -> None:
    def recognized(*items: Item) -> bool:
        return is_copa_dev((item.relation, item.source) for item in items)

    items = read_data(shared_data / "eval" / "copa-dev.xml").items
    assert len(items) == 500
    assert recognized(*items)
    assert recognized(*items[:3]), "the first sources are of COPA dev, too"
    assert recognized(replace(items[0], source=items[0].source.lower().rstrip(".")))
    assert not recognized(*items, Item("effect", "The yogurt was sour."))
    assert not recognized(replace(items[0], relation="effect"))
    assert not recognized()
    assert not recognized(*read_data(shared_data / "eval" / "balanced-copa-dev-all.xml").items)


WET = [Item("effect", "It rained.", "We got wet.")]
FORMS: list[tuple[str, str, str, list[Item]]] = [
    ("a.tsv", "source\trelation\ttarget\nIt rained.\teffect\tWe got wet.\n", "", WET),
    ("a.tsv", "target\tsource\nWe got wet.\tIt rained.\n", "effect", WET),
    ("a.jsonl", '{"source": "It rained.", "relation": "effect", "target": "We got wet."}\n', "", WET),
    ("a.csv", 'source,relation,target\n"It rained.",effect,"We got wet."\n', "", WET),
    ("a.txt", "It rained.\n\nSnow fell.\n", "cause", [Item("cause", "It rained."), Item("cause", "Snow fell.")]),
    (
        "a.jsonl",
        '{"premise": "the source ran dry", "question": "effect", "choice1": "a", "choice2": "b", "label": 0, '
        '"idx": 1}',
        "",
        [Item("effect", "the source ran dry", "a")],
    ),
]


def test_every_form_of_data_is_read_from_a_file_and_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content, relation, items in FORMS:
        (tmp_path / name).write_text(content)
        assert read_data(tmp_path / name, relation).items == tuple(items), content
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        data = read_data(Path("-"), relation)
        assert (data.items, data.name) == (tuple(items), "standard input"), content
        assert data.sha256 == hashlib.sha256(content.encode()).hexdigest()


@pytest.mark.parametrize(
    ("name", "content", "relation", "message"),
    [
        ("a.txt", "\n", "effect", "no sources"),
        ("a.txt", "It rained.\n", "", "does not name the relation"),
        ("a.tsv", "source\trelation\nonly one\n", "effect", "cells"),
        ("a.jsonl", '{"source": 5, "relation": "effect"}\n', "effect", "no text"),
        ("a.jsonl", '{"text": "x"}\n', "effect", "not a question"),
        ("a.xml", "<copa-corpus><item>", "", "not well-formed XML"),
    ],
)
def test_data_that_cannot_be_read_is_a_clear_error(
    tmp_path: Path, name: str, content: str, relation: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(Cod3sError, match=message):
        read_data(tmp_path / name, relation)


# Outputs


def test_outputs_come_back_as_they_were_appended_and_a_cut_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "s2s.jsonl"
    sets = [answered("s2s", "It rained", ("we got wet", "“naïve” 雨")), answered("s2s", "Snow fell", ())]
    assert resume_outputs(path) == []
    for row in sets:
        append_outputs(path, [row])
    assert read_outputs(path) == resume_outputs(path) == sets
    path.write_bytes(path.read_bytes()[:-5])
    assert resume_outputs(path) == read_outputs(path) == sets[:1]


def test_outputs_of_other_models_may_be_plain_texts(tmp_path: Path) -> None:
    record = {"source": "It rained", "relation": "effect", "answers": ["wet", "mud"]}
    (tmp_path / "gpt.jsonl").write_text(json.dumps(record))
    systems = read_systems([tmp_path])
    assert {name: [answer.text for answer in sets[0].answers] for name, sets in systems.items()} == {
        "gpt": ["wet", "mud"]
    }


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
def test_a_line_that_is_no_record_is_named(tmp_path: Path, line: str) -> None:
    good = '{"source": "x", "relation": "effect", "answers": ["y"]}'
    (tmp_path / "a.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(FileFormatError, match="line 2"):
        read_outputs(tmp_path / "a.jsonl")


# Figures


def test_figures_are_means_over_the_first_answers(summary: Summary) -> None:
    assert mean(summary, "alike", "2", "bleu1") == pytest.approx(bleu_diversity(ALIKE[:2], 1))
    assert summary.systems["alike"]["effect"].sets == 3
    for column in (("3", "bleu2"), ("3", "semantic"), ("3", "vendi"), ("3", "classes"), ("distinct", "0.1")):
        assert mean(summary, "diverse", *column) > mean(summary, "alike", *column), column
    assert figure(summary, "alike", "3", "semantic").near_best, "three sources are too few for significance"


def test_with_many_sources_only_the_better_system_is_marked(static: Encoder) -> None:
    sources = tuple(f"It rained in town {number}" for number in range(12))
    systems = {
        name: [answered(name, source, (*texts[:2], f"{texts[2]} {source}")) for source in sources]
        for name, texts in (("diverse", DIVERSE), ("alike", ALIKE))
    }
    tested = scored(systems, static)
    for metric in ("semantic", "self_bleu"):  # of self-BLEU, less is better
        assert figure(tested, "diverse", "3", metric).near_best
        assert not figure(tested, "alike", "3", metric).near_best
    (row,) = tested.comparisons["effect"][Column("3", "semantic")]
    assert row.holm == row.p < 0.05
    assert row.sources == 12


def test_the_effective_count_leaves_out_what_has_nothing_to_do_with_the_source(
    static: Encoder, copa: EvaluationData
) -> None:
    texts = ("a guest warmed the soup", "the cook made another soup for the king", "planets orbit the sun")
    counted = scored({"s": [answered("s", "The soup was cold", texts)]}, static, data=copa)
    assert mean(counted, "s", "distinct", "0.1") == 3
    assert mean(counted, "s", "effective", "relevance") == 2


@pytest.mark.parametrize(
    ("texts", "distinct", "short", "reason"),
    [
        ((), 0, 1, "no answers"),
        (("it rained",), 1, 1, "one answer"),
        (("", "  ", "\x00"), 0, 1, "answers with nothing visible"),
        (("it rained", "", "it rained"), 1, 1, "an empty answer takes a place but says nothing"),
        (("it rained",) * 3, 1, 0, "identical answers"),
        (("雨", "雨", "雨"), 1, 0, "identical answers in another script"),
    ],
)
def test_degenerate_sets_have_figures(
    texts: tuple[str, ...], distinct: int, short: int, reason: str, static: Encoder
) -> None:
    degenerate = scored({"s": [answered("s", "It rained", texts)]}, static)
    assert mean(degenerate, "s", "3", "semantic") == pytest.approx(0, abs=1e-6), reason
    assert mean(degenerate, "s", "distinct", "0.1") == distinct, reason
    assert degenerate.systems["s"]["effect"].short == short, reason
    assert all_tables(degenerate)


def test_a_source_that_stands_twice_is_two_sources(static: Encoder) -> None:
    twice = scored({"s": [answered("s", "It rained", DIVERSE), answered("s", "It rained", ALIKE)]}, static)
    expected = (bleu_diversity(DIVERSE, 1) + bleu_diversity(ALIKE, 1)) / 2
    assert mean(twice, "s", "3", "bleu1") == pytest.approx(expected)


def test_fidelity_is_measured_by_signing_the_answers(static: Encoder) -> None:
    signer = Signer(static, random_code(16, static.dim))
    first, *_ = signatures = signer.signatures(DIVERSE)
    kept = answered("kept", "It rained", DIVERSE)
    rows = zip(kept.answers, signatures, strict=True)
    kept = replace(kept, answers=tuple(replace(row, signature=signature) for row, signature in rows))
    same = replace(kept, answers=tuple(replace(row, signature=first) for row in kept.answers))
    systems = {"kept": [kept], "same": [same], "none": [answered("none", "It rained", DIVERSE)]}
    measured = scored(systems, Grader([static], signer=signer)).systems
    controls = {name: by_relation["effect"].control for name, by_relation in measured.items()}
    assert controls["kept"]
    assert (controls["kept"].whole.in_bin, controls["kept"].whole.hamming) == (1.0, 0.0)
    assert (controls["kept"].other_hamming or 0) > 2
    assert controls["same"]
    assert controls["same"].whole.in_bin == pytest.approx(1 / 3)
    assert controls["none"] is None


def test_scorers_choose_between_the_alternatives_of_the_sources_that_are_left(
    static: Encoder, copa: EvaluationData
) -> None:
    choices, bars = {}, []
    for limit in (None, 1):
        config = EvaluateConfig(sets=(3,))
        tested = evaluate_outputs(outputs(), copa.first(limit), Grader([static]), config)
        choices[limit] = {(row.relation, row.scorer, row.questions): row.accuracy for row in tested.choices}
        bars.append(tested.settings["bars"])
    assert choices[None] == {("effect", "relevance", 2): 1.0, ("cause", "relevance", 1): 1.0}
    assert choices[1] == {("effect", "relevance", 1): 1.0, ("cause", "relevance", 1): 1.0}
    assert bars[0] == bars[1], "the bars come from all questions of the data"


def test_further_encoders_measure_beside_the_first(static: Encoder) -> None:
    other = SimpleNamespace(id="turned:static", dim=static.dim, encode=lambda texts: -static.encode(texts))
    measured = scored(outputs(), Grader([static, static, other]))  # type: ignore[list-item]
    for first, second in (
        (("3", "semantic"), ("3", "semantic2")),
        (("3", "relevance"), ("3", "relevance2")),
        (("distinct", "0.25"), ("distinct_encoder2", "0.25")),
    ):
        assert mean(measured, "alike", *second) == pytest.approx(mean(measured, "alike", *first), abs=1e-6), second
    assert measured.settings["other_encoders"] == ["turned:static"], "an encoder that is named twice counts once"
    assert "cosine (turned)" in diversity_table(measured, 3, "effect").columns


def test_a_critic_does_not_grade_what_it_chose_without_a_mark(static: Encoder) -> None:
    settings: dict[str, dict[str, Any]] = {
        "critic": {"bundle": "own", "rerank_sentences": "critic"},
        "mmi": {"bundle": "own", "rerank_signatures": "mmi", "rerank_sentences": "none"},
        "beam": {"bundle": "own", "rerank_sentences": "none"},
        "foreign": {"bundle": "another", "rerank_sentences": "critic"},
    }
    systems = {
        name: [replace(answered(name, "It rained", DIVERSE), settings=values)] for name, values in settings.items()
    }
    models = SimpleNamespace(facts=SimpleNamespace(name="own", models={}))  # without a relation to grade
    graded = scored(systems, Grader([static], models=models))  # type: ignore[arg-type]
    own_grades = {name: list(scores["effect"].own_grades) for name, scores in graded.systems.items()}
    assert own_grades == {"critic": ["critic"], "mmi": ["backward_pmi", "likelihood"], "beam": [], "foreign": []}
    assert graded.record()["systems"]["critic"]["effect"]["own_grades"] == ["critic"]
    marked = {"effect": replace(graded.systems["critic"]["effect"], own_grades=("relevance",))}
    table = plausibility_table(replace(graded, systems={**graded.systems, "critic": marked}), "effect")
    column = table.columns.index("relevance (static)")
    assert [row[column].text.endswith("†") for row in table.rows] == [True, False, False, False]
    assert "† by the same model" in table.note


def test_an_unknown_relation_needs_its_bundle(static: Encoder) -> None:
    with pytest.raises(Cod3sError, match="reply"):
        scored({"s": [answered("s", "Hello", ("hi", "ho"), "reply")]}, static)


def test_sizes_and_encoders_are_checked_in_the_config() -> None:
    for values in ({"sets": ()}, {"sets": (0, 3)}, {"encoders": ()}, {"limit": 0}, {"max_minutes": 0}):
        with pytest.raises(UsageError):
            EvaluateConfig(**values)  # type: ignore[arg-type]


def test_work_stops_before_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("cod3s.evaluate.generation.monotonic", lambda: clock[0])

    def blocks() -> Iterator[int]:
        for number in range(10):
            clock[0] += 20  # each takes 20 seconds to make, and as long to score
            yield number

    for minutes, share, number, reason in (
        (None, 0.9, 10, "no limit"),
        (3, 0.9, 4, "a fifth block would end after 200 of 162 seconds"),
        (0.1, 0.9, 1, "there is always something to report on"),
    ):
        clock[0] = 0.0
        done = 0
        for _ in TimeLimit(minutes).during(blocks(), share):
            clock[0] += 20
            done += 1
        assert done == number, reason


# Report


def test_the_record_has_the_names_that_others_parse(summary: Summary) -> None:
    record = summary.record()
    figures = record["systems"]["alike"]["effect"]
    assert {"bleu1", "bleu2", "semantic", "vendi", "self_bleu", "classes", "utility", "relevance"} <= set(
        figures["3"]
    )
    assert list(figures["distinct"]) == ["0", "0.1", "0.25", "0.5", "0.75"]
    assert (record["data"]["name"], record["data"]["items"]) == ("copa.xml", {"effect": 3})
    assert record["settings"]["encoder"] == "static:wordllama-l2-supercat-256"
    assert record["settings"]["systems"]["alike"] == {"beam": 5}
    assert (record["settings"]["patience"], record["data"]["unanswered"]) == (0.8, 0)
    assert json.loads(json.dumps(record)) == record


def test_the_papers_figures_stand_beside_ours_only_on_its_data(static: Encoder) -> None:
    systems = {"s2s": [answered("s2s", source, ALIKE) for source in SOURCES], **outputs()}
    measured = scored(systems, static, 3, 10)
    for data_is_the_papers in (True, False):
        summary = replace(measured, data={**measured.data, "is_copa_dev": data_is_the_papers})
        table, distinct = diversity_table(summary, 3, "effect"), distinct_table(summary, "effect")
        assert ("paper" in table.columns) == ("paper" in distinct.columns) == data_is_the_papers
        if data_is_the_papers:
            assert [row[-1].text for row in table.rows] == ["50.9 / 61.2 / .397", "–", "–"]
            assert distinct.rows[0][-1].text == "10.00 / 6.40 / 4.52 / 2.85 / 1.70"
    assert measured.data["is_copa_dev"] is False
    assert all("aper" in table.paper for table in all_tables(measured)), "every table says where the paper has it"


def test_effects_come_before_causes_as_in_the_paper(static: Encoder) -> None:
    sets = [answered("s", "It rained", DIVERSE, relation) for relation in ("cause", "effect")]
    titles = [table.title for table in all_tables(scored({"s": sets}, static))]
    assert titles[:2] == ["Diversity of 3-sets, C→E", "Diversity of 3-sets, E→C"]


def test_a_report_is_the_same_bytes_twice(tmp_path: Path, static: Encoder) -> None:
    for name in ("one", "two"):
        write_report(tmp_path / name, scored(outputs(), static), outputs())
    for file in (METRICS, MARKDOWN, PAGE):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_the_page_needs_nothing_else_and_escapes_what_models_write(tmp_path: Path, static: Encoder) -> None:
    systems = {"s<2>s": [answered("s<2>s", "It rained", ("<script>alert(1)</script>", "mud & water"))]}
    write_report(tmp_path, scored(systems, static, 2), systems)
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
    assert "default-src 'none'" in page, "no script could run even if one were written"
    assert "<script" not in (tmp_path / MARKDOWN).read_text(encoding="utf-8")


def test_page_and_markdown_open_with_a_summary_and_end_with_one_settings_line(
    tmp_path: Path, static: Encoder
) -> None:
    one = scored(outputs(("It rained",)), static)
    write_report(tmp_path, replace(one, remarks=["time ran out"]), outputs())
    line = report_line(one)
    assert "stored outputs (1 source of effect)" in line
    page, markdown = ((tmp_path / name).read_text(encoding="utf-8") for name in (PAGE, MARKDOWN))
    first_table = page.index("<table")
    for opening in ("time ran out", "In short", "most distinct answers of ten: diverse (", "no other system"):
        assert page.index(opening) < first_table
    for table in all_tables(one):
        assert f'href="#{table.anchor}"' in page[:first_table]
        assert f'id="{table.anchor}"' in page
        assert table.markdown() in markdown
    assert page.count(line) == markdown.count(line) == 1
    assert markdown.endswith(f"{line}\n")
    assert "a letter was written to the king" in markdown


def test_markdown_marks_figures_and_keeps_cells_apart() -> None:
    row = (Cell("a|<b>"), Cell("1.0", strong=True), Cell("2.0"))
    table = Table("Title", "Paper: section 4.", "A note.", ("system", "figure", "paper"), (row,))
    assert table.markdown().splitlines() == [
        "## Title",
        "",
        "A note. Paper: section 4.",
        "",
        "| system | figure | paper |",
        "| --- | --- | --- |",
        "| a\\|&lt;b> | **1.0** | *2.0* |",
    ]
