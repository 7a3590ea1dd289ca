"""`cod3s select`: keep k candidates that mean different things, as a filter for pipes."""

import csv
import json as json_library
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import cod3s
from cod3s.cli.output import print_json, progress, say
from cod3s.cli.parameters import BitsOption, BundleOption, EncoderOption, JsonOption, SeedOption
from cod3s.errors import FileFormatError, UsageError
from cod3s.options import SEED

if TYPE_CHECKING:
    from cod3s.io.tables import Row, Table
    from cod3s.selection import Selected, Selection
    from cod3s.selection.groups import Group

_MOST_REMEMBERED = 1_000_000  # values of finished groups, to notice when a value appears again

TextFieldOption = Annotated[
    str | None,
    typer.Option("--column", "--text-field", help="The column or field with the text; by default, `text`."),
]
ScorerOption = Annotated[
    Literal["critic"] | None, typer.Option(help="Score by plausibility with a bundle's critic, not by a field.")
]
DuplicatesOption = Annotated[
    bool, typer.Option("--show-duplicates", help="Also print the duplicates of each selected candidate.")
]
HammingOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Candidates that differ in at most this many bits are duplicates; default: a quarter of --bits.",
    ),
]
ScoreWeightOption = Annotated[
    float | None, typer.Option(help="Weight of scores against diversity, 0 to below 1; 0.03 for auto, else 0.5.")
]


def select(
    file: Annotated[Path, typer.Argument(help="Candidates: .jsonl, .csv, .tsv or lines, or - for stdin.")],
    k: Annotated[int, typer.Option("-k", "--count", min=1, help="How many to keep per group.")] = 10,
    method: Annotated[str, typer.Option(help="auto, signatures, mmr, dpp or kmedoids.")] = "auto",
    group_by: Annotated[
        str | None, typer.Option(help="Field to group by; the records of a group must be adjacent.")
    ] = None,
    text_field: TextFieldOption = None,
    score_field: Annotated[str | None, typer.Option(help="Field that holds a number; higher is better.")] = None,
    score_with: ScorerOption = None,
    source_field: Annotated[str, typer.Option(help="critic: field with the source of each candidate.")] = "source",
    relation: Annotated[str, typer.Option(help="critic: effect or cause.")] = "effect",
    bundle: BundleOption = None,
    format: Annotated[str | None, typer.Option(help="jsonl, csv, tsv or lines, if the name does not say.")] = None,
    show_duplicates: DuplicatesOption = False,
    min_hamming: HammingOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="signatures: keep fewer than k rather than any within --min-hamming.")
    ] = False,
    score_weight: ScoreWeightOption = None,
    encoder: EncoderOption = "static",
    bits: BitsOption = 128,
    seed: SeedOption = SEED,
    json: JsonOption = False,
) -> None:
    """Keep k candidates that mean different things: whole records, in the format they came in.

    Without --score-field, the order of the file is the ranking. --json prints a selection per group instead.
    """
    from cod3s.selection.groups import open_candidates, read_groups

    if score_with and score_field:
        raise UsageError("--score-with and --score-field both give scores", hint="leave out one of them")
    choose = partial(
        cod3s.select,
        k=k,
        method=method,
        min_hamming=min_hamming,
        bits=bits,
        encoder=cod3s.load_encoder(encoder),
        seed=seed,
        score_weight=score_weight,
        strict=strict,
    )
    with open_candidates(file, format, text_field) as table, progress("candidates", None) as advance:
        groups = read_groups(table, text_field=text_field, score_field=score_field, group_by=group_by)
        scores_of = _critic_scores(table, bundle, relation, source_field) if score_with else _file_scores
        if not json:
            _print_header(table, show_duplicates)
        for group in _noticing_repeats(groups, group_by):
            texts = [candidate.text for candidate in group.candidates]
            selection = choose(texts, scores=scores_of(group))
            if json:
                _print_selection(group, selection, table, group_by, show_duplicates)
            else:
                _print_records(group, selection, table, show_duplicates)
            sys.stdout.flush()  # the reader of the pipe gets each group as soon as it is done
            advance(len(group.candidates))
            if group_by is None and not json:
                for remark in selection.remarks:
                    say(remark)


def _file_scores(group: "Group") -> list[float] | None:
    """The scores in the file; None without a score field, where the order of the candidates ranks them."""
    return [candidate.score for candidate in group.candidates if candidate.score is not None] or None


def _critic_scores(
    table: "Table", bundle: Path | None, relation: str, source_field: str
) -> Callable[["Group"], list[float] | None]:
    """Score a group's candidates by how plausible they are as answers to their sources."""
    from cod3s.critic.likelihoods import Pair
    from cod3s.decode.request import check_source

    source = table.text(source_field)
    generator = cod3s.load(bundle)
    generator.require_relation(relation)
    judge = generator.judge

    def scores(group: "Group") -> list[float]:
        pairs = [
            Pair(relation, check_source(source(candidate.row)), check_source(candidate.text))
            for candidate in group.candidates
        ]
        probabilities: list[float] = judge(pairs).tolist()
        return probabilities

    return scores


def _noticing_repeats(groups: "Iterator[Group]", group_by: str | None) -> "Iterator[Group]":
    """Pass the groups on, with a remark when a value appears again: only adjacent records form a group."""
    seen: set[int] = set()
    remarked = False
    for group in groups:
        number = hash(str(group.value))
        if group_by is not None and number in seen and not remarked:
            line = group.candidates[0].row.line
            say(f"{group_by} {group.value!r} appears again in line {line}: sort by it to get one group per value")
            remarked = True
        if len(seen) < _MOST_REMEMBERED:
            seen.add(number)
        yield group


def _print_selection(
    group: "Group", selection: "Selection", table: "Table", group_by: str | None, more: bool
) -> None:
    """Print a JSON object for the group; every selected candidate carries its whole record."""
    record = asdict(selection)
    for chosen, selected in zip(record["selected"], selection.selected, strict=True):
        row = group.candidates[selected.index].row
        fields = dict(zip(table.header, row.record, strict=True)) if table.header else row.record
        chosen |= {"line": row.line, "record": fields}
        if more:
            chosen["duplicate_texts"] = _duplicates(group, selected)
    print_json({**({} if group_by is None else {"group": group.value}), **record})


def _print_records(group: "Group", selection: "Selection", table: "Table", more: bool) -> None:
    for selected in selection.selected:
        duplicates = _duplicates(group, selected) if more else None
        _print_record(table, group.candidates[selected.index].row, duplicates)


def _print_header(table: "Table", more: bool) -> None:
    if table.header:
        if more:
            _check_free(table, table.header, 1)
        _print_cells(table, table.header + (["duplicates"] if more else []))


def _print_record(table: "Table", row: "Row", duplicates: list[str] | None) -> None:
    """Print a record unchanged, in its format; duplicates as an extra field, or as lines with an =."""
    if table.kind == "lines":
        print("\n    = ".join([row.written, *(duplicates or ())]))
    elif table.kind != "jsonl":
        extra = [] if duplicates is None else [json_library.dumps(duplicates, ensure_ascii=False)]
        _print_cells(table, row.record + extra)
    elif duplicates is None:
        print(row.written)
    else:
        _check_free(table, row.record, row.line)
        print_json({**row.record, "duplicates": duplicates})


def _print_cells(table: "Table", cells: list[str]) -> None:
    print("\t".join(cells)) if table.kind == "tsv" else csv.writer(sys.stdout, lineterminator="\n").writerow(cells)


def _check_free(table: "Table", names: Any, line: int) -> None:
    if "duplicates" in names:
        raise FileFormatError(
            f"{table.name}, line {line}: there already is a field 'duplicates'",
            hint="use --json, which keeps the record and the duplicates apart",
        )


def _duplicates(group: "Group", selected: "Selected") -> list[str]:
    return [group.candidates[index].text for index in selected.duplicates]
