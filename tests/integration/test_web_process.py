"""`cod3s serve` as a process: how it starts, what it says when it cannot, how it ends, how it bears a crowd."""

import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
            assert json.loads(next(came))["event"] == "stage"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0


def test_ctrl_c_ends_it_although_clients_work_wait_drip_and_idle(tiny_bundle: TinyBundle) -> None:
    with serve("--bundle", tiny_bundle.small, "--max-k", "200", "--at-once", "1", "--quiet") as (process, line):
        host, port = address_in(line).removeprefix("http://").strip("/").split(":")
        heavy = json.dumps({"text": SOURCES[0], "relation": "effect", "k": 200, "beam": 100})
        head = f"Host: {host}\r\nContent-Type: application/json\r\nContent-Length: {len(heavy)}\r\n\r\n"
        asking = f"POST /api/stream HTTP/1.1\r\n{head}{heavy}".encode()
        idling = f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        with ExitStack() as stack:
            clients = [stack.enter_context(socket.create_connection((host, int(port)), 30)) for _ in range(9)]
            *asked, dripping, idle, _silent = clients
            for client in asked:
                client.sendall(asking)
            dripping.sendall(asking[:-5])
            idle.sendall(idling)
            assert idle.recv(100).startswith(b"HTTP/1.1 200")
            assert asked[0].recv(100).startswith(b"HTTP/1.1 200"), "the others wait"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0


STUCK_SERVER = """
import sys
import time
from fastapi import FastAPI
from cod3s.web import running
from cod3s.web.address import link, listen

running.GRACE_SECONDS, running.GIVE_UP_SECONDS = 0.2, 1
app = FastAPI()

@app.get("/stuck")
def stuck() -> None:
    print("stuck", flush=True)
    time.sleep(100)

@app.get("/unread")
def unread() -> None:
    print("unread", flush=True)
    running._log.warning("*" * 1_000_000)  # more than a pipe holds

with listen("127.0.0.1", 0) as listener:
    print(link("127.0.0.1", listener), flush=True)
    running.run_until_stopped(app, listener, log_config=None)
"""


@pytest.mark.parametrize("what", ["stuck", "unread"])
def test_ctrl_c_does_not_wait_for_a_computation_or_a_reader_that_never_comes(what: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUCK_SERVER],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        host, port = address_in(process.stdout.readline()).removeprefix("http://").strip("/").split(":")
        try:
            with socket.create_connection((host, int(port)), timeout=30) as client:
                client.sendall(f"GET /{what} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                assert process.stdout.readline() == f"{what}\n"
                process.send_signal(signal.SIGINT)
                assert process.wait(timeout=30) == 0
        finally:
            process.kill()


SLOWLY_FREED = """
import time
from cod3s.cli.main import main

class SlowlyFreed:
    sleep = time.sleep

    def __del__(self) -> None:
        self.sleep(100)

held = SlowlyFreed()
main()
"""


def test_ctrl_c_does_not_wait_until_memory_is_freed(tiny_bundle: TinyBundle) -> None:
    """On an overloaded machine, Python took half a minute to free what the server remembered."""
    arguments = ["serve", "--port", "0", "--bundle", str(tiny_bundle.small)]
    with subprocess.Popen(
        [sys.executable, "-c", SLOWLY_FREED, *arguments], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        try:
            httpx.get(f"{address_in(process.stdout.readline())}/healthz", timeout=60).raise_for_status()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has heaps for threads")
def test_threads_share_a_few_heaps_and_give_back_what_they_freed() -> None:
    """malloc_info() counts the heaps of 40 threads, each of which takes memory and frees all but the end of it."""
    lines = """
        import ctypes, os, threading, time
        from pathlib import Path
        from cod3s.web import running
        running.TRIM_SECONDS = 0.5
        running.bound_heaps()
        libc, all_hold = ctypes.CDLL(None), threading.Barrier(40)
        libc.malloc.restype, libc.fdopen.restype = ctypes.c_void_p, ctypes.c_void_p
        libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
        libc.free.argtypes = [ctypes.c_void_p]

        def hold() -> None:
            blocks = [libc.malloc(10_000) for _ in range(200)]
            for block in blocks:
                libc.memset(block, 1, 10_000)
            all_hold.wait()
            for block in blocks[:-1]:
                libc.free(block)

        def resident_mb() -> int:
            return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20

        before = resident_mb()
        threads = [threading.Thread(target=hold) for _ in range(40)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        time.sleep(2)
        print(resident_mb() - before, flush=True)
        out = ctypes.c_void_p(libc.fdopen(1, b"w"))
        libc.malloc_info(0, out), libc.fflush(out)
    """
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "MALLOC_ARENA_MAX"}
    command = [sys.executable, "-c", textwrap.dedent(lines)]
    told = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
    kept_mb, _, heaps = told.partition("\n")
    assert 1 < heaps.count("<heap ") <= max(2, os.cpu_count() or 1)
    assert int(kept_mb) < 20, "of 80 MB"


def test_a_connection_without_a_request_is_kept_for_longer_than_clients_keep_it(tiny_bundle: TinyBundle) -> None:
    """A request that arrives just as the server closes its connection is lost. httpx keeps it for 5 seconds."""
    patient = httpx.Limits(keepalive_expiry=60)
    with (
        serve("--bundle", tiny_bundle.small) as (_, line),
        httpx.Client(base_url=address_in(line), limits=patient) as client,
    ):
        opened = client.get("/healthz").extensions["network_stream"].get_extra_info("client_addr")
        time.sleep(6)
        reused = client.get("/healthz").extensions["network_stream"].get_extra_info("client_addr")
        assert reused == opened


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
        for route in ("generate", "stream"):
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
