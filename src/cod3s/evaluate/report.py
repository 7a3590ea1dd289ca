"""Writes a report folder: a summary and the outputs it is about → metrics.json, tables.md, report.html.

report/
  report.html     everything, in one file that needs no network
  metrics.json    every figure, with the settings that made it
  tables.md       the tables
  outputs/        a JSONL file of answers for each system

The same outputs and settings give the same bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cod3s.errors import require
from cod3s.evaluate.items import Item
from cod3s.evaluate.plots import Plot, report_plots
from cod3s.evaluate.scores import Column
from cod3s.evaluate.summary import Summary
from cod3s.evaluate.tables import Table, all_tables, markdown
from cod3s.files.disk import write_json, write_text
from cod3s.metrics.significance import Comparison
from cod3s.records import Answer, AnswerSet
from cod3s.text import clean, settings_line

METRICS, TABLES, PAGE, OUTPUTS = "metrics.json", "tables.md", "report.html", "outputs"
SAMPLES = 4  # sources of each relation whose answers are shown
ANSWERS = 10  # of each system
TESTED = ("bleu1", "bleu2", "semantic", "relevance", "backward_pmi", "0.1")


@dataclass(frozen=True)
class Sample:
    """The answers of all systems to one source, a row a rank."""

    relation: str
    source: str
    target: str
    systems: tuple[str, ...]
    rows: tuple[tuple[Answer | None, ...], ...]


def write_report(
    folder: Path, summary: Summary, systems: Mapping[str, Sequence[AnswerSet]], items: Sequence[Item] = ()
) -> None:
    """Write the three files; outputs are already there, or somewhere else."""
    tables = all_tables(summary)
    write_json(folder / METRICS, summary.record())
    line = report_line(summary)
    write_text(folder / TABLES, "\n".join([f"# {_title(summary)}\n", *map(markdown, tables), f"{line}\n"]))
    page = render_page(
        title=_title(summary),
        line=line,
        settings=summary.settings,
        tables=tables,
        plots=report_plots(summary),
        samples=find_samples(systems, items),
        comparisons=[(relation, _tested(own)) for relation, own in summary.comparisons.items()],
    )
    write_text(folder / PAGE, page)


def report_line(summary: Summary) -> str:
    """The settings that a reader of one table needs; the whole list is at the end of the page."""
    shown = ("data", "bundle", "encoder", "second_encoder", "bits", "beams", "bleu", "seed", "cod3s")
    known = {
        **summary.settings,
        "data": f"{summary.data['name']} ({_counts(summary.data['items'])})",
        "beams": _beams(summary.settings["systems"].values()),
    }
    return settings_line({name: known[name] for name in shown if known.get(name) is not None})


def render_page(
    *,
    title: str,
    line: str,
    settings: Mapping[str, Any],
    tables: Sequence[Table],
    plots: Sequence[Plot],
    samples: Sequence[Sample] = (),
    comparisons: Sequence[tuple[str, list[tuple[Column, Comparison]]]] = (),
    banner: str = "",
) -> str:
    """The whole page as text; a banner stands in large letters above everything."""
    page: str = open_template(Path(__file__).parent / "page.html.jinja").render(
        title=title,
        banner=banner,
        settings_line=line,
        settings=settings,
        published=any(name.startswith("paper") for table in tables for name in table.columns),
        tables=tables,
        plots=plots,
        samples=samples,
        comparisons=[(relation, own) for relation, own in comparisons if own],
    )
    return page + "\n"


def open_template(path: Path) -> Any:
    """A page's template: values are escaped, and one that is missing is an error."""
    jinja = require("jinja2", "evaluate")
    environment = jinja.Environment(
        loader=jinja.FileSystemLoader(path.parent),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(path.name)


def find_samples(systems: Mapping[str, Sequence[AnswerSet]], items: Sequence[Item] = ()) -> list[Sample]:
    """The first sources of each relation, with the answers of every system that has some."""
    gold = {(item.relation, item.source): item.target for item in items}
    answers: dict[tuple[str, str], dict[str, AnswerSet]] = {}
    for name, sets in systems.items():
        for own in sets:
            answers.setdefault((own.relation, clean(own.source)), {}).setdefault(name, own)
    found: dict[str, list[Sample]] = {}
    for (relation, source), by_system in answers.items():
        shown = found.setdefault(relation, [])
        if len(shown) < SAMPLES:
            most = min(ANSWERS, max(len(own.answers) for own in by_system.values()))
            rows = tuple(tuple(_at(by_system.get(name), rank) for name in systems) for rank in range(most))
            shown.append(Sample(relation, source, gold.get((relation, source), ""), tuple(systems), rows))
    return [sample for own in found.values() for sample in own]


def _at(own: AnswerSet | None, rank: int) -> Answer | None:
    return own.answers[rank] if own and rank < len(own.answers) else None


def _tested(columns: Mapping[Column, list[Comparison]]) -> list[tuple[Column, Comparison]]:
    return [(column, row) for column, rows in columns.items() if column.metric in TESTED for row in rows]


def _title(summary: Summary) -> str:
    return f"Evaluation on {summary.data['name']}"


def _counts(items: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {relation}" for relation, number in items.items())


def _beams(systems: Iterable[Mapping[str, Any]]) -> str | None:
    """The widths of the two stages, where all systems that say them say the same."""
    found = {f"{own['signature_beam']}/{own['beam']}" for own in systems if {"signature_beam", "beam"} <= set(own)}
    return found.pop() if len(found) == 1 else None
