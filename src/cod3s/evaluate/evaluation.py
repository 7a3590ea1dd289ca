"""Evaluate systems of a bundle, or stored outputs of any model.

Everything is computed from the outputs, so other people's outputs are scored exactly like ours.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cod3s import __version__
from cod3s.bundle import default_bundle
from cod3s.decode.decode_config import find_preset
from cod3s.encode import load_encoder
from cod3s.errors import Stage, UsageError, silent_stage
from cod3s.evaluate.generation import (
    PAPER_PRESET,
    SYSTEM_GROUPS,
    check_run,
    generate_outputs,
    name_systems,
    require_system,
    run_record,
    runnable,
)
from cod3s.evaluate.items import EvaluationData, read_data
from cod3s.evaluate.judged_pairs import (
    OF_QUESTIONS,
    TextVectors,
    find_bars,
    judge_pairs,
    question_pairs,
    score_choices,
    wrong_pairs,
)
from cod3s.evaluate.judges import Judges, open_bundle, open_second
from cod3s.evaluate.outputs import read_systems, sources_of
from cod3s.evaluate.recall import score_recall
from cod3s.evaluate.report import OUTPUTS, write_report
from cod3s.evaluate.scores import Scoring, answer_pairs, score_system, statements
from cod3s.evaluate.summary import Summary, summarise
from cod3s.io.lock import sole_writer
from cod3s.metrics.inference import InferenceScores
from cod3s.metrics.lexical import lexical_settings
from cod3s.metrics.novelty import EQUIVALENCE_DISTANCE, PATIENCE
from cod3s.metrics.semantic import THRESHOLDS
from cod3s.metrics.significance import RESAMPLES
from cod3s.options import SEED
from cod3s.records import AnswerSet

BARRED = ("relevance", "backward_pmi")
"""Scorers whose values are comparable across sources, so that one bar serves a whole relation."""
SIZES = (3, 10)
"""The paper's set sizes."""


def evaluate(
    data: str | Path | None = None,
    *,
    bundle: str | Path | None = None,
    outputs: Sequence[str | Path] = (),
    systems: Sequence[str] = (),
    limit: int | None = None,
    output: str | Path | None = None,
    relation: str = "",
    questions: Sequence[str | Path] = (),
    sizes: Sequence[int] = SIZES,
    encoder: str = "fast",
    second_encoder: str = "static",
    preset: str = "",
    seed: int = SEED,
    force: bool = False,
    remark: Callable[[str], None] = lambda _: None,
    stage: Stage = silent_stage,
) -> Summary:
    """Generate with the systems of a bundle, or read stored `outputs`, score them, and write a report.

    `data` is a file of questions or sources; with `outputs` it is optional. Without `systems`, four run; with
    `["all"]`, all that need no torch; in both cases as far as the bundle (by default the one in the package) has
    their models. `limit` is the number of sources per relation, and of questions that test the scorers. `output`
    is the report folder; a stopped evaluation continues there, and `force` replaces outputs that were made from
    different data, bundles or options. `encoder` is only for outputs without a bundle, which has its own. `remark`
    gets lines for the user, and `stage` shows how far each stage is.
    """
    if not sizes or min(sizes) < 1:
        raise UsageError(f"a set of {min(sizes, default=0)} answers cannot be scored", hint="--sets 3,10")
    question_sets = [read_data(Path(path), relation) for path in questions]
    items = read_data(Path(data), relation).first(limit) if data is not None else None
    with ExitStack() as stack:
        if output is not None:
            stack.enter_context(sole_writer(Path(output)))
        if outputs:
            answers = read_systems(map(Path, outputs))
            judges, inference = _judges(bundle, encoder, second_encoder), None
            chosen = sources_of(answers, items)
        elif items is not None:
            opened = open_bundle(Path(bundle or default_bundle()), second_encoder)
            group = SYSTEM_GROUPS.get(tuple(systems))
            named = name_systems(group or systems, preset, k=max(sizes), seed=seed)
            for system in () if group else named:
                require_system(opened.generator, system.system, items, system.options)
            named = list(runnable(opened.generator, named, items, remark))
            folder = Path(output or stack.enter_context(TemporaryDirectory()))
            base = find_preset(preset or PAPER_PRESET).with_values(k=max(sizes), seed=seed, drop=False)
            run = run_record(items, dict(opened.judges.settings), base)
            check_run(folder, folder / OUTPUTS, run, force=force)
            answers = generate_outputs(opened.generator, items, named, folder / OUTPUTS, stage=stage)
            judges, chosen = opened.judges, items
            with stage("inferring signatures", None):
                inference = score_recall(opened, items.items, base)
        else:
            raise UsageError("there is nothing to evaluate", hint="give data to answer, or stored outputs")
        summary = evaluate_outputs(
            answers,
            chosen,
            judges,
            sizes=sizes,
            seed=seed,
            more_questions=question_sets,
            inference=inference,
            stage=stage,
        )
        if output is not None:
            with stage("writing the report", None):
                write_report(Path(output), summary, answers, chosen.items)
    return summary


def _judges(bundle: str | Path | None, encoder: str, second_encoder: str) -> Judges:
    if bundle:
        return open_bundle(Path(bundle), second_encoder).judges
    first = load_encoder(encoder)
    return Judges(first, open_second(second_encoder, first))


def evaluate_outputs(
    systems: Mapping[str, Sequence[AnswerSet]],
    data: EvaluationData,
    judges: Judges,
    *,
    sizes: Sequence[int] = SIZES,
    seed: int = SEED,
    more_questions: Sequence[EvaluationData] = (),
    inference: Mapping[str, Mapping[str, InferenceScores]] | None = None,
    stage: Stage = silent_stage,
) -> Summary:
    """Every figure of every system. What systems share (vectors, scores of pairs) is computed once for all."""
    sets = [answered for of_system in systems.values() for answered in of_system]
    question_sets = [(source.name, source.asked) for source in (data, *more_questions) if source.asked]
    answers = answer_pairs(sets)
    asked = [pair for _, questions in question_sets for pair in question_pairs(questions)]
    wrong = wrong_pairs(data.questions)
    texts = {text for pair in (*answers, *asked, *wrong) for text in (pair.source, pair.target)}
    whole = statements(sets, judges.templates)
    with stage("embedding", len(texts) + len(set(whole))) as progress:
        vectors = TextVectors(judges.encoder, texts, progress)
        statement_vectors = TextVectors(judges.encoder, whole, progress)
    with stage("judging questions", None):
        judged = dict(judge_pairs(asked, vectors, judges.model, judges.judge_of_alternatives, parts=OF_QUESTIONS))
        typical = judge_pairs(set(wrong) - set(judged), vectors, judges.model)
    with stage("judging answers", None):
        judged |= judge_pairs(set(answers) - set(judged), vectors, judges.model, judges.judge)
    scoring = Scoring(
        answers=vectors,
        statements=statement_vectors,
        second=TextVectors(judges.second, (pair.target for pair in answers)) if judges.second else None,
        templates=judges.templates,
        judged=judged,
        bars=find_bars(wrong, {**typical, **judged}, BARRED),
        code=judges.code,
        sizes=tuple(sizes),
    )
    scores = {}
    with stage("scoring systems", len(systems)) as progress:
        for name, answered in systems.items():
            scores[name] = score_system(answered, scoring)
            progress(1)
    return summarise(
        scores,
        settings=_settings(systems, judges, scoring, seed),
        data={"name": data.name, "sha256": data.sha256, "items": data.counts},
        seed=seed,
        choices=tuple(
            choice for name, questions in question_sets for choice in score_choices(name, questions, judged, seed)
        ),
        inference=inference,
    )


def _settings(
    systems: Mapping[str, Sequence[AnswerSet]], judges: Judges, scoring: Scoring, seed: int
) -> dict[str, Any]:
    bars = {
        scorer: {relation: round(bar, 6) for relation, bar in relations.items()}
        for scorer, relations in scoring.bars.items()
    }
    libraries = ("numpy", "scipy", "sacrebleu", "ctranslate2")
    return {
        "cod3s": __version__,
        **judges.settings,
        "encoder": judges.encoder.id,
        "second_encoder": judges.second.id if judges.second else None,
        "sets": list(scoring.sizes),
        "thresholds": list(THRESHOLDS),
        "equivalence": f"completed statements with cosine above {1 - EQUIVALENCE_DISTANCE:g}, in order",
        "patience": PATIENCE,
        **lexical_settings(),
        "seed": seed,
        "resamples": RESAMPLES,
        "bars": bars,
        "libraries": {name: version(name) for name in libraries},
        "systems": {name: dict(answered[0].settings) for name, answered in systems.items() if answered},
    }
