"""`cod3s bins`: build a bins file, look into it, and the paper's bin table."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli.options import (
    CodeBitsOption,
    CodeOption,
    ColumnOption,
    EncoderOption,
    JsonOption,
    SeedOption,
    SentencesArgument,
    numbers,
)
from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.cli.sts import read_scored
from cod3s.errors import Progress, require
from cod3s.options import SEED
from cod3s.text import settings_line

if TYPE_CHECKING:
    from cod3s.encode import Encoder, Vectors

BinsOption = Annotated[Path, typer.Option("--bins", help="A bins file made by `cod3s bins build`.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Bins: all sentences that share a signature.")
    group.command("build", epilog="Example: cod3s bins build sentences.txt -o bins.sqlite --bits 16")(build)
    group.command("stats", epilog="Example: cod3s bins stats sentences.txt --bits 4,8,12,16")(stats)
    group.command("show", epilog="Example: cod3s bins show 0110100111010010 --bins bins.sqlite")(show)
    group.command("tree", epilog="Example: cod3s bins tree --bins bins.sqlite --depth 3")(tree)
    group.command("reword", epilog="Example: cod3s bins reword bundle/ --corpus corpus/ -o own/ --sources 2000")(
        reword
    )
    app.add_typer(group, name="bins", no_args_is_help=True)


def build(
    sentences: SentencesArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The bins file to write.")],
    column: ColumnOption = None,
    bits: CodeBitsOption = None,
    encoder: EncoderOption = "fast",
    code: CodeOption = "random",
    seed: SeedOption = SEED,
    samples: Annotated[int, typer.Option("--samples", min=0, max=1000, help="Sentences kept a bin.")] = 5,
    json: JsonOption = False,
) -> None:
    """Sign sentences and write their bins: counts, exact medoids, samples, and the tree above them."""
    from cod3s.bins import build_bins, open_bins
    from cod3s.encode import load_encoder
    from cod3s.files.disk import require_other
    from cod3s.signatures.signer import open_code

    require_other(output, [sentences])
    chosen = load_encoder(encoder)
    hashing = open_code(code, chosen, bits, seed)
    with progress("encoding", None) as advance:
        stream = _encoded(chosen, sentences, column, advance)
        build_bins(output, stream, hashing, chosen.id, samples=samples, seed=seed)
    with open_bins(output) as file:
        record = {"file": str(output), "populated": file.populated, **asdict(file.facts)}
    if json:
        print_json(record)
    else:
        say(f"{record['sentences']} sentences in {record['populated']} bins of {record['bits']} bits: {output}")


def stats(
    sentences: SentencesArgument,
    column: ColumnOption = None,
    bits: Annotated[str, typer.Option("--bits", "-b", help="Lengths, with commas.")] = "4,8,12,16,20,24,28,32",
    encoder: EncoderOption = "fast",
    seed: SeedOption = SEED,
    sts: Annotated[Path | None, typer.Option("--sts", help="An STS file: adds the paper's row of rho.")] = None,
    json: JsonOption = False,
) -> None:
    """The paper's bin table: distinct sentences and words per populated bin, and how many are populated."""
    from cod3s.bins import BinStatistics
    from cod3s.encode import load_encoder
    from cod3s.signatures import random_code

    statistics = BinStatistics(numbers(bits, "--bits"))
    chosen = load_encoder(encoder)
    code = random_code(statistics.lengths[0], chosen.dim, seed)
    with progress("encoding", None) as advance:
        for block, vectors in _encoded(chosen, sentences, column, advance):
            statistics.add(block, code.sign(vectors))
    rows = [asdict(row) for row in statistics.rows()]
    if sts:
        for row, rho in zip(rows, _correlations(sts, chosen, statistics.lengths, seed), strict=True):
            row["rho"] = rho
    settings = {"encoder": chosen.id, "code": "random", "seed": seed, "sentences": statistics.sentences}
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
    signature: Annotated[str, typer.Argument(help="The bin's signature; fewer bits name a node of the tree.")],
    bins: BinsOption,
    samples: Annotated[int, typer.Option("--samples", min=0, help="How many of the kept samples.")] = 5,
    json: JsonOption = False,
) -> None:
    """One bin: its medoid, count, a seeded sample, and the populated bins that differ in one bit."""
    from cod3s.bins import open_bins

    with open_bins(bins) as file:
        found = file.get(signature)
        neighbours = file.neighbours(signature)
        facts = file.facts
    record = {
        "signature": signature,
        "count": found.count if found else 0,
        "medoid": found.medoid if found else None,
        "samples": found.samples[:samples] if found else [],
        "neighbours": [{"signature": n.signature, "count": n.count, "medoid": n.medoid} for n in neighbours],
    }
    if json:
        print_json(record)
        return
    settings = f"encoder {facts.encoder} | code {facts.code} | bits {facts.bits} | seed {facts.seed}"
    own = [("count", record["count"]), ("medoid", record["medoid"] or "(no sentence fell here)")]
    own += [("sample", text) for text in found.samples[:samples]] if found else []
    print_table(f"Bin {signature}", ("", "sentence"), own, settings)
    if neighbours:
        rows = [(n.signature, n.count, n.medoid) for n in neighbours]
        print_table("Neighbours at Hamming distance 1", ("signature", "count", "medoid"), rows)


def tree(
    bins: BinsOption,
    depth: Annotated[int, typer.Option("--depth", min=0, help="How many bits deep.")] = 3,
    root: Annotated[str, typer.Option("--root", help="Start at the node with these leading bits.")] = "",
    json: JsonOption = False,
) -> None:
    """The hierarchy of bins: each further bit splits a node in two; every node shows its medoid."""
    from cod3s.bins import open_bins

    with open_bins(bins) as file:
        nodes = list(file.tree(depth, root))
    if json:
        for node in nodes:
            print_json({"signature": node.signature, "count": node.count, "medoid": node.medoid})
        return
    for node in nodes:
        indent = "  " * (len(node.signature) - len(root))
        typer.echo(f"{indent}{node.signature or '·'}  {node.count:>8}  {node.medoid}")


def _encoded(
    encoder: "Encoder", path: Path, column: str | None, advance: Progress
) -> "Iterator[tuple[list[str], Vectors]]":
    """Blocks of sentences, each with the vectors of its normalised form."""
    from cod3s.files.sentences import read_sentences
    from cod3s.signatures.signer import encode_sentences

    for block, vectors in encode_sentences(encoder, read_sentences(path, column)):
        yield block, vectors
        advance(len(block))


def _correlations(path: Path, encoder: "Encoder", lengths: list[int], seed: int) -> list[float]:
    from cod3s.evaluate.sts import sts_rows

    rows = sts_rows(read_scored(path), encoder, bits=lengths, seeds=1, first_seed=seed)
    return [row.rho for row in rows if row.code == "random"]


def reword(
    bundle: Annotated[Path, typer.Argument(help="A bundle folder; it is not changed.")],
    corpus: Annotated[Path, typer.Option("--corpus", help="Its sources are answered: made by `cod3s prepare`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The bundle folder to write.")],
    sources: Annotated[int, typer.Option("--sources", min=1, help="Sources to answer, a relation.")] = 2000,
    samples: Annotated[int, typer.Option("--samples", min=0, max=1000, help="Sentences kept a bin.")] = 3,
    json: JsonOption = False,
) -> None:
    """Show the model's own sentences in a bundle's bins, where its training sentences cannot be given away.

    The counts stay those of the training corpus; a bin that no answer falls into shows the medoid of the
    smallest node of the tree above it that has one.
    """
    require("pyarrow", "corpus")
    from cod3s.bundle import read_facts
    from cod3s.export.reword import reword as reword_bundle
    from cod3s.train.pairs import read_rows

    asked = {}
    for name in read_facts(bundle).models:
        known = list(dict.fromkeys(read_rows(corpus, name, "train").source))
        asked[name] = known[:: max(1, len(known) // sources)][:sources]  # spread over the whole corpus
    with progress("answering", sum(map(len, asked.values()))) as advance:
        found = reword_bundle(bundle, output, asked, samples=samples, progress=advance)
    if json:
        print_json({"bundle": str(output), "medoids": found})
    else:
        for name, number in found.items():
            say(f"{name}: {number} bins have sentences of the model's own")
