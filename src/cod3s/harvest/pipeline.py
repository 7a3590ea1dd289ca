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
from cod3s.harvest.clauses import Limits
from cod3s.harvest.documents import Errors, Piece, read_pieces
from cod3s.harvest.extract import CausalPair, Findings, find_pairs
from cod3s.io.disk import require_other
from cod3s.io.tables import check_output_format, replaced_table

COLUMNS = ("cause", "effect", "pattern", "order", "corpus")
"""`corpus` is the name of the file that a pair comes from, as `prepare` reads it and `train --corpora` uses it."""

OVER_LIMIT = "over the limit"


@dataclass
class Summary:
    """The counts of text and cues: `matched` cues are all `kept` plus all `dropped`."""

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
    find = partial(find_pairs, limits=limits)
    # The workers come first: they start while this process is still importing pyarrow.
    with _in_order(find, pieces, workers) as results, replaced_table(output, COLUMNS) as write:
        for piece, findings in results:
            kept = findings.pairs if limit is None else findings.pairs[: limit - summary.pairs]
            write([(pair.cause, pair.effect, pair.pattern, pair.order, piece.corpus) for pair in kept])
            _count(summary, findings, kept)
            size = len(piece.text.encode(errors="replace"))
            summary.bytes += size
            progress(size)
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


def _count(summary: Summary, findings: Findings, kept: list[CausalPair]) -> None:
    summary.sentences += findings.sentences
    summary.matched += findings.matched
    summary.kept.update(pair.pattern for pair in kept)
    summary.dropped.update(findings.refused)
    if over := len(findings.pairs) - len(kept):
        summary.dropped[OVER_LIMIT] += over


@contextmanager
def _in_order(
    find: Callable[[str], Findings], pieces: Iterator[Piece], workers: int
) -> Iterator[Iterator[tuple[Piece, Findings]]]:
    """The pieces in order with what `find` finds in them, in `workers` processes (1: in this process)."""
    if workers == 1:
        yield ((piece, find(piece.text)) for piece in pieces)
        return
    in_progress: deque[tuple[Piece, Future[Findings]]] = deque()

    def start(number: int) -> None:
        in_progress.extend((piece, pool.submit(find, piece.text)) for piece in islice(pieces, number))

    def results() -> Iterator[tuple[Piece, Findings]]:
        while in_progress:
            piece, findings = in_progress.popleft()
            yield piece, findings.result()
            start(1)

    # Fresh interpreters: a fork would break the threads of pyarrow and of the progress bar.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_prepare_worker)
    try:
        start(workers * 3)  # a bounded number, so that the text in memory is bounded, too
        yield results()
    except BrokenProcessPool as error:
        raise Cod3sError(
            "a worker process was killed", hint="memory may have run out: try fewer --workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


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
