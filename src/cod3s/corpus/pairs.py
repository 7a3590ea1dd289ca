"""Recognize the columns of files of pairs, and select a relation's pairs from them in SQL.

Four layouts are known: relation, source and target; cause and effect; source and target, for one relation; and
CausalBank's two folders as released. `order`, `pattern`, `corpus`, `split` and `group` are optional columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cod3s.corpus.relations import CAUSE, Relation
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.disk import display_name
from cod3s.io.scan import Scan, literal, open_scan

ORDERS = ("because", "so")
"""How a pair was worded: "X because Y", or "X, so Y"."""
SPLITS = ("train", "dev", "test")

_CAUSALBANK_ORDERS = {"because_mode": "because", "therefore_mode": "so"}
_CAUSALBANK = ("connective", "before", "after")
_SPLIT = "CASE lower({0}) WHEN 'validation' THEN 'dev' WHEN 'valid' THEN 'dev' ELSE lower({0}) END"
_PROBLEM = f"""
    CASE WHEN source IS NULL OR target IS NULL THEN 'the source or the target is missing, or is not text'
    WHEN contains(source, chr(0)) OR contains(target, chr(0)) THEN 'it has a NUL character'
    WHEN "order" NOT IN ('', {", ".join(map(literal, ORDERS))}) THEN 'its order is neither because nor so'
    WHEN split NOT IN ('', {", ".join(map(literal, SPLITS))}) THEN 'its split is not train, dev or test' END"""


@dataclass(frozen=True)
class PairFile:
    """A file of pairs as one relation reads it.

    `query` selects source, target, order, pattern, corpus, split and group, `other` (why a row teaches another
    relation) and `problem` (why a row is not a pair). `unit` is the side that pairs are split by.
    """

    scan: Scan
    query: str
    unit: str


def open_pairs(path: Path, relation: Relation, *, alone: bool, all_orders: bool) -> PairFile:
    """The pairs that a file has for a relation, which is prepared `alone` or together with its inverse."""
    released = _CAUSALBANK_ORDERS.get(path.parent.name, "")
    scan = open_scan(path, columns=_CAUSALBANK if released else ())
    names = set(scan.names)
    if {"relation", "source", "target"} <= names:
        other = f"CASE WHEN {scan.text('relation')} <> {literal(relation.name)} THEN 'relation' END"
        return _pair_file(scan, scan.text("source"), scan.text("target"), other, "''", "source")
    if relation.order and (released or {"cause", "effect"} <= names):
        before, after = ("after", "before") if released == "because" else ("before", "after")
        cause, effect = map(scan.text, (before, after) if released else ("cause", "effect"))
        order = literal(released) if released else _optional(scan, "order")
        matching = f"CASE WHEN {order} NOT IN ('', {literal(relation.order)}) THEN 'order' END"
        source, target = (effect, cause) if relation == CAUSE else (cause, effect)
        # Both relations hold out the same pairs: those whose causes are held out.
        unit = "target" if relation == CAUSE and not alone else "source"
        return _pair_file(scan, source, target, "NULL" if all_orders else matching, order, unit)
    if alone and {"source", "target"} <= names:
        return _pair_file(scan, scan.text("source"), scan.text("target"), "NULL", "''", "source")
    columns = ", ".join(map(repr, scan.names[:8])) or "none"
    needed = "'source' and 'target'" if alone else "'relation', 'source' and 'target'"
    causal = "'cause' and 'effect', or " if relation.order else ""
    raise FileFormatError(
        f"{display_name(path)} has the columns {columns}, but needs {causal}{needed}",
        hint="the first line of a TSV or CSV file names its columns; a file without relations needs --relation",
    )


def _pair_file(scan: Scan, source: str, target: str, other: str, order: str, unit: str) -> PairFile:
    released = scan.names == _CAUSALBANK
    pattern = scan.text("connective") if released else _optional(scan, "pattern")
    corpus = "'causalbank'" if released else _optional(scan, "corpus")
    split = _SPLIT.format(_optional(scan, "split"))
    columns = f"""
        {source} AS source, {target} AS target, {order} AS "order", {pattern} AS pattern, {corpus} AS corpus,
        {split} AS split, {_optional(scan, "group")} AS "group", {other} AS other"""
    rows = f"{scan.source} WHERE trim(line) <> ''" if scan.kind == "jsonl" else scan.source
    return PairFile(scan, f"SELECT *, {_PROBLEM} AS problem FROM (SELECT {columns} FROM {rows})", unit)


def _optional(scan: Scan, name: str) -> str:
    return f"coalesce({scan.text(name)}, '')" if name in scan.names or scan.kind == "jsonl" else "''"


def find_files(paths: Sequence[Path]) -> list[Path]:
    """The files at `paths`; a folder stands for all files below it, in order of name, without hidden ones."""
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            hint = "check the spelling; relative paths start at this folder"
            if "://" in str(path) or ":/" in str(path):
                hint = "copy the files, or mount the bucket: prepare reads files and folders"
            raise Cod3sError(f"no file at {path}", hint=hint)
        inside = [path]
        if path.is_dir():
            names = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
            inside = [path / name for name in names if not any(part[0] == "." for part in name.split("/"))]
        if not inside:
            raise Cod3sError(f"the folder {path} contains no files")
        files += inside
    return files
