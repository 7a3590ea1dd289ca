"""Long runs: many sources through `generate --input -o`, and `serve` at a steady low rate. Memory stays flat.

    PYTHONPATH=benchmarks:tests python -m campaign.long_runs --sources 20000 --seconds 7200

The server remembers what it was asked up to a limit, so its memory grows until that is reached: the first fifth of
the time does not count.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice, product
from pathlib import Path

import httpx
from serve_load import server

from campaign.commands import Command
from campaign.material import material
from campaign.tally import Tally, parser, print_all
from campaign.watch import Watch, watched
from tiny_bundle import EVENTS, WHERE, WHO

_SETTLED = 0.2  # share of the time until memory must be flat
_WIDTH = 0.1
_SHORTEST_SECONDS = 1200.0  # until a server that is asked once per second remembers all that it may
_SLOWEST_SECONDS = 30.0


def different_sources() -> Iterator[str]:
    """Sources without end, no two alike."""
    for day in count(1):
        for who, event, where in product(WHO, EVENTS, WHERE):
            yield f"on day {day} {who} {event} {where}"


def generate_many(sources: int) -> Tally:
    """Answer many sources in one run, and read the answers back."""
    tally = Tally(f"long run: generate, {sources:,} sources")
    with tempfile.TemporaryDirectory() as scratch:
        texts = list(islice(different_sources(), sources))
        (Path(scratch) / "sources.txt").write_text("".join(f"{text}\n" for text in texts))
        line = ("generate", "effect", "--input", Path(scratch) / "sources.txt", "--bundle", material() / "small")
        process = Command("generate", (*line, "-k", "2")).start(Path(scratch) / "answers")
        with watched(process.pid) as watch:
            complaint = process.communicate()[1]
        shards = sorted((Path(scratch) / "answers").glob("answers-*.jsonl"))
        answered = [json.loads(row)["source"] for shard in shards for row in shard.read_text().splitlines()]
    tally.count("exit code", complaint.strip()[-200:] if process.returncode else "")
    tally.count("sources", "" if answered == texts else f"{len(answered)} of {len(texts)} answered")
    tally.count("memory and open files", watch.growth(_SETTLED, _WIDTH))
    tally.remark = summary(watch)
    return tally


def serve_steadily(seconds: float, per_second: float) -> Tally:
    """Ask a server for answers to another source at each tick."""
    tally = Tally(f"long run: serve, {seconds / 60:.0f} minutes, {per_second:g} requests per second")
    sources = different_sources()
    with (
        server("--bundle", str(material() / "small")) as (address, pid),
        httpx.Client(base_url=address, timeout=_SLOWEST_SECONDS, trust_env=False) as client,
        watched(pid, every=5.0) as watch,
    ):
        start = time.monotonic()
        for tick in count():
            time.sleep(max(0.0, start + tick / per_second - time.monotonic()))
            if time.monotonic() - start > seconds:
                break
            tally.count(f"request {tick}", _ask(client, next(sources)))
    if seconds >= _SHORTEST_SECONDS:
        tally.count("memory and open files", watch.growth(_SETTLED, _WIDTH))
    tally.remark = summary(watch)
    return tally


def _ask(client: httpx.Client, text: str) -> str:
    try:
        reply = client.post("/api/generate", json={"text": text, "relation": "effect", "k": 3})
    except httpx.HTTPError as error:
        return f"no reply: {error!r}"
    return "" if reply.status_code == 200 else f"status {reply.status_code}: {reply.text[:200]}"


def summary(watch: Watch) -> str:
    """Memory and open files early, when it had settled, and at the end."""
    early, settled, late = (
        watch.part(0, _WIDTH),
        watch.part(_SETTLED, _SETTLED + _WIDTH),
        watch.part(1 - _WIDTH, 1),
    )
    return (
        f"{watch.samples[-1].second / 60:.0f} min; memory {early.memory_mb:.0f}, {settled.memory_mb:.0f}, "
        f"{late.memory_mb:.0f} MB; open files {early.handles}, {settled.handles}, {late.handles}"
    )


def campaign(options: argparse.Namespace) -> Iterator[Tally]:
    if options.only in "generate":
        yield generate_many(getattr(options, "sources", 2000))
    if options.only in "serve":
        yield serve_steadily(options.seconds, getattr(options, "rate", 1.0))


if __name__ == "__main__":
    options = parser(__doc__, cases=1, seconds=7200)
    options.add_argument("--sources", type=int, default=20_000)
    options.add_argument("--rate", type=float, default=1.0, help="requests per second")
    sys.exit(print_all(campaign(options.parse_args())))
