"""`cod3s train`: from a prepared corpus to a run folder."""

from pathlib import Path
from typing import Annotated

import typer

from cod3s.cli.output import print_json, print_table, say, training_progress
from cod3s.cli.parameters import JsonOption, Options, numbers, takes_options
from cod3s.errors import UsageError, require, require_all
from cod3s.train.config import TrainConfig, find_preset, parse_corpora, parse_roles

PresetOption = Annotated[
    str | None,
    typer.Option(
        help="Defaults for options you do not set: causal (unless you name one), paper, small, tiny, "
        "and default (how the package's bundle is trained)."
    ),
]
MinutesOption = Annotated[
    float | None, typer.Option(min=0.01, help="Stop after this many minutes; --resume continues.")
]


@takes_options(TrainConfig)
def train(
    corpus: Annotated[Path, typer.Argument(help="A folder made by `cod3s prepare`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The run folder to write.")],
    options: Options,
    preset: PresetOption = None,
    max_minutes: MinutesOption = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue the run in the folder where it stopped; does nothing if it is finished."
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Train the models of a corpus: checkpoints, a log, and the best weights at the end.

    Unless you say otherwise, training starts from the language model in the package.
    Options you do not set come from the preset; the defaults shown are those of `causal`.
    Use --resume to continue a run that was killed; without it, a folder that holds a run is refused. If its
    schedule is stable, a finished run can be continued with more --max-steps or --epochs.
    """
    require_all("train", "torch", "transformers", "accelerate", "pyarrow")
    if options.get("tensorboard"):
        require("tensorboard", "tensorboard")
    from cod3s.corpus.manifest import load_manifest
    from cod3s.train import train as train_run
    from cod3s.train.run_folder import FINISHED
    from cod3s.train.training_run import members

    preset = preset or "causal"
    if "roles" in options:
        options["roles"], options["shares"] = parse_roles(options["roles"])
    if "corpora" in options:
        options["corpora"] = parse_corpora(options["corpora"])
    if "dropped_layers" in options:
        options["dropped_layers"] = tuple(numbers(options["dropped_layers"], "--dropped-layers"))
    if options.get("init") and options.get("start_run"):
        raise UsageError(
            "a run starts from --init or from --start-run, not from both", hint="leave one of them out"
        )
    config = find_preset(preset).with_values(**options)
    with training_progress() as report:
        figures = train_run(
            corpus, output, config, seconds=60 * max_minutes if max_minutes else None, resume=resume, report=report
        )
    names = [member.name for member in members(config, list(load_manifest(corpus).relations))]
    if any(not (output / name / FINISHED).exists() for name in names):
        say("time ran out before training was finished: continue it with --resume")
    if json:
        print_json({"run": str(output), "figures": figures})
    else:
        _print_figures(figures, f"preset {preset} | seed {config.seed} | {output}")


def _print_figures(figures: dict[str, dict[str, float]], settings: str) -> None:
    rows = [
        (member, name, f"{value:.4f}") for member, by_name in figures.items() for name, value in by_name.items()
    ]
    print_table("Validation of the best weights", ("model", "figure", "value"), rows, settings)
