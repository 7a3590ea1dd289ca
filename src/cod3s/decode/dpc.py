"""The baseline DPC (Li et al. 2020): each answer contains a form of another word that goes with the source.

A search per word, with a disjunctive positive constraint: a hypothesis must contain one of the word's forms. The
beam is shared out among banks, the hypotheses that lack equally many tokens of it (Post and Vilar 2018, arXiv
1804.06609; Hu et al. 2019, NAACL). It runs on any engine, the beams of all words as one batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from cod3s.decode.choose import keep_suitable
from cod3s.decode.config import DecodeConfig
from cod3s.decode.word_graph import RelatedWord, WordGraph, open_word_graph, word_graph_path
from cod3s.models import BundleModels, RoleModel
from cod3s.records import Answer, Hypothesis, mean_log_prob
from cod3s.tokens.vocabulary import Vocabulary

_SPARE_WORDS = 2  # times k: looked up in case two searches find the same text
_NEW_WORD = ("▁", "Ġ", "<")  # how pieces that begin a word are spelled, and tokens that are no text

Tokens = tuple[int, ...]
HELD: Tokens = (-1,)
"""The state of a hypothesis that contains an alternative as a whole word."""


@dataclass(frozen=True)
class Constraint:
    """Alternatives as tokens, of which one must be contained as a whole word.

    The state of a hypothesis is how much of an alternative it ends with. `boundaries[token]` says that a word is
    over when this token follows: "fired" does not contain "fire".
    """

    alternatives: tuple[Tokens, ...]
    boundaries: npt.NDArray[np.bool_]

    def next(self, state: Tokens, token: int) -> Tokens:
        """The state after one more token. Alternatives begin a word, and nothing inside them does."""
        if state == HELD or (state in self.alternatives and self.boundaries[token]):
            return HELD
        for longer in ((*state, token), (token,)):
            if any(alternative[: len(longer)] == longer for alternative in self.alternatives):
                return longer
        return ()

    def lacks(self, state: Tokens) -> int:
        """The fewest tokens until an alternative is whole."""
        if state == HELD:
            return 0
        rests = [len(one) - len(state) for one in self.alternatives if one[: len(state)] == state]
        return min(rests, default=min(map(len, self.alternatives)))

    def advancing(self, state: Tokens) -> set[int]:
        """The tokens that begin or continue an alternative."""
        return {
            one[len(state)] for one in self.alternatives if one[: len(state)] == state and len(one) > len(state)
        }


@dataclass(frozen=True)
class _Partial:
    tokens: Tokens
    log_prob: float
    state: Tokens


def constrained_search(
    model: RoleModel, source: str, constraints: Sequence[Constraint], *, end: int, beam: int, max_tokens: int
) -> list[Hypothesis | None]:
    """For each constraint the best text that meets it, by log-probability per token; None if none was found."""
    vocabulary = range(len(constraints[0].boundaries)) if constraints else range(0)
    beams = [[_Partial((), 0.0, ())] for _ in constraints]
    finished: list[list[Hypothesis]] = [[] for _ in constraints]
    for left in range(max_tokens, 0, -1):
        rows = [(number, partial) for number, partials in enumerate(beams) for partial in partials]
        if not rows:
            break
        log_probs = model.engine.weigh([model.request(source, partial.tokens) for _, partial in rows], vocabulary)
        start = 0
        for number, partials in enumerate(beams):
            part = log_probs[start : start + len(partials)]
            start += len(partials)
            grown = _grow(partials, part, constraints[number], end, beam, left) if len(partials) else []
            beams[number] = [partial for partial in grown if partial.tokens[-1] != end]
            for partial in grown:
                if partial.tokens[-1] == end:
                    finished[number].append(Hypothesis(partial.tokens[:-1], partial.log_prob, len(partial.tokens)))
            if len(finished[number]) >= beam:
                beams[number] = []
    return [max(hypotheses, key=mean_log_prob, default=None) for hypotheses in finished]


def _grow(
    partials: Sequence[_Partial],
    log_probs: npt.NDArray[np.float64],
    constraint: Constraint,
    end: int,
    beam: int,
    left: int,
) -> list[_Partial]:
    """The next beam: the best of each bank in turn, of the likeliest tokens and those the constraint needs."""
    totals = np.array([partial.log_prob for partial in partials])[:, None] + log_probs  # (partials, vocabulary)
    best = np.argpartition(-totals, min(2 * beam, totals.size - 1), axis=None)[: 2 * beam]
    wanted = {divmod(int(column), totals.shape[1]) for column in best}
    for row, partial in enumerate(partials):
        wanted.add((row, int(totals[row].argmax())))
        wanted |= {(row, token) for token in constraint.advancing(partial.state) | constraint.advancing(())}
    banks: dict[int, list[_Partial]] = {}
    for row, token in sorted(wanted, key=lambda cell: (-totals[cell], cell)):
        state = constraint.next(partials[row].state, token)
        lacks = 0 if token == end and partials[row].state in constraint.alternatives else constraint.lacks(state)
        if lacks <= (0 if token == end else left - 2):  # what is lacking, and the end, must still fit
            grown = _Partial((*partials[row].tokens, token), float(totals[row, token]), state)
            banks.setdefault(lacks, []).append(grown)
    queues = [iter(banks[lacks]) for lacks in sorted(banks)]
    chosen: list[_Partial] = []
    while queues and len(chosen) < beam:
        for queue in list(queues):
            following = next(queue, None)
            if following is None:
                queues.remove(queue)
            elif len(chosen) < beam:
                chosen.append(following)
    return chosen


def answer_with_constraints(
    models: BundleModels, relation: str, sources: Sequence[str], config: DecodeConfig
) -> list[list[Answer]]:
    """One search for each of the strongest words of each source; further words make up for repeated texts."""
    graph = open_word_graph(word_graph_path(models.folder, relation))
    model, vocabulary = models.plain(relation), models.vocabulary
    boundaries = np.array([token.startswith(_NEW_WORD) or not token[:1].isalnum() for token in vocabulary.tokens])
    return [_answer(model, vocabulary, graph, boundaries, source, config) for source in sources]


def _answer(
    model: RoleModel,
    vocabulary: Vocabulary,
    graph: WordGraph,
    boundaries: npt.NDArray[np.bool_],
    source: str,
    config: DecodeConfig,
) -> list[Answer]:
    untried = iter(graph.related(source, (1 + _SPARE_WORDS) * config.k))
    answers: dict[str, Answer] = {}

    def missing() -> int:
        return config.k - len(keep_suitable(config, source, [*answers.values()]))

    while related := list(islice(untried, missing())):
        constraints = [_constraint(word, vocabulary, boundaries) for word in related]
        found = constrained_search(
            model,
            source,
            constraints,
            end=vocabulary.end,
            beam=config.baseline_beam,
            max_tokens=config.max_tokens,
        )
        for word, hypothesis in zip(related, found, strict=True):
            text = vocabulary.decode_text(hypothesis.tokens).strip() if hypothesis else ""
            if hypothesis and text:
                score = mean_log_prob(hypothesis)
                answers.setdefault(text.casefold(), Answer(text, score, score, constraint=word.base))
    return [*answers.values()]


def _constraint(word: RelatedWord, vocabulary: Vocabulary, boundaries: npt.NDArray[np.bool_]) -> Constraint:
    return Constraint(tuple(tuple(vocabulary.encode_text(form)) for form in word.forms), boundaries)
