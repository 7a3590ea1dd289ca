"""Test whether a side of a causal statement is a clause.

The tests are cheap on purpose (word lists and word endings, no parser); a doubtful side is refused.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from cod3s.harvest import lexicon
from cod3s.harvest.sides import find_quote
from cod3s.word_lists import word_pattern

_MARKUP = re.compile(r"[\x00-\x1f\ud800-\udfff\[\]{}<>|\\`=@#*_^~/()&]")
_OTHER_CUE = re.compile(
    r",\s(?:and\s)?so\b|\bwhich is why\b|\bas a result\b|\bso that\b|\b(?:that|this)(?:'s| is) why\b"
)
_CUT_OFF = re.compile(r"\b(?:that|and|but|or|if|when|which|as|namely|say|like),\s[^,]*$")
_SPEECH_TAG = re.compile(
    r"(?:\w+ ){1,3}(?:answered|replied|cried|continued|exclaimed|"
    r"(?:assured|told|informed) (?:me|us|him|her|them))(?:,|$)"
)
_SUBORDINATE = re.compile(
    r"(?:(?:even |just |only )?(?:if|when|as)|whenever|while|once|after|before|although|though|unless|until|since|"
    r"suppose|given)\b"
)
_TOPIC = re.compile(
    r"(?:you|it|that|this|there|what|if|i (?:think|guess|mean|was like|was wondering|would|wanted to ask)|"
    r"i'd|we (?:talked|were talking)|the (?:question|idea|thing|first|next|other|way))\b"
)
_REMARK = re.compile(r"(?:that|this|it|here)(?:'s| is| was) (?:a |an |the |my |our )?(?:\w+ ){0,3}\w+$")
_TROUBLE = re.compile(rf"n't\b|\b(?:{word_pattern('trouble')})\b")
_MUST = re.compile(
    r"\b(?:ha(?:ve|s|d) to|needs? to|needed to|must|can'?t|cannot|could(?:n't| not)|won't|decided|"
    r"ended up|no longer)\b"
)
_EDGES = ",.\"'“”!"


@dataclass(frozen=True)
class Limits:
    """How many words a side may have; 20 is the limit of the original code."""

    min_words: int = 3
    max_words: int = 20


class Side:
    """One side of a statement, in the forms that the tests need."""

    __slots__ = ("small", "text", "tokens", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.small = text.replace("’", "'").lower()
        self.tokens = [token.strip(_EDGES) for token in self.small.split()]
        self.words = set(self.tokens)


Test = Callable[[Side], object]  # true where the side fails


def clause_fault(text: str, limits: Limits) -> str | None:
    """Why `text` is not a clause, or None if it is."""
    return _fault(_CLAUSE_TESTS, text, limits)


def phrase_fault(text: str, limits: Limits) -> str | None:
    """Why `text` is not a noun phrase, or None if it is."""
    return _fault(_PHRASE_TESTS, text, limits)


def _fault(tests: tuple[tuple[str, Test], ...], text: str, limits: Limits) -> str | None:
    side = Side(text)
    if len(side.tokens) < limits.min_words:
        return "too short"
    if len(side.tokens) > limits.max_words:
        return "too long"
    return next((reason for reason, fails in tests if fails(side)), None)


def opens_clause(text: str) -> bool:
    """Whether `text` begins with a subject: a pronoun, a determiner, a name or a bare noun."""
    tokens = text.split(None, 2)
    if len(tokens) < 2:
        return False
    first, second = (token.replace("’", "'").strip(_EDGES) for token in tokens[:2])
    small = first.lower()
    if small == "that":
        return second in lexicon.AUXILIARIES
    if small.partition("'")[0] in lexicon.OPENERS or (first[:1].isupper() and small not in lexicon.NO_SUBJECT):
        return True
    return (small.endswith("s") or small in lexicon.BARE_NOUNS) and (second == "of" or _is_verb(second))


def tells_a_consequence(first: str, second: str) -> bool:
    """Whether `second` follows from `first` and does not open a topic: both are in the past, or it says must.

    In speech, "so" at the start of a sentence continues a story as often as it draws a conclusion.
    """
    before, after = Side(first), Side(second)
    if _TOPIC.match(after.small) or _REMARK.match(before.small):
        return False
    if _MUST.search(after.small) or after.tokens[0] in ("he", "she"):
        return True
    return any(map(_is_past, after.tokens[1:5])) and any(map(_is_past, before.tokens[1:]))


def tells_of_trouble(text: str) -> bool:
    """Whether `text` says that something is missing, wrong or too much, which people react to."""
    return _TROUBLE.search(Side(text).small) is not None


def _has_other_cue(side: Side) -> bool:
    return not side.words.isdisjoint(lexicon.CUES) or bool(
        not side.words.isdisjoint(lexicon.CUE_PARTS) and _OTHER_CUE.search(side.small)
    )


def _is_cut_off(side: Side) -> bool:
    last = side.tokens[-1]
    return (
        last in lexicon.DANGLING or last.endswith("'s") or bool("," in side.small and _CUT_OFF.search(side.small))
    )


def _lacks_subject(side: Side) -> bool:
    first = side.tokens[0]
    if first in lexicon.NO_SUBJECT or _is_order(side.tokens):
        return True
    return not (side.text[0].isupper() or first in lexicon.LEAD_INS or opens_clause(side.text))


def _lacks_main_clause(side: Side) -> bool:
    rest = side.text.partition(", ")[2]
    if _SUBORDINATE.match(side.small):
        return not opens_clause(rest)
    # "In winter we stay in": after a preposition, only a pronoun or a comma reveals the subject.
    return side.tokens[0] in lexicon.PREPOSITIONS and not rest and side.words.isdisjoint(lexicon.PRONOUNS)


_SHARED_TESTS: tuple[tuple[str, Test], ...] = (
    ("a question", lambda side: "?" in side.text),
    ("a piece of a quotation", lambda side: find_quote(side.text) >= 0 or _SPEECH_TAG.match(side.small)),
    ("markup", lambda side: _MARKUP.search(side.text)),
    ("another connective", _has_other_cue),
    ("cut off", _is_cut_off),
    ("no content", lambda side: lexicon.EMPTY_WORDS.issuperset(side.words)),
)
_CLAUSE_TESTS: tuple[tuple[str, Test], ...] = (
    *_SHARED_TESTS,
    ("a condition or a comparison", _lacks_main_clause),
    ("no subject", _lacks_subject),
    ("no verb", lambda side: not _has_main_verb(side.tokens)),
    ("an embedded question", lambda side: not side.words.isdisjoint(lexicon.WONDERING)),
)
_PHRASE_TESTS: tuple[tuple[str, Test], ...] = (
    *_SHARED_TESTS,
    ("not a noun phrase", lambda side: "," in side.text),
    ("not a noun phrase", lambda side: not side.words.isdisjoint(lexicon.CLAUSE_WORDS)),
    ("not a noun phrase", lambda side: side.tokens[0] in lexicon.NO_PHRASE),
)


def _is_order(tokens: list[str]) -> bool:
    """An imperative: a verb's base form opens the side and is not the subject of a verb ("work was slow")."""
    return tokens[0] in lexicon.BASE_VERBS and not any(
        _is_verb(token) and token not in lexicon.BASE_VERBS for token in tokens[1:2]
    )


def _has_main_verb(tokens: list[str]) -> bool:
    """Whether a word looks like a finite verb of the main clause.

    A word that may be a noun ("the approach") counts only after a subject; the verb of a relative clause does not
    count.
    """
    if tokens[0] in lexicon.SUBJECTS or ("'" in tokens[0] and _is_verb(tokens[0])):
        return True
    in_relative = False
    for before, token in pairwise(tokens):
        if token in lexicon.RELATIVES or (token == "that" and not _is_verb(before)):
            in_relative = True
        elif _is_verb_after(before, token):
            if not in_relative:
                return True
        elif in_relative and _is_verb(before):
            in_relative = False
    return tokens[0] in lexicon.DETERMINERS and any(map(_is_noun_and_verb, tokens[1:3], tokens[2:4]))


def _is_verb_after(before: str, token: str) -> bool:
    if token in lexicon.MAYBE_NOUNS or token.endswith("ed"):
        return before not in lexicon.BEFORE_NOUNS and "-" not in token and _is_verb(token)
    return _is_verb(token)


def _is_noun_and_verb(noun: str, verb: str) -> bool:
    """As in "my aunt knits": a noun that is not a plural, then a word in -s."""
    return verb.endswith("s") and not noun.endswith("s") and verb not in lexicon.NO_VERB


def _is_verb(token: str) -> bool:
    if token in lexicon.VERBS or _ends_as_past(token):
        return True
    base, apostrophe, ending = token.partition("'")
    if not apostrophe:
        return False
    return ending in ("re", "m", "ll", "ve", "d", "t") or (ending == "s" and base in lexicon.OPENERS)


def _is_past(token: str) -> bool:
    return token in lexicon.PAST or _ends_as_past(token)


def _ends_as_past(token: str) -> bool:
    return token.endswith("ed") and len(token) > 3 and token not in lexicon.NO_PAST
