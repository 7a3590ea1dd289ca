"""Notice sources that a model of causes and effects cannot answer well: not English, or not a statement.

The rules are cheap and careful: a remark on a good statement is worse than none on a bad statement.
"""

import re

from cod3s.text import words
from cod3s.word_lists import word_groups, word_pattern, word_set

_BETTER = 'an English statement such as "it rained all day" gets better answers'
_SEVERAL = 3  # words: with fewer, letters and small words do not tell the language

_ENGLISH = word_set("English")
_FOREIGN = [frozenset(language) for language in word_groups("foreign")]
# The consonants that words begin and end with; y counts as a vowel.
_STARTS = re.compile(
    "[bcdfghjklmnpqrstvwxz]?|[bcfgpkst]l|[bcdfgpktv]r|s[ckmnpqtwv]|s[cpt]r|spl|schw?|shr?|sph|ch[rl]?|th[rw]?|phr?|"
    "wh|wr|kn|gn|gh|ps|pn|rh|tw|dw|tz|ts|mc|ll|kh|zh|mn|pt|kw"
)
_ENDS = re.compile(
    "(?:[bcdfghjklmnpqrstvwxz]?|ck|t?ch|sh|th|ph|ght?|[cflnprsxtwb]t|[lnrdw]d|bb|ff|lf|rf|gg|ng|rg|[lnrsw]k|[lrw]l|"
    "rld|[lrsm]m|thm|chm|gm|[lrwngm]n|[lmrsp]p|rr|ss|zz|l?tz|rtz|[mlr]b|[lnr]c|[nrl]ch|nct|mpt|[mlr]ph|[nlrxfpdw]th|"
    "lfth|ngth|ngst|[rnl]st|[rl]sh|lv|rv|nx|nz|sch)s?"
)
_NO_VOWELS = "bcdfghjklmnpqrstvwxz"
_CLUSTER = re.compile("[^aeiouy]{6}")
_KEYBOARD = re.compile("qwer|wert(?!h)|rtyu|tyui|uiop|asdf|sdfg|dfgh|fghj|ghjk|hjkl|zxcv|xcvb|cvbn|vbnm")

_ASKER = r"(?:i|you|he|she|it|we|they|there)\b"
_THING = r"(?:the|this|that|these|those|my|your|his|her|our|their)\b"
_QUESTIONS = re.compile(  # without a question mark
    rf"(?:why|how|where|when) (?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|don't|didn't|"
    rf"isn't|doesn't) (?:{_ASKER}|{_THING}|an? )|"
    rf"(?:what|who|whom|which) (?:do|does|did|are|will|can) (?:{_ASKER}|{_THING})|"
    rf"(?:is|are|does|did|will|would|could|isn't|aren't|doesn't|didn't) (?:{_ASKER}|{_THING})|"
    r"(?:do|can|don't|can't|won't) (?:i|you|he|she|we|they)\b"
)
_QUOTES = "\"'“”‘’«»"
_OBJECT = (
    r"(?:the|a|an|my|your|his|her|our|their|me|him|us|them|it|this|these|those|all|some|every|each|two|three)\b"
)
_COMMANDS = re.compile(
    rf"please\b|let's\b|let us\b|(?:do not|don't) (?!have |know |like |want |need )[a-z]+|"
    rf"be (?:quiet|careful|nice|good|kind|patient|still|silent|sure|polite|brave|honest|happy)\b|"
    rf"(?:go|come|sit|stand|wake|hurry|shut|calm|get) "
    rf"(?:to|away|home|here|there|down|up|out|back|on|in|outside|inside)\b|"
    rf"(?:listen to|look at|wait for) {_OBJECT}|"
    rf"(?:{word_pattern('orders')}) {_OBJECT}"
)


def remarks_on(source: str) -> list[str]:
    """At most one remark, on a source that is probably not an English statement."""
    if problem := _problem(source):
        return [f"the source {problem}: {_BETTER}"]
    return []


def _problem(source: str) -> str:
    letters = [letter for letter in source if letter.isalpha()]
    listed = words(source.replace("’", "'").replace("-", ""))
    if not letters:
        return "has no letters"
    if _is_foreign(letters, listed):
        return "does not look like English"
    if _is_random(listed):
        return "looks like random letters"
    if len(listed) == 1:
        return "is a single word"
    sentence = " ".join(listed)
    quoted = source[0] in _QUOTES  # "are you there?" he asked
    if source.rstrip(f"{_QUOTES})] ").endswith("?") or (not quoted and _QUESTIONS.match(sentence)):
        return "looks like a question"
    return "looks like a command" if not quoted and _COMMANDS.match(sentence) else ""


def _is_foreign(letters: list[str], listed: list[str]) -> bool:
    """Whether most letters are not Latin, or small words of another language outnumber the English ones."""
    latin = sum(letter < "\u0250" or "\u1e00" <= letter < "\u1f00" for letter in letters)
    if 2 * latin < len(letters):
        return True
    english = len(_ENGLISH.intersection(listed))
    foreign = max(len(language.intersection(listed) - _ENGLISH) for language in _FOREIGN)
    if foreign > max(english, 1) and len(listed) >= _SEVERAL:  # a single word may be part of a name
        return True
    marked = sum(not word.isascii() for word in listed)
    return not english and len(listed) >= _SEVERAL and 3 * marked >= len(listed)


def _is_random(listed: list[str]) -> bool:
    """Whether at least half of the words cannot be pronounced, and no small word is English."""
    if any(word in _ENGLISH for word in listed if len(word) > 1):
        return False
    return 2 * sum(map(_is_unpronounceable, listed)) >= len(listed)


def _is_unpronounceable(word: str) -> bool:
    if not (word.isascii() and word.isalpha()) or len(word) < _SEVERAL:
        return False
    if not word.strip(_NO_VOWELS) or _CLUSTER.search(word) or _KEYBOARD.search(word):
        return True
    start = word[: len(word) - len(word.lstrip(_NO_VOWELS))]
    end = word[len(word.rstrip(_NO_VOWELS)) :]
    return not (_STARTS.fullmatch(start) and _ENDS.fullmatch(end))
