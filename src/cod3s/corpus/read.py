"""Read pairs from Parquet, TSV, CSV, JSON lines or CausalBank's text as Arrow batches.

A file is recognised by its content; only .gz and .zst in its name matter. Every row is either in a batch or
reported with its line, so that no pair is lost silently.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cod3s.corpus.parsers import (
    PAIR_COLUMNS,
    Parser,
    Row,
    causalbank_parser,
    cell_parser,
    csv_cells,
    json_keys,
    json_parser,
    optional_columns,
    tsv_cells,
)
from cod3s.corpus.relations import ORDERS
from cod3s.corpus.sql import BATCH_ROWS
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.binary import refuse_formats
from cod3s.io.lines import Damaged, read_lines
from cod3s.io.locations import Location, locate_input

PAIR_SCHEMA = pa.schema([(name, pa.string()) for name in PAIR_COLUMNS])

Names = Sequence[tuple[str, str]]
"""The names that the first and the second column may have, in order of preference."""

_CAUSALBANK_ORDERS = {"because_mode": "because", "therefore_mode": "so"}


class Reader:
    """Reads a file of pairs and counts its rows; a bad row is an error, or is skipped and counted."""

    def __init__(self, file: Location, names: Names, skip_bad: bool = False) -> None:
        self.file, self.names, self.skip_bad = file, names, skip_bad
        self.read, self.bad = 0, 0
        self.bad_examples: list[str] = []

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All pairs as batches of PAIR_SCHEMA."""
        start = self.file.start()
        is_parquet = start.startswith(b"PAR1")
        if not is_parquet:
            refuse_formats(start, self.file.url)  # a NUL byte makes a bad row, not a bad file
        for batch in self._parquet() if is_parquet else self._text():
            self.read += len(batch)
            yield batch

    def _text(self) -> Iterator[pa.RecordBatch]:
        with self.file.opened() as stream:
            parse: Parser | None = None
            for block in read_lines(stream):
                rows = []
                for number, line in block:
                    if parse is None:
                        parse, is_header = self._recognise(line, number)
                        if is_header:
                            continue
                    row = line if isinstance(line, Damaged) else parse(line)
                    if isinstance(row, Damaged):
                        self._report(f"line {number:,}", row.reason)
                    else:
                        rows.append(row)
                for start in range(0, len(rows), BATCH_ROWS):
                    yield _batch(rows[start : start + BATCH_ROWS])
        if parse is None:
            raise FileFormatError(f"{self.file.url} is empty", hint="leave it out, or create it again")

    def _recognise(self, line: str | Damaged, number: int) -> tuple[Parser, bool]:
        """How the file's lines are read, and whether this first line is a header."""
        if self.file.folder in _CAUSALBANK_ORDERS:
            if ("cause", "effect") not in self.names:
                raise FileFormatError(
                    f"{self.file.url} holds causes and effects, but this relation is about something else"
                )
            return causalbank_parser(_CAUSALBANK_ORDERS[self.file.folder]), False
        if isinstance(line, Damaged):
            raise self._unknown(number, line.reason)
        if line.lstrip().startswith("{"):
            return json_parser(self._choose(json_keys(line), number)), False
        header = _header(tsv_cells(line))
        if len(header) > 1:
            return cell_parser(tsv_cells, header, self._choose(header, number)), True
        header = _header(csv_cells(line))
        if ".csv" in self.file.name or any(set(names) <= set(header) for names in self.names):
            return cell_parser(csv_cells, header, self._choose(header, number)), True
        raise self._unknown(number, f"it reads {line[:60]!r}")

    def _choose(self, header: Sequence[str], number: int) -> tuple[str, str]:
        doubled = sorted({name for name in header if header.count(name) > 1 and name})
        if doubled:
            raise FileFormatError(
                f"{self.file.url}, line {number}: two columns are called {doubled[0]!r}",
                hint="rename or remove one of them",
            )
        for names in self.names:
            if set(names) <= set(header):
                return names
        wanted = " or ".join(f"{first!r} and {second!r}" for first, second in self.names)
        columns = ", ".join(map(repr, header[:8])) or "none"
        raise FileFormatError(
            f"{self.file.url}, line {number}: columns {wanted} are needed, found {columns}",
            hint="the first line of a TSV or CSV file names its columns; each JSONL line has named fields",
        )

    def _unknown(self, number: int, reason: str) -> FileFormatError:
        return FileFormatError(
            f"{self.file.url}, line {number}: not a known format of pairs; {reason}",
            hint="known formats are Parquet, JSONL, TSV and CSV with a header, and CausalBank's two folders",
        )

    def _report(self, where: str, reason: str) -> None:
        if not self.skip_bad:
            raise FileFormatError(
                f"{self.file.url}, {where}: {reason}",
                hint="correct the row, or skip and count such rows with --bad-rows skip",
            )
        self.bad += 1
        if len(self.bad_examples) < 3:
            self.bad_examples.append(f"{self.file.name}, {where}: {reason}")

    def _parquet(self) -> Iterator[pa.RecordBatch]:
        with self.file.system.open_input_file(self.file.path) as file:
            try:
                table = pq.ParquetFile(file)
                names = self._choose(table.schema_arrow.names, 1)
                columns = dict(zip(PAIR_COLUMNS, names, strict=False))
                columns |= optional_columns(names, table.schema_arrow.names)
                first_row = 1
                for batch in table.iter_batches(BATCH_ROWS, columns=[*columns.values()]):
                    yield self._checked(_as_pairs(batch, columns), first_row)
                    first_row += len(batch)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # OSError: a damaged page or footer
                raise FileFormatError(
                    f"{self.file.url} is damaged, or its columns are not text: {error}",
                    hint="write it again; cause, effect, source and target must be strings",
                ) from error

    def _checked(self, pairs: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """The batch without rows that have nulls, NUL characters or an unknown order; each is reported."""
        bad = pc.invert(pc.is_in(pairs["order"], pa.array(ORDERS)))
        for name in PAIR_COLUMNS[:2]:
            column = pairs[name]
            nul = pc.fill_null(pc.match_substring(column, "\0"), False)
            bad = pc.or_(bad, pc.or_(pc.is_null(column), nul))
        for row in pc.indices_nonzero(bad).to_pylist():
            reason = "a side is null or has a NUL character, or the order is neither because nor so"
            self._report(f"row {first_row + row:,}", reason)
        return pairs.filter(pc.invert(bad))


def find_files(paths: Sequence[str]) -> list[Location]:
    """The files at `paths`; a folder stands for all files below it, in order of name."""
    files: list[Location] = []
    for path in paths:
        location = locate_input(path)
        if not location.exists():
            raise Cod3sError(f"no file at {path}", hint="check the spelling; relative paths start at this folder")
        inside = location.files() if location.is_folder() else [location]
        if not inside:
            raise Cod3sError(f"the folder {path} contains no files")
        files += inside
    return files


def _header(cells: Sequence[str]) -> list[str]:
    return [cell.strip().lower() for cell in cells]


def _batch(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], schema=PAIR_SCHEMA)


def _as_pairs(batch: pa.RecordBatch, names: Mapping[str, str]) -> pa.RecordBatch:
    """The batch with the columns of PAIR_SCHEMA, by their `names` in the file; optional cells may be empty."""
    columns = []
    for name in PAIR_COLUMNS:
        if name in names:
            column = pc.cast(batch[names[name]], pa.string())
            column.validate(full=True)  # Parquet does not promise that strings are UTF-8
            columns.append(column if name in PAIR_COLUMNS[:2] else pc.fill_null(column, ""))
        else:
            columns.append(pa.repeat("", len(batch)))
    return pa.RecordBatch.from_arrays(columns, schema=PAIR_SCHEMA)
