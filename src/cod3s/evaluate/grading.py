"""Grade pairs of a source and a target with encoders and with the models of a bundle; no pair is graded twice."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.bundle import NAME as BUNDLE_JSON
from cod3s.bundle import read_facts
from cod3s.corpus.questions import Question
from cod3s.corpus.relations import TEMPLATES
from cod3s.critic.judge import PLAUSIBLE
from cod3s.critic.likelihoods import Pair, score_pairs
from cod3s.decode.generator import Generator, load
from cod3s.encode import Encoder, Vectors, load_encoder
from cod3s.errors import Cod3sError
from cod3s.evaluate.config import BUNDLES_OWN
from cod3s.io.disk import sha256
from cod3s.metrics.pair_scores import SCORERS, all_known, choice_credits, combine, plausibility_bar
from cod3s.metrics.semantic import Distances, cosine_distances
from cod3s.metrics.significance import bootstrap_interval
from cod3s.model.shape import SHAPES
from cod3s.models import BundleModels
from cod3s.signatures.signer import Signer, embed_all, open_encoder
from cod3s.text import clean, complete

OF_ANSWERS = ("backward", "source_alone")
"""The likelihoods behind the figures of a system."""
OF_QUESTIONS = ("forward", "target_alone", *OF_ANSWERS)
"""The likelihoods that all scorers together need."""
BARRED = ("relevance", "backward_pmi")
"""Scorers whose values are comparable across sources, so that one bar serves a whole relation."""
_FACTS = ("bits", "bits_per_token", "shape", "quantization")
_HYPOTHESES = 1_000_000  # kept per model: systems and settings share their stages

Bars = dict[str, dict[str, float]]
"""Scorer → relation → the score of a typical wrong alternative."""


class TextVectors:
    """An encoder with the vectors of the texts so far, each encoded once."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._vectors: dict[str, Vectors] = {}

    def add(self, texts: Iterable[str]) -> None:
        """Encode texts that are new, all together."""
        # Sorted, so that a text's batch, and with it the last bits of its vector, depends on the texts alone.
        new = sorted({*texts} - self._vectors.keys())
        self._vectors |= zip(new, embed_all(self.encoder, new, lambda _: None), strict=True)

    def of(self, texts: Sequence[str]) -> Vectors:
        """The vectors of these texts, (n, dim)."""
        self.add(texts)
        rows = [self._vectors[text] for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), self.encoder.dim)

    def distances(self, texts: Sequence[str]) -> Distances:
        """The cosine distances of all pairs of these texts."""
        return cosine_distances(texts, self.of(texts))


@dataclass(frozen=True)
class Choice:
    """The share of questions in which a scorer prefers the right alternative, with its bootstrap interval."""

    data: str
    relation: str
    scorer: str
    questions: int
    accuracy: float
    low: float
    high: float


class Grader:
    """Encoders, perhaps with models, a critic and a signer, and what they said about texts and pairs so far.

    Grades are named as the parts of SCORERS, and `relevance2`, `relevance3` … by further encoders.
    """

    def __init__(
        self,
        encoders: Sequence[Encoder],
        *,
        models: BundleModels | None = None,
        critic: Callable[[Sequence[Pair]], Any] | None = None,  # probabilities, an array
        signer: Signer | None = None,
        templates: Mapping[str, str] = TEMPLATES,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        distinct = {encoder.id: TextVectors(encoder) for encoder in encoders}
        self.measures = list(distinct.values())
        self.models, self.signer, self.templates = models, signer, templates
        self._critic = critic
        self.settings = dict(settings or {})  # what else determines the figures: the bundles
        self._signed = signer and (distinct.get(signer.encoder.id) or TextVectors(signer.encoder))
        self._grades: dict[Pair, dict[str, float]] = {}
        self._parts: dict[Pair, frozenset[str]] = {}  # likelihoods that have been computed, or that no model has

    def grade(self, pairs: Iterable[Pair], likelihoods: Sequence[str] = OF_ANSWERS) -> None:
        """Grade pairs that are new, or that lack these likelihoods, all together."""
        parts = frozenset(likelihoods)
        new = sorted(pair for pair in {*pairs} if pair not in self._parts or not parts <= self._parts[pair])
        self._parts |= dict.fromkeys(new, parts)
        for number, vectors in enumerate(self.measures, 1):
            vectors.add(text for pair in new for text in (pair.source, pair.target))
            sources, targets = (vectors.of([getattr(pair, side) for pair in new]) for side in ("source", "target"))
            cosines = np.einsum("nd,nd->n", sources, targets).tolist()
            for pair, cosine in zip(new, cosines, strict=True):
                self._grades.setdefault(pair, {})[numbered("relevance", number)] = cosine
        if self.models:
            judged = [pair for pair in new if pair.relation in self.models.facts.models]
            for pair, scores in zip(judged, score_pairs(self.models, judged, likelihoods), strict=True):
                known = {part: getattr(scores, part) for part in likelihoods}
                self._grades[pair] |= {part: score for part, score in known.items() if score is not None}
            if self._critic:
                for pair, probability in zip(judged, self._critic(judged).tolist(), strict=True):
                    self._grades[pair]["critic"] = probability

    def grades(self, pair: Pair) -> Mapping[str, float]:
        """The grades of a pair that has been graded."""
        return self._grades[pair]

    def score(self, pair: Pair, scorer: str) -> float | None:
        """The grades of a pair as one number; None if this scorer needs a grade that is missing."""
        return combine(self._grades[pair], scorer)

    def signatures(self, texts: Sequence[str]) -> list[str]:
        """The signatures of texts; empty without a signer."""
        return self.signer.signatures_of(self._signed.of(texts)) if self.signer and self._signed else []

    def statement(self, relation: str, source: str, target: str) -> str:
        """The completed statement of a pair."""
        if relation not in self.templates:
            raise Cod3sError(
                f"the template of the relation {relation!r} is unknown",
                hint="give the bundle that defines it: --bundle FOLDER",
            )
        return complete(self.templates[relation], source, target)

    def bars(self, questions: Iterable[Question]) -> Bars:
        """The median grade of the wrong alternatives by scorer and relation, of questions that have been graded.

        A critic's grades are probabilities, so its bar does not depend on questions.
        """
        bars: Bars = {}
        if self.models and self._critic:
            bars["critic"] = dict.fromkeys(sorted(self.models.facts.models), PLAUSIBLE)
        wrong = [
            pair
            for question in questions
            for number, pair in enumerate(question_pairs(question))
            if question.answer not in (None, number)
        ]
        for scorer in BARRED:
            for relation in dict.fromkeys(pair.relation for pair in wrong):
                scores = [self.score(pair, scorer) for pair in wrong if pair.relation == relation]
                if (bar := plausibility_bar(scores)) is not None:
                    bars.setdefault(scorer, {})[relation] = bar
        return bars

    def choices(self, name: str, questions: Iterable[Question], seed: int) -> list[Choice]:
        """The accuracy per relation of every scorer that has scores, on graded questions whose answer is known."""
        choices = []
        answered = [(question, question.answer) for question in questions if question.answer is not None]
        for relation in dict.fromkeys(question.direction for question, _ in answered):
            related = [(question, answer) for question, answer in answered if question.direction == relation]
            for scorer in SCORERS:
                scores = [
                    all_known([self.score(pair, scorer) for pair in question_pairs(question)])
                    for question, _ in related
                ]
                if all(scores):
                    credits = choice_credits(scores, [answer for _, answer in related])
                    low, high = bootstrap_interval(credits, seed=seed)
                    accuracy = float(np.mean(credits))
                    choices.append(Choice(name, relation, scorer, len(credits), accuracy, low, high))
        return choices


def numbered(name: str, number: int) -> str:
    """The name of a figure by the first, second … encoder: semantic, semantic2 …"""
    return name if number == 1 else f"{name}{number}"


def question_pairs(question: Question) -> list[Pair]:
    """The premise with each of its alternatives."""
    return [Pair(question.direction, clean(question.premise), clean(text)) for text in question.alternatives]


def load_generator(bundle: Path) -> Generator:
    """The generator of a bundle, which keeps what it has searched: systems share much of it."""
    return load(bundle, encoder=open_encoder(read_facts(bundle).encoder), cache=_HYPOTHESES)


def open_grader(
    encoders: Sequence[str], generator: Generator | None = None, grader: str = "", signer: Signer | None = None
) -> Grader:
    """The grader of outputs: named encoders, and the models of `generator`'s bundle, or those of another one.

    Answers are signed as in the bundle, unless another `signer` made their signatures.
    """
    opened = []
    for name in encoders:
        if name == BUNDLES_OWN:
            opened.append(generator.encoder if generator else load_encoder("fast"))
        else:
            opened.append(load_encoder(name))
    graders = load_generator(Path(grader)) if grader else generator
    settings: dict[str, Any] = {}
    if generator:
        settings["bundle"] = bundle_id(generator)
        settings |= {name: getattr(generator.facts, name) for name in _FACTS}
    if grader and graders:
        settings["grader"] = bundle_id(graders)
    return Grader(
        opened,
        models=_grading_models(graders.models) if graders else None,
        critic=graders.judge if graders and graders.facts.critic else None,
        signer=signer or (generator.signer if generator else None),
        templates=TEMPLATES if generator is None else _templates(generator),
        settings=settings,
    )


def _templates(generator: Generator) -> dict[str, str]:
    return {name: relation["template"] for name, relation in generator.facts.relations.items()}


def _grading_models(models: BundleModels) -> BundleModels:
    # Grades must not depend on what was generated before. A language model scores each row alone, so it may keep
    # what the systems have asked: it is the same to the last bit.
    return models if SHAPES[models.facts.shape].causal else models.without_memory()


def bundle_id(generator: Generator) -> str:
    """The name of the bundle and the start of its checksum."""
    return f"{generator.facts.name}@{sha256(generator.folder / BUNDLE_JSON)[:8]}"
