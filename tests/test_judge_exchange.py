"""Ratings out of a study and into it: Mechanical Turk, Potato, Prolific, CSV and Parquet, and the commands."""

import csv
import html
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cod3s.cli.main import app
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.study.collect.rating_store import Store, database_url, open_store
from cod3s.study.exchange import mturk, potato, prolific, rating_files
from cod3s.study.exchange.incoming import BadRow, Incoming, import_ratings
from cod3s.study.exchange.rating_files import read_ratings, safe_cell
from cod3s.study.plan.folder import ANSWER, CHECK, Credit, Item, Rater, Rating, write_study
from cod3s.study.plan.identities import SIMULATED, pseudonyms
from cod3s.study.results.raters import report_raters
from conftest import Run
from made_study import made_items, made_study

STUDY = made_study()
ITEMS = made_items({"x": 3, "y": 3}, sources=4)
WORKERS = ("A1WORKER", "A2WORKER")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'ratings.sqlite'}", STUDY) as own:
        yield own


def scores(store: Store) -> dict[tuple[str, str], int]:
    names = {rater.id: rater.external for rater in store.raters()}
    return {(names[rating.rater], rating.item): rating.score for rating in store.ratings()}


def write_rows(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return path


# Mechanical Turk


def test_hits_hold_every_item_once_and_two_checks_each() -> None:
    hits = mturk.make_hits(ITEMS, per_hit=10, checks=2, seed=1)
    rated = [item.id for hit in hits for item in hit if item.kind != CHECK]
    assert set(rated) == {item.id for item in ITEMS if item.kind != CHECK}
    assert len(rated) - len(set(rated)) < len(hits)  # what fills the last HIT up
    assert {sum(item.kind == CHECK for item in hit) for hit in hits} == {2}
    assert len({len(hit) for hit in hits}) == 1
    assert max(len(hit) for hit in hits) <= 10
    assert all(len({item.id for item in hit}) == len(hit) for hit in hits)
    assert hits == mturk.make_hits(ITEMS, per_hit=10, checks=2, seed=1)


def test_a_hit_without_place_for_answers_is_refused() -> None:
    with pytest.raises(Cod3sError, match="no room for answers"):
        mturk.make_hits(ITEMS, per_hit=2, checks=2, seed=1)


def test_the_batch_has_a_variable_for_every_place_of_the_page_and_names_no_system(tmp_path: Path) -> None:
    mturk.write_batch(tmp_path / "batch", STUDY, ITEMS, per_hit=8)
    page = (tmp_path / "batch" / mturk.PAGE).read_text()
    table = (tmp_path / "batch" / mturk.BATCH).read_text()
    columns = table.splitlines()[0].split(",")
    assert set(re.findall(r"\$\{(\w+)\}", page)) == {name for name in columns if name.startswith("statement")}
    assert page.count('name="score_1"') == len(STUDY.scale)
    assert "Then rate it." in page
    hidden = Item(
        "i1", ANSWER, "It rained, so we left.", "effect", "it rained", "we left", of=(Credit("zebra", 1, 1),)
    )
    mturk.write_batch(tmp_path / "blind", STUDY, [hidden], per_hit=8)
    assert all(b"zebra" not in path.read_bytes() for path in (tmp_path / "blind").iterdir())


@pytest.mark.parametrize(
    "text",
    ["=1+1, so it ran.", "Rock & roll <b>faded</b>.", "Ça va because 🙂.", "-5 was cold.", "@home", "Plain."],
)
def test_statements_reach_the_page_as_they_were_written(text: str) -> None:
    cell = mturk.page_text(text)
    assert html.unescape(cell) == text
    assert cell.isascii()
    assert "<" not in cell
    assert safe_cell(cell) == cell  # nothing that a spreadsheet would compute


def results_of(folder: Path, form: str) -> Path:
    """What the site would give back: every worker scores slot n with n modulo 6."""
    rows = []
    with (folder / mturk.BATCH).open(encoding="utf-8") as stream:
        for number, hit in enumerate(csv.DictReader(stream)):
            for worker in WORKERS:
                row = {"WorkerId": worker, "AssignmentId": f"{number}{worker}", "WorkTimeInSeconds": "80"}
                row |= {"AssignmentStatus": "Submitted", **{f"Input.{name}": cell for name, cell in hit.items()}}
                rows.append(row | answers_of(len(hit) // 2, form))
    return write_rows(folder / "results.csv", rows)


def answers_of(slots: int, form: str) -> dict[str, str]:
    chosen = {slot: slot % 6 for slot in range(1, slots + 1)}
    if form == "value":
        return {f"Answer.score_{slot}": str(own) for slot, own in chosen.items()}
    if form == "columns":
        return {
            f"Answer.score_{slot}.{score}": str(score == own).lower()
            for slot, own in chosen.items()
            for score in range(6)
        }
    tasks = {f"score_{slot}": {str(score): score == own for score in range(6)} for slot, own in chosen.items()}
    return {"Answer.taskAnswers": json.dumps([tasks])}


@pytest.mark.parametrize("form", ["value", "columns", "json"])
def test_results_of_a_batch_come_back_and_twice_is_once(tmp_path: Path, store: Store, form: str) -> None:
    mturk.write_batch(tmp_path / "batch", STUDY, ITEMS, per_hit=8)
    results = results_of(tmp_path / "batch", form)
    first = import_ratings(store, STUDY, ITEMS, mturk.read_results(results))
    assert first.raters == 2
    assert first.bad == ()
    found = scores(store)
    assert {rater for rater, _ in found} == set(WORKERS)
    assert {item for _, item in found} == {item.id for item in ITEMS}
    assert {rating.seconds for rating in store.ratings()} == {80 / 8}
    history = store.ratings(every_revision=True)
    again = import_ratings(store, STUDY, ITEMS, mturk.read_results(results))
    assert again.added == 0
    assert store.ratings(every_revision=True) == history
    assert len(store.raters()) == 2


def test_rejected_assignments_stay_out_and_open_questions_are_named(tmp_path: Path) -> None:
    row = {"WorkerId": "W", "AssignmentId": "1", "AssignmentStatus": "Approved", "Input.id_1": ITEMS[0].id}
    rows = [
        {**row, "Answer.score_1": "3"},
        {**row, "AssignmentStatus": "Rejected", "Answer.score_1": "5"},
        {**row, "AssignmentId": "2", "Answer.score_1": ""},
    ]
    found = list(mturk.read_results(write_rows(tmp_path / "results.csv", rows)))
    assert isinstance(found[0], Incoming)
    assert found[0].score == "3"
    assert found[1:] == [BadRow("line 4, statement 1", "no score")]


def test_a_table_that_is_no_result_of_a_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"no columns Input\.id_1"):
        list(mturk.read_results(write_rows(tmp_path / "a.csv", [{"x": "1"}])))


# Potato


def test_a_potato_project_has_the_items_and_the_scale(tmp_path: Path) -> None:
    potato.write_project(tmp_path / "project", STUDY, ITEMS)
    lines = (tmp_path / "project" / potato.ITEMS).read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"id": item.id, "text": item.statement} for item in ITEMS]
    config = dict(line.split(": ", 1) for line in (tmp_path / "project" / potato.CONFIG).read_text().splitlines())
    scheme = json.loads(config["annotation_schemes"])[0]
    assert [label["name"] for label in scheme["labels"]] == ["0", "1", "2", "3", "4", "5"]
    assert json.loads(config["data_files"]) == [potato.ITEMS]


def state(user: str, chosen: dict[str, str]) -> str:
    labels = {item: [[{"schema": "plausibility", "name": own}, own]] for item, own in chosen.items()}
    times = {item: {"total_time_ms": 4500} for item in chosen}
    content = {"user_id": user, "instance_id_to_label_to_value": labels, "instance_id_to_behavioral_data": times}
    return json.dumps(content)


def test_annotations_of_both_potatoes_come_back(tmp_path: Path, store: Store) -> None:
    for user in ("ann", "bob", "eve"):
        (tmp_path / "output" / user).mkdir(parents=True)
    for user in ("ann", "bob"):
        text = state(user, {ITEMS[0].id: "4", ITEMS[1].id: "1"})
        (tmp_path / "output" / user / "user_state.json").write_text(text)
    line = {"id": ITEMS[0].id, "label_annotations": {"plausibility": {"5": "5"}}}
    line["behavioral_data"] = {"time_string": "Time spent: 0d 0h 1m 3s "}
    (tmp_path / "output" / "eve" / "annotated_instances.jsonl").write_text(json.dumps(line) + "\n")
    done = import_ratings(store, STUDY, ITEMS, potato.read_annotations(tmp_path / "output"))
    assert sorted({rating.seconds for rating in store.ratings()}) == [4.5, 63]
    export = {"instance_id": ITEMS[2].id, "user_id": "eve", "labels": {"plausibility": {"0": "0"}}}
    (tmp_path / "annotations.jsonl").write_text(json.dumps(export) + "\n")
    assert import_ratings(store, STUDY, ITEMS, potato.read_annotations(tmp_path / "annotations.jsonl")).added == 1
    assert scores(store)["eve", ITEMS[2].id] == 0
    assert (done.ratings, done.added, done.raters) == (5, 5, 3)
    assert scores(store)["eve", ITEMS[0].id] == 5


def test_damaged_annotations_are_named(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    content = {"user_id": "ann", "instance_id_to_label_to_value": {"i1": [["odd"]], "i2": []}}
    (tmp_path / "ann" / "user_state.json").write_text(json.dumps(content))
    (tmp_path / "ann" / "annotated_instances.jsonl").write_text('{"id": "i1"}\nnot json\n')
    found = list(potato.read_annotations(tmp_path))
    assert [row.location.split(", ")[1] for row in found] == ["line 1", "line 2", "item i1", "item i2"]
    assert all(isinstance(row, BadRow) for row in found)


def test_a_folder_without_annotations_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="neither"):
        list(potato.read_annotations(tmp_path))


# Tables of ratings


BAD = (
    ("w,nowhere,3", "'nowhere' is not an item of this study"),
    (f"w,{ITEMS[0].id},6", "the score 6 is not between 0 and 5"),
    (f"w,{ITEMS[0].id},-1", "the score -1 is not between 0 and 5"),
    (f"w,{ITEMS[0].id},good", "'good' is not a whole number"),
    (f"w,{ITEMS[0].id},2.5", "'2.5' is not a whole number"),
    (f"w,{ITEMS[0].id},", "'' is not a whole number"),
    (f",{ITEMS[0].id},3", "the rater is missing"),
    (f"a,{ITEMS[1].id},3", f"a rates {ITEMS[1].id} a second time"),
)


@pytest.mark.parametrize(("row", "reason"), BAD)
def test_a_bad_row_keeps_all_out_and_is_named_with_its_line(
    tmp_path: Path, store: Store, row: str, reason: str
) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(f"rater,item,score\na,{ITEMS[1].id},3\n{row}\nb,{ITEMS[1].id},3.0\n")
    with pytest.raises(
        FileFormatError, match="1 of 3 ratings cannot be imported, so none were: line 3: "
    ) as error:
        import_ratings(store, STUDY, ITEMS, read_ratings(path))
    assert reason in error.value.message
    assert store.ratings() == []
    assert store.raters() == []
    done = import_ratings(store, STUDY, ITEMS, read_ratings(path), skip_bad=True)
    assert (done.added, [row.location for row in done.bad]) == (2, ["line 3"])


def test_many_bad_rows_are_counted_and_the_first_are_named(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("rater,item,score\n" + "w,nowhere,3\n" * 8)
    with pytest.raises(FileFormatError, match=r"8 of 8 .* line 6: .*; and 3 more"):
        import_ratings(store, STUDY, ITEMS, read_ratings(path))
    with pytest.raises(FileFormatError, match="no ratings to import"):
        import_ratings(store, STUDY, ITEMS, read_ratings(path), skip_bad=True)


def test_a_corrected_file_changes_only_what_was_corrected(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(f"rater,item,score\na,{ITEMS[0].id},3\na,{ITEMS[1].id},2\n")
    import_ratings(store, STUDY, ITEMS, read_ratings(path))
    path.write_text(f"rater,item,score\na,{ITEMS[0].id},4\na,{ITEMS[1].id},2\n")
    assert import_ratings(store, STUDY, ITEMS, read_ratings(path)).added == 1
    assert scores(store) == {("a", ITEMS[0].id): 4, ("a", ITEMS[1].id): 2}
    assert len(store.ratings(every_revision=True)) == 3
    path.write_text(f"rater,item,score\na,{ITEMS[0].id},3\na,{ITEMS[1].id},2\n")  # and back again
    assert import_ratings(store, STUDY, ITEMS, read_ratings(path)).added == 1
    assert scores(store)["a", ITEMS[0].id] == 3
    assert len(store.raters()) == 1


def test_an_older_file_of_results_does_not_undo_a_later_one(tmp_path: Path, store: Store) -> None:
    row = {"WorkerId": "W", "Input.id_1": ITEMS[0].id}
    older = write_rows(tmp_path / "1.csv", [{**row, "AssignmentId": "1", "Answer.score_1": "3"}])
    later = write_rows(tmp_path / "2.csv", [{**row, "AssignmentId": "2", "Answer.score_1": "4"}])
    added = [import_ratings(store, STUDY, ITEMS, mturk.read_results(path)).added for path in (older, later, older)]
    assert added == [1, 1, 0]
    assert scores(store) == {("W", ITEMS[0].id): 4}


def filled(store: Store) -> dict[str, str]:
    """Two raters who have names and ids that no export may show; their pseudonyms."""
    raters = [
        Rater("id-one", "page", "2020-01-01", name="Alice Example"),
        Rater("id-two", "prolific", "2020-01-02", external="5f0prolificid", session="s1", finished="2020-01-03"),
    ]
    ratings = [
        Rating(rater.id, item.id, number % 6, 2.5, f"2020-01-0{1 + number % 9}", key=f"k{item.id}")
        for rater in raters
        for number, item in enumerate(ITEMS)
    ]
    store.add(raters, ratings)
    return pseudonyms(STUDY, raters)


def test_exported_ratings_are_anonymous_and_complete(tmp_path: Path, store: Store) -> None:
    names = filled(store)
    rows = rating_files.rating_rows(ITEMS, store.ratings(), names)
    rating_files.write_csv(tmp_path / "r.csv", rating_files.COLUMNS, rows)
    rating_files.write_ratings_parquet(tmp_path / "r.parquet", rows)
    text = (tmp_path / "r.csv").read_text()
    for secret in ("Alice", "5f0prolificid", "id-one", "id-two", "2020-01"):
        assert secret not in text
        assert secret.encode() not in (tmp_path / "r.parquet").read_bytes()
    table = pyarrow.parquet.read_table(tmp_path / "r.parquet").to_pylist()
    with (tmp_path / "r.csv").open(newline="") as stream:
        assert [{name: str(value) for name, value in row.items()} for row in table] == list(csv.DictReader(stream))
    assert {row["rater"] for row in table} == set(names.values())
    assert len(table) == 2 * len(ITEMS)
    assert rows == rating_files.rating_rows(ITEMS, list(reversed(store.ratings())), names)


def test_our_own_export_comes_back_as_the_same_ratings(tmp_path: Path, store: Store) -> None:
    names = filled(store)
    rating_files.write_csv(
        tmp_path / "r.csv", rating_files.COLUMNS, rating_files.rating_rows(ITEMS, store.ratings(), names)
    )
    history = store.ratings(every_revision=True)
    done = import_ratings(store, STUDY, ITEMS, read_ratings(tmp_path / "r.csv"))
    assert (done.ratings, done.added) == (2 * len(ITEMS), 0)
    assert store.ratings(every_revision=True) == history
    assert len(store.raters()) == 2
    with open_store(f"sqlite:///{tmp_path / 'other.sqlite'}", STUDY) as other:
        assert import_ratings(other, STUDY, ITEMS, read_ratings(tmp_path / "r.csv")).added == 2 * len(ITEMS)
        assert sorted((own.item, own.score, own.seconds) for own in other.ratings()) == sorted(
            (own.item, own.score, own.seconds) for own in store.ratings()
        )


def test_simulated_ratings_stay_simulated_and_among_themselves(tmp_path: Path, store: Store) -> None:
    rater = Rater("one", SIMULATED, "2020-01-01", external="one")
    store.add([rater], [Rating("one", ITEMS[0].id, 3, 1.0, "2020-01-01", key="k")])
    path = tmp_path / "r.csv"
    rows = rating_files.rating_rows(ITEMS, store.ratings(), pseudonyms(STUDY, store.raters()))
    rating_files.write_csv(path, rating_files.COLUMNS, rows)
    with open_store(f"sqlite:///{tmp_path / 'other.sqlite'}", STUDY) as other:
        import_ratings(other, STUDY, ITEMS, read_ratings(path))
        assert [own.origin for own in other.raters()] == [SIMULATED]
    path.write_text(f"rater,item,score\na person,{ITEMS[0].id},3\n")
    with pytest.raises(Cod3sError, match="cannot be mixed"):
        import_ratings(store, STUDY, ITEMS, read_ratings(path))


@settings(deadline=None)
@given(st.text(max_size=12))
def test_no_cell_is_a_formula(text: str) -> None:
    cell = safe_cell(text)
    assert cell.lstrip()[:1] not in tuple("=+-@")
    assert cell in (text, "'" + text)


def test_formulas_from_a_models_answers_are_texts_in_the_export(tmp_path: Path) -> None:
    item = Item("i1", ANSWER, "=HYPERLINK(1), so.", "effect", "=HYPERLINK(1)", "-1", of=(Credit("@x", 1, None),))
    rows = rating_files.rating_rows([item], [Rating("r", "i1", 3, 1.0, "2020")], {"r": "r-1"})
    rating_files.write_csv(tmp_path / "r.csv", rating_files.COLUMNS, rows)
    with (tmp_path / "r.csv").open(newline="") as stream:
        row = next(csv.DictReader(stream))
    assert (row["statement"], row["source"], row["target"]) == (
        "'=HYPERLINK(1), so.",
        "'=HYPERLINK(1)",
        "'-1",
    )
    assert row["systems"] == "'@x:?"
    assert row["score"] == "3"


# Prolific


def test_prolific_gets_the_link_the_code_and_who_may_be_paid(tmp_path: Path, store: Store) -> None:
    names = filled(store)
    study = replace(STUDY, per_rater=10)
    reports = report_raters(store.ratings(), {item.id: item for item in ITEMS}, study.exclusion, names)
    prolific.write_prolific(tmp_path / "p", study, ITEMS, store.raters(), reports, "https://study.example.org/")
    body = json.loads((tmp_path / "p" / prolific.STUDY).read_text())
    assert body["external_study_url"].startswith(
        "https://study.example.org/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID="
    )
    assert body["completion_codes"][0]["code"] == STUDY.completion_code
    assert body["total_available_places"] == 26  # 64 statements, 4 raters each, 10 a rater
    with (tmp_path / "p" / prolific.PARTICIPANTS).open(newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["participant_id"], row["finished"], row["ratings"]) == ("5f0prolificid", "yes", "64")
    with pytest.raises(Cod3sError, match="must be the address"):
        prolific.write_prolific(tmp_path / "q", study, ITEMS, [], {}, "")


# The commands


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_study(tmp_path / "study", STUDY, ITEMS)
    return tmp_path / "study"


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, ["judge", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_study_is_rehearsed_from_simulation_to_report(folder: Path, tmp_path: Path) -> None:
    truth = json.loads(run("simulate", folder, "--raters", "8", "--json"))
    assert list(truth["levels"]) == ["x", "y"]
    found = json.loads(run("analyse", folder, "-o", tmp_path / "report", "--json"))
    assert found == json.loads((tmp_path / "report" / "metrics.json").read_text())
    with pytest.raises(Cod3sError, match="already exists"):
        run("analyse", folder, "-o", tmp_path / "report")
    run("analyse", folder, "-o", tmp_path / "report", "--force")
    assert found["simulated"] is True
    own = found["results"]["systems"]["effect"]
    assert own["x"]["top3"]["mean"] < own["y"]["top3"]["mean"]
    assert found["everyone"]["agreement"]["all"]["alpha"] == pytest.approx(truth["alpha"], abs=0.15)
    assert "SIMULATED" in (tmp_path / "report" / "report.html").read_text()
    with pytest.raises(Cod3sError, match="already has raters"):
        run("simulate", folder)


def test_exports_and_imports_by_command(folder: Path, tmp_path: Path) -> None:
    run("simulate", folder, "--raters", "4")
    for place in ("mturk", "potato", "csv", "parquet"):
        run("export", folder, "--to", place, "-o", tmp_path / place)
    run("export", folder, "--to", "prolific", "-o", tmp_path / "prolific", "--url", "https://study.example.org")
    other = f"sqlite:///{tmp_path / 'other.sqlite'}"
    moved = json.loads(run("import", folder, tmp_path / "csv", "--from", "csv", "--database", other, "--json"))
    assert moved["added"] == moved["ratings"] > 0
    kept, copied = (
        json.loads(run("analyse", folder, "--json", "--database", place))
        for place in (database_url(folder), other)
    )
    assert copied["results"] == kept["results"]
    assert copied["simulated"] is True
    with pytest.raises(Cod3sError, match="could overwrite it"):
        run("export", folder, "--to", "potato", "-o", folder)
    (tmp_path / "mturk" / "notes.txt").write_text("mine")
    for command in (["export", folder, "--to", "mturk"], ["export", folder, "--to", "csv"]):
        with pytest.raises(Cod3sError, match="already exists") as error:
            run(*command, "-o", tmp_path / str(command[-1]))
        assert "--force" in error.value.hint
        run(*command, "-o", tmp_path / str(command[-1]), "--force")
    assert (tmp_path / "mturk" / "notes.txt").read_text() == "mine"  # an export replaces only its own files
    with pytest.raises(Cod3sError, match="no format is called 'mturc'") as error:
        run("export", folder, "--to", "mturc", "-o", tmp_path / "x")
    assert "mturk" in error.value.hint


def test_the_real_command_says_what_is_missing(cod3s: Run, folder: Path) -> None:
    done = cod3s("judge", "analyse", folder)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "no ratings yet" in done.stderr
    assert "hint:" in done.stderr


def test_the_made_study_is_one_that_can_be_written_and_read(folder: Path) -> None:
    assert json.loads((folder / "study.json").read_text())["scale"] == list(asdict(STUDY)["scale"])
