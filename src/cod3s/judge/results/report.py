"""Writes the report of a study: an analysis in; report.html, metrics.json, tables.md and figure.png out.

The same ratings and seed give the same bytes. Raters appear by pseudonyms only.
"""

from collections.abc import Mapping
from pathlib import Path

from cod3s.evaluate.plots import Plot
from cod3s.evaluate.report import METRICS, PAGE, TABLES, render_page
from cod3s.evaluate.scores import Column
from cod3s.evaluate.tables import markdown
from cod3s.files.disk import write_json, write_text
from cod3s.judge.results.analysis import Analysis
from cod3s.judge.results.figures import FIGURES
from cod3s.judge.results.plot import draw, page_drawing, write_png
from cod3s.judge.results.tables import all_tables
from cod3s.metrics.significance import Comparison
from cod3s.text import settings_line

FIGURE = "figure.png"
SIMULATED_BANNER = "SIMULATED RATINGS: nobody rated anything here"
_SHOWN = ("study", "scale", "raters_per_item", "alpha", "bootstrap", "seed", "cod3s")


def write_report(folder: Path, analysis: Analysis) -> Path:
    """Write the four files into `folder`; where the page is."""
    banner = banner_of(analysis)
    tables = all_tables(analysis)
    title = f"Human plausibility: {analysis.settings['study']}"
    figure = draw(analysis.results, int(analysis.settings["scale"].split("–")[1]), banner)
    write_json(folder / METRICS, analysis.record())
    write_png(figure, folder / FIGURE)
    line = report_line(analysis)
    head = [f"# {title}\n", *([f"**{banner}**\n"] if banner else [])]
    write_text(folder / TABLES, "\n".join([*head, *map(markdown, tables), f"{line}\n"]))
    page = render_page(
        title=title,
        line=line,
        settings=analysis.settings,
        tables=tables,
        plots=[Plot("Mean scores by system", page_drawing(figure))],
        comparisons=[
            (relation, _named(own)) for relation, own in analysis.results.comparisons.items() if any(own.values())
        ],
        banner=banner,
    )
    write_text(folder / PAGE, page)
    return folder / PAGE


def banner_of(analysis: Analysis) -> str:
    """What a reader must not miss, or nothing."""
    return SIMULATED_BANNER if analysis.simulated else ""


def report_line(analysis: Analysis) -> str:
    """The settings line under every table, with how much was rated."""
    results = analysis.results
    counts = {"raters": f"{results.raters} of {len(analysis.raters)}", "ratings": results.ratings}
    return settings_line({**{name: analysis.settings[name] for name in _SHOWN}, **counts})


def _named(columns: Mapping[str, list[Comparison]]) -> list[tuple[Column, Comparison]]:
    return [(Column("", FIGURES[name]), row) for name, rows in columns.items() for row in rows]
