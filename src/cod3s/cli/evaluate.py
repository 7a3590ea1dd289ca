"""`cod3s evaluate`: the paper's tables on any bundle, any data, or anybody's outputs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli.options import BundleOption, JsonOption, numbers, seed_option
from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.errors import UsageError, require

if TYPE_CHECKING:
    from cod3s.evaluate.items import EvaluationData
    from cod3s.evaluate.judges import Opened
    from cod3s.evaluate.summary import Summary
    from cod3s.evaluate.tables import Table

DataArgument = Annotated[
    Path | None,
    typer.Argument(help="COPA's XML; SuperGLUE COPA or e-CARE JSONL; .tsv, .csv, .jsonl with `source`; .txt."),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, help="Use the first so many sources of each relation.")
]
RelationOption = Annotated[
    str, typer.Option("--relation", help="The relation of sources whose file does not say it.")
]
SecondOption = Annotated[
    str, typer.Option("--second-encoder", help="Measures semantic diversity independently; none for no such.")
]
PresetOption = Annotated[
    str, typer.Option("--preset", help="Decoding options that a system's name leaves open: paper or default.")
]
SeedOption = Annotated[int, seed_option("Of sampling and of the bootstrap.")]


def register(app: typer.Typer) -> None:
    app.command("evaluate", epilog="Example: cod3s evaluate copa-dev.xml --bundle bundle/ --limit 100 -o report/")(
        evaluate
    )


def evaluate(
    data: DataArgument = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The report folder; goes on with one begun.")
    ] = None,
    bundle: BundleOption = None,
    systems: Annotated[
        str, typer.Option("--systems", help="With commas; default the rows of the paper's tables but DPC.")
    ] = "",
    outputs: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Score these files or folders of outputs, generate nothing; repeat it."),
    ] = None,
    questions: Annotated[
        list[Path] | None, typer.Option("--questions", help="More questions to choose in; repeat it.")
    ] = None,
    sets: Annotated[str, typer.Option("--sets", help="Sizes of the sets that are scored, with commas.")] = "3,10",
    limit: LimitOption = None,
    relation: RelationOption = "",
    encoder: Annotated[
        str, typer.Option("--encoder", "-e", help="For --from without --bundle; a bundle brings its own.")
    ] = "fast",
    second_encoder: SecondOption = "static",
    preset: PresetOption = "paper",
    seed: SeedOption = 1234,
    compare: Annotated[
        tuple[Path, Path] | None, typer.Option("--compare", help="Compare two reports, do nothing else.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Generate with every system, score what they wrote, and write a report: page, tables, figures, outputs.

    Stopped at any moment, the same command goes on after the last system that was finished. With --from, outputs
    are scored without a bundle; with --compare, two reports are held against each other.
    """
    if compare:
        _compare(*compare, json=json)
        return
    if output is None:
        raise UsageError("no folder was given for the report", hint="add -o report/")
    if data is None and not outputs:
        raise UsageError("no data was given", hint="name a file of questions or sources, or outputs by --from")
    sizes = numbers(sets, "--sets")
    if min(sizes) < 1:
        raise UsageError(f"a set of {min(sizes)} answers cannot be scored", hint="--sets 3,10")
    require_evaluation()
    wanted = [read_one(path, relation) for path in questions or []]
    if outputs:
        summary = _score_stored(
            data, output, outputs, bundle, encoder, second_encoder, sizes, seed, wanted, relation
        )
    else:
        assert data is not None  # looked at above
        chosen = read_one(data, relation).first(limit)
        summary = _generate_and_score(
            chosen, output, open_one(bundle, second_encoder), systems, preset, sizes, seed, wanted
        )
    say(f"report: {output / 'report.html'}")
    if json:
        print_json(summary.record())
    else:
        _print_summary(summary)


def require_evaluation() -> None:
    """Say at once which install is missing."""
    for module in ("pyarrow", "sacrebleu", "scipy", "matplotlib", "jinja2"):
        require(module, "evaluate")


def read_one(path: Path, relation: str) -> "EvaluationData":
    """The data of a file."""
    from cod3s.evaluate.items import read_data

    return read_data(path, relation)


def open_one(bundle: Path | None, second_encoder: str) -> "Opened":
    """The bundle that was named, or the one in the package."""
    from cod3s.bundle import default_bundle
    from cod3s.evaluate.judges import open_bundle

    return open_bundle(bundle or default_bundle(), second_encoder)


def _generate_and_score(
    data: "EvaluationData",
    output: Path,
    opened: "Opened",
    systems: str,
    preset: str,
    sizes: list[int],
    seed: int,
    questions: "list[EvaluationData]",
) -> "Summary":
    from cod3s.decode.config import find_preset
    from cod3s.decode.systems import find_system
    from cod3s.evaluate.evaluation import evaluate_outputs
    from cod3s.evaluate.generation import (
        DEFAULT_SYSTEMS,
        Named,
        check_run,
        generate_outputs,
        require_system,
        run_record,
        runnable,
    )
    from cod3s.evaluate.recall import score_guessing
    from cod3s.evaluate.report import OUTPUTS, write_report

    options = find_preset(preset).with_values(k=max(sizes), seed=seed)
    if systems:
        names = list(dict.fromkeys(name.strip() for name in systems.split(",")))
        for name in names:
            require_system(opened.generator, name, data, options)
    else:
        names = list(runnable(opened.generator, DEFAULT_SYSTEMS, data, options, say))
    named = [Named(name, find_system(name).name, options) for name in names]
    check_run(output, run_record(data, dict(opened.judges.settings), options))
    with progress("generating", len(named) * len(data.items)) as advance:
        written = generate_outputs(opened.generator, data, named, output / OUTPUTS, progress=advance)
    say("scoring the outputs")
    summary = evaluate_outputs(
        written,
        data,
        opened.judges,
        sizes=sizes,
        seed=seed,
        more_questions=questions,
        inference=score_guessing(opened.folder, opened.players, opened.generator.checker, data.items, options),
    )
    write_report(output, summary, written, data.items)
    return summary


def _score_stored(
    data: Path | None,
    output: Path,
    outputs: list[Path],
    bundle: Path | None,
    encoder: str,
    second_encoder: str,
    sizes: list[int],
    seed: int,
    questions: "list[EvaluationData]",
    relation: str,
) -> "Summary":
    from cod3s.encode import load_encoder
    from cod3s.evaluate.evaluation import Judges, evaluate_outputs
    from cod3s.evaluate.judges import open_second
    from cod3s.evaluate.outputs import read_systems, sources_of
    from cod3s.evaluate.report import write_report

    written = read_systems(outputs)
    if bundle:
        judges = open_one(bundle, second_encoder).judges
    else:
        first = load_encoder(encoder)
        judges = Judges(first, open_second(second_encoder, first))
    answered = sources_of(written, read_one(data, relation) if data else None)
    with progress("scoring", len(written)) as advance:
        summary = evaluate_outputs(
            written, answered, judges, sizes=sizes, seed=seed, more_questions=questions, progress=advance
        )
    write_report(output, summary, written, answered.items)
    return summary


def _print_summary(summary: "Summary") -> None:
    from cod3s.evaluate.report import report_line
    from cod3s.evaluate.tables import distinct_table, diversity_table

    tables = [diversity_table(summary, size) for size in summary.settings["sets"]]
    tables += [distinct_table(summary, relation) for relation in summary.relations]
    for table in tables:
        print_cells(table, report_line(summary))


def print_cells(table: "Table", caption: str) -> None:
    """A report's table on the terminal; * marks what no other system is significantly better than."""
    rows = [
        [" / ".join(part.text + "*" * part.strong for part in cell.parts) for cell in row] for row in table.rows
    ]
    print_table(table.title, table.columns, rows, caption)


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
    print_cells(table, table.note)
