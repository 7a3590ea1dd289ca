"""`cod3s serve` as a process: how it starts, what it says when it cannot, how it ends, how it bears a crowd."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from conftest import ROOT, Run
from tiny_bundle import SOURCES, TinyBundle

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}


@contextmanager
def serve(*options: str | Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and the line in which it tells its address."""
    command = [sys.executable, "-m", "cod3s", "serve", "--port", "0", *map(str, options)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**ENVIRONMENT, **environment}
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


def address_in(line: str) -> str:
    found = re.search(r"http://\S+", line)
    assert found, line
    return found[0]


def test_it_serves_on_this_machine_alone_and_ends_with_ctrl_c(tiny_bundle: TinyBundle) -> None:
    with serve("--bundle", tiny_bundle.small) as (process, line):
        address = address_in(line)
        assert address.startswith("http://127.0.0.1:")
        body = {"text": SOURCES[0], "relation": "effect", "k": 2, "beam": 5}
        assert len(httpx.post(f"{address}/api/generate", json=body, timeout=60).json()["answers"]) == 2
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 0, err
        assert out == ""
        assert "POST /api/generate 200" in err
        assert "Traceback" not in err
        assert SOURCES[0] not in err


def test_ctrl_c_ends_it_although_an_answer_is_on_its_way(tiny_bundle: TinyBundle) -> None:
    with serve("--bundle", tiny_bundle.small, "--max-k", "200", "--quiet") as (process, line):
        heavy = {"text": SOURCES[0], "relation": "effect", "k": 200, "beam": 100}
        with httpx.stream("POST", f"{address_in(line)}/api/stream", json=heavy, timeout=60) as reply:
            came = reply.iter_lines()
            assert json.loads(next(came))["event"] == "signatures"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0


STUCK_SERVER = """
import time
from fastapi import FastAPI
from cod3s.serving import running
from cod3s.serving.address import link, listen

running.GRACE_SECONDS, running.GIVE_UP_SECONDS = 0.2, 1
app = FastAPI()

@app.get("/stuck")
def stuck() -> None:
    print("stuck", flush=True)
    time.sleep(100)

with listen("127.0.0.1", 0) as listener:
    print(link("127.0.0.1", listener), flush=True)
    running.run_until_stopped(app, listener, log_config=None)
"""


def test_ctrl_c_does_not_wait_for_a_computation_that_does_not_end() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUCK_SERVER], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        host, port = address_in(process.stdout.readline()).removeprefix("http://").strip("/").split(":")
        try:
            with socket.create_connection((host, int(port)), timeout=30) as client:
                client.sendall(b"GET /stuck HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert process.stdout.readline() == "stuck\n"
                process.send_signal(signal.SIGINT)
                assert process.wait(timeout=30) == 0
        finally:
            process.kill()


def test_a_port_that_is_taken_is_told(cod3s: Run, tiny_bundle: TinyBundle) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = cod3s("serve", "--port", str(other.getsockname()[1]), "--bundle", tiny_bundle.small)
    assert done.returncode == 1
    assert "cannot listen on 127.0.0.1" in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_extra_is_told(cod3s: Run, tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ModuleNotFoundError('not installed', name='uvicorn')\n")
    done = cod3s("serve", "--bundle", tiny_bundle.small, PYTHONPATH=f"{tmp_path}:{ROOT / 'src'}")
    assert done.returncode == 1
    assert "pip install 'cod3s[serve]'" in done.stderr


@pytest.mark.parametrize(
    "arguments", [["--host", "no.such.host.invalid"], ["--bundle", "nowhere"]], ids=["host", "bundle"]
)
def test_what_cannot_be_served_is_told(arguments: list[str], cod3s: Run) -> None:
    done = cod3s("serve", "--port", "0", *arguments)
    assert done.returncode == 1
    assert arguments[1] in done.stderr
    assert "Traceback" not in done.stderr


def test_it_runs_without_torch_scipy_and_sacrebleu(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    """The base install with the extra `serve` has none: modules that cannot be imported stand in their place."""
    for name in ("torch", "transformers", "scipy", "sacrebleu", "pyarrow", "duckdb", "httpx"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not in this install')\n")
    with serve("--bundle", tiny_bundle.small, PYTHONPATH=f"{tmp_path}:{ROOT / 'src'}") as (_, line):
        ask = {"text": SOURCES[0], "relation": "effect", "k": 2, "beam": 5}
        for route in ("generate", "stream", "compare"):
            assert httpx.post(f"{address_in(line)}/api/{route}", json=ask, timeout=60).status_code == 200


def test_fifty_clients_at_once_get_answers_or_are_told_to_wait(tiny_bundle: TinyBundle) -> None:
    """Only documented statuses, no fewer answers a second for the crowd, and memory that settles in a round."""
    options = ["--clients", "50", "--seconds", "5", "-k", "2", "--json"]
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "serve_load.py", "--bundle", tiny_bundle.small, *options],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    one, many, again = json.loads(done.stdout)
    for found in (many, again):
        assert set(found["statuses"]) <= {"200", "503"}
        assert found["answered"] > 0
        assert found["per_second"] > one["per_second"] / 3, "a bound for a busy machine"
    assert again["memory_mb"] < 1.1 * many["memory_mb"] + 10


def test_a_body_that_drips_is_not_waited_for(tiny_bundle: TinyBundle) -> None:
    with serve("--bundle", tiny_bundle.small, "--seconds", "1") as (_, line):
        host, port = address_in(line).removeprefix("http://").strip("/").split(":")
        fields = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 90"
        with socket.create_connection((host, int(port)), timeout=30) as client:
            client.sendall(f'POST /api/generate HTTP/1.1\r\n{fields}\r\n\r\n{{"text": "it'.encode())
            assert client.recv(100).startswith(b"HTTP/1.1 408")
