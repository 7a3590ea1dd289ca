"""Write a report folder.

report/
  report.html     everything, in a file that needs no network
  report.md       the same as Markdown, without plots
  metrics.json    every figure, with the settings that made it
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
from cod3s.evaluate.scores import Column
from cod3s.evaluate.summary import Summary
from cod3s.evaluate.tables import NEAR_BEST, PUBLISHED, Table, all_tables, table_row, title_of
from cod3s.io.disk import read_json, write_json, write_text
from cod3s.metrics.significance import Comparison
from cod3s.records import AnswerSet
from cod3s.text import clean, settings_line

METRICS, MARKDOWN, PAGE, OUTPUTS = "metrics.json", "report.md", "report.html", "outputs"
SAMPLES = 4  # sources of each relation whose answers are shown
ANSWERS = 10  # of each system
TESTED = ("bleu1", "bleu2", "semantic", "relevance", "backward_pmi", "0.1")


@dataclass(frozen=True)
class Page:
    """What a report shows, as HTML and as Markdown: a banner above everything, one settings line at the end."""

    title: str
    line: str  # the settings that a reader of a table needs
    settings: Mapping[str, Any]  # all of them
    tables: Sequence[Table]
    plots: Sequence[Plot] = ()
    headlines: Sequence[str] = ()
    remarks: Sequence[str] = ()
    samples: Sequence[Table] = ()
    comparisons: Sequence[tuple[str, Sequence[tuple[str, Comparison]]]] = ()  # relation, then column and test
    banner: str = ""

    def write(self, markdown: Path, page: Path) -> None:
        """Write both files, the page last."""
        write_text(markdown, self.markdown())
        write_text(page, self.html())

    def html(self) -> str:
        """The page, a single file."""
        published = any(PUBLISHED in table.columns for table in self.tables)
        template = open_template(Path(__file__).parent / "page.html.jinja")
        return f"{template.render(**vars(self), published=published, bold=NEAR_BEST)}\n"

    def markdown(self) -> str:
        """The same as Markdown, without plots and tests."""
        parts = [f"# {self.title}\n"]
        parts += [f"**{text}**\n" for text in (self.banner, *self.remarks) if text]
        parts += ["".join(f"- {headline}\n" for headline in self.headlines)] if self.headlines else []
        parts += [f"Bold: {NEAR_BEST}.\n", *(table.markdown() for table in (*self.tables, *self.samples))]
        return "\n".join([*parts, f"{self.line}\n"])


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


def write_report(
    folder: Path, summary: Summary, systems: Mapping[str, Sequence[AnswerSet]], items: Sequence[Item] = ()
) -> None:
    """Write the three files, the page last; outputs are already there, or somewhere else."""
    write_json(folder / METRICS, summary.record())
    page = Page(
        title=f"Evaluation on {summary.data['name']}",
        line=report_line(summary),
        settings=summary.settings,
        headlines=headlines(summary),
        remarks=summary.remarks,
        tables=all_tables(summary),
        plots=report_plots(summary),
        samples=sample_tables(systems, items),
        comparisons=[
            (
                relation,
                [(" ".join(name), row) for name in columns if name.metric in TESTED for row in columns[name]],
            )
            for relation, columns in summary.comparisons.items()
        ],
    )
    page.write(folder / MARKDOWN, folder / PAGE)


def is_unfinished(folder: Path) -> bool:
    """Whether a report lacks sources for which there was no time, so that it may be continued."""
    content = read_json(folder / METRICS) if (folder / METRICS).exists() else None
    data = content.get("data") if isinstance(content, dict) else None
    return isinstance(data, dict) and bool(data.get("unanswered"))


def report_line(summary: Summary) -> str:
    """The settings that a reader of a table needs; the complete list is at the end of the page."""
    shown = ("data", "bundle", "grader", "encoder", "other_encoders", "bits", "beams", "bleu", "seed", "cod3s")
    items = summary.data["items"]
    counts = ", ".join(f"{number} source{'' if number == 1 else 's'} of {name}" for name, number in items.items())
    known = {
        **summary.settings,
        "data": f"{summary.data['name']} ({counts})",
        "other_encoders": ", ".join(summary.settings["other_encoders"]) or None,
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


def sample_tables(systems: Mapping[str, Sequence[AnswerSet]], items: Sequence[Item]) -> list[Table]:
    """The answers of every system to the first sources of each relation, a row per rank."""
    gold = {(item.relation, item.source): item.target for item in items}
    answers: dict[tuple[str, str], dict[str, AnswerSet]] = {}
    for name, sets in systems.items():
        for row in sets:
            answers.setdefault((row.relation, clean(row.source)), {}).setdefault(name, row)
    tables: dict[str, list[Table]] = {}
    for (relation, source), by_system in answers.items():
        shown = tables.setdefault(relation, [])
        if len(shown) < SAMPLES:
            texts = [
                [f"{answer.text} [{answer.medoid}]" if answer.medoid else answer.text for answer in row.answers]
                for row in by_system.values()
            ]
            ranks = enumerate(zip_longest(*(column[:ANSWERS] for column in texts), fillvalue=""), 1)
            target = gold.get((relation, source))
            note = f"Gold: {target}. " if target else ""
            note += "In brackets: the medoid of the answer's bin." if any("[" in text for text in texts[0]) else ""
            rows = tuple(table_row(rank, *row) for rank, row in ranks)
            title = f"{title_of(relation)}: {source}"
            shown.append(Table(title, "Paper: appendix C, table 7.", note.strip(), ("", *by_system), rows))
    return [table for shown in tables.values() for table in shown]


def _beams(systems: Iterable[Mapping[str, Any]]) -> str | None:
    """The beam widths of the two stages, if all systems that have them agree."""
    beams = {
        f"{settings['signature_beam']}/{settings['beam']}"
        for settings in systems
        if {"signature_beam", "beam"} <= set(settings)
    }
    return beams.pop() if len(beams) == 1 else None
