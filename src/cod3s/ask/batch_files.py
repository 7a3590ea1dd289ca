"""Send calls as OpenAI Batch files, at half the price, and take in what comes back.

Each file asks for what is still missing: write it, let the server work, take in its output, and repeat.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cod3s.ask.collection import Shown
from cod3s.ask.config import DiversifyConfig
from cod3s.ask.journal import Journal
from cod3s.ask.limits import Meter
from cod3s.ask.quality import Score
from cod3s.ask.replies import read_reply
from cod3s.ask.rows import TableRow
from cod3s.ask.server import CompletionServer, ServerError
from cod3s.ask.session import Exchange, Session
from cod3s.ask.structure import Structure
from cod3s.errors import FileFormatError
from cod3s.io.disk import read_json_lines, write_json_lines

_PREFIX = "cod3s"
_KINDS = ("answers", "preparation", "repair")


@dataclass(frozen=True)
class BatchResult:
    """The outcome of a batch: calls that are new in the journal, and what went wrong in the others."""

    added: int
    known: int
    failures: tuple[str, ...]


async def write_batch(
    path: Path,
    rows: Iterable[TableRow],
    server: CompletionServer,
    journal: Journal,
    config: DiversifyConfig,
    structure: Structure | None = None,
    score: Score | None = None,
    unlike: Sequence[str] = (),
) -> int:
    """Write the calls that the rows still need, as far as one can tell in advance; returns their number."""
    shown = Shown.of(unlike, (), config)
    requests: list[dict[str, Any]] = []
    prompts: set[str] = set()
    for row in rows:
        if row.prompt is None or row.prompt.fingerprint in prompts:
            continue
        prompts.add(row.prompt.fingerprint)
        session = Session(server, row.prompt, config, structure, score, shown)
        await session.replay(journal.exchanges(row.prompt.fingerprint), Meter())
        missing = config.k - session.collection.bins_filled
        calls = session.plan(max(1, -(-missing // server.samples)))
        for number, call in calls:
            kind = _KINDS[1] if call.preparation else _KINDS[2] if call.repair else _KINDS[0]
            requests.append(
                {
                    "custom_id": f"{_PREFIX}-{row.prompt.fingerprint}-{number}-{call.strategy}-{kind}",
                    "method": "POST",
                    "url": f"/v1{server.path}",
                    "body": server.request(call.prompt.to_send(server.chat), **call.settings),
                }
            )
    write_json_lines(path, requests)
    return len(requests)


def read_batch(path: Path, server: CompletionServer, journal: Journal) -> BatchResult:
    """Take the output (or the errors) of a batch into the journal."""
    added = known = 0
    failures: list[str] = []
    for result in read_json_lines(path, _Result.parse, "a line of a batch's output"):
        if result.error:
            failures.append(result.error)
            continue
        try:
            reply = read_reply(server.read(json.dumps(result.body), {"prompt": ""}))
        except ServerError as error:
            failures.append(error.message)
            continue
        if reply.failure:
            failures.append(reply.failure)
            continue
        if journal.has(result.prompt, result.exchange.call):
            known += 1
            continue
        journal.add(result.prompt, replace(result.exchange, reply=reply))
        added += 1
    return BatchResult(added, known, tuple(failures))


@dataclass(frozen=True)
class _Result:
    """A line of a batch's output."""

    prompt: str  # its fingerprint
    exchange: Exchange
    body: Any
    error: str

    @staticmethod
    def parse(line: Any) -> "_Result":
        parts = str(line["custom_id"]).split("-")
        if len(parts) != 5 or parts[0] != _PREFIX or parts[4] not in _KINDS:
            raise FileFormatError(f"{line['custom_id']!r} is not from `cod3s diversify --batch-file`")
        prompt, number, strategy, kind = parts[1:]
        exchange = Exchange(
            int(number), strategy, read_reply(None), preparation=kind == _KINDS[1], repair=kind == _KINDS[2]
        )
        response = line.get("response") or {}
        error = line.get("error")
        message = str(error.get("message", error) if isinstance(error, dict) else error) if error else ""
        if not message and response.get("status_code") != 200:
            message = f"the server answered {response.get('status_code')}: {str(response.get('body'))[:200]}"
        return _Result(prompt, exchange, response.get("body"), message)
