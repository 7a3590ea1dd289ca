"""`cod3s train`, `export`, `info`: from a prepared corpus to a bundle."""

from pathlib import Path
from typing import Annotated

import typer

from cod3s.cli.options import JsonOption, seed_option
from cod3s.cli.output import print_json, print_table, say, training_progress
from cod3s.errors import require

LayoutOption = Annotated[
    str | None, typer.Option("--layout", help="shared: one model; separate: one a role and relation.")
]
RolesOption = Annotated[
    str | None,
    typer.Option("--roles", help="Of plain, signature, sentence, inverse, with shares: plain:0.5,sentence."),
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="warm (if none is given), default (that of the package), paper, small, pretrained, tiny, tiny-warm.",
    ),
]
InitOption = Annotated[
    str | None,
    typer.Option(
        "--init", help="Start from a BART, T5 or Marian model: a folder, or a name of the Hugging Face hub."
    ),
]
StartOption = Annotated[
    str | None,
    typer.Option("--start-run", help="Start from the weights of another run with the same shape, roles and bits."),
]
CorporaOption = Annotated[
    str | None,
    typer.Option(
        "--corpora", help="Shares of the corpora that an epoch sees, 1 if not named: blogs:0.5,essays:0."
    ),
]
PiecesOption = Annotated[
    str | None,
    typer.Option(
        "--pieces",
        help="own: learned from the corpus; encoder: the pretrained encoder's; common: those of them used most.",
    ),
]
BitsPerTokenOption = Annotated[
    int | None, typer.Option("--bits-per-token", help="1 as in the paper, up to all bits in one token.")
]
PositionalOption = Annotated[bool | None, typer.Option(help="Signature tokens of their own for each position.")]
HyperplaneOption = Annotated[bool | None, typer.Option(help="Start signature tokens from their hyperplanes.")]
EvaluateOption = Annotated[
    int | None, typer.Option("--evaluate-every", min=1, help="Steps between validations and checkpoints.")
]
TensorboardOption = Annotated[
    bool, typer.Option("--tensorboard", help="Also write the log for TensorBoard, which must be installed.")
]
MinutesOption = Annotated[
    float | None, typer.Option("--max-minutes", min=0.01, help="Stop each model after so long.")
]


def register(app: typer.Typer) -> None:
    app.command("train", epilog="Example: cod3s train corpus/ -o run/ --preset warm --max-minutes 30")(train)
    app.command("export", epilog="Example: cod3s export run/ -o bundle/ --quantization int8")(export)
    app.command("info", epilog="Example: cod3s info bundle/")(info)


def train(
    corpus: Annotated[Path, typer.Argument(help="A folder made by `cod3s prepare`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The run folder to write.")],
    preset: PresetOption = None,
    init: InitOption = None,
    start_run: StartOption = None,
    layout: LayoutOption = None,
    roles: RolesOption = None,
    corpora: CorporaOption = None,
    pieces: PiecesOption = None,
    bits_per_token: BitsPerTokenOption = None,
    positional: PositionalOption = None,
    hyperplane_start: HyperplaneOption = None,
    freeze_encoder: Annotated[bool | None, typer.Option(help="Leave the pretrained encoder as it is.")] = None,
    learning_rate: Annotated[float | None, typer.Option("--learning-rate")] = None,
    schedule: Annotated[
        str | None, typer.Option("--schedule", help="inverse_sqrt as in the paper, or linear to nothing.")
    ] = None,
    batch_tokens: Annotated[int | None, typer.Option("--batch-tokens", help="Padded tokens a step.")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1)] = None,
    warmup_steps: Annotated[int | None, typer.Option("--warmup-steps", min=0)] = None,
    evaluate_every: EvaluateOption = None,
    tensorboard: TensorboardOption = False,
    seed: Annotated[int | None, seed_option("Of all that is drawn.")] = None,
    max_minutes: MinutesOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in the folder stopped.")] = False,
    json: JsonOption = False,
) -> None:
    """Train the models of a corpus: checkpoints, a log, and the best weights at the end.

    What is not given comes from the preset. The run can be killed at any moment and gone on with by --resume.
    """
    _require_training()
    if tensorboard:
        require("tensorboard", "tensorboard")
    from cod3s.train import train as train_run
    from cod3s.train.config import find_preset, parse_corpora, parse_roles
    from cod3s.train.run import FINISHED

    preset = preset or ("pretrained" if init else "warm")
    named, shares = parse_roles(roles) if roles else (None, None)
    given = {
        "init": init,
        "start_run": start_run,
        "layout": layout,
        "roles": named,
        "shares": shares,
        "corpora": parse_corpora(corpora) if corpora else None,
        "pieces": pieces,
        "bits_per_token": bits_per_token,
        "positional": positional,
        "hyperplane_start": hyperplane_start,
        "freeze_encoder": freeze_encoder,
        "learning_rate": learning_rate,
        "schedule": schedule,
        "batch_tokens": batch_tokens,
        "epochs": epochs,
        "warmup_steps": warmup_steps,
        "evaluate_every": evaluate_every,
        "tensorboard": tensorboard or None,
        "seed": seed,
    }
    config = find_preset(preset).with_values(**{name: value for name, value in given.items() if value is not None})
    with training_progress() as report:
        figures = train_run(
            corpus,
            output,
            config,
            seconds=60 * max_minutes if max_minutes else None,
            resume=resume,
            report=report,
        )
    if any(not (output / member / FINISHED).exists() for member in figures):
        say("the time was up before the training was: --resume goes on with it")
    if json:
        print_json({"run": str(output), "figures": figures})
    else:
        _print_figures(figures, f"preset {preset} | seed {config.seed} | {output}")


def _require_training() -> None:
    """Say at once which install is missing: the modules behind these commands import such libraries."""
    for module in ("torch", "transformers", "accelerate", "pyarrow"):
        require(module, "train")


def _print_figures(figures: dict[str, dict[str, float]], settings: str) -> None:
    rows = [(member, name, f"{value:.4f}") for member, own in figures.items() for name, value in own.items()]
    print_table("Validation of the best weights", ("model", "figure", "value"), rows, settings)


def export(
    run: Annotated[Path, typer.Argument(help="A run folder made by `cod3s train`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The bundle folder to write.")],
    quantization: Annotated[str, typer.Option("--quantization", help="int8 or float32.")] = "int8",
    name: Annotated[
        str, typer.Option("--name", help="What the bundle is called; default the folder's name.")
    ] = "",
    licence: Annotated[str, typer.Option("--licence", help="Goes into the model card.")] = "",
    about: Annotated[
        Path | None, typer.Option("--about", help="A Markdown file for the model card: data, known habits.")
    ] = None,
    with_torch: Annotated[
        bool, typer.Option("--with-torch", help="Add the weights in float16 for torch: systems dbs and dpc.")
    ] = False,
    word_graph: Annotated[
        Path | None,
        typer.Option(
            "--word-graph", help="The corpus of the run: add the graph of its words, for the system dpc."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write a finished run as a bundle: engine models, tokens, hyperplanes, bins, a model card, checksums."""
    _require_training()
    from cod3s.bundle import sizes
    from cod3s.export.bundle import export as export_run
    from cod3s.files.disk import existing_file

    facts = export_run(
        run,
        output,
        name=name,
        quantization=quantization,
        licence=licence,
        with_torch=with_torch,
        word_graph=word_graph,
        about=existing_file(about).read_text(encoding="utf-8") if about else "",
    )
    size = sum(sizes(output, facts).values())
    if json:
        print_json({"bundle": str(output), "bytes": size})
    else:
        say(f"bundle {facts.name}: {size / 1e6:.1f} MB in {output}")


def info(
    bundle: Annotated[Path | None, typer.Argument(help="A bundle folder; default the one in the package.")] = None,
    json: JsonOption = False,
) -> None:
    """What a bundle is, and whether its files are still those that were exported."""
    from dataclasses import asdict

    from cod3s.bundle import default_bundle, read_facts, sizes, verify

    bundle = bundle or default_bundle()
    facts = read_facts(bundle)
    verify(bundle, facts)
    by_file = sizes(bundle, facts)
    size = sum(by_file.values())
    record = {**asdict(facts), "bytes": size, "sizes": by_file, "checksums_hold": True}
    if json:
        print_json(record)
        return
    rows = [
        ("name", facts.name),
        ("signatures", f"{facts.bits} bits of {facts.encoder}, {facts.bits_per_token} a token"),
        ("relations", ", ".join(f"{name} ({own['template']})" for name, own in facts.relations.items())),
        ("roles", ", ".join(sorted({role for own in facts.models.values() for role in own}))),
        ("models", ", ".join(sorted({name for own in facts.models.values() for name in own.values()}))),
        ("shape", f"{facts.shape}, {facts.quantization}"),
        ("medoids", "written by the model" if facts.medoids == "model" else "sentences of the training corpus"),
        ("signs answers", "by itself" if facts.own_encoder else "with the encoder installed"),
        ("size", f"{size / 1e6:.1f} MB in {len(facts.files)} files, checksums hold"),
        ("licence", facts.training.get("licence") or "not stated"),
    ]
    print_table(f"Bundle {bundle}", ("", ""), rows)
