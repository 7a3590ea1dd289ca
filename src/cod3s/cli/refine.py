"""`cod3s refine`: teach a bundle from good answers and from verdicts on answers."""

from pathlib import Path
from time import monotonic
from typing import Annotated

import typer

import cod3s
from cod3s.cli.output import print_json, print_table, training_progress
from cod3s.cli.parameters import AnswersOption, ForceOption, JsonOption, Options, VerdictsOption, takes_options
from cod3s.critic.refine_config import RefineConfig
from cod3s.errors import UsageError, require_all
from cod3s.io.disk import require_new, require_own


@takes_options(RefineConfig)
def refine(
    bundle: Annotated[Path, typer.Argument(help="The bundle of a causal language model to refine, or `default`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The bundle folder to write.")],
    options: Options,
    answers: AnswersOption = None,
    verdicts: VerdictsOption = None,
    work: Annotated[Path | None, typer.Option(help="Where checkpoints are kept; by default, OUTPUT.work.")] = None,
    max_minutes: Annotated[float | None, typer.Option(min=0.01, help="Stop after this many minutes.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue where an earlier run stopped.")] = False,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Teach a copy of a bundle to write good answers, to prefer accepted ones to rejected ones, and to judge them.

    It learns from the verdicts on four fifths of the sources; `cod3s critic train --seen` uses the rest.
    The weights do not change: what is learned is a small adapter, which continues to learn if you refine again.
    """
    require_all("train", "torch", "transformers", "peft")
    from cod3s.bundle import NAME, default_bundle
    from cod3s.critic.examples import answer_examples, verdict_examples
    from cod3s.critic.refining import refine as learn
    from cod3s.critic.refining import write_refined

    if not answers and not verdicts:
        raise UsageError("there is nothing to learn from", hint="give --answers, --verdicts or both")
    folder = default_bundle() if str(bundle) == "default" else bundle
    require_own(output, NAME)
    if output.resolve() == folder.resolve():
        raise UsageError("a bundle cannot be refined in place", hint="choose another folder for the output")
    require_new(output, force)
    work = work or output.with_name(f"{output.name}.work")
    generator = cod3s.load(folder)
    config = RefineConfig(**options)
    examples = [
        *(example for path in answers or () for example in answer_examples(path)),
        *(example for path in verdicts or () for example in verdict_examples(path)),
    ]
    with training_progress() as report:
        figures = learn(
            examples,
            generator.models,
            generator.signer,
            work,
            config,
            seconds=60 * max_minutes if max_minutes else None,
            resume=resume,
            report=report,
            clock=monotonic,
        )
    write_refined(folder, work, output, judges="auc" in figures)
    if json:
        print_json({"bundle": str(output), "figures": figures})
    else:
        rows = [(name, f"{value:.4f}") for name, value in figures.items()]
        settings = f"bundle {generator.facts.name} | rank {config.rank} | seed {config.seed} | {output}"
        print_table("Answers to sources that it did not learn from", ("figure", "value"), rows, settings)
