"""`cod3s remember`: give a bundle known answers, which it recalls for similar sources."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import cod3s
from cod3s.cli.output import say
from cod3s.cli.parameters import ForceOption
from cod3s.errors import UsageError
from cod3s.io.disk import require_new


def remember(
    bundle: Annotated[Path, typer.Argument(help="The bundle that gets the answers.")],
    answers: Annotated[
        list[Path],
        typer.Argument(help="Good answers: tables with source, relation and target (.tsv, .csv, .jsonl)."),
    ],
    most_alike: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Of sources more alike than this (cosine), keep the one with the most answers; 1 keeps all.",
        ),
    ] = 1.0,
    force: ForceOption = False,
) -> None:
    """Give a bundle good answers to many sources, which it recalls for similar sources from then on.

    The bundle's critic decides which of them fit, so fit it again: `cod3s critic train` learns how similar two
    sources must be.
    """
    from cod3s.bundle import read_facts, write_facts
    from cod3s.critic.examples import answer_examples
    from cod3s.decode.known_answers import FOLDER, save_known

    facts, generator = read_facts(bundle), cod3s.load(bundle)
    require_new(bundle / FOLDER, force)
    known: dict[str, dict[str, list[str]]] = {}
    for pair in (example.pair for path in answers for example in answer_examples(path)):
        generator.require_relation(pair.relation)
        known.setdefault(pair.source, {}).setdefault(pair.relation, []).append(pair.target)
    if not known:
        raise UsageError("there are no answers to remember", hint="give a table with source, relation and target")
    count = save_known(bundle / FOLDER, known, generator.signer, most_alike)
    write_facts(bundle, replace(facts, known=FOLDER))
    say(f"{bundle} now knows answers to {count:,} sources")
