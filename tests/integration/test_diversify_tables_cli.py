"""`cod3s diversify --input` as a process: a kill in the middle, dry runs, judges, batches, and clear errors."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Run
from scripted_server import ANSWERS, Reply, chat, scripted

pytest.importorskip("openai")


class Counting:
    """A model that gives another of six answers in every call about a prompt."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.prompts: list[str] = []
        self.seconds = seconds

    def __call__(self, request: dict[str, Any], number: int) -> Reply:
        time.sleep(self.seconds)
        prompt = request["messages"][-1]["content"]
        if prompt.startswith("Rate"):
            return chat("7")
        self.prompts.append(prompt)
        text = ANSWERS[(self.prompts.count(prompt) - 1) % len(ANSWERS)]
        return chat(text, usage={"prompt_tokens": 10, "completion_tokens": 5})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [{"id": f"row-{number}", "thing": f"thing {number}"} for number in range(12)]
    path = tmp_path / "things.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def arguments(server: Any, table: Path, *more: str) -> list[str]:
    place = ["--server", server.address, "--model", "m", "--samples", "1", "--strategy", "resample"]
    return ["diversify", "--input", str(table), "-o", "answers", "--prompt", "Use a {thing}.", *place, *more]


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for part in sorted(folder.glob("part-*")) for line in part.open(encoding="utf-8")]


def test_a_killed_run_continues_and_asks_nothing_twice(cod3s: Run, table: Path, tmp_path: Path) -> None:
    model = Counting(seconds=0.05)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with scripted(model) as server:
        command = arguments(server, table, "-k", "3", "--part-size", "5", "--rows-at-once", "2")
        process = subprocess.Popen([sys.executable, "-m", "cod3s", *command], cwd=tmp_path, env=environment)
        while len(model.prompts) < 12:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = cod3s(*command, "--price", "1,2", "--json")
    assert done.returncode == 0, done.stderr
    # A call that was under way when the process was killed had no reply yet; two rows were asked at a time.
    assert 36 <= len(model.prompts) <= 38
    written = lines(tmp_path / "answers")
    assert [line["id"] for line in written] == [f"row-{number}" for number in range(12)]
    assert all(len(line["selection"]["selected"]) == 3 and line["calls"] == 3 for line in written)
    assert "rows: 12, of which 0 failed" in done.stderr
    assert "36 among the 36 chosen, of 36 wanted" in done.stderr
    assert json.loads(done.stdout)["cost"] == pytest.approx((360 + 2 * 180) / 1e6)


def test_a_dry_run_states_calls_tokens_and_money(here: Run, table: Path) -> None:
    done = here(
        "diversify", "--input", table, "--prompt", "Use a {thing}.", "--model", "m", "-k", "10", "--samples", "4",
        "--max-tokens", "50", "--budget", "10", "--price", "1,2", "--dry-run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "calls: from 36 to 120" in done.stdout
    assert "tokens: from about 144 in requests and at most 7200 in answers, to 480 and 24000" in done.stdout
    assert "cost: from $0.0145 to $0.0485" in done.stdout


def test_answers_are_rated_by_a_judge_or_by_a_function_of_the_user(here: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def length(prompt, answer):\n    return len(answer)\n")
    with scripted(Counting()) as server:
        judged = here(*arguments(server, table, "-k", "2", "--score", "judge", "--judge-model", "big"))
        assert judged.returncode == 0, judged.stderr
        assert {request["model"] for request in server.requests} == {"m", "big"}
        assert "mean score: 0.700 of the first answers, 0.700 of those chosen" in judged.stderr
        again = here(*arguments(server, table, "-k", "2", "--score", "mine:length"))
        assert "this run made 0 calls" in again.stderr
        wrong = here(*arguments(server, table, "--score", "mine:width"))
    assert lines(tmp_path / "answers")[0]["candidates"][0]["score"] == len(ANSWERS[0])
    assert (wrong.returncode, "'mine:width' cannot be loaded" in wrong.stderr) == (2, True)


def test_records_keep_their_schema_and_one_field_is_compared(here: Run, table: Path, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"use": {"type": "string"}}, "required": ["use"]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    model = Counting()

    def script(request: dict[str, Any], number: int) -> Reply:
        assert request["response_format"]["json_schema"]["schema"] == schema
        status, body = model(request, number)[:2]
        body["choices"][0]["message"]["content"] = json.dumps({"use": body["choices"][0]["message"]["content"]})
        return status, body

    with scripted(script) as server:
        done = here(*arguments(server, table, "-k", "2", "--schema", "schema.json", "--compare", "use"))
        single = here(
            "diversify", "x", "-k1", "--server", server.address, "--model", "m", "--schema", "schema.json"
        )
    assert done.returncode == 0, done.stderr
    candidate = lines(tmp_path / "answers")[0]["candidates"][0]
    assert candidate["record"] == {"use": candidate["text"]}
    assert json.loads(single.stdout)["use"] in ANSWERS


def test_batches_go_out_and_come_back_on_the_command_line(here: Run, table: Path, tmp_path: Path) -> None:
    common = [
        "diversify",
        "--input",
        table,
        "-o",
        "answers",
        "--prompt",
        "Use a {thing}.",
        "--model",
        "m",
        "-k",
        "2",
    ]
    done = here(*common, "--batch-file", "out.jsonl", "--samples", "2", "--strategy", "verbalized")
    assert "out.jsonl: 12 calls" in done.stderr
    reply = json.dumps([{"text": text, "probability": 0.3} for text in ANSWERS[:3]])
    results = [
        {"custom_id": json.loads(line)["custom_id"], "response": {"status_code": 200, "body": chat(reply)[1]}}
        for line in (tmp_path / "out.jsonl").open()
    ]
    (tmp_path / "back.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results))
    done = here(*common, "--batch-results", "back.jsonl", "--batch-file", "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert "back.jsonl: 12 new calls, 0 known, 0 failed" in done.stderr
    assert "every row has its answers: nothing is missing" in done.stderr
    assert {len(line["selection"]["selected"]) for line in lines(tmp_path / "answers")} == {2}


def test_a_server_that_is_gone_ends_the_run_with_a_way_to_continue(here: Run, table: Path, tmp_path: Path) -> None:
    model = Counting()
    with scripted(lambda request, number: model(request, number) if number < 4 else (500, "down")) as server:
        command = arguments(server, table, "-k", "2", "--retries", "0", "--rows-at-once", "1")
        done = here(*command)
        assert done.returncode == 1
        assert "the last 10 rows failed" in done.stderr
        assert "it continues, and asks nothing twice" in done.stderr
        server.script = model
        assert here(*command).returncode == 0
    assert len(model.prompts) == 24
    assert not any(line["error"] for line in lines(tmp_path / "answers"))


def test_mistakes_with_tables_are_told(here: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.xlsx").write_bytes(b"PK\x03\x04" + b"\x00" * 100)
    place = ["--server", "http://127.0.0.1:9", "--model", "m"]
    for more, message, code in (
        (["--input", table, *place], "no folder for the answers", 2),
        (["--input", table, "x", "-o", "a", *place], "a prompt and a table", 2),
        (["x", "-o", "a", *place], "needs a table", 2),
        ([*place], "there is nothing to ask", 2),
        (["--input", table, "-o", "a"], "no server or no model", 2),
        (["--input", table, "-o", "a", *place], "neither a column 'prompt' nor 'messages', but id, thing", 1),
        (["--input", table, "-o", "b", "--prompt", "{thin}", *place], "did you mean 'thing'?", 1),
        (["--input", "none.jsonl", "-o", "a", *place], "no file at none.jsonl", 1),
        (["--input", "bad.xlsx", "-o", "c", *place], "bad.xlsx", 1),
        (["--input", tmp_path, "-o", "d", *place], "is not a dataset", 1),
    ):
        done = here("diversify", *more)
        assert (done.returncode, message in done.stderr) == (code, True), (more, done.stderr)
