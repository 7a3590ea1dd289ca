"""Exchange a study with other platforms: Mechanical Turk, Prolific, and anonymous CSV files of ratings.

Exports hold no names and no times of day: a rater is a pseudonym. Only Prolific's list of whom to pay has its ids.
"""

import csv
import html
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError, FileFormatError
from cod3s.evaluate.report import open_template
from cod3s.io.disk import replaced_file, write_json, write_text
from cod3s.io.tables import open_table
from cod3s.study.design import raters_needed
from cod3s.study.folder import CHECK, Item, Study
from cod3s.study.raters import (
    IMPORTED,
    PROLIFIC,
    Rater,
    RaterReport,
    Rating,
    new_id,
    pseudonyms,
    report_raters,
    require_known_items,
    timestamp,
    token_hash,
)
from cod3s.study.store import Store

# A cell that begins with =, +, -, @ or a control character may be run as a formula (CSV injection); an apostrophe
# in front makes it text. Statements come from other people's models, so this can happen.
_FORMULA = re.compile(r"\s*[=+\-@\t\r\n＝＋－＠]")
_OF_ITEM = ("kind", "relation", "source", "target", "statement", "label")
COLUMNS = ("rater", "order", "item", *_OF_ITEM, "systems", "score", "seconds", "revision")

MTURK_PAGE, MTURK_BATCH = "template.html", "batch.csv"
PER_HIT, CHECKS_PER_HIT = 20, 2  # at least two attention checks, as in the paper's appendix

PROLIFIC_STUDY, PROLIFIC_RATERS = "prolific-study.json", "participants.csv"
_PLACEHOLDERS = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
_SECONDS = 9.0  # per statement, to read and choose: an estimate that the study's owner may correct
_BAD_ROWS_NAMED = 5


def write_ratings(path: Path, study: Study, items: Sequence[Item], store: Store) -> int:
    """Write every rating with its statement and a pseudonym for its rater as CSV, and return their number."""
    ratings, by_id, names = store.ratings(), {item.id: item for item in items}, pseudonyms(study, store.raters())
    require_known_items(ratings, by_id)
    order: Counter[str] = Counter()
    rows = []
    for rating in sorted(ratings, key=lambda rating: (names[rating.rater], rating.at, rating.item)):
        item = by_id[rating.item]
        order[rating.rater] += 1
        described = [getattr(item, name) for name in _OF_ITEM]
        systems = " ".join(f"{credit.system}:{credit.rank or '?'}" for credit in item.credits)
        head = (names[rating.rater], order[rating.rater], item.id)
        rows.append((*head, *described, systems, rating.score, rating.seconds, rating.revision))
    _write_csv(path, COLUMNS, rows)
    return len(rows)


def write_mturk(folder: Path, study: Study, items: Sequence[Item], *, per_hit: int = PER_HIT) -> int:
    """Write a page and a CSV of HITs for Mechanical Turk into `folder`, and return the number of HITs.

    The page shows `${statement_1}`, `${statement_2}`, …; the results contain `Input.id_1`, … next to the answers.
    Neither names a system.
    """
    hits = make_hits(items, per_hit=per_hit, seed=study.seed)
    slots = range(1, len(hits[0]) + 1)
    columns = [f"{name}_{slot}" for slot in slots for name in ("id", "statement")]
    _write_csv(
        folder / MTURK_BATCH,
        columns,
        [[cell for item in hit for cell in (item.id, mturk_text(item.statement))] for hit in hits],
    )
    template = open_template(Path(__file__).parent / "mturk.html.jinja")
    write_text(folder / MTURK_PAGE, template.render(study=study, slots=slots) + "\n")
    return len(hits)


def make_hits(items: Sequence[Item], *, per_hit: int, seed: int) -> list[list[Item]]:
    """The items in groups of equal size with checks mixed in.

    If the last group would be short, items from the first groups fill it up and get ratings from more people.
    """
    rated = [item for item in items if item.kind != CHECK]
    checks = [item for item in items if item.kind == CHECK]
    share = min(CHECKS_PER_HIT, len(checks))
    if not rated or per_hit - share < 1:
        raise Cod3sError(
            f"a HIT of {per_hit} statements has no room for answers besides {share} checks", hint="raise --per-hit"
        )
    number = ceil(len(rated) / (per_hit - share))
    size = ceil(len(rated) / number)
    filled = [*rated, *rated[: number * size - len(rated)]]
    shuffle = random.Random(f"{seed} hits")
    hits = []
    for hit in range(number):
        group = filled[hit * size : (hit + 1) * size]
        group += [checks[(hit * share + slot) % len(checks)] for slot in range(share)]
        shuffle.shuffle(group)
        hits.append(group)
    return hits


def mturk_text(text: str) -> str:
    """The text as HTML: Mechanical Turk copies cells into the page unescaped, and rejects emoji.

    A first character that a spreadsheet would take for a formula becomes an entity, too.
    """
    escaped = html.escape(text).encode("ascii", "xmlcharrefreplace").decode()
    return f"&#{ord(escaped[0])};{escaped[1:]}" if escaped[:1] in tuple("=+-@") else escaped


def write_prolific(folder: Path, study: Study, items: Sequence[Item], store: Store, url: str) -> int:
    """Write the study for Prolific's API and a list of whom to pay, and return the number of participants.

    `url` is where raters reach the server; the study's owner fills in the reward.
    """
    if not url.startswith(("https://", "http://")):
        raise Cod3sError(
            f"--url must be the address that raters open, not {url!r}", hint="--url https://study.example.org"
        )
    raters, ratings, by_id = store.raters(), store.ratings(), {item.id: item for item in items}
    require_known_items(ratings, by_id)
    reports = report_raters(ratings, by_id, study.exclusion, pseudonyms(study, raters))
    shown = study.per_rater + sum(item.kind == CHECK for item in items)
    parameters = "&".join(f"{name}={{{{%{name}%}}}}" for name in _PLACEHOLDERS)
    body = {
        "name": study.name,
        "description": study.paragraphs[0] if study.paragraphs else study.question,
        "external_study_url": f"{url.rstrip('/')}/?{parameters}",
        "prolific_id_option": "url_parameters",
        "completion_codes": [
            {"code": study.completion_code, "code_type": "COMPLETED", "actions": [{"action": "MANUALLY_REVIEW"}]}
        ],
        "total_available_places": raters_needed(study, items),
        "estimated_completion_time": ceil(shown * _SECONDS / 60),
        "reward": None,
    }
    rows = []
    for rater in raters:
        if rater.origin == PROLIFIC:
            report = reports.get(rater.id, RaterReport(""))
            minutes, finished = round(report.total_seconds / 60, 1), "yes" if rater.finished else "no"
            checks, reasons = report.failed_checks, "; ".join(report.reasons)
            rows.append((rater.external, rater.session, finished, report.ratings, minutes, checks, reasons))
    write_json(folder / PROLIFIC_STUDY, body)
    columns = (
        "participant_id",
        "session_id",
        "finished",
        "ratings",
        "minutes",
        "checks_failed",
        "excluded_because",
    )
    _write_csv(folder / PROLIFIC_RATERS, columns, rows)
    return len(rows)


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file that is safe to open in a spreadsheet: formulas are marked as text."""
    with replaced_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows([safe_cell(value) for value in row] for row in rows)


def safe_cell(value: Any) -> Any:
    """The value, with an apostrophe in front if a spreadsheet would compute it."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


@dataclass(frozen=True)
class Row:
    """A rating as a file has it; `event` tells repeated ratings of an item by the same rater apart."""

    location: str  # for messages, such as "line 7"
    rater: str = ""
    item: str = ""
    score: str = ""
    seconds: str = ""
    event: str = ""
    fault: str = ""  # why it cannot be imported, if that is known

    def __str__(self) -> str:
        return f"{self.location}: {self.fault}"


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    ratings: int  # in the file that fit the study
    added: int  # those that the store did not hold yet
    raters: int
    bad: tuple[Row, ...]


def read_ratings(path: Path) -> Iterator[Row]:
    """Ratings of a .csv, .tsv or .jsonl file with `rater`, `item`, `score` and maybe `seconds`.

    Other columns, such as those of our export, are ignored.
    """
    with open_table(path) as table:
        fields = [table.field(name) for name in ("rater", "item", "score")]
        if table.kind == "jsonl" or "seconds" in table.header:
            fields.append(table.field("seconds"))
        for row in table:
            values = ["" if (value := field(row)) is None else str(value).strip() for field in fields]
            yield Row(f"line {row.line}", *values)


def read_mturk(path: Path) -> Iterator[Row]:
    """The ratings of Mechanical Turk's results for a batch, without rejected assignments."""
    with open_table(path, "csv") as table:
        slots = [name.removeprefix("Input.id_") for name in table.header if name.startswith("Input.id_")]
        if not slots or "WorkerId" not in table.header:
            raise FileFormatError(
                f"{path} has no columns Input.id_1 and WorkerId",
                hint="give the results file of a batch that was exported from this study",
            )
        for row in table:
            cells = dict(zip(table.header, row.record, strict=True))
            if cells.get("AssignmentStatus") != "Rejected":
                yield from _assignment(cells, f"line {row.line}", slots)


def _assignment(cells: Mapping[str, str], line: str, slots: Sequence[str]) -> Iterator[Row]:
    try:
        answers = _answers(cells)
        seconds = float(cells.get("WorkTimeInSeconds") or 0) / len(slots)
    except (ValueError, AttributeError) as error:
        yield Row(line, fault=f"not an answer of this page ({error})")
        return
    for slot in slots:
        location, score = f"{line}, statement {slot}", answers.get(f"score_{slot}")
        if score is None:
            yield Row(location, fault="no score")
        else:
            item, event = cells[f"Input.id_{slot}"], cells.get("AssignmentId", "")
            yield Row(location, cells["WorkerId"], item, score, str(seconds), event)


def _answers(cells: Mapping[str, str]) -> dict[str, str]:
    """The chosen value of every field, in any of the three forms that the site writes.

    `Answer.score_1` holds the value; or `Answer.score_1.3` says true; or `Answer.taskAnswers` holds both as JSON.
    """
    answers: dict[str, str] = {}
    for name, value in cells.items():
        if name == "Answer.taskAnswers" and value:
            content = json.loads(value)
            for part in content if isinstance(content, list) else [content]:
                for field, shown in part.items():
                    options = shown if isinstance(shown, dict) else {shown: True}
                    for option, chosen in options.items():
                        if chosen is True:
                            answers[field] = str(option)
        elif name.startswith("Answer.score_") and value:
            field, _, option = name.removeprefix("Answer.").partition(".")
            if not option:
                answers[field] = value
            elif value.lower() == "true":
                answers[field] = option
    return answers


def import_ratings(
    store: Store, study: Study, items: Sequence[Item], rows: Iterable[Row], *, skip_bad: bool = False
) -> Imported:
    """Save the ratings; if a row is bad, nothing is saved, unless bad rows are to be skipped.

    Importing a file twice adds nothing: ratings that the store holds are skipped, and so are events that were
    imported before.
    """
    good, bad = check_rows(rows, study, items)
    shown = "; ".join(map(str, bad[:_BAD_ROWS_NAMED]))
    shown += f"; and {len(bad) - _BAD_ROWS_NAMED} more" if len(bad) > _BAD_ROWS_NAMED else ""
    if bad and not skip_bad:
        raise FileFormatError(
            f"{len(bad)} of {len(good) + len(bad)} ratings cannot be imported, so none were: {shown}",
            hint="correct them, or skip them with --skip-bad",
        )
    if not good:
        raise FileFormatError("the file has no ratings to import" + (f": {shown}" if bad else ""))
    stored = store.raters()
    # A file names raters as an earlier import did, or by the pseudonyms of our exports.
    ids = {name: rater for rater, name in pseudonyms(study, stored).items()}
    ids |= {rater.external: rater.id for rater in stored if rater.origin == IMPORTED}
    names = dict.fromkeys(rating.rater for rating in good)
    raters = {name: Rater(new_id(), IMPORTED, timestamp(), external=name) for name in names if name not in ids}
    ids |= {name: rater.id for name, rater in raters.items()}
    scores = {(rating.rater, rating.item): rating.score for rating in store.ratings()}
    ratings = [replace(rating, rater=ids[rating.rater]) for rating in good]
    new = [rating for rating in ratings if scores.get((rating.rater, rating.item)) != rating.score]
    return Imported(len(good), store.add(raters.values(), new), len(names), tuple(bad))


def check_rows(rows: Iterable[Row], study: Study, items: Sequence[Item]) -> tuple[list[Rating], list[Row]]:
    """The ratings that fit the study, with raters named as in the file, and the other rows with reasons."""
    item_ids = {item.id for item in items}
    seen: set[tuple[str, str, str]] = set()
    good: list[Rating] = []
    bad: list[Row] = []
    for row in rows:
        event = (row.rater, row.item, row.event)
        try:
            if row.fault or event in seen:
                raise ValueError(row.fault or f"{row.rater} rates {row.item} a second time")
            good.append(_rating(row, item_ids, study.top_score))
            seen.add(event)
        except ValueError as error:
            bad.append(replace(row, fault=str(error)))
    return good, bad


def _rating(row: Row, items: set[str], top: int) -> Rating:
    if not row.rater:
        raise ValueError("the rater is missing")
    if row.item not in items:
        raise ValueError(f"{row.item!r} is not an item of this study")
    score = _number(row.score)
    if score is None or not score.is_integer():
        raise ValueError(f"{row.score!r} is not a whole number")
    if not 0 <= score <= top:
        raise ValueError(f"the score {int(score)} is not between 0 and {top}")
    seconds = _number(row.seconds or "0")
    if seconds is None or not 0 <= seconds < float("inf"):
        raise ValueError(f"{row.seconds!r} is not a time in seconds")
    key = token_hash(f"{row.event} {int(score)}") if row.event else new_id()
    return Rating(row.rater, row.item, int(score), seconds, timestamp(), key=key)


def _number(text: str) -> float | None:
    """The number, also a whole one in the form that a spreadsheet may give it (3.0)."""
    try:
        return float(text)
    except ValueError:
        return None
