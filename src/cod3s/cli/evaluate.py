"""`cod3s evaluate`, `sweep` and `sts`: the paper's tables for any bundle and data, or for any outputs."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.cli.parameters import BundleOption, ForceOption, JsonOption, Options, numbers, takes_options
from cod3s.errors import UsageError, require_all
from cod3s.evaluate.config import EvaluateConfig, SweepConfig
from cod3s.options import SEED
from cod3s.text import settings_line

if TYPE_CHECKING:
    from cod3s.evaluate.sts import StsData
    from cod3s.evaluate.tables import Table

_FORMATS = "COPA's XML; SuperGLUE COPA or e-CARE JSONL; .tsv, .csv, .jsonl with `source`; .txt; - for stdin."


@takes_options(EvaluateConfig)
def evaluate(
    options: Options,
    data: Annotated[Path | None, typer.Argument(help=_FORMATS)] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The report folder; a stopped evaluation continues.")
    ] = None,
    bundle: BundleOption = None,
    outputs: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Score these files or folders of outputs instead of generating; repeatable."),
    ] = None,
    questions: Annotated[
        list[Path] | None, typer.Option(help="More questions to test the scorers on; repeatable.")
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Generate with every system, score the answers, and write a report with a page, tables, figures and outputs.

    If stopped, the same command continues after the last answer; a finished report is replaced only with --force.
    --from scores stored outputs, even without a bundle.
    """
    if output is None:
        raise UsageError("no folder was given for the report", hint="add -o report/")
    if data is None and not outputs:
        raise UsageError("no data was given", hint="name a file of questions or sources, or outputs with --from")
    config = EvaluateConfig(**_parsed(options, sets=int, systems=str, encoders=str))
    require_evaluation()
    from cod3s.evaluate.evaluation import evaluate as run_evaluation
    from cod3s.evaluate.report import PAGE, is_unfinished, report_line
    from cod3s.evaluate.tables import distinct_table, diversity_table, plausibility_table
    from cod3s.io.disk import require_new

    require_new(output / PAGE, force or is_unfinished(output))
    summary = run_evaluation(
        data,
        bundle=bundle,
        outputs=outputs or (),
        questions=questions or (),
        output=output,
        config=config,
        force=force,
        stage=progress,
    )
    say(f"report: {output / PAGE}")
    for remark in summary.remarks:
        say(remark)
    if json:
        print_json(summary.record())
        return
    relations = summary.relations
    tables = [diversity_table(summary, size, relation) for relation in relations for size in config.sets]
    tables += [
        table(summary, relation) for table in (distinct_table, plausibility_table) for relation in relations
    ]
    print_tables(tables, report_line(summary))


@takes_options(SweepConfig)
def sweep(
    options: Options,
    data: Annotated[Path, typer.Argument(help="The same data as for `cod3s evaluate`.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write; a stopped sweep continues.")
    ],
    bundle: Annotated[
        list[Path] | None, typer.Option(help="Repeat to compare bits or tokens; the first one measures.")
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Decode with one option changed at a time, and show the curves of diversity, plausibility and fidelity.

    As in the paper's appendix C: the Hamming threshold t, and the weights of MMI for signatures and for sentences.
    Bundles with different bit lengths, or with all bits in one token, become separate lines.
    """
    parsed = _parsed(options, min_hamming=int, signature_weight=float, sentence_weight=float, encoders=str)
    config = SweepConfig(**parsed)
    require_evaluation()
    from cod3s.bundle import default_bundle
    from cod3s.evaluate.sweep import PAGE
    from cod3s.evaluate.sweep import sweep as run_sweep
    from cod3s.io.disk import require_new

    require_new(output / PAGE, force)
    bundles = bundle or [default_bundle()]
    swept = run_sweep(data, output, bundles=bundles, config=config, force=force, stage=progress)
    say(f"sweep: {output / PAGE}")
    for remark in swept.remarks:
        say(remark)
    if json:
        print_json(swept.record())
    else:
        print_tables([swept.table()], swept.line)


def sts(
    file: Annotated[Path, typer.Argument(help="STSbenchmark, as TSV (the release) or CSV; - for stdin.")],
    encoder: Annotated[
        list[str],
        typer.Option("--encoder", "-e", help="An encoder to test: fast, static, sbert:NAME …; repeatable."),
    ] = [  # noqa: B006 - typer copies the default
        "fast"
    ],
    bits: Annotated[
        str, typer.Option("--bits", "-b", help="Numbers of bits, comma-separated.")
    ] = "4,8,16,32,64,128,256",
    codes: Annotated[str, typer.Option(help="random, median, itq, comma-separated.")] = "random",
    seeds: Annotated[int, typer.Option(min=1, max=1000, help=f"Number of seeds, starting at {SEED}.")] = 5,
    fit: Annotated[
        Path | None, typer.Option(help="STS file whose sentences (not scores) fit learned codes.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot rho against bits: .png, .pdf or .svg.")] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Correlate cosines and signature distances with human scores: the paper's tables 1 and 6."""
    from cod3s import __version__
    from cod3s.encode import load_encoder
    from cod3s.evaluate.sts import StsRow, plot_sts, sts_rows
    from cod3s.io.disk import require_new

    if plot:
        require_new(plot, force)
    data = read_scored(file)
    fitting = sorted({text for pair in read_scored(fit).pairs for text in (pair.a, pair.b)}) if fit else None
    kinds, lengths = codes.split(","), numbers(bits, "--bits")
    rows: list[StsRow] = []
    with progress("encoders", len(encoder)) as advance:
        for name in encoder:
            rows += sts_rows(data, load_encoder(name), bits=lengths, codes=kinds, seeds=seeds, fit=fitting)
            advance(1)
    settings: dict[str, str | int] = {
        "data": file.name,
        "pairs": len(data.pairs),
        "rejected": len(data.rejected),
        "distinct_scores": data.distinct_scores,
        "seeds": f"{SEED}-{SEED + seeds - 1}",
        "version": __version__,
    }
    if set(kinds) - {"random"}:
        settings["fit"] = fit.name if fit else "the same sentences"
    caption = settings_line(settings)
    if plot:
        plot_sts(rows, plot, caption)
        say(f"plot: {plot}")
    if json:
        print_json({"settings": settings, "rows": [asdict(row) for row in rows]})
        return
    # A row per encoder, code and length fits 80 columns however many there are.
    cells = [
        (row.encoder, row.code, row.bits or "", f"{row.rho:.3f}" + (f" ± {row.sd:.3f}" if row.bits else ""))
        for row in rows
    ]
    title = "Spearman's rho with human scores (mean ± sd over seeds)"
    print_table(title, ("encoder", "code", "bits", "rho"), cells, caption)


def read_scored(path: Path) -> "StsData":
    """The scored pairs of a file; other rows are reported on stderr."""
    from cod3s.evaluate.sts import read_sts

    data = read_sts(path)
    for line, reason in data.rejected:
        say(f"{path}, line {line}: left out, {reason}")
    return data


def require_evaluation() -> None:
    """Fail early if an optional library is missing."""
    require_all("evaluate", "pyarrow", "sacrebleu", "scipy", "matplotlib", "jinja2")


def print_tables(tables: "list[Table]", line: str) -> None:
    """Print a report's tables; below the last one, what stars and daggers mean, and the settings."""
    from cod3s.evaluate.tables import OWN_GRADES

    for table in tables:
        rows = [[cell.text + "*" * cell.strong for cell in row] for row in table.rows]
        print_table(table.title, table.columns, rows)
    cells = [(table, cell) for table in tables for row in table.rows for cell in row]
    notes = dict.fromkeys(f"* {table.bold}" for table, cell in cells if cell.strong)
    notes |= dict.fromkeys(OWN_GRADES for _, cell in cells if cell.text.endswith("†"))
    typer.echo("\n".join([*notes, line]))


def _parsed(options: Options, **kinds: type) -> Options:
    """The options with lists instead of comma-separated text; `-` is an empty list."""
    parsed = dict(options)
    for name in kinds.keys() & options.keys():
        text, kind = options[name], kinds[name]
        if kind is str:
            values = list(dict.fromkeys(part.strip() for part in text.split(",")))
        else:
            values = [] if text == "-" else numbers(text, f"--{name.replace('_', '-')}", kind)
        parsed[name] = tuple(values)
    return parsed
