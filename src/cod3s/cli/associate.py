"""`cod3s associate`: teach a bundle what the vectors of sources say about their answers."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli.output import print_json, print_table, progress
from cod3s.cli.parameters import ForceOption, JsonOption, seed_option
from cod3s.options import SEED

if TYPE_CHECKING:
    from cod3s.critic.associating import Associations


def associate(
    bundle: Annotated[Path, typer.Argument(help="The bundle to teach.")],
    corpus: Annotated[Path | None, typer.Argument(help="A folder made by `cod3s prepare`, to learn from.")] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(help="Good answers to learn from, too: tables with source, relation and target; repeatable."),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(min=1, help="The maximum number of pairs per relation, from the corpus and from each table."),
    ] = 60_000,
    seed: Annotated[int, seed_option("Seed for drawing pairs and for learning.")] = SEED,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Teach a bundle what the vectors of sources say about their answers.

    Two things are learned. A head per relation infers signatures from the source's vector, so that stage 1 needs
    no language model (`--signature-search head`). An association says how well an answer goes with a source; a
    critic can weigh it (`cod3s critic train`). Both are measured on every twentieth pair, which is held out.
    It takes minutes, most of them for embedding.
    """
    from cod3s.critic.associating import learn_associations

    with progress("sentences and steps", None) as advance:
        learned = learn_associations(
            bundle, corpus, answers or [], limit=limit, seed=seed, force=force, progress=advance
        )
    if json:
        print_json({"bundle": str(bundle), **asdict(learned)})
    else:
        _print_learned(learned, f"bundle {bundle} | seed {seed}")


def _print_learned(learned: "Associations", settings: str) -> None:
    rows = [
        (relation, head.pairs, f"{head.inferred:.1%}", f"{head.guessed:.1%}")
        for relation, head in learned.heads.items()
    ]
    print_table(
        "Bits inferred for held-out pairs", ("relation", "pairs", "by the head", "guessed"), rows, settings
    )
    choices = [
        (relation, row.pairs, f"{row.right:.1%}", f"{row.by_cosine:.1%}")
        for relation, row in learned.associations.items()
    ]
    columns = ("relation", "pairs", "by the association", "by the cosine")
    print_table("A held-out pair's target preferred to a random one", columns, choices)
