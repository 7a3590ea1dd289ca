"""Reads pairs from files. CausalBank's text, TSV, JSONL or Parquet in, Arrow batches out, a block at a time.

A file is recognised by what it holds, not by its name; only .gz and .zst count. Every row is either in a
batch or reported with its line, so that no pair is lost silently.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cod3s.corpus.database import BATCH_ROWS
from cod3s.corpus.parsers import (
    PAIR_COLUMNS,
    Parser,
    Row,
    causalbank_parser,
    extra_columns,
    json_keys,
    json_parser,
    tsv_parser,
)
from cod3s.corpus.relations import ORDERS
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.files.lines import Damaged, read_lines
from cod3s.files.locations import Place, place

PAIR_SCHEMA = pa.schema([(name, pa.string()) for name in PAIR_COLUMNS])

Names = Sequence[tuple[str, str]]
"""The names that the first and the second column may have, in order of preference."""

_CAUSALBANK_ORDERS = {"because_mode": "because", "therefore_mode": "so"}


@dataclass
class Tally:
    """What became of the rows of one file; rows in = rows read + bad rows."""

    read: int = 0
    bad: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Reader:
    """One file of pairs, how it is laid out, and whether a bad row stops the reading or is skipped."""

    place: Place
    names: Names
    skip_bad: bool = False

    def batches(self, tally: Tally) -> Iterator[pa.RecordBatch]:
        """All pairs as batches of PAIR_SCHEMA; `tally` counts what was read and what was skipped."""
        batches = self._parquet(tally) if _is_parquet(self.place) else self._text(tally)
        for batch in batches:
            tally.read += len(batch)
            yield batch

    def _text(self, tally: Tally) -> Iterator[pa.RecordBatch]:
        with self.place.opened() as stream:
            parse: Parser | None = None
            for block in read_lines(stream):
                rows = []
                for number, line in enumerate(block.lines, block.first):
                    if line == "":
                        continue
                    if parse is None:
                        parse, is_header = self._recognise(line, number)
                        if is_header:
                            continue
                    row = line if isinstance(line, Damaged) else parse(line)
                    if isinstance(row, Damaged):
                        self._report(f"line {number:,}", row.reason, tally)
                    else:
                        rows.append(row)
                yield from _batches(rows)
        if parse is None:
            raise FileFormatError(f"{self.place.url} is empty", hint="leave it out, or make it again")

    def _recognise(self, line: str | Damaged, number: int) -> tuple[Parser, bool]:
        """How the file's lines are read, and whether this first line is a header."""
        if self.place.folder in _CAUSALBANK_ORDERS:
            if ("cause", "effect") not in self.names:
                raise FileFormatError(
                    f"{self.place.url} holds causes and effects, which this relation is not about"
                )
            return causalbank_parser(_CAUSALBANK_ORDERS[self.place.folder]), False
        if isinstance(line, Damaged):
            raise self._unknown(number, line.reason)
        if line.lstrip().startswith("{"):
            return json_parser(self._choose(json_keys(line), number)), False
        header = [name.strip().lower() for name in line.split("\t")]
        if len(header) < 2:
            raise self._unknown(number, f"it reads {line[:60]!r}")
        return tsv_parser(header, self._choose(header, number)), True

    def _choose(self, header: Sequence[str], number: int) -> tuple[str, str]:
        doubled = sorted({name for name in header if header.count(name) > 1 and name})
        if doubled:
            raise FileFormatError(
                f"{self.place.url}, line {number}: the column {doubled[0]!r} stands there twice",
                hint="rename or remove one of them",
            )
        for names in self.names:
            if set(names) <= set(header):
                return names
        wanted = " or ".join(f"{first!r} and {second!r}" for first, second in self.names)
        found = ", ".join(map(repr, header[:8])) or "none"
        raise FileFormatError(
            f"{self.place.url}, line {number}: columns {wanted} are needed, found {found}",
            hint="the first line of a TSV file names its columns; every line of a JSONL file names its own",
        )

    def _unknown(self, number: int, found: str) -> FileFormatError:
        return FileFormatError(
            f"{self.place.url}, line {number}: not a known format of pairs; {found}",
            hint="known are Parquet, JSONL, TSV with a header, and CausalBank's because_mode/ and therefore_mode/",
        )

    def _report(self, where: str, reason: str, tally: Tally) -> None:
        if not self.skip_bad:
            raise FileFormatError(
                f"{self.place.url}, {where}: {reason}",
                hint="mend the row, or count and skip such rows with --bad-rows skip",
            )
        tally.bad += 1
        if len(tally.examples) < 3:
            tally.examples.append(f"{self.place.name}, {where}: {reason}")

    def _parquet(self, tally: Tally) -> Iterator[pa.RecordBatch]:
        with self.place.system.open_input_file(self.place.path) as file:
            try:
                table = pq.ParquetFile(file)
                names = self._choose(table.schema_arrow.names, 1)
                wanted = [*names, *extra_columns(names, table.schema_arrow.names)]
                first_row = 1
                for batch in table.iter_batches(BATCH_ROWS, columns=wanted):
                    yield self._checked(_as_pairs(batch, names), first_row, tally)
                    first_row += len(batch)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
                raise FileFormatError(
                    f"{self.place.url} is damaged, or its columns are not text: {error}",
                    hint="write it again; cause, effect, source and target must be strings",
                ) from error

    def _checked(self, pairs: pa.RecordBatch, first_row: int, tally: Tally) -> pa.RecordBatch:
        """The batch without rows that hold nulls, NUL characters or an unknown order; each is reported."""
        bad = pc.invert(pc.is_in(pairs["order"], pa.array(ORDERS)))
        for name in PAIR_COLUMNS[:2]:
            column = pairs[name]
            nul = pc.fill_null(pc.match_substring(column, "\0"), False)
            bad = pc.or_(bad, pc.or_(pc.is_null(column), nul))
        for row in pc.indices_nonzero(bad).to_pylist():
            reason = "a side is null or holds a NUL character, or the order is neither because nor so"
            self._report(f"row {first_row + row:,}", reason, tally)
        return pairs.filter(pc.invert(bad))


def find_files(paths: Sequence[str]) -> list[Place]:
    """The files at `paths`; a folder stands for all files below it, in order of name."""
    found: list[Place] = []
    for path in paths:
        here = place(path)
        if not here.exists():
            raise Cod3sError(f"no file at {path}", hint="check the spelling; relative paths start at this folder")
        inside = here.files() if here.is_folder() else [here]
        if not inside:
            raise Cod3sError(f"the folder {path} holds no files")
        found += inside
    return found


def _is_parquet(file: Place) -> bool:
    with file.opened() as stream:
        return stream.read(4) == b"PAR1"


def _batches(rows: list[Row]) -> Iterator[pa.RecordBatch]:
    source = iter(rows)
    while chunk := list(islice(source, BATCH_ROWS)):
        yield pa.RecordBatch.from_arrays(
            [pa.array(column) for column in zip(*chunk, strict=True)], schema=PAIR_SCHEMA
        )


def _as_pairs(batch: pa.RecordBatch, names: tuple[str, str]) -> pa.RecordBatch:
    """The batch with the columns of PAIR_SCHEMA; what is missing or null in an optional one is empty."""
    columns = []
    for source, name in zip((*names, *PAIR_COLUMNS[2:]), PAIR_COLUMNS, strict=True):
        if source in batch.schema.names:
            column = pc.cast(batch[source], pa.string())
            column.validate(full=True)  # Parquet does not promise that strings are UTF-8
            columns.append(column if name in PAIR_COLUMNS[:2] else pc.fill_null(column, ""))
        else:
            columns.append(pa.repeat("", len(batch)))
    return pa.RecordBatch.from_arrays(columns, schema=PAIR_SCHEMA)
