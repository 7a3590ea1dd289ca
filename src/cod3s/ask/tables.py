"""Diversify a table of prompts: rows side by side, under common limits, continued after any interruption."""

import asyncio
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from cod3s.ask.collection import Shown
from cod3s.ask.config import DEFAULT, DiversifyConfig
from cod3s.ask.diversified import Diversified
from cod3s.ask.journal import REPORT, Journal, open_journal
from cod3s.ask.limits import Meter, cost_of
from cod3s.ask.quality import Score, name_of
from cod3s.ask.replies import Tokens
from cod3s.ask.report import Report, sum_up
from cod3s.ask.rows import TableRow, read_rows
from cod3s.ask.running import run
from cod3s.ask.server import estimate_tokens
from cod3s.ask.session import diversify_async
from cod3s.ask.structure import read_structure
from cod3s.encode import load_encoder
from cod3s.errors import Cod3sError, MissingExtraError, Progress
from cod3s.io.checked_records import parse_record
from cod3s.io.disk import write_json, write_json_lines

_FAILING_ROWS = 10  # in a row: then the server is gone, and the rest of the table need not find out


@dataclass(frozen=True)
class RowAnswers:
    """A row with its answers, or why it has none."""

    row: int
    id: Any
    result: Diversified | None
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """A line of answers."""
        content = {} if self.result is None else self.result.to_dict()
        return {"id": self.id, "row": self.row, **content, "error": self.error or None}


@dataclass(frozen=True)
class ManyDiversified:
    """The answers to all rows, in order (empty if they were written to a folder), and the report about them.

    `stopped` says why rows were left out: a limit of the run, or a server that is gone; empty if none were.
    """

    rows: tuple[RowAnswers, ...]
    report: Report
    calls: int  # of this run
    stopped: str = ""


@dataclass(frozen=True)
class Estimate:
    """The cost of a run in advance: with the fewest calls that can bring k answers, and with the whole budget."""

    rows: int
    bad_rows: int
    calls: tuple[int, int]
    tokens: tuple[Tokens, Tokens]
    cost: tuple[float, float] | None


def diversify_many(
    generate: Callable[..., Any],
    rows: Iterable[Any],
    k: int | None = None,
    *,
    output: Path | str | None = None,
    template: str = "",
    system: str = "",
    id_field: str = "id",
    config: DiversifyConfig = DEFAULT,
    score: Score | None = None,
    schema: Any = None,
    unlike: Sequence[str] = (),
    like: Sequence[str] = (),
    progress: Progress = lambda _rows: None,
    **options: Any,
) -> ManyDiversified:
    """`diversify` for many rows: texts, messages, or records with a column `prompt` or `messages`.

    `template` makes prompts of columns: "A review of {product}". With an `output` folder, answers are written to
    `part-00000.jsonl`, …; a later call with the same folder continues, asks nothing twice, and chooses again from
    all answers that the folder has if k, the threshold or another option has changed.
    """
    work = diversify_many_async(
        generate,
        rows,
        k,
        output=output,
        template=template,
        system=system,
        id_field=id_field,
        config=config,
        score=score,
        schema=schema,
        unlike=unlike,
        like=like,
        progress=progress,
        **options,
    )
    return run(work, generate, getattr(score, "server", None))


async def diversify_many_async(
    generate: Callable[..., Any],
    rows: Iterable[Any],
    k: int | None = None,
    *,
    output: Path | str | None = None,
    template: str = "",
    system: str = "",
    id_field: str = "id",
    config: DiversifyConfig = DEFAULT,
    score: Score | None = None,
    schema: Any = None,
    unlike: Sequence[str] = (),
    like: Sequence[str] = (),
    progress: Progress = lambda _rows: None,
    **options: Any,
) -> ManyDiversified:
    """`diversify_many` for asynchronous programs."""
    config = config.with_values(k, **options)
    encoder = load_encoder(config.encoder) if isinstance(config.encoder, str) else config.encoder
    config = replace(config, encoder=encoder)  # opened once, not per row
    shown = Shown.of(unlike, like, config)
    structure = read_structure(schema, config.compare)
    folder = None if output is None else Path(output)

    async def answer(row: TableRow, journal: Journal, meter: Meter) -> Diversified:
        assert row.prompt is not None
        fingerprint = row.prompt.fingerprint
        return await diversify_async(
            generate,
            row.prompt,
            config=config,
            score=score,
            schema=schema,
            shown=shown,
            meter=meter,
            earlier=journal.exchanges(fingerprint),
            record=lambda exchange: journal.add(fingerprint, exchange),
        )

    settings = {
        **asdict(replace(config, rows_at_once=1, concurrency=1, rate=None, encoder="")),
        "encoder": encoder.id,
        "score": "" if score is None else name_of(score),
        "unlike": list(unlike),
        "like": list(like),
    }
    job = describe_job(generate, structure.schema if structure else None, config)
    with open_journal(folder, job) as journal:
        table = _TableRun(journal, config, settings, answer, progress)
        return await table.run(read_rows(rows, template=template, system=system, id_field=id_field))


def describe_job(generate: Any, schema: Any, config: DiversifyConfig) -> dict[str, Any]:
    """The facts that must stay the same in a folder of answers."""
    name = getattr(generate, "model", None)
    if not isinstance(name, str):
        name = f"{type(generate).__module__}:{getattr(generate, '__qualname__', type(generate).__qualname__)}"
    return {"model": name, "schema": schema, "part_size": config.part_size}


def estimate(rows: Iterable[TableRow], config: DiversifyConfig, samples: int, max_tokens: int) -> Estimate:
    """The cost of asking about these rows."""
    count = bad = tokens = 0
    for row in rows:
        count += 1
        if row.prompt is None:
            bad += 1
        else:
            tokens += estimate_tokens(list(row.prompt.messages))
    with_prompt = max(count - bad, 1)

    def costs(calls_per_row: int) -> tuple[int, Tokens]:
        calls = min(calls_per_row * (count - bad), config.total_calls or sys.maxsize)
        return calls, Tokens(calls * tokens // with_prompt, calls * samples * max_tokens, estimated=True)

    low, high = costs(min(-(-config.k // samples), config.budget)), costs(config.budget)
    cost = None
    if (prices := config.prices) is not None:
        cost = (cost_of(low[1], prices), cost_of(high[1], prices))
    return Estimate(count, bad, (low[0], high[0]), (low[1], high[1]), cost)


@dataclass
class _Part:
    """Rows whose answers are written together."""

    number: int
    rows: list[TableRow]
    stamp: str
    answers: dict[int, RowAnswers] = field(default_factory=dict)

    @property
    def report(self) -> Report:
        return sum_up(
            Report.of(answers.result)
            if answers.result is not None
            else Report(rows=1, failed=1, problems={answers.error: 1})
            for answers in self.answers.values()
        )


class _TableRun:
    """Answers rows side by side, and writes a part when all its rows are done."""

    def __init__(
        self,
        journal: Journal,
        config: DiversifyConfig,
        settings: dict[str, Any],
        answer: Callable[[TableRow, Journal, Meter], Any],
        progress: Progress,
    ) -> None:
        self._journal, self._config, self._settings = journal, config, settings
        self._answer, self._progress = answer, progress
        self._meter = Meter(config)
        # Rows with the same prompt take turns: the later ones find its answers in the journal.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._failing = 0
        self._stopped = ""
        self._open: dict[int, _Part] = {}
        self._reports: list[Report] = []
        self._rows: list[RowAnswers] = []
        self._seen: set[int] = set()

    async def run(self, rows: Iterable[TableRow]) -> ManyDiversified:
        pending: set[asyncio.Task[None]] = set()
        try:
            for part, row in self._waiting(rows):
                while len(pending) >= self._config.rows_at_once:
                    pending = await _wait_for_any(pending)
                if self._stopped:
                    break
                pending.add(asyncio.create_task(self._answer_row(part, row)))
            while pending:
                pending = await _wait_for_any(pending)
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
            for part in [*self._open.values()]:  # what there is of parts that were cut short
                self._close(part)
        report = sum_up(self._reports)
        if self._journal.folder is not None:
            self._finish_folder(self._journal.folder, report)
        self._rows.sort(key=lambda answers: answers.row)
        return ManyDiversified(tuple(self._rows), report, self._meter.calls, self._stopped)

    def _waiting(self, rows: Iterable[TableRow]) -> Iterator[tuple[_Part, TableRow]]:
        """The rows of all parts that are not complete."""
        for part in self._parts(rows):
            self._seen.add(part.number)
            if not self._is_complete(part):
                self._open[part.number] = part
                yield from ((part, row) for row in part.rows)

    def _finish_folder(self, folder: Path, report: Report) -> None:
        """Write the report, and remove parts of rows that left the table."""
        if not self._stopped:
            names = {_part_name(number) for number in self._seen}
            for file in folder.glob("part-*.jsonl"):
                if file.name not in names:
                    file.unlink()
        cost = cost_of(report.tokens, self._config.prices) if self._config.prices else None
        write_json(folder / REPORT, {**asdict(report), "cost": cost, "cut_short": self._stopped})

    def _parts(self, rows: Iterable[TableRow]) -> Iterator[_Part]:
        for number, group in groupby(rows, lambda row: row.number // self._config.part_size):
            members = list(group)
            content = [
                self._settings,
                [[row.id, row.prompt.fingerprint if row.prompt else row.problem] for row in members],
            ]
            text = json.dumps(content, sort_keys=True, default=str)
            yield _Part(number, members, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())

    def _is_complete(self, part: _Part) -> bool:
        """Whether an earlier run has written this part, with the same rows and settings and without failures."""
        file = self._file(part)
        stamp, summary = self._journal.part(part.number)
        if file is None or stamp != part.stamp or not file.is_file():
            return False
        self._reports.append(parse_record(Report, summary))
        self._progress(len(part.rows))
        return True

    async def _answer_row(self, part: _Part, row: TableRow) -> None:
        result, error = None, row.problem
        if row.prompt is not None:
            turn = self._turns.setdefault(row.prompt.fingerprint, asyncio.Lock())
            async with turn:
                try:
                    result = await self._answer(row, self._journal, self._meter)
                except MissingExtraError:
                    raise
                except Cod3sError as problem:
                    error = problem.message
            self._note_failures(result)
        if self._meter.is_used_up and (result is None or result.stopped == "limit"):
            self._stopped = self._stopped or "a limit of the run was reached"
            if result is None:
                return
        part.answers[row.number] = RowAnswers(row.number, row.id, result, error)
        self._progress(1)
        if len(part.answers) == len(part.rows):
            self._close(part)

    def _note_failures(self, result: Diversified | None) -> None:
        """Stop the run if nothing but failures comes, as when a server has died."""
        self._failing = 0 if result is not None else self._failing + 1
        if self._failing >= _FAILING_ROWS:
            self._stopped = self._stopped or f"the last {_FAILING_ROWS} rows failed"

    def _close(self, part: _Part) -> None:
        """Write a part; it counts as complete if no row is missing or failed."""
        del self._open[part.number]
        answers = [part.answers[number] for number in sorted(part.answers)]
        report = part.report
        self._reports.append(report)
        file = self._file(part)
        if file is None:
            self._rows += answers
            return
        if answers:
            write_json_lines(file, (each.to_dict() for each in answers))
        if len(answers) == len(part.rows) and not report.failed and "limit" not in report.stopped:
            self._journal.set_part(part.number, part.stamp, asdict(report))

    def _file(self, part: _Part) -> Path | None:
        folder = self._journal.folder
        return None if folder is None else folder / _part_name(part.number)


def _part_name(number: int) -> str:
    return f"part-{number:05d}.jsonl"


async def _wait_for_any(tasks: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """The tasks that are left when some are done; an error of a task ends the run."""
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return pending
