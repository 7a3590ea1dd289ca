"""The `bins` commands: build a bins file, look into it, and print the paper's table of bins."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import cod3s
from cod3s.cli.evaluate import read_scored
from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.cli.parameters import (
    CodeBitsOption,
    CodeOption,
    ColumnOption,
    EncoderOption,
    ForceOption,
    JsonOption,
    SeedOption,
    SentencesArgument,
    numbers,
)
from cod3s.io.disk import require_new, require_other
from cod3s.io.tables import read_sentences
from cod3s.options import SEED
from cod3s.records import Bin
from cod3s.text import settings_line

if TYPE_CHECKING:
    from cod3s.encode import Encoder

BinsArgument = Annotated[Path, typer.Argument(help="A file made by `cod3s bins build`, or one of a bundle's.")]


def build(
    sentences: SentencesArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The bins file to write.")],
    column: ColumnOption = None,
    bits: CodeBitsOption = None,
    encoder: EncoderOption = "fast",
    code: CodeOption = "random",
    seed: SeedOption = SEED,
    samples: Annotated[int, typer.Option(min=0, max=1000, help="Sentences kept per bin.")] = 5,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Sign sentences and write their bins: counts, exact medoids, samples, and the tree above the bins."""
    from cod3s.signatures.signer import encode_sentences, open_code

    require_other(output, [sentences])
    require_new(output, force)
    loaded = cod3s.load_encoder(encoder)
    opened_code = open_code(code, loaded, bits, seed)
    with progress("encoding", None) as advance:
        stream = encode_sentences(loaded, read_sentences(sentences, column), advance)
        cod3s.build_bins(output, stream, opened_code, loaded.id, samples=samples, seed=seed)
    with cod3s.open_bins(output) as file:
        record = {"file": str(output), "populated": file.populated, **asdict(file.facts)}
    if json:
        print_json(record)
    else:
        say(f"{record['sentences']} sentences in {record['populated']} bins of {record['bits']} bits: {output}")


def stats(
    sentences: SentencesArgument,
    column: ColumnOption = None,
    bits: Annotated[
        str, typer.Option("--bits", "-b", help="Numbers of bits, comma-separated.")
    ] = "4,8,12,16,20,24,28,32",
    encoder: EncoderOption = "fast",
    seed: SeedOption = SEED,
    sts: Annotated[Path | None, typer.Option(help="An STS file: adds its rho for each number of bits.")] = None,
    json: JsonOption = False,
) -> None:
    """Print the paper's table of bins: distinct sentences and words per bin, and how many bins are populated."""
    from cod3s.bins import BinStatistics
    from cod3s.signatures.signer import encode_sentences

    statistics = BinStatistics(numbers(bits, "--bits"))
    loaded = cod3s.load_encoder(encoder)
    code = cod3s.random_code(statistics.lengths[0], loaded.dim, seed)
    with progress("encoding", None) as advance:
        for block, vectors in encode_sentences(loaded, read_sentences(sentences, column), advance):
            statistics.add(block, code.sign(vectors))
    rows = [asdict(row) for row in statistics.rows()]
    if sts:
        for row, rho in zip(rows, _correlations(sts, loaded, statistics.lengths, seed), strict=True):
            row["rho"] = rho
    settings = {"encoder": loaded.id, "code": "random", "seed": seed, "sentences": statistics.sentences}
    if json:
        print_json({"settings": settings, "rows": rows})
        return
    columns = ("bits", "distinct sentences / bin", "distinct unigrams / bin", "populated", "% populated")
    print_table(
        "Sentences in bins (mean ± sd over populated bins)",
        (*columns, "STS rho") if sts else columns,
        [
            (
                row["bits"],
                f"{row['sentences_mean']:.2f} ± {row['sentences_sd']:.2f}",
                f"{row['unigrams_mean']:.2f} ± {row['unigrams_sd']:.2f}",
                row["populated"],
                f"{100 * row['share_populated']:.4g}",
                *([f"{row['rho']:.3f}"] if sts else []),
            )
            for row in rows
        ],
        settings_line(settings),
    )


def show(
    bins: BinsArgument,
    signature: Annotated[str, typer.Argument(help="The bin's signature; fewer bits name a node of the tree.")],
    samples: Annotated[int, typer.Option(min=0, help="How many of the stored samples to show.")] = 5,
    json: JsonOption = False,
) -> None:
    """Show a bin: its medoid, count, a seeded sample, and the populated bins that differ in one bit."""
    with cod3s.open_bins(bins) as file:
        bin = file.get(signature) or Bin(signature, count=0, medoid="", samples=())
        neighbors = file.neighbors(signature)
        facts = file.facts
    record = {
        "signature": signature,
        "count": bin.count,
        "medoid": bin.medoid or None,
        "samples": bin.samples[:samples],
        "neighbors": [{"signature": n.signature, "count": n.count, "medoid": n.medoid} for n in neighbors],
    }
    if json:
        print_json(record)
        return
    settings = f"encoder {facts.encoder} | code {facts.code} | bits {facts.bits} | seed {facts.seed}"
    lines = [("count", bin.count), ("medoid", bin.medoid or "(this bin has no sentences)")]
    lines += [("sample", text) for text in bin.samples[:samples]]
    print_table(f"Bin {signature}", ("", "sentence"), lines, settings)
    if neighbors:
        rows = [(n.signature, n.count, n.medoid) for n in neighbors]
        print_table("Neighbors at Hamming distance 1", ("signature", "count", "medoid"), rows)


def tree(
    bins: BinsArgument,
    depth: Annotated[int, typer.Option(min=0, help="How many bits deep to go.")] = 3,
    root: Annotated[str, typer.Option(help="Start at the node with these leading bits.")] = "",
    json: JsonOption = False,
) -> None:
    """Print the tree of bins: each bit splits a node in two, and every node shows its medoid."""
    with cod3s.open_bins(bins) as opened:
        nodes = list(opened.tree(depth, root))
    if json:
        for node in nodes:
            print_json({"signature": node.signature, "count": node.count, "medoid": node.medoid})
        return
    for node in nodes:
        indent = "  " * (len(node.signature) - len(root))
        typer.echo(f"{indent}{node.signature or '·'}  {node.count:>8}  {node.medoid}")


def _correlations(path: Path, encoder: "Encoder", lengths: list[int], seed: int) -> list[float]:
    from cod3s.evaluate.sts import sts_rows

    rows = sts_rows(read_scored(path), encoder, bits=lengths, seeds=1, first_seed=seed)
    return [row.rho for row in rows if row.code == "random"]
