"""`cod3s train`, `export`, `info`: from a prepared corpus to a bundle."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cod3s.cli.output import print_json, print_table, say, training_progress
from cod3s.cli.parameters import ForceOption, JsonOption, Options, numbers, takes_options
from cod3s.errors import require, require_all
from cod3s.io.disk import existing_file, require_new, require_own
from cod3s.train.config import DEFAULT_INIT, TrainConfig, find_preset, parse_corpora, parse_roles

PresetOption = Annotated[
    str | None,
    typer.Option(
        help="Defaults for options you do not set: causal (unless you name one), paper, small, pretrained "
        "(a seq2seq model that --init names), tiny, and default (how the package's bundle began)."
    ),
]
MinutesOption = Annotated[float | None, typer.Option(min=0.01, help="Stop each model after this many minutes.")]


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
    Use --resume to continue a run that was killed; without it, a folder that holds a run is refused.
    """
    _require_training()
    if options.get("tensorboard"):
        require("tensorboard", "tensorboard")
    from cod3s.train import train as train_run
    from cod3s.train.run_folder import FINISHED

    preset = preset or _preset_for(options.get("init"))
    if "roles" in options:
        options["roles"], options["shares"] = parse_roles(options["roles"])
    if "corpora" in options:
        options["corpora"] = parse_corpora(options["corpora"])
    if "dropped_layers" in options:
        options["dropped_layers"] = tuple(numbers(options["dropped_layers"], "--dropped-layers"))
    config = find_preset(preset).with_values(**options)
    with training_progress() as report:
        figures = train_run(
            corpus, output, config, seconds=60 * max_minutes if max_minutes else None, resume=resume, report=report
        )
    if any(not (output / member / FINISHED).exists() for member in figures):
        say("time ran out before training was finished: continue it with --resume")
    if json:
        print_json({"run": str(output), "figures": figures})
    else:
        _print_figures(figures, f"preset {preset} | seed {config.seed} | {output}")


def _require_training() -> None:
    """Fail early if an optional library is missing."""
    require_all("train", "torch", "transformers", "accelerate", "pyarrow")


def _preset_for(init: str | None) -> str:
    """The preset for a pretrained model: causal language models are trained differently from seq2seq models."""
    from cod3s.bundle import is_bundle
    from cod3s.model.causal import is_causal

    causal = init in (None, DEFAULT_INIT) or is_causal(init) or is_bundle(Path(init))
    return "causal" if causal else "pretrained"


def _print_figures(figures: dict[str, dict[str, float]], settings: str) -> None:
    rows = [
        (member, name, f"{value:.4f}") for member, by_name in figures.items() for name, value in by_name.items()
    ]
    print_table("Validation of the best weights", ("model", "figure", "value"), rows, settings)


def export(
    run: Annotated[Path, typer.Argument(help="A run folder made by `cod3s train`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The bundle folder to write.")],
    quantization: Annotated[
        str, typer.Option(help="int8, float32, or for causal models int6 (smaller).")
    ] = "int8",
    name: Annotated[str, typer.Option(help="What the bundle is called; by default, the folder's name.")] = "",
    licence: Annotated[str, typer.Option(help="Licence for the model card.")] = "",
    about: Annotated[Path | None, typer.Option(help="Markdown file for the model card: data, weaknesses.")] = None,
    with_torch: Annotated[
        bool,
        typer.Option("--with-torch", help="Add float16 weights for torch, which the systems dbs and dpc need."),
    ] = False,
    word_graph: Annotated[
        Path | None, typer.Option(help="The corpus of the run, to add its word graph for the system dpc.")
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Write a finished run as a bundle: engine models, tokens, hyperplanes, bins, a model card, checksums."""
    _require_training()
    from cod3s.bundle import NAME, sizes
    from cod3s.export.bundle_writer import export as export_run

    require_own(output, NAME)
    require_new(output, force)
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
    bundle: Annotated[Path | None, typer.Argument(help="A bundle; by default, the one in the package.")] = None,
    json: JsonOption = False,
) -> None:
    """Describe a bundle, and check that its files are unchanged since the export."""
    from cod3s.bundle import default_bundle, read_facts, sizes, verify
    from cod3s.decode.known_answers import load_known

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
        ("signatures", f"{facts.bits} bits of {facts.encoder}, {facts.bits_per_token} per token"),
        ("relations", ", ".join(f"{name} ({relation['template']})" for name, relation in facts.relations.items())),
        ("roles", ", ".join(sorted({role for roles in facts.models.values() for role in roles}))),
        ("models", ", ".join(sorted(facts.model_names))),
        ("shape", f"{facts.shape}, {facts.quantization}"),
        ("medoids", "written by the model" if facts.medoids == "model" else "sentences of the training corpus"),
        ("signs answers", "by itself" if facts.own_encoder else "with the encoder installed"),
        ("judges answers", "with its critic" if facts.critic else "not at all: it has no critic"),
        ("infers bins", "from a source's vector, or by its model" if facts.associations else "by its model"),
        ("known answers", f"to {len(load_known(bundle / facts.known)):,} sources" if facts.known else "none"),
        ("size", f"{size / 1e6:.1f} MB in {len(facts.files)} files, checksums hold"),
        ("licence", facts.training.get("licence") or "not stated"),
    ]
    print_table(f"Bundle {bundle}", ("", ""), rows)
