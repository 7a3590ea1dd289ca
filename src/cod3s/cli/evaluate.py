"""`cod3s evaluate`: the paper's tables on any bundle, any data, or anybody's outputs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.cli.parameters import BundleOption, JsonOption, numbers, seed_option
from cod3s.errors import UsageError, require
from cod3s.options import SEED

if TYPE_CHECKING:
    from cod3s.evaluate.report_tables import Table
    from cod3s.evaluate.summary import Summary

DataArgument = Annotated[
    Path | None,
    typer.Argument(help="COPA's XML; SuperGLUE COPA or e-CARE JSONL; .tsv, .csv, .jsonl with `source`; .txt."),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, help="Use only the first sources of each relation.")
]
RelationOption = Annotated[
    str, typer.Option("--relation", help="The relation of sources whose file does not name it.")
]
SecondOption = Annotated[
    str, typer.Option("--second-encoder", help="Measures semantic diversity independently; or none.")
]
SeedOption = Annotated[int, seed_option("Seed of sampling and of the bootstrap.")]


def evaluate(
    data: DataArgument = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The report folder; a stopped evaluation continues.")
    ] = None,
    bundle: BundleOption = None,
    systems: Annotated[str, typer.Option(help="With commas; default cod3s and the paper's rows but DPC.")] = "",
    outputs: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Score these files or folders of outputs, generate nothing; repeatable."),
    ] = None,
    questions: Annotated[list[Path] | None, typer.Option(help="More questions to choose in; repeatable.")] = None,
    sets: Annotated[str, typer.Option(help="Sizes of the scored sets, with commas.")] = "3,10",
    limit: LimitOption = None,
    relation: RelationOption = "",
    encoder: Annotated[
        str, typer.Option("--encoder", "-e", help="For --from without --bundle; a bundle brings its own.")
    ] = "fast",
    second_encoder: SecondOption = "static",
    preset: Annotated[
        str, typer.Option(help="Options of all systems: paper or default; else paper, cod3s default.")
    ] = "",
    seed: SeedOption = SEED,
    compare: Annotated[tuple[Path, Path] | None, typer.Option(help="Only compare two reports.")] = None,
    json: JsonOption = False,
) -> None:
    """Generate with every system, score the answers, and write a report: page, tables, figures, outputs.

    If stopped, the same command continues after the last finished system. With --from, stored outputs are scored,
    also without a bundle; with --compare, two reports are compared.
    """
    if compare:
        _compare(*compare, json=json)
        return
    if output is None:
        raise UsageError("no folder was given for the report", hint="add -o report/")
    if data is None and not outputs:
        raise UsageError("no data was given", hint="name a file of questions or sources, or outputs with --from")
    sizes = numbers(sets, "--sets")
    require_evaluation()
    from cod3s.evaluate.evaluation import evaluate as run_evaluation

    summary = run_evaluation(
        data,
        bundle=bundle,
        outputs=outputs or (),
        systems=list(dict.fromkeys(name.strip() for name in systems.split(","))) if systems else (),
        limit=limit,
        output=output,
        relation=relation,
        questions=questions or (),
        sizes=sizes,
        encoder=encoder,
        second_encoder=second_encoder,
        preset=preset,
        seed=seed,
        remark=say,
        stage=progress,
    )
    say(f"report: {output / 'report.html'}")
    if json:
        print_json(summary.record())
    else:
        _print_summary(summary)


def require_evaluation() -> None:
    """Fail early if an optional library is missing."""
    for module in ("pyarrow", "sacrebleu", "scipy", "matplotlib", "jinja2"):
        require(module, "evaluate")


def _print_summary(summary: "Summary") -> None:
    from cod3s.evaluate.report import report_line
    from cod3s.evaluate.report_tables import distinct_table, diversity_table

    tables = [diversity_table(summary, size) for size in summary.settings["sets"]]
    tables += [distinct_table(summary, relation) for relation in summary.relations]
    for table in tables:
        print_cells(table, report_line(summary))


def print_cells(table: "Table", caption: str) -> None:
    """Print a report's table; a star marks what the report sets in bold, and the caption says what that means."""
    rows = [
        [" / ".join(part.text + "*" * part.strong for part in cell.parts) for cell in row] for row in table.rows
    ]
    starred = any(part.strong for row in table.rows for cell in row for part in cell.parts)
    print_table(table.title, table.columns, rows, f"* {table.bold}\n{caption}" if starred else caption)


def _compare(a: Path, b: Path, json: bool) -> None:
    require_evaluation()
    from cod3s.evaluate.comparison import compare_reports

    table, settings = compare_reports(a, b)
    if json:
        rows = [[cell.text for cell in row] for row in table.rows]
        print_json({"columns": table.columns, "rows": rows, "settings": settings})
        return
    for name, (left, right) in settings.items():
        say(f"{name} differs: {left} and {right}")
    print_cells(table, "")
