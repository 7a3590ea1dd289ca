"""Ratings out of a study and into it: Mechanical Turk, Prolific and CSV; and the commands around them."""

import csv
import hashlib
import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cod3s.cli.main import app
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.study import exchange
from cod3s.study.exchange import Row, import_ratings, read_mturk, read_ratings, safe_cell, write_ratings
from cod3s.study.folder import ANSWER, CHECK, Credit, Item, read_study, write_study
from cod3s.study.raters import Rater, Rating, matches, pseudonyms
from cod3s.study.store import Store, open_store
from conftest import Run
from studies import STUDY, SYSTEMS, made_items, outputs_folder

ITEMS = made_items({"x": 3, "y": 3}, sources=4)
FIRST, SECOND = ITEMS[0].id, ITEMS[1].id
WORKERS = ("A1WORKER", "A2WORKER")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'ratings.sqlite'}", STUDY) as opened:
        yield opened


def scores(store: Store) -> dict[tuple[str, str], int]:
    names = {rater.id: rater.external for rater in store.raters()}
    return {(names[rating.rater], rating.item): rating.score for rating in store.ratings()}


def write_rows(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return path


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_hits_hold_every_item_once_and_two_checks_each() -> None:
    hits = exchange.make_hits(ITEMS, per_hit=10, seed=1)
    rated = [item.id for hit in hits for item in hit if item.kind != CHECK]
    assert set(rated) == {item.id for item in ITEMS if item.kind != CHECK}
    assert len(rated) - len(set(rated)) < len(hits)  # those that fill up the last HIT
    assert {sum(item.kind == CHECK for item in hit) for hit in hits} == {2}
    assert len({len(hit) for hit in hits}) == 1
    assert max(len(hit) for hit in hits) <= 10
    assert all(len({item.id for item in hit}) == len(hit) for hit in hits)
    assert hits == exchange.make_hits(ITEMS, per_hit=10, seed=1)
    with pytest.raises(Cod3sError, match="no room for answers"):
        exchange.make_hits(ITEMS, per_hit=2, seed=1)


def test_the_batch_has_a_variable_for_every_slot_of_the_page_and_names_no_system(tmp_path: Path) -> None:
    item = Item("i1", ANSWER, "It rained, so we left.", "effect", "it rained", "we left", (Credit("zebra", 1, 1),))
    exchange.write_mturk(tmp_path, STUDY, [item, *ITEMS], per_hit=8)
    page = (tmp_path / exchange.MTURK_PAGE).read_text()
    table = (tmp_path / exchange.MTURK_BATCH).read_text()
    columns = table.splitlines()[0].split(",")
    assert set(re.findall(r"\$\{(\w+)\}", page)) == {name for name in columns if name.startswith("statement")}
    assert page.count('name="score_1"') == len(STUDY.scale)
    assert "<p>Then rate it.</p>" in page
    assert "we left" in table
    assert "zebra" not in page + table


def test_statements_reach_the_page_of_mechanical_turk_as_they_were_written() -> None:
    for text in ("=1+1, so it ran.", "Rock & roll <b>faded</b>.", "Ça va because 🙂.", "-5 was cold.", "@home"):
        cell = exchange.mturk_text(text)
        assert html.unescape(cell) == text
        assert cell.isascii()
        assert "<" not in cell
        assert safe_cell(cell) == cell  # nothing that a spreadsheet would compute


def mturk_results(folder: Path, form: str) -> Path:
    """A results file as the site writes it: every worker scores slot n with n modulo 6."""
    rows = []
    for number, hit in enumerate(read_rows(folder / exchange.MTURK_BATCH)):
        chosen = {slot: slot % 6 for slot in range(1, len(hit) // 2 + 1)}
        if form == "value":
            answers = {f"Answer.score_{slot}": str(score) for slot, score in chosen.items()}
        elif form == "columns":
            every = [(slot, score) for slot in chosen for score in range(6)]
            answers = {f"Answer.score_{slot}.{score}": str(score == chosen[slot]).lower() for slot, score in every}
        else:
            task = {f"score_{slot}": {str(n): n == score for n in range(6)} for slot, score in chosen.items()}
            answers = {"Answer.taskAnswers": json.dumps([task])}
        for worker in WORKERS:
            row = {"WorkerId": worker, "AssignmentId": f"{number}{worker}", "WorkTimeInSeconds": "80"}
            inputs = {f"Input.{name}": cell for name, cell in hit.items()}
            rows.append({**row, "AssignmentStatus": "Submitted", **inputs, **answers})
    return write_rows(folder / "results.csv", rows)


def test_results_of_a_batch_come_back_and_twice_is_once(tmp_path: Path) -> None:
    exchange.write_mturk(tmp_path / "batch", STUDY, ITEMS, per_hit=8)
    for form in ("value", "columns", "json"):
        results = mturk_results(tmp_path / "batch", form)
        with open_store(f"sqlite:///{tmp_path / form}.sqlite", STUDY) as store:
            first = import_ratings(store, STUDY, ITEMS, read_mturk(results))
            assert (first.raters, first.bad) == (2, ())
            assert set(scores(store)) == {(worker, item.id) for worker in WORKERS for item in ITEMS}
            assert {rating.seconds for rating in store.ratings()} == {80 / 8}
            history = store.ratings(every_revision=True)
            assert import_ratings(store, STUDY, ITEMS, read_mturk(results)).added == 0
            assert store.ratings(every_revision=True) == history
            assert len(store.raters()) == 2


def test_rejected_assignments_stay_out_and_bad_answers_are_named(tmp_path: Path) -> None:
    row = {"WorkerId": "W", "AssignmentId": "1", "AssignmentStatus": "Approved", "Input.id_1": FIRST}
    rows = [
        {**row, "Answer.score_1": "3"},
        {**row, "AssignmentStatus": "Rejected", "Answer.score_1": "5"},
        {**row, "AssignmentId": "2", "Answer.score_1": ""},
        {**row, "Answer.taskAnswers": "{"},
    ]
    good, open_question, broken = read_mturk(write_rows(tmp_path / "results.csv", rows))
    assert good.score == "3"
    assert open_question == Row("line 4, statement 1", fault="no score")
    assert "line 5: not an answer of this page" in str(broken)
    with pytest.raises(FileFormatError, match=r"no columns Input\.id_1"):
        list(read_mturk(write_rows(tmp_path / "a.csv", [{"x": "1"}])))


BAD = (
    ("w,nowhere,3,", "'nowhere' is not an item of this study"),
    (f"w,{FIRST},6,", "the score 6 is not between 0 and 5"),
    (f"w,{FIRST},-1,", "the score -1 is not between 0 and 5"),
    (f"w,{FIRST},2.5,", "'2.5' is not a whole number"),
    (f"w,{FIRST},nan,", "'nan' is not a whole number"),
    (f"w,{FIRST},,", "'' is not a whole number"),
    (f",{FIRST},3,", "the rater is missing"),
    (f"w,{FIRST},3,soon", "'soon' is not a time in seconds"),
    (f"w,{FIRST},3,-1", "'-1' is not a time in seconds"),
    (f"a,{SECOND},3,", f"a rates {SECOND} a second time"),
)


def test_a_bad_row_keeps_all_out_and_is_named_with_its_line(tmp_path: Path, store: Store) -> None:
    path, message = tmp_path / "ratings.csv", "1 of 3 ratings cannot be imported, so none were: line 3: "
    for row, reason in BAD:
        path.write_text(f"rater,item,score,seconds\na,{SECOND},3,1.5\n{row}\nb,{SECOND},3.0,\n")
        with pytest.raises(FileFormatError, match=message) as error:
            import_ratings(store, STUDY, ITEMS, read_ratings(path))
        assert reason in error.value.message
        assert (store.ratings(), store.raters()) == ([], [])
    imported = import_ratings(store, STUDY, ITEMS, read_ratings(path), skip_bad=True)
    assert (imported.added, [bad.location for bad in imported.bad]) == (2, ["line 3"])


def test_many_bad_rows_are_counted_and_the_first_are_named(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("rater,item,score\n" + "w,nowhere,3\n" * 8)
    with pytest.raises(FileFormatError, match=r"8 of 8 .* line 6: .*; and 3 more"):
        import_ratings(store, STUDY, ITEMS, read_ratings(path))
    with pytest.raises(FileFormatError, match="no ratings to import"):
        import_ratings(store, STUDY, ITEMS, read_ratings(path), skip_bad=True)


def test_a_corrected_file_changes_only_the_corrected_score(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "ratings.csv"
    added = []
    for score in (3, 4, 3):  # and back again
        path.write_text(f"rater,item,score\na,{FIRST},{score}\na,{SECOND},2\n")
        added.append(import_ratings(store, STUDY, ITEMS, read_ratings(path)).added)
        assert scores(store) == {("a", FIRST): score, ("a", SECOND): 2}
    assert added == [2, 1, 1]
    assert len(store.ratings(every_revision=True)) == 4
    assert len(store.raters()) == 1


def test_an_older_file_of_results_does_not_undo_a_later_one(tmp_path: Path, store: Store) -> None:
    row = {"WorkerId": "W", "Input.id_1": FIRST}
    older = write_rows(tmp_path / "1.csv", [{**row, "AssignmentId": "1", "Answer.score_1": "3"}])
    later = write_rows(tmp_path / "2.csv", [{**row, "AssignmentId": "2", "Answer.score_1": "4"}])
    added = [import_ratings(store, STUDY, ITEMS, read_mturk(path)).added for path in (older, later, older)]
    assert added == [1, 1, 0]
    assert scores(store) == {("W", FIRST): 4}


@pytest.fixture
def names(store: Store) -> dict[str, str]:
    """Two raters who have names and ids that no export may show, and their pseudonyms."""
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


def test_exported_ratings_are_anonymous_and_come_back_as_the_same_ratings(
    tmp_path: Path, store: Store, names: dict[str, str]
) -> None:
    path = tmp_path / "r.csv"
    assert write_ratings(path, STUDY, ITEMS, store) == 2 * len(ITEMS)
    text, rows = path.read_text(), read_rows(path)
    for secret in ("Alice", "5f0prolificid", "id-one", "id-two", "2020-01"):
        assert secret not in text
    assert {row["rater"] for row in rows} == set(names.values())
    assert [row["order"] for row in rows] == 2 * [str(n) for n in range(1, len(ITEMS) + 1)]
    history = store.ratings(every_revision=True)
    imported = import_ratings(store, STUDY, ITEMS, read_ratings(path))
    assert (imported.ratings, imported.added) == (2 * len(ITEMS), 0)
    assert store.ratings(every_revision=True) == history
    with open_store(f"sqlite:///{tmp_path / 'other.sqlite'}", STUDY) as other:
        assert import_ratings(other, STUDY, ITEMS, read_ratings(path)).added == 2 * len(ITEMS)
        first, second = (
            sorted((rating.item, rating.score, rating.seconds) for rating in side.ratings())
            for side in (other, store)
        )
        assert first == second


def test_a_rating_of_an_unknown_item_stops_every_export_with_a_way_out(tmp_path: Path, store: Store) -> None:
    rater = Rater("x", "import", "2020", external="w")
    store.add([rater], [Rating("x", "elsewhere", 3, 1.0, "2020", key="k")])
    for write in (
        lambda: write_ratings(tmp_path / "r.csv", STUDY, ITEMS, store),
        lambda: exchange.write_prolific(tmp_path / "p", STUDY, ITEMS, store, "https://study.example.org"),
    ):
        with pytest.raises(Cod3sError, match="elsewhere, which is not an item of this study") as error:
            write()
        assert "database" in error.value.hint


@given(st.text(max_size=12))
def test_no_cell_is_a_formula(text: str) -> None:
    cell = safe_cell(text)
    assert cell.lstrip()[:1] not in tuple("=+-@")
    assert cell in (text, "'" + text)


def test_formulas_from_a_models_answers_are_texts_in_the_export(tmp_path: Path, store: Store) -> None:
    item = Item("i1", ANSWER, "=HYPERLINK(1), so.", "effect", "=HYPERLINK(1)", "-1", (Credit("@x", 1, None),))
    store.add([Rater("r", "page", "2020")], [Rating("r", "i1", 3, 1.0, "2020", key="k")])
    write_ratings(tmp_path / "r.csv", STUDY, [item], store)
    (row,) = read_rows(tmp_path / "r.csv")
    assert (row["statement"], row["source"], row["target"]) == ("'=HYPERLINK(1), so.", "'=HYPERLINK(1)", "'-1")
    assert (row["systems"], row["score"]) == ("'@x:?", "3")


def test_prolific_gets_the_link_the_code_and_who_may_be_paid(
    tmp_path: Path, store: Store, names: dict[str, str]
) -> None:
    study = replace(STUDY, per_rater=10)
    exchange.write_prolific(tmp_path, study, ITEMS, store, "https://study.example.org/")
    body = json.loads((tmp_path / exchange.PROLIFIC_STUDY).read_text())
    link = "https://study.example.org/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID="
    assert body["external_study_url"].startswith(link)
    assert body["completion_codes"][0]["code"] == STUDY.completion_code
    assert body["total_available_places"] == 26  # 64 statements, 4 raters each, 10 per rater
    (row,) = read_rows(tmp_path / exchange.PROLIFIC_RATERS)
    assert (row["participant_id"], row["finished"], row["ratings"]) == ("5f0prolificid", "yes", "64")
    with pytest.raises(Cod3sError, match="must be the address"):
        exchange.write_prolific(tmp_path, study, ITEMS, store, "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_study(tmp_path / "study", STUDY, ITEMS)
    return tmp_path / "study"


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, ["study", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_new_makes_a_study_and_shows_the_token_once(tmp_path: Path) -> None:
    outputs_folder(tmp_path / "outputs")
    tops = ("--top", "1", "--top", "quokka=2", "--checks", "2", "--json")
    record = json.loads(run("new", tmp_path / "outputs", "-o", tmp_path / "study", *tops))
    assert record["items"] == {"answer": 4, "check": 2}
    assert record["raters_needed"] == 4
    study = read_study(tmp_path / "study")
    assert matches(record["admin_token"], study.admin_token_hash)
    assert record["admin_token"] not in "".join(file.read_text() for file in (tmp_path / "study").iterdir())
    assert {origin["system"] for origin in study.outputs if "system" in origin} == set(SYSTEMS)


def test_a_study_of_piped_outputs_records_their_checksum(here: Run, tmp_path: Path) -> None:
    text = '{"source": "it rained", "relation": "effect", "answers": ["we got wet", "the grass grew"]}\n'
    done = here("study", "new", "-", "-o", "study", "--checks", "0", stdin=text)
    assert done.returncode == 0, done.stderr
    origin, *_ = read_study(tmp_path / "study").outputs
    assert origin == {"file": "standard input", "sha256": hashlib.sha256(text.encode()).hexdigest()}


def test_new_explains_wrong_options(tmp_path: Path) -> None:
    outputs = outputs_folder(tmp_path / "outputs")
    for option, value, message in (
        ("--top", "many", "--top takes a number"),
        ("--top", "quoka=3", "did you mean 'quokka'"),
        ("--template", "reply={source}", "{source} and {target}"),
        ("--checks", "99", "attention checks"),
        ("--instructions", "nowhere.txt", "no file at nowhere.txt"),
    ):
        with pytest.raises(Cod3sError) as error:
            run("new", outputs, "-o", tmp_path / "study", option, value)
        assert message in error.value.message + error.value.hint
        assert not (tmp_path / "study").exists()


def test_a_study_is_rehearsed_without_storing_anything(folder: Path, tmp_path: Path) -> None:
    record = json.loads(run("analyse", folder, "--simulate", "8", "-o", tmp_path / "report", "--json"))
    assert record == json.loads((tmp_path / "report" / "metrics.json").read_text())
    assert list(record["simulated"]) == ["x", "y"]
    systems = record["results"]["systems"]["effect"]
    assert systems["x"]["top3"]["mean"] < systems["y"]["top3"]["mean"]
    assert "SIMULATED" in (tmp_path / "report" / "report.html").read_text()
    with pytest.raises(Cod3sError, match="already exists"):
        run("analyse", folder, "--simulate", "8", "-o", tmp_path / "report")
    run("analyse", folder, "--simulate", "8", "-o", tmp_path / "report", "--force")
    assert sorted(file.name for file in folder.iterdir()) == ["items.jsonl", "study.json"]
    with pytest.raises(Cod3sError, match="no ratings yet"):
        run("analyse", folder)


def test_exports_and_imports_by_command(folder: Path, tmp_path: Path) -> None:
    ratings = [{"rater": f"w{n}", "item": item.id, "score": str(n)} for n in range(3) for item in ITEMS]
    write_rows(tmp_path / "ratings.csv", ratings)
    assert json.loads(run("import", folder, tmp_path / "ratings.csv", "--from", "csv", "--json")) == {
        "ratings": len(ratings),
        "added": len(ratings),
        "raters": 3,
        "bad": [],
    }
    for name in ("mturk", "csv"):
        run("export", folder, "--to", name, "-o", tmp_path / name)
    run("export", folder, "--to", "prolific", "-o", tmp_path / "prolific", "--url", "https://study.example.org")
    other = f"sqlite:///{tmp_path / 'other.sqlite'}"
    run("import", folder, tmp_path / "csv", "--from", "csv", "--database", other)
    first, copy = (
        json.loads(run("analyse", folder, "--json", *place))["results"] for place in ([], ["--database", other])
    )
    assert copy == first
    with pytest.raises(Cod3sError, match="could overwrite it"):
        run("export", folder, "--to", "mturk", "-o", folder)
    (tmp_path / "mturk" / "notes.txt").write_text("mine")
    for name in ("mturk", "csv"):
        with pytest.raises(Cod3sError, match="already exists") as error:
            run("export", folder, "--to", name, "-o", tmp_path / name)
        assert "--force" in error.value.hint
        run("export", folder, "--to", name, "-o", tmp_path / name, "--force")
    assert (tmp_path / "mturk" / "notes.txt").read_text() == "mine"  # an export replaces only its own files
    with pytest.raises(Cod3sError, match="no format is called 'mturc'") as error:
        run("export", folder, "--to", "mturc", "-o", tmp_path / "x")
    assert "mturk" in error.value.hint
