"""Write a report folder.

report/
  report.html     everything, in a file that needs no network
  metrics.json    every figure, with the settings that made it
  tables.md       the tables
  outputs/        a JSONL file of answers per system

The same outputs and settings give the same bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from cod3s.errors import require
from cod3s.evaluate.items import Item
from cod3s.evaluate.plots import Plot, report_plots
from cod3s.evaluate.report_tables import NEAR_BEST, Table, all_tables, markdown, title_of
from cod3s.evaluate.scores import Column
from cod3s.evaluate.summary import Summary
from cod3s.io.disk import write_json, write_text
from cod3s.metrics.significance import Comparison
from cod3s.records import Answer, AnswerSet
from cod3s.text import clean, settings_line

METRICS, TABLES, PAGE, OUTPUTS = "metrics.json", "tables.md", "report.html", "outputs"
SAMPLES = 4  # sources of each relation whose answers are shown
ANSWERS = 10  # of each system
TESTED = ("bleu1", "bleu2", "semantic", "relevance", "backward_pmi", "0.1")


@dataclass(frozen=True)
class Sample:
    """The answers of all systems to a source, a row per rank."""

    relation: str
    source: str
    target: str
    systems: tuple[str, ...]
    rows: tuple[tuple[Answer | None, ...], ...]


def write_report(
    folder: Path, summary: Summary, systems: Mapping[str, Sequence[AnswerSet]], items: Sequence[Item] = ()
) -> None:
    """Write the three files, the page last; outputs are already there, or somewhere else."""
    title, line, tables = f"Evaluation on {summary.data['name']}", report_line(summary), all_tables(summary)
    write_json(folder / METRICS, summary.record())
    lines = [f"# {title}\n", f"Bold: {NEAR_BEST}.\n", *map(markdown, tables), f"{line}\n"]
    write_text(folder / TABLES, "\n".join(lines))
    page = Page(
        title=title,
        line=line,
        settings=summary.settings,
        headlines=headlines(summary),
        tables=tables,
        plots=report_plots(summary),
        samples=find_samples(systems, items),
        comparisons=[
            (relation, [(column, row) for column in columns if column.metric in TESTED for row in columns[column]])
            for relation, columns in summary.comparisons.items()
        ],
    )
    write_text(folder / PAGE, page.render())


def report_line(summary: Summary) -> str:
    """The settings that a reader of a table needs; the complete list is at the end of the page."""
    shown = ("data", "bundle", "encoder", "second_encoder", "bits", "beams", "bleu", "seed", "cod3s")
    counts = ", ".join(f"{number} {relation}" for relation, number in summary.data["items"].items())
    known = {
        **summary.settings,
        "data": f"{summary.data['name']} ({counts})",
        "beams": _beams(summary.settings["systems"].values()),
    }
    return settings_line({name: known[name] for name in shown if known.get(name) is not None})


def headlines(summary: Summary) -> list[str]:
    """The systems with the best figures of each relation, a sentence per question."""
    size = max(summary.settings["sets"])
    questions = (
        (f"most diverse answers ({size}-sets, cosine distance)", Column(str(size), "semantic"), "{:.3f}"),
        ("most distinct answers of ten", Column("distinct", "0.1"), "{:.2f}"),
        (f"most relevant answers ({size}-sets, cosine to the source)", Column(str(size), "relevance"), "{:.3f}"),
    )
    return [
        f"{title_of(relation)}, {question}: {answer}"
        for relation in summary.relations
        for question, column, form in questions
        if (answer := _best(summary, relation, column, form))
    ]


def _best(summary: Summary, relation: str, column: Column, form: str) -> str:
    """The best system with its figure, and those that it does not beat significantly."""
    figures = {system: summary.figure(system, relation, column) for system in summary.systems}
    ranked = sorted(
        ((figure.mean, system, figure.near_best) for system, figure in figures.items() if figure), reverse=True
    )
    if not ranked:
        return ""
    (mean, best, _), *others = ranked
    near = [system for _, system, near_best in others if near_best]
    return f"{best} ({form.format(mean)})" + (f"; not significantly behind: {', '.join(near)}" if near else "")


@dataclass(frozen=True)
class Page:
    """What the page of a report shows; `headlines` are the summary at its top, a banner comes above everything."""

    title: str
    line: str  # the settings below every table
    settings: Mapping[str, Any]
    tables: Sequence[Table]
    plots: Sequence[Plot]
    headlines: Sequence[str] = ()
    samples: Sequence[Sample] = ()
    comparisons: Sequence[tuple[str, list[tuple[Column, Comparison]]]] = ()
    banner: str = ""

    def render(self) -> str:
        """The page as text."""
        published = any(name.startswith("paper") for table in self.tables for name in table.columns)
        template = open_template(Path(__file__).parent / "page.html.jinja")
        return f"{template.render(**vars(self), published=published, bold=NEAR_BEST)}\n"


def open_template(path: Path) -> Any:
    """The template of a page; it escapes all values, and a missing value is an error."""
    jinja = require("jinja2", "evaluate")
    environment = jinja.Environment(
        loader=jinja.FileSystemLoader(path.parent),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(path.name)


def find_samples(systems: Mapping[str, Sequence[AnswerSet]], items: Sequence[Item]) -> list[Sample]:
    """The first sources of each relation, with the answers of every system that has some."""
    gold = {(item.relation, item.source): item.target for item in items}
    answers: dict[tuple[str, str], dict[str, AnswerSet]] = {}
    for name, sets in systems.items():
        for answer_set in sets:
            answers.setdefault((answer_set.relation, clean(answer_set.source)), {}).setdefault(name, answer_set)
    samples: dict[str, list[Sample]] = {}
    for (relation, source), by_system in answers.items():
        shown = samples.setdefault(relation, [])
        if len(shown) < SAMPLES:
            columns = [by_system[name].answers[:ANSWERS] if name in by_system else () for name in systems]
            rows = tuple(zip_longest(*columns))
            shown.append(Sample(relation, source, gold.get((relation, source), ""), tuple(systems), rows))
    return [sample for shown in samples.values() for sample in shown]


def _beams(systems: Iterable[Mapping[str, Any]]) -> str | None:
    """The beam widths of the two stages, if all systems that have them agree."""
    beams = {
        f"{settings['signature_beam']}/{settings['beam']}"
        for settings in systems
        if {"signature_beam", "beam"} <= set(settings)
    }
    return beams.pop() if len(beams) == 1 else None
