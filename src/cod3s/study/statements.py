"""The items of a study, made from stored outputs, gold questions and attention checks: each statement once."""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cod3s.corpus.questions import Question
from cod3s.errors import Cod3sError
from cod3s.records import Answer, AnswerSet
from cod3s.study.folder import ANSWER, CHECK, GOLD, RIGHT, WRONG, Credit, Item
from cod3s.text import complete, for_modelling

Systems = Mapping[str, Sequence[AnswerSet]]

_ABSURD, _PLAIN = (0, 1), (4, 5)
# Attention checks. The kinds alternate, so that even the first few include each kind.
_STATEMENTS = (
    ("The baker forgot the yeast, so the bread did not rise.", _PLAIN),
    ("The lamp was switched off because a triangle has three sides.", _ABSURD),
    ("This line checks that you are reading, so please choose 0 here.", (0,)),
    ("She put on a coat because it was cold outside.", _PLAIN),
    ("He watered the tomatoes, so the moon turned into a bicycle.", _ABSURD),
    ("Please choose 5 for this one because it only checks your attention.", (5,)),
    ("The glass fell on the stone floor, so it broke.", _PLAIN),
    ("The train was late because Tuesday tasted of soap yesterday.", _ABSURD),
    ("This is not a real statement, so please choose 2 here.", (2,)),
    ("They opened an umbrella because it had begun to rain.", _PLAIN),
    ("The cat slept on the sofa, so the number nine was arrested.", _ABSURD),
    ("Please choose 3 for this one because it only checks your attention.", (3,)),
)


def answer_items(systems: Systems, templates: Mapping[str, str], top: Mapping[str, int]) -> list[Item]:
    """An item for every statement that the first `top[system]` answers of each system make.

    The first answers are the likeliest ones if likelihoods are known, otherwise the first of the record.
    """
    items: dict[str, Item] = {}
    for system, sets in systems.items():
        _check_sources_are_unique(system, sets)
        for answers in sets:
            for answer, credit in _first(answers, system, top[system]):
                if not answer.text.strip():
                    raise Cod3sError(
                        f"{system} has an empty answer to {answers.source!r}", hint="remove it from the outputs"
                    )
                new = _item(ANSWER, answers.relation, answers.source, answer.text, templates)
                old = items.get(new.statement, new)
                items[new.statement] = replace(old, credits=(*old.credits, credit))
    if not items:
        raise Cod3sError("the outputs contain no answers, so there is nothing to rate")
    return list(items.values())


def gold_items(questions: Iterable[Question], templates: Mapping[str, str]) -> list[Item]:
    """The right and the wrong alternatives of the questions whose answer is known."""
    items: dict[str, Item] = {}
    for question in questions:
        for number, alternative in enumerate(question.alternatives):
            if question.answer is not None:
                new = _item(GOLD, question.direction, question.premise, alternative, templates)
                label = RIGHT if number == question.answer else WRONG
                items.setdefault(new.statement, replace(new, label=label))
    return list(items.values())


def attention_checks(number: int) -> list[Item]:
    """The first `number` attention checks; `mix` assigns their ids."""
    if number > len(_STATEMENTS):
        raise Cod3sError(
            f"{number} attention checks were requested, but there are only {len(_STATEMENTS)}",
            hint=f"choose --checks {len(_STATEMENTS)} or less",
        )
    return [Item("", CHECK, statement, expected=expected) for statement, expected in _STATEMENTS[:number]]


def choose_questions(
    questions: Sequence[Question], systems: Systems, number: int | None, seed: int
) -> list[Question]:
    """The questions whose premise the systems answer; with `number`, that many at random, answered ones first."""
    answered = {(answers.relation, for_modelling(answers.source)) for sets in systems.values() for answers in sets}
    drawn = random.Random(f"{seed} gold").sample(questions, len(questions))
    answerable = [question for question in drawn if question.answer is not None]
    matching = [
        question for question in answerable if (question.direction, for_modelling(question.premise)) in answered
    ]
    if number is not None:
        return [*matching, *(question for question in answerable if question not in matching)][:number]
    if not matching:
        raise Cod3sError(
            "the outputs answer none of the gold questions", hint="add --gold 20 to mix in 20 of them"
        )
    return matching


def mix(answers: Sequence[Item], gold: Sequence[Item], checks: Sequence[Item], seed: int) -> list[Item]:
    """All items in the study's order, with ids that do not reveal where they come from.

    An answer that is also a gold alternative remains a single item and takes over the label.
    """
    by_statement = {item.statement: item for item in (*checks, *answers)}
    for item in gold:
        old = by_statement.get(item.statement)
        by_statement[item.statement] = replace(old, label=item.label) if old else item
    items = list(by_statement.values())
    random.Random(f"{seed} items").shuffle(items)
    return [replace(item, id=f"i{number:05}") for number, item in enumerate(items, 1)]


def _check_sources_are_unique(system: str, sets: Iterable[AnswerSet]) -> None:
    counts = Counter((answers.relation, for_modelling(answers.source)) for answers in sets)
    twice = [source for (_, source), count in counts.items() if count > 1]
    if twice:
        raise Cod3sError(
            f"{system} answers {len(twice)} sources more than once, such as {twice[0]!r}",
            hint="use a file per system, or name the systems in the field `system`",
        )


def _item(kind: str, relation: str, source: str, target: str, templates: Mapping[str, str]) -> Item:
    if relation not in templates:
        raise Cod3sError(
            f"the relation {relation!r} has no template",
            hint=f'define its statement: --template "{relation}={{source}} {{target}}"',
        )
    statement = complete(templates[relation], source, target)
    return Item("", kind, statement, relation, for_modelling(source), for_modelling(target))


def _first(answers: AnswerSet, system: str, number: int) -> Iterator[tuple[Answer, Credit]]:
    """The `number` likeliest answers with their credits, or the first ones if likelihoods are unknown."""
    likelihoods = _likelihoods(answers.answers)
    positions = list(range(len(answers)))
    if likelihoods is not None:
        positions.sort(key=lambda position: -likelihoods[position])
    for rank, position in enumerate(positions[:number], 1):
        yield answers.answers[position], Credit(system, position + 1, None if likelihoods is None else rank)


def _likelihoods(answers: Sequence[Answer]) -> list[float] | None:
    """What the paper ranks by: the forward scores of the signatures if there are any, else of the sentences.

    None if they are unknown; the reader of outputs fills in zeros then.
    """
    for scores in ([answer.signature_forward for answer in answers], [answer.forward for answer in answers]):
        known = [score for score in scores if isinstance(score, int | float) and math.isfinite(score)]
        if len(known) == len(scores) and any(known):
            return known
    return None
