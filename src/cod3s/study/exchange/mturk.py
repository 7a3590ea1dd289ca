"""Export a study as a Mechanical Turk batch (a page and a CSV of HITs), and import the CSV of its results.

A HIT holds several statements and at least two attention checks, as in the paper's appendix. The page shows
`${statement_1}`, `${statement_2}`, …; the results contain `Input.id_1`, … next to the answers. Neither names a
system.
"""

import html
import json
import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError, FileFormatError
from cod3s.evaluate.report import open_template
from cod3s.io.disk import open_text, write_text
from cod3s.io.tables import Row, Table
from cod3s.study.exchange.incoming import BadRow, Incoming
from cod3s.study.exchange.rating_files import write_csv
from cod3s.study.plan.folder import CHECK, Item, Study

PAGE, BATCH = "template.html", "batch.csv"
PER_HIT, CHECKS_PER_HIT = 20, 2
_REJECTED = "Rejected"


def write_batch(
    folder: Path, study: Study, items: Sequence[Item], *, per_hit: int = PER_HIT, checks: int = CHECKS_PER_HIT
) -> int:
    """Write the page and the CSV of HITs into `folder`, and return the number of HITs."""
    hits = make_hits(items, per_hit=per_hit, checks=checks, seed=study.seed)
    slots = len(hits[0])
    columns = [f"{name}_{slot}" for slot in range(1, slots + 1) for name in ("id", "statement")]
    rows = [[cell for item in hit for cell in (item.id, page_text(item.statement))] for hit in hits]
    write_csv(folder / BATCH, columns, rows)
    template = open_template(Path(__file__).parent / "mturk.html.jinja")
    page = template.render(study=study, slots=range(1, slots + 1), paragraphs=study.instructions.split("\n\n"))
    write_text(folder / PAGE, page + "\n")
    return len(hits)


def make_hits(items: Sequence[Item], *, per_hit: int, checks: int, seed: int) -> list[list[Item]]:
    """The items in groups of equal size with checks mixed in.

    If the last group would be short, items from the first groups fill it up and get ratings from more people.
    """
    rated = [item for item in items if item.kind != CHECK]
    attention = [item for item in items if item.kind == CHECK]
    share = min(checks, len(attention))
    if not rated or per_hit - share < 1:
        raise Cod3sError(
            f"a HIT of {per_hit} statements has no room for answers besides {share} checks", hint="raise --per-hit"
        )
    number = math.ceil(len(rated) / (per_hit - share))
    size = math.ceil(len(rated) / number)
    filled = [*rated, *rated[: number * size - len(rated)]]
    shuffle = random.Random(f"{seed} hits")
    hits = []
    for hit in range(number):
        group = filled[hit * size : (hit + 1) * size]
        group += [attention[(hit * share + slot) % len(attention)] for slot in range(share)]
        shuffle.shuffle(group)
        hits.append(group)
    return hits


def page_text(text: str) -> str:
    """The text as HTML: Mechanical Turk copies cells into the page unescaped, and rejects emoji.

    A first character that a spreadsheet would take for a formula becomes an entity, too.
    """
    escaped = html.escape(text).encode("ascii", "xmlcharrefreplace").decode()
    return f"&#{ord(escaped[0])};{escaped[1:]}" if escaped[:1] in tuple("=+-@") else escaped


def read_results(path: Path) -> Iterator[Incoming | BadRow]:
    """The ratings of a results file, without rejected assignments."""
    with open_text(path) as stream:
        table = Table(stream, str(path), "csv")
        slots = [name.removeprefix("Input.id_") for name in table.header if name.startswith("Input.id_")]
        if not slots or "WorkerId" not in table.header:
            raise FileFormatError(
                f"{path} has no columns Input.id_1 and WorkerId",
                hint="give the results file of a batch that was exported from this study",
            )
        for row in table:
            yield from _assignment(dict(zip(table.header, row.record, strict=True)), row, slots)


def _assignment(cells: dict[str, str], row: Row, slots: Sequence[str]) -> Iterator[Incoming | BadRow]:
    if cells.get("AssignmentStatus") == _REJECTED:
        return
    location = f"line {row.line}"
    try:
        answers = _answers(cells)
        seconds = float(cells.get("WorkTimeInSeconds") or 0) / len(slots)
    except (ValueError, AttributeError) as error:
        yield BadRow(location, f"not an answer of this page ({error})")
        return
    for slot in slots:
        score = answers.get(f"score_{slot}")
        where = f"{location}, statement {slot}"
        if score is None:
            yield BadRow(where, "no score")
        else:
            event = cells.get("AssignmentId", "")
            yield Incoming(where, cells["WorkerId"], cells[f"Input.id_{slot}"], score, seconds, event)


def _answers(cells: dict[str, str]) -> dict[str, str]:
    """The chosen value of every field, in any of the three forms that the site writes.

    `Answer.score_1` holds the value; or `Answer.score_1.3` says true; or `Answer.taskAnswers` holds both as JSON.
    """
    answers: dict[str, str] = {}
    for name, value in cells.items():
        if name == "Answer.taskAnswers" and value:
            content = json.loads(value)
            for part in content if isinstance(content, list) else [content]:
                answers |= {field: score for field, shown in part.items() if (score := _chosen(shown)) is not None}
        elif name.startswith("Answer.score_") and value:
            field, _, option = name.removeprefix("Answer.").partition(".")
            if not option:
                answers[field] = value
            elif value.lower() == "true":
                answers[field] = option
    return answers


def _chosen(value: Any) -> str | None:
    if isinstance(value, dict):
        return next((option for option, chosen in value.items() if chosen is True), None)
    return str(value)
