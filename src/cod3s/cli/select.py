"""`cod3s select`: keep k candidates that mean different things, or drop near duplicates, as a filter for pipes."""

import csv
import io
import json as json_library
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import cod3s
from cod3s.cli.output import print_json, progress, say
from cod3s.cli.parameters import BundleOption, EncoderOption, JsonOption, Options, takes_options
from cod3s.errors import FileFormatError, Progress, UsageError, require
from cod3s.io.disk import replaced_file, require_other, write_json_lines
from cod3s.selection.config import SelectConfig

if TYPE_CHECKING:
    from cod3s.selection import Leak, Selection
    from cod3s.selection.candidates import Scores, Source
    from cod3s.selection.groups import Candidates

Duplicates = dict[int, list[tuple[int, float | None]]]
"""The duplicates of each kept candidate: positions and cosines, if these are known."""

ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column", "--text-field", help="The column or field with the text; by default, `text`; repeatable."
    ),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(help="Keep all but near duplicates: rows with this cosine to a kept one, such as 0.9; no -k."),
]
ScorerOption = Annotated[
    Literal["critic"] | None, typer.Option(help="Score by plausibility with a bundle's critic, not by a field.")
]
UnlikeOption = Annotated[Path | None, typer.Option(help="A file of texts shown before, to keep away from.")]
LikeOption = Annotated[Path | None, typer.Option(help="A file of texts to keep near.")]
AgainstOption = Annotated[
    Path | None, typer.Option(help="--threshold: also leave out what is in this file, such as the test data.")
]
DuplicatesOption = Annotated[
    Path | None,
    typer.Option(help="Write what was left out, of which row it is a duplicate, and the cosine (JSONL)."),
]
ShowOption = Annotated[
    bool, typer.Option("--show-duplicates", help="Also print the duplicates of each selected candidate.")
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the chosen rows here; Parquet stays Parquet.")
]


@takes_options(SelectConfig)
def select(
    file: Annotated[
        Path, typer.Argument(help="Candidates: .jsonl, .csv, .tsv, .parquet or lines, or - for stdin.")
    ],
    options: Options,
    threshold: ThresholdOption = None,
    by: Annotated[str | None, typer.Option(help="Column to group by: -k per group.")] = None,
    column: ColumnsOption = None,
    score_field: Annotated[str | None, typer.Option(help="Field that holds a number; higher is better.")] = None,
    score_with: ScorerOption = None,
    source_field: Annotated[str, typer.Option(help="critic: field with the source of each candidate.")] = "source",
    relation: Annotated[str, typer.Option(help="critic: effect or cause.")] = "effect",
    bundle: BundleOption = None,
    format: Annotated[
        str | None, typer.Option(help="jsonl, csv, tsv, parquet or lines, if the name does not say.")
    ] = None,
    unlike: UnlikeOption = None,
    like: LikeOption = None,
    against: AgainstOption = None,
    duplicates: DuplicatesOption = None,
    show_duplicates: ShowOption = False,
    output: OutputOption = None,
    encoder: EncoderOption = "static",
    json: JsonOption = False,
) -> None:
    """Keep k candidates that mean different things, or with --threshold drop near duplicates: whole records.

    Records come out as they came in, with their line ends; the rows of a Parquet file are printed as JSON. Without
    --score-field, the order of the file is the ranking. --json prints a selection per group instead.
    """
    from cod3s.selection.candidates import check_scores, open_source
    from cod3s.selection.groups import read_candidates

    _check_together(threshold, options, by, unlike, like, against, score_with, score_field)
    config = SelectConfig(**options).resolve()
    for path in (output, duplicates):
        if path is not None:
            require_other(path, [path for path in (file, unlike, like, against) if path is not None])
    candidates = read_candidates(file, kind=format, columns=column or (), score_field=score_field, by=by)
    scores = candidates.scores
    if score_with:
        scores = _critic_scores(candidates, bundle, relation, source_field)
    numbers = check_scores(scores, len(candidates.texts))
    source = open_source(candidates.texts, cod3s.load_encoder(encoder), None, config.bits, config.seed)
    with progress("candidates", len(candidates.texts)) as advance:
        if threshold is not None:
            result = _drop(source, numbers, threshold, against, config.seed, advance)
        else:
            result = _choose(source, numbers, config, candidates.values, unlike, like, advance)
    if json:
        for value, selection in result.selections():
            _print_selection(candidates, selection, by, value, show_duplicates)
    if not json or output is not None:
        _write(output, candidates, result, show_duplicates)
    if duplicates is not None:
        write_json_lines(duplicates, _left_out(candidates, result))
    if not json:
        for remark in result.remarks:
            say(remark)


@dataclass(frozen=True)
class _Result:
    """The positions to print, in their order, what each stands for, and the records for --json."""

    kept: list[int]
    duplicates: Duplicates
    remarks: tuple[str, ...]
    selections: Callable[[], Iterable[tuple[Any, "Selection"]]]
    leaks: tuple["Leak", ...] = ()


def _drop(
    source: "Source",
    scores: "Scores | None",
    threshold: float,
    against: Path | None,
    seed: int,
    advance: Progress,
) -> _Result:
    """What is left without near duplicates, in the order of the file."""
    from cod3s.selection.duplicates import find_distinct
    from cod3s.selection.history import open_history
    from cod3s.selection.remarks import remarks_on_distinct, unknown_language
    from cod3s.selection.result import Deduplicated, leaks_of

    others = open_history(against, "--against")
    distinct = find_distinct(
        source, scores, threshold, against=None if others is None else others.read(), seed=seed, progress=advance
    )
    return _Result(
        sorted(distinct.kept.tolist()),
        distinct.dropped.by_owner(),
        (*remarks_on_distinct(distinct), *unknown_language(source)),
        lambda: [(None, Deduplicated.of(distinct))],
        leaks_of(distinct),
    )


def _choose(
    source: "Source",
    scores: "Scores | None",
    config: SelectConfig,
    values: list[Any] | None,
    unlike: Path | None,
    like: Path | None,
    advance: Progress,
) -> _Result:
    """k candidates, of each group if there are groups."""
    from cod3s.selection.choose import choose, choose_by, joined
    from cod3s.selection.history import open_history
    from cod3s.selection.tables import groups_of

    histories = open_history(unlike, "--unlike"), open_history(like, "--like")
    if values is None:
        whole = choose(source, scores, config, *histories)
        selections = [(None, whole)]
        advance(len(source.texts))
    else:
        groups = groups_of(values, len(source.texts))
        selections = []
        for value, selection in choose_by(source, scores, config, groups, *histories):
            selections.append((value, selection))
            advance(len(groups[value]))
        whole = joined(source, config, selections)
    duplicates = {
        selected.index: list(zip_longest(selected.duplicates, selected.similarities)) for selected in whole
    }
    return _Result(whole.indices, duplicates, whole.remarks, lambda: selections)


def _critic_scores(candidates: "Candidates", bundle: Path | None, relation: str, source_field: str) -> list[float]:
    """How plausible each candidate is as an answer to its source."""
    from cod3s.critic.likelihoods import Pair
    from cod3s.decode.request import check_source

    pairs = [
        Pair(relation, check_source(source), check_source(text))
        for source, text in zip(candidates.column(source_field), candidates.texts, strict=True)
    ]
    generator = cod3s.load(bundle)
    generator.require_relation(relation)
    probabilities: list[float] = generator.judge(pairs).tolist()
    return probabilities


def _print_selection(
    candidates: "Candidates", selection: "Selection", by: str | None, value: Any, show: bool
) -> None:
    """Print a JSON object for the group; every selected candidate carries its whole record."""
    record = selection.to_dict()
    for chosen in record["selected"]:
        chosen |= {"line": candidates.rows[chosen["index"]].line, "record": candidates.record(chosen["index"])}
        del chosen["group"]
        if show:
            chosen["duplicate_texts"] = [candidates.texts[position] for position in chosen["duplicates"]]
    print_json({**({} if by is None else {"group": value}), **record})


def _write(output: Path | None, candidates: "Candidates", result: _Result, show: bool) -> None:
    """The chosen records, as they came; duplicates as one more field, or as lines with an =."""
    if output is None:
        for line in _lines(candidates, result, show):
            sys.stdout.write(line)
        return
    with replaced_file(output) as partial:
        if candidates.arrow is not None and output.suffix == ".parquet":
            require("pyarrow.parquet", "corpus").write_table(candidates.arrow.take(result.kept), partial)
            return
        with partial.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(_lines(candidates, result, show))


def _lines(candidates: "Candidates", result: _Result, show: bool) -> Iterator[str]:
    end = candidates.line_end
    header = candidates.header if candidates.kind in ("csv", "tsv") else []
    if show:
        _check_free(candidates, header, 1)
    if header:
        yield _cells(candidates.kind, header + (["duplicates"] if show else []), end)
    for position in result.kept:
        row = candidates.rows[position]
        texts = [candidates.texts[duplicate] for duplicate, _ in result.duplicates.get(position, ())]
        if candidates.kind == "lines":
            yield "".join(line + end for line in [row.written, *(f"    = {text}" for text in texts if show)])
        elif header:
            yield _cells(candidates.kind, row.record + ([_json(texts)] if show else []), end)
        elif show:
            record = candidates.record(position)
            _check_free(candidates, record, row.line)
            yield _json({**record, "duplicates": texts}) + end
        else:
            yield (row.written or _json(candidates.record(position))) + end


def _cells(kind: str, cells: list[str], end: str) -> str:
    if kind == "tsv":
        return "\t".join(cells) + end
    line = io.StringIO()
    csv.writer(line, lineterminator=end).writerow(cells)
    return line.getvalue()


def _json(value: Any) -> str:
    return json_library.dumps(value, ensure_ascii=False, default=str)


def _check_free(candidates: "Candidates", names: Iterable[str], line: int) -> None:
    if "duplicates" in names:
        raise FileFormatError(
            f"{candidates.name}, line {line}: there already is a field 'duplicates'",
            hint="use --json, which keeps the record and the duplicates apart",
        )


def _left_out(candidates: "Candidates", result: _Result) -> Iterator[dict[str, Any]]:
    """A record for each candidate that was left out as a duplicate or a leak, in the order of the file."""
    records = []
    for owner, duplicates in result.duplicates.items():
        line, text = candidates.rows[owner].line, candidates.texts[owner]
        for position, similarity in duplicates:
            records.append((position, {"duplicate_of": line, "kept": text, "similarity": similarity}))
    for leak in result.leaks:
        records.append((leak.index, {"leak_of": leak.other + 1, "similarity": leak.similarity}))
    for position, facts in sorted(records, key=itemgetter(0)):
        row = candidates.rows[position]
        yield {"line": row.line, **facts, "record": candidates.record(position)}


def _check_together(
    threshold: float | None,
    options: Options,
    by: str | None,
    unlike: Path | None,
    like: Path | None,
    against: Path | None,
    score_with: str | None,
    score_field: str | None,
) -> None:
    if score_with and score_field:
        raise UsageError("--score-with and --score-field both give scores", hint="leave out one of them")
    if threshold is not None and ("k" in options or by or unlike or like):
        raise UsageError("--threshold keeps all that differ, without -k, --by, --unlike and --like")
    if threshold is None and against:
        raise UsageError("--against needs --threshold", hint="for example --threshold 0.9")
