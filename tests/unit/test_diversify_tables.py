"""Tables of prompts: rows, continuing, limits, failures, other choices from the same answers, Batch files."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cod3s
from cod3s.ask import CompletionServer, DiversifyConfig, Reply, Tokens
from cod3s.ask.batch_files import read_batch, write_batch
from cod3s.ask.journal import open_journal
from cod3s.ask.rows import open_records, read_rows
from cod3s.ask.tables import describe_job, estimate
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError
from scripted_server import ANSWERS


class Model:
    """Gives another of six answers in every call about a prompt, and counts the calls."""

    def __init__(self, fail: Callable[[str], bool] = lambda prompt: False) -> None:
        self.calls: list[str] = []
        self.fail = fail

    def __call__(self, prompt: str) -> Reply:
        if self.fail(prompt):
            raise ConnectionError("gone")
        self.calls.append(prompt)
        text = ANSWERS[(self.calls.count(prompt) - 1) % len(ANSWERS)]
        return Reply((text,), (None,), Tokens(10, 5))


def lines(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for part in sorted(folder.glob("part-*.jsonl")) for line in part.open(encoding="utf-8")
    ]


def test_every_row_gets_its_answers_with_its_id_or_number(tmp_path: Path, static: Encoder) -> None:
    model, folder = Model(), tmp_path / "answers"
    rows = [{"id": "a", "thing": "brick"}, {"thing": "rope"}, {"id": "c", "thing": "hat"}]
    done = cod3s.diversify_many(
        model, rows, 3, output=folder, template="A use for a {thing} in {{braces}}", part_size=2, encoder=static
    )
    assert [part.name for part in sorted(folder.glob("part-*"))] == ["part-00000.jsonl", "part-00001.jsonl"]
    written = lines(folder)
    assert [(line["id"], line["row"], line["error"]) for line in written] == [
        ("a", 0, None),
        (1, 1, None),
        ("c", 2, None),
    ]
    assert written[1]["prompt"] == "A use for a rope in {braces}"
    assert all(len(line["selection"]["selected"]) == 3 for line in written)
    assert (done.calls, done.report.rows, done.report.distinct_after, done.rows) == (9, 3, 9, ())
    report = json.loads((folder / "report.json").read_text())
    assert (report["calls"], report["prompt_tokens"], report["stopped"]) == (9, 90, {"filled": 3})


def test_a_later_run_asks_nothing_twice_and_chooses_anew(tmp_path: Path, static: Encoder) -> None:
    model, folder = Model(), tmp_path / "answers"
    rows = [f"prompt {number}" for number in range(5)]

    def run(k: int, **options: Any) -> Any:
        return cod3s.diversify_many(model, rows, k, output=folder, part_size=2, encoder=static, **options)

    assert run(3).calls == 15
    assert run(3).report.calls == 15, "the report covers what earlier runs wrote"
    assert len(model.calls) == 15
    assert run(2).calls == 0
    assert [len(line["selection"]["selected"]) for line in lines(folder)] == [2] * 5
    assert run(5, select_only=True).calls == 0
    assert {line["stopped"] for line in lines(folder)} == {"select_only"}
    assert run(4).calls == 5, "one more call per row"
    rows.append("prompt 5")
    assert run(4).calls == 4
    assert len(lines(folder)) == 6
    del rows[2:]
    assert run(4).calls == 0
    assert len(lines(folder)) == 2, "rows that left the table leave the answers"


def test_a_run_that_dies_loses_nothing_that_was_paid_for(tmp_path: Path, static: Encoder) -> None:
    folder, limit = tmp_path / "answers", 7

    class Interrupted(Model):
        def __call__(self, prompt: str) -> Reply:
            if len(self.calls) == limit:
                raise KeyboardInterrupt
            return super().__call__(prompt)

    model = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        cod3s.diversify_many(model, ["a", "b", "c", "d"], 3, output=folder, rows_at_once=2, encoder=static)
    assert len(lines(folder)) >= 1
    limit = -1
    assert cod3s.diversify_many(model, ["a", "b", "c", "d"], 3, output=folder, encoder=static).calls == 5
    assert sorted(map(model.calls.count, "abcd")) == [3, 3, 3, 3]


def test_rows_that_fail_are_written_with_their_error_and_asked_again_later(
    tmp_path: Path, static: Encoder
) -> None:
    folder, is_down = tmp_path / "answers", True
    model = Model(lambda prompt: is_down and prompt == "b")
    rows: list[Any] = [{"prompt": "a"}, {"prompt": "b"}, {"prompt": " "}, {"other": 1}, {"prompt": None}]
    done = cod3s.diversify_many(model, rows, 2, output=folder, encoder=static)
    errors = [line["error"] for line in lines(folder)]
    assert errors[0] is None
    assert "ConnectionError: gone" in errors[1]
    assert "the prompt is empty" in errors[2]
    assert "neither a column 'prompt' nor 'messages', but other" in errors[3]
    assert "the prompt is empty" in errors[4]
    assert (done.report.failed, done.stopped) == (4, "")
    is_down = False
    assert cod3s.diversify_many(model, rows, 2, output=folder, encoder=static).calls == 2


def test_a_server_that_dies_ends_the_run_instead_of_failing_every_row(tmp_path: Path, static: Encoder) -> None:
    folder = tmp_path / "answers"
    model = Model(lambda prompt: len(model.calls) >= 6)
    rows = [f"prompt {number}" for number in range(500)]
    done = cod3s.diversify_many(model, rows, 2, output=folder, rows_at_once=4, encoder=static)
    assert done.stopped == "the last 10 rows failed"
    assert 13 <= done.report.rows <= 20


def test_the_limits_of_a_run_end_it_and_another_run_continues(tmp_path: Path, static: Encoder) -> None:
    model, folder = Model(), tmp_path / "answers"
    rows = [f"prompt {number}" for number in range(6)]
    done = cod3s.diversify_many(model, rows, 2, output=folder, total_calls=5, rows_at_once=1, encoder=static)
    assert (done.calls, done.stopped) == (5, "a limit of the run was reached")
    assert [line["stopped"] for line in lines(folder)] == ["filled", "filled", "limit"]
    assert cod3s.diversify_many(model, rows, 2, output=folder, encoder=static).calls == 7
    assert len(model.calls) == 12


def test_equal_prompts_are_asked_once(static: Encoder) -> None:
    model = Model()
    done = cod3s.diversify_many(model, ["a", "b", "a", "a"], 3, rows_at_once=4, encoder=static)
    assert [row.row for row in done.rows] == [0, 1, 2, 3]
    assert len(model.calls) == done.calls == 6
    assert done.rows[0].result.texts == done.rows[2].result.texts  # type: ignore[union-attr]


def test_rows_are_asked_side_by_side_without_blocking_the_loop(static: Encoder) -> None:
    under_way = most = 0

    async def generate(prompt: str) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.005)
        under_way -= 1
        return ANSWERS[0]

    rows = [f"prompt {number}" for number in range(9)]
    asyncio.run(
        cod3s.diversify_many_async(generate, rows, 1, config=DiversifyConfig(rows_at_once=3), encoder=static)
    )
    assert most == 3


def test_scores_are_kept_and_another_score_function_rates_anew(tmp_path: Path, static: Encoder) -> None:
    scored: list[str] = []

    def length(prompt: str, answer: str) -> float:
        scored.append(answer)
        return len(answer)

    def shortness(prompt: str, answer: str) -> float:
        return -len(answer)

    model = Model()
    for score, expected in ((length, 3), (length, 3), (shortness, 3)):
        done = cod3s.diversify_many(
            model, ["a"], 3, output=tmp_path / "x", score=score, part_size=1, encoder=static
        )
        cod3s.diversify_many(model, ["a"], 2, output=tmp_path / "x", score=score, part_size=1, encoder=static)
        assert len(scored) == len(model.calls) == expected
    assert done.report.quality_after < 0


def test_answers_that_could_not_be_scored_are_scored_by_the_next_run(tmp_path: Path, static: Encoder) -> None:
    is_down, scored = True, []

    def score(prompt: str, answer: str) -> float:
        scored.append(answer)
        if is_down and answer == ANSWERS[1]:
            raise ConnectionError("gone")
        return 1.0

    options = {"output": tmp_path / "x", "score": score, "encoder": static}
    cod3s.diversify_many(Model(), ["a"], 2, **options)
    is_down = False
    cod3s.diversify_many(Model(), ["a"], 1, **options)
    assert lines(tmp_path / "x")[0]["candidates"][1]["score"] == 1.0
    cod3s.diversify_many(Model(), ["a"], 2, **options)
    assert scored == [*ANSWERS[:3], ANSWERS[1]]


def test_a_folder_of_another_job_or_with_other_files_is_refused(tmp_path: Path, static: Encoder) -> None:
    folder = tmp_path / "answers"
    cod3s.diversify_many(Model(), ["a"], 1, output=folder, encoder=static)
    with pytest.raises(Cod3sError, match="answers of a different job: model was"):
        cod3s.diversify_many(lambda prompt: "x", ["a"], 1, output=folder, encoder=static)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("x")
    with pytest.raises(Cod3sError, match="already contains something"):
        cod3s.diversify_many(Model(), ["a"], 1, output=tmp_path / "notes", encoder=static)
    (folder / "calls.sqlite").write_text("not a database, but text " * 100)
    with pytest.raises(Cod3sError, match="is not a journal"):
        cod3s.diversify_many(Model(), ["a"], 1, output=folder, encoder=static)


MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "data:,"}}, {"type": "text", "text": "x"}],
    },
]


def test_tables_of_many_kinds_have_the_same_rows(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    records = [{"id": 7, "messages": MESSAGES}]
    as_text = json.dumps(MESSAGES)
    (tmp_path / "t.jsonl").write_text(json.dumps(records[0]) + "\n")
    quoted = as_text.replace('"', '""')
    (tmp_path / "t.csv").write_text(f'id,messages\n7,"{quoted}"\n')
    (tmp_path / "t.tsv").write_text(f"id\tmessages\n7\t{as_text}\n")
    table = arrow.Table.from_pylist([{"id": 7, "messages": as_text}])
    parquet.write_table(table, tmp_path / "t.parquet")
    dataset = tmp_path / "dataset"  # as Dataset.save_to_disk writes it
    dataset.mkdir()
    with arrow.OSFile(str(dataset / "data-00000-of-00001.arrow"), "wb") as file:
        nested = arrow.Table.from_pylist([{"id": 7, "messages": [{"role": "user", "content": "x", "name": None}]}])
        with arrow.ipc.new_stream(file, nested.schema) as stream:
            stream.write_table(nested)
    (dataset / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    for name in ("t.jsonl", "t.csv", "t.tsv", "t.parquet"):
        with open_records(tmp_path / name) as table_records:
            (row,) = read_rows(table_records)
        assert row.prompt is not None
        assert (str(row.id), list(row.prompt.messages)) == ("7", MESSAGES), name
    with open_records(dataset) as table_records:
        (row,) = read_rows(table_records, system="Be kind.")
    assert row.prompt is not None
    assert row.prompt.messages == ({"role": "system", "content": "Be kind."}, {"role": "user", "content": "x"})


def test_a_table_without_the_columns_of_its_prompts_is_refused_at_once() -> None:
    for records, template, message in (
        ([{"product": "x"}], "A review of {produkt}", "no column 'produkt'"),
        ([{"product": "x"}], "", "neither a column 'prompt' nor 'messages', but product"),
        ([{"product": "x"}], "{product", "template is not readable"),
        ("a prompt", "", "rows are needed"),
    ):
        with pytest.raises(Cod3sError, match=message):
            list(read_rows(records, template=template))
    rows = list(read_rows([{"a": "x"}, {"a": ""}, {"b": "y"}], template="{a}"))
    assert [row.problem for row in rows] == ["", "the column 'a' is empty", "there is no column 'a'"]


def test_the_estimate_bounds_calls_tokens_and_money() -> None:
    rows = read_rows(["four" * 4, "four" * 4, " "])
    cost = estimate(rows, DiversifyConfig(k=10, budget=6, price="1000000,2000000", total_calls=10), 4, 20)
    assert (cost.rows, cost.bad_rows, cost.calls) == (3, 1, (6, 10))
    assert [(tokens.prompt, tokens.completion) for tokens in cost.tokens] == [(24, 480), (40, 800)]
    assert cost.cost == (24 + 960, 40 + 1600)


def test_batch_files_go_out_and_come_back_until_nothing_is_missing(tmp_path: Path, static: Encoder) -> None:
    server = CompletionServer("http://batch", "m", samples=2)
    config = DiversifyConfig(k=3, encoder=static, strategy="resample")
    folder, out, back = tmp_path / "answers", tmp_path / "requests.jsonl", tmp_path / "output.jsonl"

    def written(journal: Any) -> int:
        return asyncio.run(write_batch(out, read_rows(["a", "b", "a"]), server, journal, config))

    with open_journal(folder, describe_job(server, None, config)) as journal:
        assert written(journal) == 4, "two calls of two answers for each of two prompts"
        requests = [json.loads(line) for line in out.open()]
        assert {(request["method"], request["url"]) for request in requests} == {("POST", "/v1/chat/completions")}
        assert requests[0]["body"]["messages"] == [{"role": "user", "content": "a"}]
        results = []
        for number, request in enumerate(requests):
            choices = [{"message": {"content": ANSWERS[number % 2 * 2 + each]}} for each in range(2)]
            body = {"choices": choices, "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
            response = {"status_code": 200, "body": body} if number else {"status_code": 500, "body": {}}
            results.append({"custom_id": request["custom_id"], "response": response, "error": None})
        back.write_text("".join(json.dumps(result) + "\n" for result in results))
        taken = read_batch(back, server, journal)
        assert (taken.added, taken.known, taken.failures) == (3, 0, ("the server answered 500: {}",))
        assert read_batch(back, server, journal).known == 3, "nothing counts twice"
        assert written(journal) == 1, "what failed is asked again"
    done = cod3s.diversify_many(server, ["a", "b", "a"], config=config, output=folder, select_only=True)
    assert (done.calls, [line["stopped"] for line in lines(folder)]) == (
        0,
        ["select_only", "filled", "select_only"],
    )
    back.write_text('{"custom_id": "someone-else"}\n')
    with (
        open_journal(folder, describe_job(server, None, config)) as journal,
        pytest.raises(Cod3sError, match="is not from"),
    ):
        read_batch(back, server, journal)
