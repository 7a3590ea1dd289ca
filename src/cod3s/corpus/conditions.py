"""Define what a filter of pairs is, and the SQL conditions that filters are made of."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Filter:
    """A reason to remove a pair; its label is its name, with its number if it has one."""

    label: str
    reason: str
    removes: str  # an SQL condition


def either(condition: Callable[[str], str]) -> str:
    """True when the condition holds for the source or for the target."""
    return f"({condition('source')}) OR ({condition('target')})"


def word_count(side: str) -> str:
    # Sides are clean, so single spaces separate the words; an empty side has no word.
    return f"(CASE {side} WHEN '' THEN 0 ELSE length({side}) - length(replace({side}, ' ', '')) + 1 END)"


def matches(side: str, pattern: str) -> str:
    quoted = pattern.replace("'", "''")
    return f"regexp_matches({side}, '{quoted}')"


def side_filter(label: str, reason: str, *patterns: str) -> Filter:
    """A filter that removes a pair if any of the patterns matches either side."""
    return Filter(label, reason, either(lambda side: " OR ".join(matches(side, pattern) for pattern in patterns)))
