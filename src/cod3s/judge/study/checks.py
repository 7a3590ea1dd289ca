"""Attention checks: statements whose score every reader agrees on, and some that say which score to choose."""

from cod3s.errors import Cod3sError
from cod3s.judge.study.study import CHECK, Item

_ABSURD, _PLAIN = (0, 1), (4, 5)
# Kinds take turns, so that the first few hold one of each.
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


def attention_checks(number: int) -> list[Item]:
    """The first `number` checks; their ids are given with those of the other items."""
    if number > len(_STATEMENTS):
        raise Cod3sError(f"{number} attention checks were asked for, {len(_STATEMENTS)} are written")
    return [Item("", CHECK, statement, expected=expected) for statement, expected in _STATEMENTS[:number]]
