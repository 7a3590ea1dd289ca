"""The `sts` command: how well signatures agree with human similarity scores."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.cli.parameters import ForceOption, JsonOption, numbers
from cod3s.options import SEED
from cod3s.text import settings_line

if TYPE_CHECKING:
    from cod3s.evaluate.sts import StsData, StsRow


def sts(
    file: Annotated[Path, typer.Argument(help="STSbenchmark, as TSV (the release) or CSV; - for stdin.")],
    encoder: Annotated[list[str], typer.Option("--encoder", "-e", help="Encoder; repeatable.")] = [  # noqa: B006 - typer copies the default
        "fast"
    ],
    bits: Annotated[str, typer.Option("--bits", "-b", help="Lengths, with commas.")] = "4,8,16,32,64,128,256",
    codes: Annotated[str, typer.Option(help="random, median, itq, separated by commas.")] = "random",
    seeds: Annotated[int, typer.Option(min=1, max=1000, help=f"Number of seeds, from {SEED} on.")] = 5,
    fit: Annotated[
        Path | None, typer.Option(help="STS file whose sentences (not scores) fit learned codes.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot rho against bits: .png, .pdf or .svg.")] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Spearman's rho of full cosine and of signature distance with human scores (the paper's tables 1 and 6)."""
    from cod3s import __version__
    from cod3s.encode import load_encoder
    from cod3s.evaluate.sts import plot_sts, sts_rows
    from cod3s.files.disk import require_new

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
        _print_rows(rows, caption)


def read_scored(path: Path) -> "StsData":
    """The scored pairs of a file; other rows are reported on stderr."""
    from cod3s.evaluate.sts import read_sts

    data = read_sts(path)
    for line, reason in data.rejected:
        say(f"{path}, line {line}: left out, {reason}")
    return data


def _print_rows(rows: "list[StsRow]", settings: str) -> None:
    """Print one row per encoder, code and length: 80 columns hold them, however many there are."""
    table = [
        (row.encoder, row.code, row.bits or "", f"{row.rho:.3f}" + (f" ± {row.sd:.3f}" if row.bits else ""))
        for row in rows
    ]
    title = "Spearman's rho with human scores (mean ± sd over seeds)"
    print_table(title, ("encoder", "code", "bits", "rho"), table, settings)
