"""`cod3s serve` under load: a real server on this machine, one client, then many at once, then as many again.

    python benchmarks/serve_load.py --clients 50 --seconds 20
    python benchmarks/serve_load.py --clients 50 --seconds 20 --turns 3

With `--turns`, a server that decodes waiting requests together and one that does not take turns under the same
load. The last line is the ratio of the processor seconds per answered request, which other programs hardly change.

Each client asks for answers, and when it is told to come again (503), waits as long as Retry-After says. Prints
what was answered and how fast, the statuses that came, and the server's memory after each round.
"""

import argparse
import asyncio
import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count, product
from pathlib import Path
from statistics import median

import httpx
from campaign.watch import memory_mb

MOST_REQUESTS = 2000  # in a round, whatever the time

SOURCES = Path(__file__).parent / "sets" / "earlier.tsv"


@dataclass(frozen=True)
class Round:
    """What one round gave; seconds are those of answered requests."""

    clients: int
    answered: int
    statuses: dict[str, int]
    per_second: float
    median_seconds: float
    p95_seconds: float
    slowest_seconds: float
    memory_mb: float


@contextmanager
def server(*options: str) -> Iterator[tuple[str, int]]:
    """The address and the process id of a server that ends with the block."""
    command = [sys.executable, "-m", "cod3s", "serve", "--port", "0", "--quiet", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                sys.exit("the server did not start")
            yield line.split(" at ")[1].split()[0], process.pid
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:  # what was measured so far must not be lost
                print("the server did not end within 30 seconds of ctrl-C", file=sys.stderr)
                process.kill()


def questions() -> Iterator[dict[str, str]]:
    """Everyday sources, each with both relations, and then again with another day before each.

    The server remembers what it was asked, so no question comes twice.
    """
    with SOURCES.open(encoding="utf-8", newline="") as file:
        sources = [row["source"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    for day in count():
        for source, relation in product(sources, ("effect", "cause")):
            yield {"text": f"on day {day} {source}" if day else source, "relation": relation}


async def run_round(
    address: str, pid: int, clients: int, seconds: float, k: int, asked: Iterator[dict[str, str]]
) -> Round:
    """So many clients, each asking again when it is answered, for so long."""
    statuses: Counter[str] = Counter()
    times: list[float] = []
    end = time.monotonic() + seconds

    async def ask_on(client: httpx.AsyncClient) -> None:
        question = next(asked)
        while time.monotonic() < end and statuses.total() < MOST_REQUESTS:
            start = time.monotonic()
            reply = await client.post("/api/generate", json={**question, "k": k})
            statuses[str(reply.status_code)] += 1
            if reply.status_code == 200:
                times.append(time.monotonic() - start)
                question = next(asked)
            elif reply.status_code == 503:
                await asyncio.sleep(float(reply.headers["Retry-After"]))

    start = time.monotonic()
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(base_url=address, timeout=600, limits=limits, trust_env=False) as client:
        await asyncio.gather(*(ask_on(client) for _ in range(clients)))
    spent = time.monotonic() - start
    return Round(
        clients,
        len(times),
        dict(statuses),
        round(len(times) / spent, 2),
        round(median(times), 2) if times else 0.0,
        round(sorted(times)[int(0.95 * (len(times) - 1))], 2) if times else 0.0,
        round(max(times), 2) if times else 0.0,
        round(memory_mb(pid), 1),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, help="default: the one in the package")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each of three rounds")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--turns", type=int, default=0, help="compare decoding together with one at a time")
    parser.add_argument("--patience", type=float, default=30.0, help="the server's limit in seconds")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print the rounds as JSON")
    options = parser.parse_args()
    flags = ["--at-once", str(options.at_once), "--seconds", str(options.patience)]
    flags += ["--bundle", str(options.bundle)] if options.bundle else []
    if options.turns:
        take_turns(flags, options.k, options.clients, options.seconds, options.turns)
        return
    with server(*flags) as (address, pid):
        asked = questions()
        rounds = [
            asyncio.run(run_round(address, pid, clients, options.seconds, options.k, asked))
            for clients in (1, options.clients, options.clients)
        ]
    if options.json:
        print(json.dumps([asdict(result) for result in rounds]))
        return
    print("| clients | answered | statuses | per second | median s | p95 s | slowest s | server MB |")
    print("|---|---|---|---|---|---|---|---|")
    for result in rounds:
        statuses = ", ".join(f"{status}: {number}" for status, number in sorted(result.statuses.items()))
        cells = {**asdict(result), "statuses": statuses}
        print(f"| {' | '.join(map(str, cells.values()))} |")


def take_turns(flags: list[str], k: int, clients: int, seconds: float, turns: int) -> None:
    """Print what each server answers, turn by turn, and the ratio of the processor seconds per answer."""
    spent: defaultdict[str, float] = defaultdict(float)
    answered: Counter[str] = Counter()
    with server(*flags) as together, server(*flags, "--batch", "1") as alone:
        asked = {"one at a time": questions(), "together": questions()}
        for _ in range(turns):
            for name, (address, pid) in (("one at a time", alone), ("together", together)):
                before = processor_seconds(pid)
                result = asyncio.run(run_round(address, pid, clients, seconds, k, asked[name]))
                spent[name] += processor_seconds(pid) - before
                answered[name] += result.answered
                print(
                    f"{name}: {result.answered} answered, {result.per_second} per second, "
                    f"{spent[name] / max(1, answered[name]):.3f} processor seconds each so far",
                    flush=True,
                )
    each = {name: spent[name] / max(1, answered[name]) for name in spent}
    print(f"one at a time / together: {each['one at a time'] / each['together']:.2f}")


def processor_seconds(pid: int) -> float:
    """What a process has used of all cores."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
