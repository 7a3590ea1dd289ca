"""Scores stored outputs: answer sets by system, and the data they answer → a summary.

Everything is computed from the outputs, so that outputs of other people's models are scored like ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from cod3s import __version__
from cod3s.corpus.relations import TEMPLATES
from cod3s.encode import Encoder
from cod3s.errors import Progress
from cod3s.evaluate.items import EvaluationData
from cod3s.evaluate.pairs import (
    Likelihoods,
    TextVectors,
    find_bars,
    judge_pairs,
    question_pairs,
    score_choices,
)
from cod3s.evaluate.scores import Scoring, answer_pairs, score_system, statements
from cod3s.evaluate.summary import Summary, summarise
from cod3s.metrics.inference import InferenceScores
from cod3s.metrics.lexical import lexical_settings
from cod3s.metrics.semantic import THRESHOLDS
from cod3s.metrics.significance import RESAMPLES
from cod3s.records import AnswerSet
from cod3s.signatures import Code

BARRED = ("relevance", "backward_pmi")
"""Scorers whose values compare across sources, so that one bar serves a relation."""


@dataclass(frozen=True)
class Judges:
    """What scores: an encoder, maybe a second one, a code that signs, a model that knows likelihoods."""

    encoder: Encoder
    second: Encoder | None = None
    code: Code | None = None  # of `encoder`'s vectors
    model: Likelihoods | None = None
    templates: Mapping[str, str] = field(default_factory=lambda: TEMPLATES)
    settings: Mapping[str, Any] = field(default_factory=dict)  # what else made the figures: the bundle


def evaluate_outputs(
    systems: Mapping[str, Sequence[AnswerSet]],
    data: EvaluationData,
    judges: Judges,
    *,
    sizes: Sequence[int] = (3, 10),
    seed: int = 1234,
    more_questions: Sequence[EvaluationData] = (),
    inference: Mapping[str, Mapping[str, InferenceScores]] | None = None,
    progress: Progress = lambda _: None,
) -> Summary:
    """Every figure of every system; `progress` hears of each system done."""
    sets = [own for answered in systems.values() for own in answered]
    asking = [own for own in (data, *more_questions) if own.questions]
    pairs = answer_pairs(sets) + [pair for own in asking for pair in question_pairs(own.questions)]
    texts = [text for pair in pairs for text in (pair.source, pair.target)]
    embedded = TextVectors(judges.encoder, texts)
    judged = judge_pairs(pairs, embedded, judges.model)
    scoring = Scoring(
        answers=embedded,
        statements=TextVectors(judges.encoder, statements(sets, judges.templates)),
        second=TextVectors(judges.second, (pair.target for pair in answer_pairs(sets))) if judges.second else None,
        templates=judges.templates,
        judged=judged,
        bars=find_bars(data.questions, judged, BARRED),
        code=judges.code,
        sizes=tuple(sizes),
    )
    scores = {}
    for name, answered in systems.items():
        scores[name] = score_system(answered, scoring)
        progress(1)
    return summarise(
        scores,
        settings=_settings(systems, judges, scoring, seed),
        data={"name": data.name, "sha256": data.sha256, "items": data.counts},
        seed=seed,
        choices=tuple(choice for own in asking for choice in score_choices(own.name, own.questions, judged, seed)),
        inference=inference,
    )


def _settings(
    systems: Mapping[str, Sequence[AnswerSet]], judges: Judges, scoring: Scoring, seed: int
) -> dict[str, Any]:
    bars = {
        scorer: {relation: round(bar, 6) for relation, bar in own.items()} for scorer, own in scoring.bars.items()
    }
    libraries = ("numpy", "scipy", "sacrebleu", "ctranslate2")
    return {
        "cod3s": __version__,
        **judges.settings,
        "encoder": judges.encoder.id,
        "second_encoder": judges.second.id if judges.second else None,
        "sets": list(scoring.sizes),
        "thresholds": list(THRESHOLDS),
        **lexical_settings(),
        "seed": seed,
        "resamples": RESAMPLES,
        "bars": bars,
        "libraries": {name: version(name) for name in libraries},
        "systems": {name: dict(own[0].settings) for name, own in systems.items() if own},
    }
