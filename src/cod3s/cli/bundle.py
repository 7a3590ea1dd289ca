"""`cod3s bundle`: export a run as a bundle, describe a bundle, publish it."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cod3s.cli.output import print_json, print_table, say
from cod3s.cli.parameters import ForceOption, JsonOption
from cod3s.errors import Cod3sError, require_all
from cod3s.io.disk import existing_file, read_json, require_new, require_own, sha256


def export(
    run: Annotated[Path, typer.Argument(help="A run folder made by `cod3s train`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The bundle folder to write.")],
    quantization: Annotated[str, typer.Option(help="int8 or float32.")] = "int8",
    levels: Annotated[
        int,
        typer.Option(help="Values per row of int8 weights: 63 makes a wheel or zip a quarter smaller."),
    ] = 255,
    name: Annotated[str, typer.Option(help="What the bundle is called; by default, the folder's name.")] = "",
    licence: Annotated[str, typer.Option(help="Licence of the bundle.")] = "",
    about: Annotated[Path | None, typer.Option(help="Markdown file for the model card: data, weaknesses.")] = None,
    decoding: Annotated[
        str, typer.Option(help="Other defaults for generating with this bundle, such as beam=4,bins_per_answer=3.")
    ] = "",
    word_graph: Annotated[
        Path | None, typer.Option(help="The corpus of the run, to add its word graph for the system dpc.")
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Write a finished run as a bundle: engine models, tokens, hyperplanes, bins, a model card, checksums."""
    require_all("train", "torch", "transformers", "pyarrow")
    from cod3s.bundle import NAME, sizes
    from cod3s.bundle.export import export as export_run
    from cod3s.decode.config import parse_defaults

    require_own(output, NAME)
    require_new(output, force)
    facts = export_run(
        run,
        output,
        name=name,
        quantization=quantization,
        levels=levels,
        licence=licence,
        decoding=parse_defaults(decoding),
        about=existing_file(about).read_text(encoding="utf-8") if about else "",
        write_words=_word_graph_of(word_graph, run) if word_graph else None,
    )
    size = sum(sizes(output, facts).values())
    if json:
        print_json({"bundle": str(output), "bytes": size})
    else:
        say(f"bundle {facts.name}: {size / 1e6:.1f} MB in {output}")


def _word_graph_of(corpus: Path, run: Path) -> Callable[[str, Path], object]:
    """Writes the word graph of a relation; other pairs than those of the run would give a graph of other words."""
    from cod3s.corpus.manifest import NAME as MANIFEST
    from cod3s.corpus.related_words import build_word_graph

    if sha256(existing_file(corpus / MANIFEST)) != read_json(run / "config.json")["corpus"]:
        raise Cod3sError(
            f"the run was not trained on the corpus {corpus}", hint="give the folder that `cod3s train` was given"
        )
    return lambda relation, path: build_word_graph(corpus, relation, path)


def info(
    bundle: Annotated[
        str | None, typer.Argument(help="A bundle's folder, or hf:USER/NAME; by default, the one in the package.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Describe a bundle, and check that its files are unchanged since the export."""
    from cod3s.bundle import find_bundle, read_facts, sizes, verify

    folder = find_bundle(bundle)
    facts = read_facts(folder)
    verify(folder, facts)
    by_file = sizes(folder, facts)
    size = sum(by_file.values())
    if json:
        print_json({**asdict(facts), "bytes": size, "sizes": by_file, "checksums_hold": True})
        return
    weights = f"int8 with {facts.levels} levels" if facts.quantization == "int8" else facts.quantization
    rows = [
        ("name", facts.name),
        ("signatures", f"{facts.bits} bits of {facts.encoder}, {facts.bits_per_token} per token"),
        ("relations", ", ".join(f"{name} ({relation['template']})" for name, relation in facts.relations.items())),
        ("roles", ", ".join(sorted({role for roles in facts.models.values() for role in roles}))),
        ("models", ", ".join(sorted(facts.model_names))),
        ("shape", f"{facts.shape}, {weights}"),
        ("signs answers", "by itself" if facts.own_encoder else "with the encoder installed"),
        ("judges answers", "with its critic" if facts.critic else "not at all: it has no critic"),
        ("size", f"{size / 1e6:.1f} MB in {len(facts.files)} files, checksums hold"),
        ("defaults", ", ".join(f"{name} {value}" for name, value in facts.decoding.items()) or "those of cod3s"),
        ("licence", facts.licence or "not stated"),
    ]
    print_table(f"Bundle {folder}", ("", ""), rows)


def push(
    bundle: Annotated[Path, typer.Argument(help="The folder of a bundle.")],
    repository: Annotated[str, typer.Argument(help="USER/NAME on the Hugging Face hub.")],
    private: Annotated[bool, typer.Option("--private", help="Create the repository as a private one.")] = False,
    message: Annotated[str, typer.Option(help="The message of the commit on the hub.")] = "",
    json: JsonOption = False,
) -> None:
    """Publish a bundle on the Hugging Face hub; `--bundle hf:USER/NAME` opens it anywhere."""
    from cod3s.bundle.hub import push_bundle

    address = push_bundle(bundle, repository, private=private, message=message)
    if json:
        print_json({"bundle": str(bundle), "address": address})
    else:
        say(f"published: open it with --bundle {address}")
