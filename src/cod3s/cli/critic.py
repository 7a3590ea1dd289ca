"""`cod3s critic score`: how plausible pairs are; `cod3s bundle fit-critic`: fit what judges them."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cod3s
from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.cli.parameters import BundleOption, ForceOption, JsonOption, seed_option
from cod3s.errors import UsageError
from cod3s.io.disk import require_new
from cod3s.options import SEED, find_name

if TYPE_CHECKING:
    from cod3s.critic.fitting import Fit
    from cod3s.critic.likelihoods import Pair

_BLOCK = 256  # pairs scored together

CorpusOption = Annotated[
    Path | None, typer.Option(help="A folder made by `cod3s prepare`: its dev pairs, each next to a wrong target.")
]
QuestionsOption = Annotated[
    list[Path] | None, typer.Option(help="Questions with alternatives: COPA, Balanced COPA, e-CARE; repeatable.")
]
VerdictsOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="Answers with a verdict: a table with source, relation, target and plausible (yes, partly, no); "
        "repeatable."
    ),
]
FeaturesOption = Annotated[
    str, typer.Option(help="Features to weigh, comma-separated; by default, all that the bundle gives.")
]


def fit(
    bundle: Annotated[Path, typer.Argument(help="The bundle that gets the critic.")],
    corpus: CorpusOption = None,
    questions: QuestionsOption = None,
    verdicts: VerdictsOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Dev pairs per relation of the corpus.")] = 1000,
    features: FeaturesOption = "",
    seed: Annotated[int, seed_option("Seed of the folds and of the wrong targets.")] = SEED,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Fit a critic and add it to a bundle, which ranks its answers by it from then on.

    A critic is a small model that weighs a few scores of a pair of source and answer. Each data set has the same
    weight, except that verdicts weigh as much as ten others. Figures are by cross-validation, with all
    alternatives of a question and all answers to a source in the same fold.
    """
    from cod3s.bundle import read_facts, write_facts
    from cod3s.corpus.questions import read_questions
    from cod3s.critic.examples import corpus_examples, question_examples, verdict_examples
    from cod3s.critic.features import FEATURES
    from cod3s.critic.fitting import fit_critic
    from cod3s.critic.judge import save_critic

    if corpus is None and not questions and not verdicts:
        raise UsageError("there is nothing to fit a critic on", hint="give --verdicts FILE, or a --corpus")
    require_new(bundle / "critic", force)
    names = [find_name("feature", name.strip(), FEATURES) for name in features.split(",") if name.strip()]
    generator = cod3s.load(bundle)
    examples = [example for path in verdicts or [] for example in verdict_examples(path)]
    for path in questions or []:
        examples += question_examples(path.name.partition(".")[0], read_questions(path))
    if corpus is not None:
        examples += corpus_examples(corpus, generator.encoder, limit=limit, seed=seed)
    say(f"scoring {len(examples)} pairs with {generator.facts.name}")
    fitted = fit_critic(
        examples,
        generator.models,
        generator.signer,
        features=names,
        seed=seed,
        facts={"bundle": generator.facts.name, "pairs": len(examples), "seed": seed},
    )
    save_critic(bundle / "critic", fitted.critic)
    write_facts(bundle, replace(read_facts(bundle), critic="critic"))
    if json:
        print_json(asdict(fitted))
    else:
        _print_fit(
            fitted, f"bundle {generator.facts.name} | encoder {generator.encoder.id} | seed {seed} | 5 folds"
        )


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
    file: Annotated[Path, typer.Argument(help="Pairs: .tsv, .csv or .jsonl with source and target; - for stdin.")],
    relation: Annotated[
        str, typer.Option(help="How the targets relate to the sources, if a row has no field `relation`.")
    ] = "effect",
    source_field: Annotated[str, typer.Option(help="Column of the sources.")] = "source",
    target_field: Annotated[str, typer.Option(help="Column of the targets.")] = "target",
    bundle: BundleOption = None,
    json: JsonOption = False,
) -> None:
    """Print how plausible each pair is, from 0 to 1; 0.5 and above count as plausible.

    Pairs are scored as they come in, and printed in the same order: probability, source, target. With --json, each
    row is printed with all its fields and `plausibility`.
    """
    generator = cod3s.load(bundle)
    generator.require_relation(relation)
    judge = generator.judge
    rows = _read_pairs(file, source_field, target_field, relation)
    with progress("pairs", None) as advance:
        while block := list(islice(rows, _BLOCK)):
            pairs = [pair for _, pair in block]
            for name in {pair.relation for pair in pairs}:
                generator.require_relation(name)
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
    from cod3s.critic.likelihoods import Pair
    from cod3s.decode.request import check_source
    from cod3s.io.tables import open_table

    with open_table(file) as table:
        source, target = table.text(source_field), table.text(target_field)
        for row in table:
            record = row.record if table.kind == "jsonl" else dict(zip(table.header, row.record, strict=True))
            name = str(record.get("relation") or relation)
            yield record, Pair(name, check_source(source(row)), check_source(target(row)))
