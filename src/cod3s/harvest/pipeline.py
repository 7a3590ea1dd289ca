"""Harvest causal pairs from files into a table of pairs, with several processes and constant memory."""

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

from cod3s.errors import Cod3sError, Progress
from cod3s.files.disk import require_other
from cod3s.files.writers import check_output_format, replaced_table
from cod3s.harvest.clauses import Limits
from cod3s.harvest.documents import Errors, Piece, read_pieces
from cod3s.harvest.extract import CausalPair, Findings, find_pairs

COLUMNS = ("cause", "effect", "pattern", "order", "corpus")
"""`corpus` is the name of the file that a pair comes from, as `prepare` reads it and `train --corpora` uses it."""

OVER_LIMIT = "over the limit"


@dataclass
class Summary:
    """What was read, kept and dropped: `matched` cues are all `kept` plus all `dropped`."""

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
        """The summary as a JSON object, the largest counts first."""
        counts = {"kept": dict(self.kept.most_common()), "dropped": dict(self.dropped.most_common())}
        return {**asdict(self), "pairs": self.pairs, **counts}


@dataclass(frozen=True)
class _Harvested:
    """The results of a worker for a piece of text."""

    corpus: str
    bytes: int
    findings: Findings


Harvester = Callable[[Piece], _Harvested]


def harvest(
    paths: Iterable[Path],
    output: Path,
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    workers: int = 1,
    limit: int | None = None,
    column: str = "text",
    errors: Errors = "strict",
    progress: Progress = lambda _bytes: None,
) -> Summary:
    """Write the causal pairs of all `paths`, in their order, to `output`: .parquet, .tsv, .csv or .jsonl.

    `column` is the column or field with the text, in files that are tables. Nothing is written unless every file
    could be read, and the output is the same for any number of workers. `progress` is called with bytes of text.
    A script that asks for several workers needs the usual `if __name__ == "__main__"`.
    """
    inputs = list(paths)
    _check_paths(inputs, output)
    summary = Summary(files=len(inputs))
    pieces = (piece for path in inputs for piece in _pieces_of(path, summary, column, errors))
    work = partial(_harvest_piece, limits=limits)
    # The workers come first: they start while this process is still importing pyarrow.
    with _in_order(work, pieces, workers) as results, replaced_table(output, COLUMNS) as write:
        for result in results:
            pairs = result.findings.pairs
            kept = pairs if limit is None else pairs[: limit - summary.pairs]
            write([(pair.cause, pair.effect, pair.pattern, pair.order, result.corpus) for pair in kept])
            _count(summary, result, kept)
            progress(result.bytes)
            if summary.pairs == limit:
                break
        if len(summary.empty) == len(inputs):
            raise Cod3sError(f"no text in {', '.join(summary.empty)}", hint="give a file with sentences in it")
    return summary


def _check_paths(paths: list[Path], output: Path) -> None:
    """Fail early on mistakes that can be seen before anything is read."""
    if output.is_dir():
        raise Cod3sError(f"{output} is a folder, but a file is needed", hint=f"-o {output / 'pairs.parquet'}")
    check_output_format(output)
    require_other(output, paths)


def _pieces_of(path: Path, summary: Summary, column: str, errors: Errors) -> Iterator[Piece]:
    has_text = False
    for piece in read_pieces(path, column=column, errors=errors):
        has_text = has_text or not piece.text.isspace()
        yield piece
    if not has_text:
        summary.empty.append(str(path))


def _harvest_piece(piece: Piece, limits: Limits) -> _Harvested:
    size = len(piece.text.encode("utf-8", "replace"))
    return _Harvested(piece.corpus, size, find_pairs(piece.text, limits))


def _count(summary: Summary, result: _Harvested, kept: list[CausalPair]) -> None:
    summary.bytes += result.bytes
    summary.sentences += result.findings.sentences
    summary.matched += result.findings.matched
    summary.kept.update(pair.pattern for pair in kept)
    summary.dropped.update(result.findings.refused)
    if over := len(result.findings.pairs) - len(kept):
        summary.dropped[OVER_LIMIT] += over


@contextmanager
def _in_order(function: Harvester, pieces: Iterable[Piece], workers: int) -> Iterator[Iterator[_Harvested]]:
    """The results of `function` for all `pieces` in order, from `workers` processes (1: from this process)."""
    if workers == 1:
        yield map(function, pieces)
        return
    # Fresh interpreters: a fork would break the threads of pyarrow and of the progress bar.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_prepare_worker)
    try:
        rest = iter(pieces)
        # The number of pieces in progress is bounded, and so is the text in memory.
        in_progress = deque(pool.submit(function, piece) for piece in islice(rest, workers * 3))
        yield _from_pool(pool, function, in_progress, rest)
    except BrokenProcessPool as error:
        raise Cod3sError(
            "a worker process was killed", hint="memory may have run out: try fewer --workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _from_pool(
    pool: ProcessPoolExecutor, function: Harvester, in_progress: deque[Future[_Harvested]], rest: Iterator[Piece]
) -> Iterator[_Harvested]:
    while in_progress:
        yield in_progress.popleft().result()
        in_progress.extend(pool.submit(function, piece) for piece in islice(rest, 1))


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent process, and exit if the parent is killed."""
    gc.disable()  # a worker creates no reference cycles, and searching for them takes 5% of its time
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        _exit(1)
