"""Evaluate systems of a bundle, or stored outputs of any model.

Everything is computed from the outputs, so other people's outputs are scored exactly like ours.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cod3s import __version__
from cod3s.bundle import default_bundle
from cod3s.decode.config import find_preset
from cod3s.errors import Stage, UsageError, silent_stage
from cod3s.evaluate.config import EvaluateConfig
from cod3s.evaluate.generation import (
    PAPER_PRESET,
    TimeLimit,
    answered_blocks,
    check_run,
    choose_systems,
    run_record,
)
from cod3s.evaluate.grading import OF_QUESTIONS, Bars, Choice, Grader, load_generator, open_grader, question_pairs
from cod3s.evaluate.inference import Guesses, guess_gold
from cod3s.evaluate.items import EvaluationData, read_data
from cod3s.evaluate.outputs import Block, Systems, read_systems, sources_of, stored_blocks
from cod3s.evaluate.paper import is_copa_dev
from cod3s.evaluate.report import OUTPUTS, write_report
from cod3s.evaluate.scores import RelationValues, grade_sets
from cod3s.evaluate.summary import Summary, compare_systems, summarize
from cod3s.io.lock import sole_writer
from cod3s.metrics.inference import Guess, score_inference
from cod3s.metrics.lexical import lexical_settings
from cod3s.metrics.novelty import EQUIVALENCE_DISTANCE, PATIENCE
from cod3s.metrics.semantic import THRESHOLDS
from cod3s.metrics.significance import RESAMPLES

QUESTIONS_SHARE, ANSWERS_SHARE = 0.3, 0.9
"""The shares of a limited time for grading questions, and until answers are scored: the rest is for the report."""
_QUESTIONS_TOGETHER = 25


def evaluate(
    data: str | Path | None = None,
    *,
    bundle: str | Path | None = None,
    outputs: Sequence[str | Path] = (),
    questions: Sequence[str | Path] = (),
    output: str | Path | None = None,
    config: EvaluateConfig | None = None,
    force: bool = False,
    stage: Stage = silent_stage,
) -> Summary:
    """Generate with the systems of a bundle, or read stored `outputs`, score them, and write a report.

    `data` is a file of questions or sources; with `outputs` it is optional. The bundle is by default the one in
    the package, and for `outputs` none. Further `questions` test the scorers. `output` is the report folder; a
    stopped evaluation continues there, and `force` replaces outputs that were made from different data, bundles or
    options. `stage` shows how far each stage is.
    """
    config = config or EvaluateConfig()
    limit = TimeLimit(config.max_minutes)
    question_sets = [read_data(Path(path), config.relation) for path in questions]
    items = read_data(Path(data), config.relation).first(config.limit) if data is not None else None
    remarks: list[str] = []
    guess: Guesses | None = None
    with ExitStack() as stack:
        if output is not None:
            stack.enter_context(sole_writer(Path(output)))
        if outputs:
            systems = read_systems(map(Path, outputs))
            items = sources_of(systems, items)
            grader = open_grader(config.encoders, load_generator(Path(bundle)) if bundle else None, config.grader)
            blocks = stored_blocks(systems, items.items)
        elif items is not None:
            folder = Path(output or stack.enter_context(TemporaryDirectory()))
            generator = load_generator(Path(bundle or default_bundle()))
            named, remarks = choose_systems(generator, items, config)
            grader = open_grader(config.encoders, generator, config.grader)
            base = find_preset(config.preset or PAPER_PRESET, generator.defaults)
            base = base.with_values(k=max(config.sets), seed=config.seed, show_doubtful=True, sensitive=True)
            check_run(folder, folder / OUTPUTS, run_record(items, generator, base), force=force)
            limited = config.max_minutes is not None
            blocks = answered_blocks(generator, items.items, named, folder / OUTPUTS, limited=limited)
            guess = partial(guess_gold, generator, options=base)
        else:
            raise UsageError("there is nothing to evaluate", hint="give data to answer, or stored outputs")
        summary, systems = score_blocks(
            blocks,
            items,
            grader,
            config,
            more_questions=question_sets,
            guess=guess,
            remarks=remarks,
            limit=limit,
            stage=stage,
        )
        if output is not None:
            with stage("writing the report", None):
                write_report(Path(output), summary, systems, items.items)
    return summary


def evaluate_outputs(
    systems: Systems, data: EvaluationData, grader: Grader, config: EvaluateConfig, *, stage: Stage = silent_stage
) -> Summary:
    """Every figure of outputs that are there, on the items of the data that they answer."""
    return score_blocks(stored_blocks(systems, data.items), data, grader, config, stage=stage)[0]


def score_blocks(
    blocks: Iterable[Block],
    data: EvaluationData,
    grader: Grader,
    config: EvaluateConfig,
    *,
    more_questions: Sequence[EvaluationData] = (),
    guess: Guesses | None = None,
    remarks: Sequence[str] = (),
    limit: TimeLimit | None = None,
    stage: Stage = silent_stage,
) -> tuple[Summary, Systems]:
    """Every figure of every system, from blocks of items with their answers; and the answers.

    When the time is up, the rest of the blocks is left out. What systems share (vectors, grades of pairs) is
    computed once for all.
    """
    limit = limit or TimeLimit(None)
    with stage("grading questions", None):
        bars, choices = _grade_questions([data, *more_questions], grader, config, limit)
    systems: Systems = defaultdict(list)
    values: dict[str, dict[str, RelationValues]] = defaultdict(lambda: defaultdict(RelationValues))
    guesses: dict[str, dict[str, list[Guess]]] = defaultdict(lambda: defaultdict(list))
    answered: Counter[str] = Counter()
    with stage("answering and scoring", len(data.items)) as progress:
        for items, answers in limit.during(blocks, ANSWERS_SHARE):
            grade_sets([row for sets in answers.values() for row in sets], grader)
            for system, sets in answers.items():
                systems[system] += sets
                for row in sets:
                    values[system][row.relation].add(row, grader, bars, config.sets)
            for guesser, relation, guessed in guess(items) if guess else ():
                guesses[guesser][relation].append(guessed)
            answered.update(item.relation for item in items)
            progress(len(items))
    missing = len(data.items) - answered.total()
    if missing:
        remarks = [*remarks, f"time ran out: {missing} of {len(data.items)} sources are left out"]
    with stage("testing differences", None):
        comparisons = compare_systems(values)
        summary = Summary(
            settings=_settings(systems, grader, bars, config),
            data={
                "name": data.name,
                "sha256": data.sha256,
                "items": dict(answered),
                "unanswered": missing,
                "is_copa_dev": is_copa_dev((item.relation, item.source) for item in data.items),
            },
            systems=summarize(values, comparisons, config.seed),
            comparisons=comparisons,
            choices=choices,
            inference={
                guesser: {relation: score_inference(rows) for relation, rows in by_relation.items()}
                for guesser, by_relation in guesses.items()
            },
            remarks=remarks,
        )
    return summary, systems


def _grade_questions(
    sets: Sequence[EvaluationData], grader: Grader, config: EvaluateConfig, limit: TimeLimit
) -> tuple[Bars, list[Choice]]:
    """The bars from all questions of the data, which come first, and how well scorers choose on those asked."""
    first, *_ = sets
    questions = [*(row for data in sets for row in data.asked), *first.questions]
    graded = []
    together = (questions[at : at + _QUESTIONS_TOGETHER] for at in range(0, len(questions), _QUESTIONS_TOGETHER))
    for rows in limit.during(together, QUESTIONS_SHARE):
        grader.grade((pair for row in rows for pair in question_pairs(row)), OF_QUESTIONS)
        graded += rows
    choices = [
        choice
        for data in sets
        for choice in grader.choices(data.name, [row for row in data.asked if row in graded], config.seed)
    ]
    return grader.bars([row for row in first.questions if row in graded]), choices


def _settings(systems: Systems, grader: Grader, bars: Bars, config: EvaluateConfig) -> dict[str, Any]:
    encoder, *others = (vectors.encoder.id for vectors in grader.measures)
    return {
        "cod3s": __version__,
        **grader.settings,
        "encoder": encoder,
        "other_encoders": others,
        "sets": list(config.sets),
        "thresholds": list(THRESHOLDS),
        "equivalence": f"completed statements with cosine above {1 - EQUIVALENCE_DISTANCE:g}, in order",
        "patience": PATIENCE,
        **lexical_settings(),
        "seed": config.seed,
        "resamples": RESAMPLES,
        "bars": {
            scorer: {relation: round(bar, 6) for relation, bar in relations.items()}
            for scorer, relations in bars.items()
        },
        "libraries": {name: version(name) for name in ("numpy", "scipy", "sacrebleu")},
        "systems": {name: dict(sets[0].settings) for name, sets in systems.items() if sets},
    }
