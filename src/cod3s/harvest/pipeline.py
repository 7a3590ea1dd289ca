"""Harvest causal pairs from files into one Parquet file, on several processes, in flat memory.

Paths in; a Parquet file and a summary whose counts add up out. The output is the same for any number of workers.
"""

import gc
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from multiprocessing import get_context, parent_process
from os import _exit
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError, Progress, require
from cod3s.files.disk import replaced_file, require_other
from cod3s.harvest.clauses import Limits
from cod3s.harvest.documents import Errors, Piece, read_pieces
from cod3s.harvest.extract import CausalPair, find_pairs

COLUMNS = ("cause", "effect", "pattern", "order", "source")
OVER_LIMIT = "over the limit"
_ROWS_A_GROUP = 1 << 16


@dataclass
class Summary:
    """What was read and what became of it: `matched` cues = all `kept` + all `dropped`."""

    files: int = 0
    bytes: int = 0
    sentences: int = 0
    matched: int = 0
    kept: Counter[str] = field(default_factory=Counter)  # by pattern
    dropped: Counter[str] = field(default_factory=Counter)  # by reason
    empty: list[str] = field(default_factory=list)  # files without text

    @property
    def pairs(self) -> int:
        """How many pairs were written."""
        return self.kept.total()

    def as_record(self) -> dict[str, Any]:
        """The summary as one JSON object, the largest counts first."""
        counts = {"kept": dict(self.kept.most_common()), "dropped": dict(self.dropped.most_common())}
        return {**asdict(self), "pairs": self.pairs, **counts}


@dataclass(frozen=True)
class _Harvested:
    """What one piece gave, as it travels back from a worker."""

    source: str
    bytes: int
    sentences: int
    pairs: list[CausalPair]
    refused: Counter[str]


Harvester = Callable[[Piece], _Harvested]
Row = tuple[str, ...]  # the values of COLUMNS


def harvest(
    paths: Iterable[Path],
    output: Path,
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    workers: int = 1,
    limit: int | None = None,
    text_field: str = "text",
    errors: Errors = "strict",
    progress: Progress = lambda _bytes: None,
) -> Summary:
    """Write the causal pairs of all `paths`, in their order, to the Parquet file `output`.

    Nothing is written unless every file could be read. `progress` is told of bytes of text. More than one worker
    means processes: a script that asks for them needs the usual `if __name__ == "__main__"`.
    """
    chosen = list(paths)
    _check_places(chosen, output)
    summary = Summary(files=len(chosen))
    pieces = (piece for path in chosen for piece in _pieces_of(path, summary, text_field, errors))
    work = partial(_harvest_piece, limits=limits)
    # The workers come first: they start while this process is still importing pyarrow.
    with (
        _in_order(work, pieces, workers) as results,
        replaced_file(output) as unfinished,
        _writer(unfinished) as write,
    ):
        for result in results:
            kept = result.pairs if limit is None else result.pairs[: limit - summary.pairs]
            write([_row(pair, result.source) for pair in kept])
            _count(summary, result, kept)
            progress(result.bytes)
            if summary.pairs == limit:
                break
        if len(summary.empty) == len(chosen):
            raise Cod3sError(f"no text in {', '.join(summary.empty)}", hint="give a file with sentences in it")
    return summary


def _check_places(paths: list[Path], output: Path) -> None:
    """Find the mistakes that need no reading before any work is done."""
    if output.is_dir():
        raise Cod3sError(
            f"{output} is a folder, a file to write was needed", hint=f"-o {output / 'pairs.parquet'}"
        )
    require_other(output, paths)


def _pieces_of(path: Path, summary: Summary, text_field: str, errors: Errors) -> Iterator[Piece]:
    has_text = False
    for piece in read_pieces(path, text_field=text_field, errors=errors):
        has_text = has_text or not piece.text.isspace()
        yield piece
    if not has_text:
        summary.empty.append(str(path))


def _harvest_piece(piece: Piece, limits: Limits) -> _Harvested:
    findings = find_pairs(piece.text, limits)
    size = len(piece.text.encode("utf-8", "replace"))
    return _Harvested(piece.source, size, findings.sentences, findings.pairs, findings.refused)


def _row(pair: CausalPair, source: str) -> Row:
    return pair.cause, pair.effect, pair.pattern, pair.order, source


def _count(summary: Summary, result: _Harvested, kept: list[CausalPair]) -> None:
    summary.bytes += result.bytes
    summary.sentences += result.sentences
    summary.matched += len(result.pairs) + result.refused.total()
    summary.kept.update(pair.pattern for pair in kept)
    summary.dropped.update(result.refused)
    if len(kept) < len(result.pairs):
        summary.dropped[OVER_LIMIT] += len(result.pairs) - len(kept)


@contextmanager
def _writer(path: Path) -> Iterator[Callable[[list[Row]], None]]:
    """A function that takes rows; they reach the Parquet file in groups, so that few are held in memory."""
    arrow, parquet = require("pyarrow", "corpus"), require("pyarrow.parquet", "corpus")
    schema = arrow.schema([(name, arrow.string()) for name in COLUMNS])
    held: list[Row] = []

    def write(rows: list[Row], least: int = _ROWS_A_GROUP) -> None:
        held.extend(rows)
        if len(held) >= least:
            file.write_table(arrow.table([list(column) for column in zip(*held, strict=True)], schema=schema))
            held.clear()

    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        yield write
        write([], least=1)


@contextmanager
def _in_order(function: Harvester, pieces: Iterable[Piece], workers: int) -> Iterator[Iterator[_Harvested]]:
    """The results of `function` over `pieces` in their order, from `workers` processes (1: from this one)."""
    if workers == 1:
        yield map(function, pieces)
        return
    # A fresh interpreter each: a fork would copy the threads of pyarrow and of the progress bar half-alive.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_prepare_worker)
    try:
        rest = iter(pieces)
        # So many pieces are under way and no more: this bounds the text in memory, however long the files.
        under_way = deque(pool.submit(function, piece) for piece in islice(rest, workers * 3))
        yield _from_pool(pool, function, under_way, rest)
    except BrokenProcessPool as error:
        raise Cod3sError(
            "a worker process was stopped from outside", hint="was the memory full? try fewer --workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _from_pool(
    pool: ProcessPoolExecutor, function: Harvester, under_way: deque[Future[_Harvested]], rest: Iterator[Piece]
) -> Iterator[_Harvested]:
    while under_way:
        yield under_way.popleft().result()
        under_way.extend(pool.submit(function, piece) for piece in islice(rest, 1))


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent was killed: nobody else would end this process."""
    gc.disable()  # a worker makes no cycles; searching for them costs 5 % of its time
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        _exit(1)
