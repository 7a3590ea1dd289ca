"""Check whether an answer to a source says something that a demo must not say.

That is: it insults, it is sexual, it mentions self-harm, or it explains an event by a person's origin,
colour, religion, sex, orientation or disability. The words and patterns are in data/unsuitable.tsv, with reasons.
"""

import codecs
import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from functools import cache

from cod3s.word_lists import data_rows

PROFANITY = "profanity"
"""The topic of swear words, which training pairs have a separate filter for."""
HARMLESS = "_"
"""What a harmless phrase is replaced by: no pattern matches it."""

_CODED = "rot13:"
_WORD = re.compile(r"[^\W_]+")
_PART = re.compile(r"{(\w+)}")
_KEYS = re.compile(r"<([^<>]+)>")


@dataclass(frozen=True)
class Rule:
    """What stops an answer: a pattern over the plain words of a text, which must contain one of the keys.

    An `uninvited` rule lets the answer pass if the source mentions the topic; a `careful` one counts only for
    sources that need care.
    """

    kind: str  # never, uninvited or careful
    topic: str
    pattern: str
    keys: frozenset[str]
    reason: str


@dataclass(frozen=True)
class Rules:
    """The whole list: what stops an answer, what is harmless, and which words of a source mention a topic."""

    stops: tuple[Rule, ...]
    harmless: str
    invites: dict[str, str]


@cache
def read_rules() -> Rules:
    """The list in data/unsuitable.tsv, which explains its columns."""
    parts: dict[str, str] = {}
    stops: list[Rule] = []
    harmless: list[str] = []
    invites: dict[str, str] = {}
    for kind, name, written, reason in data_rows("unsuitable.tsv")[1:]:
        coded = written.startswith(_CODED)
        pattern = codecs.decode(written.removeprefix(_CODED), "rot13") if coded else written
        pattern = _PART.sub(lambda part: parts[part[1]], pattern)
        if kind == "part":
            parts[name] = pattern
        elif kind == "harmless":
            harmless.append(pattern)
        elif kind == "invites":
            invites[name] = _whole(pattern)
        else:
            keys = frozenset(
                max(phrase.split(), key=len) for group in _KEYS.findall(pattern) for phrase in group.split("|")
            )
            pattern = _whole(_KEYS.sub(r"(?:\1)", pattern))
            stops.append(Rule(kind, name, pattern, keys, reason))
    return Rules(tuple(stops), _whole("|".join(harmless)), invites)


def find_unsuitable(text: str, source: str = "", *, careful: bool = False) -> Rule | None:
    """The first rule that stops `text` as an answer to `source`; None if no rule does.

    With `careful`, for a source about death or illness, an answer that blames or laughs is stopped, too.
    """
    plain = plain_words(text)
    by_key, words = _rules_by_key(), set(plain.split())
    if by_key.keys().isdisjoint(words):  # true for most texts, and fifty times as fast
        return None
    positions = {position for word in words for position in by_key.get(word, ())}
    rules = (read_rules().stops[position] for position in sorted(positions))
    return next((rule for rule in rules if _applies(rule, source, careful) and _stops(rule, plain)), None)


def is_unsuitable(text: str, source: str = "", *, careful: bool = False) -> bool:
    """Whether `text` must not be shown as an answer to `source`."""
    return find_unsuitable(text, source, careful=careful) is not None


def presentable(text: str) -> str:
    """A bin's sentence if it may be shown, else nothing."""
    return "" if is_unsuitable(text) else text


def plain_words(text: str) -> str:
    """The form that patterns read: lower case, no apostrophes, single spaces, a full stop at both ends."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("’", "")
    return f" . {' '.join(_WORD.findall(text.casefold().replace(chr(39), '')))} . "


def _stops(rule: Rule, plain: str) -> bool:
    """Whether the rule's pattern is in the text, and still there without the harmless phrases."""
    search = _compiled(rule.pattern).search
    if not search(plain):
        return False
    harmless = _compiled(read_rules().harmless)
    for _ in range(2):  # neighbouring phrases share a space
        plain = harmless.sub(f" {HARMLESS} ", plain)
    return search(plain) is not None


def _applies(rule: Rule, source: str, careful: bool) -> bool:
    if rule.kind == "careful":
        return careful
    return rule.kind == "never" or not _invites(source, rule.topic)


def _invites(source: str, topic: str) -> bool:
    pattern = read_rules().invites.get(topic)
    return pattern is not None and _compiled(pattern).search(plain_words(source)) is not None


@cache
def _rules_by_key() -> dict[str, list[int]]:
    """For each key word, the positions of the rules that have it."""
    positions: dict[str, list[int]] = defaultdict(list)
    for position, rule in enumerate(read_rules().stops):
        for key in rule.keys:
            positions[key].append(position)
    return positions


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _whole(pattern: str) -> str:
    return f" (?:{pattern}) "
