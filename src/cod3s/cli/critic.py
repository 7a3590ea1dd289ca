"""`cod3s critic`: fit a critic, score pairs with it, and add it to a bundle."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cod3s.cli.output import print_json, print_table, progress, say, training_progress
from cod3s.cli.parameters import (
    AnswersOption,
    BundleOption,
    ForceOption,
    JsonOption,
    Options,
    VerdictsOption,
    seed_option,
    takes_options,
)
from cod3s.critic.tune_config import TuneConfig
from cod3s.errors import UsageError, require_all
from cod3s.options import SEED

if TYPE_CHECKING:
    from cod3s.critic.examples import LabelledPair
    from cod3s.critic.fitting import Fit
    from cod3s.decode.plausibility import Pair

_BLOCK = 256  # pairs scored together

CorpusArgument = Annotated[
    Path | None,
    typer.Argument(help="A folder made by `cod3s prepare`: its pairs, beside wrong targets."),
]


@takes_options(TuneConfig)
def tune(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    options: Options,
    corpus: CorpusArgument = None,
    answers: AnswersOption = None,
    verdicts: VerdictsOption = None,
    bundle: BundleOption = None,
    limit: Annotated[
        int, typer.Option(min=1, help="At most this many answers, and training pairs per relation of the corpus.")
    ] = 10_000,
    max_minutes: Annotated[float | None, typer.Option(min=0.01, help="Stop after this long.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in the folder where it stopped.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Tune a verifier: the bundle's language model learns to tell plausible targets from others.

    It learns from four fifths of the verdicts, and from good answers and training pairs beside wrong ones.
    Then fit a critic on the rest: `cod3s critic train --verifier … --seen …`.
    It needs a bundle of a causal language model.
    """
    require_all("train", "torch", "transformers", "peft")
    from time import monotonic

    from cod3s.critic.examples import answer_examples, contrasted_answers, corpus_examples
    from cod3s.critic.tuning import tune_verifier
    from cod3s.decode.generator import load

    if corpus is None and not verdicts and not answers:
        raise UsageError("there is nothing to learn from", hint="give --verdicts, --answers or a corpus")
    config = TuneConfig(**options)
    generator = load(bundle)
    examples = _read_examples([], verdicts or [])
    if answers:
        good = [example for path in answers for example in answer_examples(path)]
        examples += contrasted_answers(good, generator.encoder, limit=limit, seed=config.seed)
    if corpus is not None:
        examples += corpus_examples(corpus, generator.encoder, split="train", limit=limit, seed=config.seed)
    say(f"learning from {len(examples)} pairs")
    with training_progress() as report:
        figures = tune_verifier(
            examples,
            generator.models,
            output,
            config,
            seconds=60 * max_minutes if max_minutes else None,
            resume=resume,
            report=report,
            clock=monotonic,
        )
    if json:
        print_json({"verifier": str(output), "figures": figures})
    else:
        rows = [(name, f"{value:.4f}") for name, value in figures.items()]
        settings = (
            f"bundle {generator.facts.name} | {config.layers} layers | rank {config.rank} | seed {config.seed}"
        )
        print_table("The verifier on pairs that it did not learn from", ("figure", "value"), rows, settings)


def train(
    output: Annotated[Path, typer.Option("--output", "-o", help="The critic's folder to write.")],
    corpus: CorpusArgument = None,
    questions: Annotated[
        list[Path] | None,
        typer.Option(help="Questions with alternatives: COPA, Balanced COPA, e-CARE; repeatable."),
    ] = None,
    verdicts: VerdictsOption = None,
    verifier: Annotated[
        Path | None,
        typer.Option(help="A folder made by `cod3s critic tune`: weigh what its verifier says of a pair, too."),
    ] = None,
    seen: Annotated[
        list[Path] | None,
        typer.Option(
            help="Verdicts that `cod3s refine` or `cod3s critic tune` learned from: only those that both left out "
            "count; repeatable."
        ),
    ] = None,
    bundle: BundleOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Dev pairs per relation of the corpus.")] = 1000,
    features: Annotated[
        str, typer.Option(help="The features to weigh, comma-separated; default: all except is_cause.")
    ] = "",
    seed: Annotated[int, seed_option("Seed of the folds and of the wrong targets.")] = SEED,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Fit a critic of a bundle's answers: a small model that weighs the bundle's scores of a pair.

    Every set of data counts the same, and verdicts as much as ten others. Figures are by cross-validation: all
    alternatives of a question and all answers to a source are in the same fold.
    """
    from dataclasses import asdict

    from cod3s.critic.examples import corpus_examples
    from cod3s.critic.fitting import fit_critic
    from cod3s.decode.generator import load
    from cod3s.decode.plausibility import save_critic
    from cod3s.files.disk import require_new
    from cod3s.model.adapter import load_adapter
    from cod3s.model.verifier import NAME as VERIFIER

    if corpus is None and not questions and not verdicts and not seen:
        raise UsageError("there is nothing to fit a critic on", hint="give a corpus, or --questions FILE")
    names = _feature_names(features, has_verifier=verifier is not None)
    require_new(output, force)
    adapter = load_adapter(verifier / VERIFIER) if verifier else None
    generator = load(bundle)
    examples = _read_examples(questions or [], verdicts or [])
    examples += [example for example in _read_examples([], seen or []) if example.is_held_out]
    if corpus is not None:
        examples += corpus_examples(corpus, generator.encoder, limit=limit, seed=seed)
    say(f"scoring {len(examples)} pairs with {generator.facts.name}")
    fitted = fit_critic(
        examples,
        generator.models,
        generator.signer,
        features=names,
        verifier=generator.models.verifier(adapter) if adapter else None,
        seed=seed,
        facts={"bundle": generator.facts.name, "pairs": len(examples), "seed": seed},
    )
    save_critic(output, fitted.critic, adapter)
    if json:
        print_json(asdict(fitted))
    else:
        _print_fit(
            fitted, f"bundle {generator.facts.name} | encoder {generator.encoder.id} | seed {seed} | 5 folds"
        )


def _feature_names(listed: str, *, has_verifier: bool) -> Sequence[str]:
    """The features in a comma-separated list, or the usual ones."""
    from cod3s.critic.fitting import DEFAULT_FEATURES
    from cod3s.decode.plausibility import FEATURES
    from cod3s.options import find_name

    names = [find_name("feature", name.strip(), FEATURES) for name in listed.split(",") if name.strip()]
    if "verifier" in names and not has_verifier:
        raise UsageError("the feature verifier needs a verifier", hint="name its folder with --verifier")
    return names or (*DEFAULT_FEATURES, *(["verifier"] if has_verifier else []))


def _read_examples(questions: Sequence[Path], verdicts: Sequence[Path]) -> list["LabelledPair"]:
    from cod3s.corpus.questions import read_questions
    from cod3s.critic.examples import question_examples, verdict_examples

    examples = []
    for path in questions:
        examples += question_examples(path.name.partition(".")[0], read_questions(path))
    for path in verdicts:
        examples += verdict_examples(path)
    return examples


def _print_fit(fitted: "Fit", settings: str) -> None:
    rows = [
        (
            row.data,
            row.relation or "all",
            row.questions,
            f"{row.accuracy:.3f}",
            f"{row.auc:.3f}",
            f"{row.calibration_error:.3f}",
        )
        for row in fitted.measured
    ]
    columns = ("data", "relation", "questions", "right", "AUC", "ECE")
    print_table("The critic on held-out questions", columns, rows, settings)
    weights = [(name, f"{weight:+.4f}") for name, weight in fitted.critic.weights.items()]
    print_table("Weights", ("feature", "log-odds per unit"), weights, f"floor {fitted.critic.floor:.3f}")


def score(
    file: Annotated[
        Path, typer.Argument(help="Pairs: .tsv, .csv or .jsonl with source and target, or - for stdin.")
    ],
    relation: Annotated[
        str, typer.Option(help="How the targets relate to the sources, if a row has no field `relation`.")
    ] = "effect",
    source_field: Annotated[str, typer.Option(help="Column of the sources.")] = "source",
    target_field: Annotated[str, typer.Option(help="Column of the targets.")] = "target",
    bundle: BundleOption = None,
    json: JsonOption = False,
) -> None:
    """Print how plausible each pair is, from 0 to 1; 0.5 and above count as plausible.

    Pairs are scored as they come, and printed in their order: probability, source, target; with --json, each row
    with all its fields and `plausibility`.
    """
    from cod3s.decode.generator import load

    generator = load(bundle)
    generator.require_relation(relation)
    judge = generator.judge
    rows = _read_pairs(file, source_field, target_field, relation)
    with progress("pairs", None) as advance:
        while block := list(islice(rows, _BLOCK)):
            pairs = [pair for _, pair in block]
            for named in {pair.relation for pair in pairs}:
                generator.require_relation(named)
            for (record, pair), probability in zip(block, judge(pairs).tolist(), strict=True):
                if json:
                    print_json({**record, "relation": pair.relation, "plausibility": probability})
                else:
                    typer.echo(f"{probability:.3f}\t{pair.source}\t{pair.target}")
            advance(len(block))


def _read_pairs(
    file: Path, source_field: str, target_field: str, relation: str
) -> Iterator[tuple[dict[str, Any], "Pair"]]:
    """Each row with all its fields, and the pair in it."""
    from cod3s.decode.plausibility import Pair
    from cod3s.decode.request import check_source
    from cod3s.selection.groups import open_candidates

    with open_candidates(file, None, target_field) as table:
        source, target = table.text(source_field), table.text(target_field)
        for row in table:
            record = row.record if table.kind == "jsonl" else dict(zip(table.header, row.record, strict=True))
            named = record.get("relation") or relation
            yield record, Pair(str(named), check_source(source(row)), check_source(target(row)))


def attach(
    critic: Annotated[Path, typer.Argument(help="A folder made by `cod3s critic train`.")],
    bundle: Annotated[Path, typer.Argument(help="The bundle that it was fitted on.")],
) -> None:
    """Add a critic to a bundle, which ranks its answers by it from then on."""
    from dataclasses import replace

    from cod3s.bundle import read_facts, write_facts
    from cod3s.decode.plausibility import load_critic, save_critic
    from cod3s.model.adapter import load_adapter
    from cod3s.model.verifier import NAME as VERIFIER

    facts, loaded = read_facts(bundle), load_critic(critic)
    save_critic(bundle / "critic", loaded, load_adapter(critic / VERIFIER) if loaded.needs_verifier else None)
    write_facts(bundle, replace(facts, critic="critic"))
    say(f"{bundle} ranks answers by the critic")
