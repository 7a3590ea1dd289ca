"""Stored outputs and gold questions → the items of a study, each statement once, shuffled with a seed."""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cod3s.corpus.questions import Question
from cod3s.errors import Cod3sError
from cod3s.judge.study.study import ANSWER, GOLD, RIGHT, WRONG, Credit, Item
from cod3s.records import Answer, AnswerSet
from cod3s.text import complete, for_modelling

Systems = Mapping[str, Sequence[AnswerSet]]


def answer_items(systems: Systems, templates: Mapping[str, str], top: Mapping[str, int]) -> list[Item]:
    """An item for every statement that a system's first answers make; `top` says how many of each system.

    The first answers are the likeliest ones where likelihoods are known, else the first of the record.
    """
    items: dict[str, Item] = {}
    for system, sets in systems.items():
        _refuse_twice(system, sets)
        for answers in sets:
            for answer, credit in _first(answers, system, top[system]):
                if not answer.text.strip():
                    raise Cod3sError(f"{system} has an empty answer to {answers.source!r}", hint="leave it out")
                new = _item(ANSWER, answers.relation, answers.source, answer.text, templates)
                old = items.get(new.statement, new)
                items[new.statement] = replace(old, of=(*old.of, credit))
    if not items:
        raise Cod3sError("the outputs hold no answers, so there is nothing to rate")
    return list(items.values())


def gold_items(questions: Iterable[Question], templates: Mapping[str, str]) -> list[Item]:
    """The right and the wrong alternatives of questions whose answer is known."""
    items: dict[str, Item] = {}
    for question in questions:
        for number, alternative in enumerate(question.alternatives):
            if question.answer is not None:
                new = _item(GOLD, question.direction, question.premise, alternative, templates)
                label = RIGHT if number == question.answer else WRONG
                items.setdefault(new.statement, replace(new, label=label))
    return list(items.values())


def choose_questions(
    questions: Sequence[Question], systems: Systems, number: int | None, seed: int
) -> list[Question]:
    """The questions whose premise the systems answer; with `number`, so many, drawn by lot, those ones first."""
    answered = {(own.relation, for_modelling(own.source)) for sets in systems.values() for own in sets}
    drawn = random.Random(f"{seed} gold").sample(questions, len(questions))
    known = [question for question in drawn if question.answer is not None]
    asked = [question for question in known if (question.direction, for_modelling(question.premise)) in answered]
    if number is not None:
        return [*asked, *(question for question in known if question not in asked)][:number]
    if not asked:
        raise Cod3sError(
            "the outputs answer none of the gold questions", hint="add --gold 20 to mix in 20 of them"
        )
    return asked


def mix(answers: Sequence[Item], gold: Sequence[Item], checks: Sequence[Item], seed: int) -> list[Item]:
    """All items in the study's order, with ids that say nothing about where they come from.

    An answer that is also a gold alternative stays one item and takes over the label.
    """
    by_statement = {item.statement: item for item in (*checks, *answers)}
    for item in gold:
        old = by_statement.get(item.statement)
        by_statement[item.statement] = replace(old, label=item.label) if old else item
    items = list(by_statement.values())
    random.Random(f"{seed} items").shuffle(items)
    return [replace(item, id=f"i{number:05}") for number, item in enumerate(items, 1)]


def _refuse_twice(system: str, sets: Iterable[AnswerSet]) -> None:
    counts = Counter((answers.relation, for_modelling(answers.source)) for answers in sets)
    twice = [source for (_, source), count in counts.items() if count > 1]
    if twice:
        raise Cod3sError(
            f"{system} answers {len(twice)} sources more than once, such as {twice[0]!r}",
            hint="give every system one file, and name systems by the field `system`",
        )


def _item(kind: str, relation: str, source: str, target: str, templates: Mapping[str, str]) -> Item:
    if relation not in templates:
        raise Cod3sError(
            f"the relation {relation!r} has no template",
            hint=f'say how its statement reads: --template "{relation}={{source}} {{target}}"',
        )
    statement = complete(templates[relation], source, target)
    return Item("", kind, statement, relation, for_modelling(source), for_modelling(target))


def _first(answers: AnswerSet, system: str, number: int) -> Iterator[tuple[Answer, Credit]]:
    """The `number` likeliest answers with their credits, or the first ones where no likelihoods are known."""
    likelihoods = _likelihoods(answers.answers)
    places = list(range(len(answers)))
    if likelihoods is not None:
        places.sort(key=lambda place: -likelihoods[place])
    for rank, place in enumerate(places[:number], 1):
        yield answers.answers[place], Credit(system, place + 1, None if likelihoods is None else rank)


def _likelihoods(answers: Sequence[Answer]) -> list[float] | None:
    """What the paper ranks by: the signatures' forward scores where there are any, else the sentences' own.

    None where nobody knows them: the reader of outputs fills in zeros.
    """
    for scores in ([answer.signature_forward for answer in answers], [answer.forward for answer in answers]):
        known = [score for score in scores if isinstance(score, int | float) and math.isfinite(score)]
        if len(known) == len(scores) and any(known):
            return known
    return None
