"""`cod3s evaluate`, `sweep` and `sts`: the paper's tables for any bundle and data, or for any outputs."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.cli.parameters import BundleOption, ForceOption, JsonOption, numbers, seed_option
from cod3s.decode.decode_config import DEFAULT, MAX_K, DecodeConfig
from cod3s.errors import UsageError, require_all
from cod3s.options import SEED, options_of
from cod3s.text import settings_line

if TYPE_CHECKING:
    from cod3s.evaluate.report_tables import Table
    from cod3s.evaluate.sts import StsData, StsRow
    from cod3s.evaluate.summary import Summary

DataArgument = Annotated[
    Path | None,
    typer.Argument(
        help="COPA's XML; SuperGLUE COPA or e-CARE JSONL; .tsv, .csv, .jsonl with `source`; .txt; - for stdin."
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Use only the first sources of each relation, and their questions."),
]
RelationOption = Annotated[
    str, typer.Option("--relation", help="The relation of sources whose file does not name it.")
]
SystemsOption = Annotated[
    str,
    typer.Option(
        "--systems",
        help="Comma-separated; by default cod3s, s2s, s2s-rs and cod3s-mmi-mmi; `all` adds the other rows of "
        "the paper's tables except DPC.",
    ),
]
OutputsOption = Annotated[
    list[Path] | None,
    typer.Option("--from", help="Score these files or folders of outputs instead of generating; repeatable."),
]
PresetOption = Annotated[
    str,
    typer.Option(
        "--preset",
        help="The options of all systems: paper, quick or default. If not given, cod3s has those of default, the "
        "others those of paper. With quick, the others have narrower beams and take much less time.",
    ),
]
SecondOption = Annotated[
    str, typer.Option("--second-encoder", help="A second, independent measure of semantic diversity; or none.")
]
SeedOption = Annotated[int, seed_option("Seed for sampling and for the bootstrap.")]
_VALUES = "Several values, comma-separated; the base value is always included. `-` leaves this option unchanged."


def evaluate(
    data: DataArgument = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The report folder; a stopped evaluation continues.")
    ] = None,
    bundle: BundleOption = None,
    systems: SystemsOption = "",
    outputs: OutputsOption = None,
    questions: Annotated[
        list[Path] | None, typer.Option(help="More questions to test the scorers on; repeatable.")
    ] = None,
    sets: Annotated[str, typer.Option(help="Sizes of the scored sets, comma-separated.")] = "3,10",
    limit: LimitOption = None,
    relation: RelationOption = "",
    encoder: Annotated[
        str, typer.Option("--encoder", "-e", help="For --from without --bundle; a bundle has its own.")
    ] = "fast",
    second_encoder: SecondOption = "static",
    preset: PresetOption = "",
    seed: SeedOption = SEED,
    compare: Annotated[tuple[Path, Path] | None, typer.Option(help="Only compare these two reports.")] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Generate with every system, score the answers, and write a report with a page, tables, figures and outputs.

    If stopped, the same command continues after the last finished system; a finished report is replaced only
    with --force. --from scores stored outputs, even without a bundle; --compare compares two reports.
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
    from cod3s.evaluate.report import PAGE
    from cod3s.io.disk import require_new

    require_new(output / PAGE, force)
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
        force=force,
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
    require_all("evaluate", "pyarrow", "sacrebleu", "scipy", "matplotlib", "jinja2")


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


def _axis(name: str) -> Any:
    """The values to try for an option of decoding."""
    return typer.Option(f"--{name.replace('_', '-')}", help=f"{options_of(DecodeConfig)[name].help} {_VALUES}")


def sweep(
    data: Annotated[Path, typer.Argument(help="The same data as for `cod3s evaluate`.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write; a stopped sweep continues.")
    ],
    bundle: Annotated[
        list[Path] | None, typer.Option(help="Repeat to compare bits or tokens; the first one judges.")
    ] = None,
    # The values that the paper tried for t, lambda_s and lambda_y, or orders of magnitude where it says so.
    min_hamming: Annotated[str, _axis("min_hamming")] = "0,1,2,3,4,5,6",
    signature_weight: Annotated[str, _axis("signature_weight")] = "0,1,10,100,1000,10000",
    sentence_weight: Annotated[str, _axis("sentence_weight")] = "0,0.1,0.2,0.3,0.5,1,3",
    grid: Annotated[bool, typer.Option("--grid", help="Try all combinations, not one option at a time.")] = False,
    k: Annotated[int, typer.Option("-k", min=2, max=MAX_K, help="Answers per source.")] = DEFAULT.k,
    limit: LimitOption = 20,
    relation: RelationOption = "",
    second_encoder: SecondOption = "none",
    preset: Annotated[
        str, typer.Option(help="Defaults for the other options: paper, quick or default.")
    ] = "paper",
    seed: SeedOption = SEED,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Decode with many settings and show the curves, and which settings no other beats.

    As in the paper's appendix D: the Hamming threshold t, and the weights of MMI for signatures and for sentences.
    Bundles with different bit lengths, or with all bits in one token, become separate lines.
    """
    values_of_options = {
        "min_hamming": min_hamming,
        "signature_weight": signature_weight,
        "sentence_weight": sentence_weight,
    }
    axes = {
        name: numbers(text, f"--{name.replace('_', '-')}", float)
        for name, text in values_of_options.items()
        if text != "-"
    }
    require_evaluation()
    from cod3s.bundle import default_bundle
    from cod3s.decode.decode_config import find_preset
    from cod3s.evaluate.items import read_data
    from cod3s.evaluate.judges import open_bundle
    from cod3s.evaluate.sweep import PAGE, sweep_table, write_sweep
    from cod3s.evaluate.sweep import sweep as run_sweep
    from cod3s.io.disk import require_new
    from cod3s.io.lock import sole_writer

    require_new(output / PAGE, force)
    chosen = read_data(data, relation).first(limit)
    base = find_preset(preset).with_values(k=k, seed=seed)
    bundles = {path.resolve().name: open_bundle(path, second_encoder) for path in bundle or [default_bundle()]}
    if len(bundles) < len(bundle or [1]):
        raise UsageError(
            "two bundles have folders of the same name", hint="rename a folder: the names label the curves"
        )
    with sole_writer(output):
        swept = run_sweep(
            bundles, chosen, output, axes=axes, base=base, grid=grid, seed=seed, force=force, stage=progress
        )
        write_sweep(output, swept)
    say(f"sweep: {output / 'sweep.html'}")
    if json:
        print_json(swept.record())
    else:
        print_cells(sweep_table(swept), swept.line)


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
    from cod3s.evaluate.sts import plot_sts, sts_rows
    from cod3s.io.disk import require_new

    if plot:
        require_new(plot, force)
    data = read_scored(file)
    fitting = sorted({text for pair in read_scored(fit).pairs for text in (pair.a, pair.b)}) if fit else None
    kinds = codes.split(",")
    rows: list[StsRow] = []
    with progress("encoders", len(encoder)) as advance:
        for name in encoder:
            rows += sts_rows(
                data, load_encoder(name), bits=numbers(bits, "--bits"), codes=kinds, seeds=seeds, fit=fitting
            )
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
    else:
        _print_correlations(rows, caption)


def read_scored(path: Path) -> "StsData":
    """The scored pairs of a file; other rows are reported on stderr."""
    from cod3s.evaluate.sts import read_sts

    data = read_sts(path)
    for line, reason in data.rejected:
        say(f"{path}, line {line}: left out, {reason}")
    return data


def _print_correlations(rows: "list[StsRow]", settings: str) -> None:
    """Print a row per encoder, code and length, which fits 80 columns however many there are."""
    table = [
        (row.encoder, row.code, row.bits or "", f"{row.rho:.3f}" + (f" ± {row.sd:.3f}" if row.bits else ""))
        for row in rows
    ]
    title = "Spearman's rho with human scores (mean ± sd over seeds)"
    print_table(title, ("encoder", "code", "bits", "rho"), table, settings)
