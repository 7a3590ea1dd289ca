"""Trim the text before or after a cue to the clause that belongs to it.

Trimming removes empty words (markers, asides, quotes) and what belongs to another clause; it never cuts inside a
clause.
"""

import re

from cod3s.word_lists import word_pattern

_MARKERS, _ADVERBS = word_pattern("markers"), word_pattern("adverbs")
# Words that only join the sentence to the previous one.
_JOINTS = r"and|but|so|or|um|uh|er|then|now|yet|for(?= (?:when|as|if|i|he|she|we|they|it|there)\b)"
_IT_WAS_THAT = r"(?:it (?:happened|happens|follows|came to pass|came about|came|was|is) that\s+)?"
_LEADING = re.compile(rf"(?:(?:{_MARKERS})(?:,|\.\.\.)\s+|(?:{_JOINTS})\b,?\s+)+", re.IGNORECASE)
_LINKING = re.compile(rf"(?:(?:{_ADVERBS})\b,?\s+)*{_IT_WAS_THAT}", re.IGNORECASE)
# The words that any of them can begin with: a lookup spares most sides the long lists.
_FIRST_WORDS = frozenset(f"{_MARKERS}|{_JOINTS}|{_ADVERBS}|for|it".replace("|", " ").split())
_FILLER = re.compile(r",\s+(?:you know|i mean|i guess|like|sort of|kind of)(?=,)", re.IGNORECASE)
_TRAILING = re.compile(
    r"(?:,\s+(?:you know|right|though|of course|i mean|obviously|really|basically|okay|i think|i guess|huh|too|"
    r"et cetera|etc|and so on|and so forth|and stuff|or something|or whatever))+$",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\s*\([^()]*\)")
# After the last of these the clause before the cue begins.
_BREAK = re.compile(r"[;:—–…]|--|\.\.\.|\s-\s|,\sbut\s|[!?]['\"”’]?\s")
# At the first of these the clause after the cue ends.
_NEW_CLAUSE = re.compile(
    r"[;:—–…]|--|\.\.\.|\s-\s|[!?]['\"”’]?\s"
    r"|\s(?:but|yet|although|though|whereas|because|which is why|which means|therefore)\b"
    r"|,\s(?:so\b|and so\b|thus\b|hence\b|that['’]s why|since\b|for (?:i|he|she|we|they)\b"
    r"|(?:and|or)\s(?:when|if|as|while|after|before)\b"
    r"|(?:and|or)\s(?:then\s)?(?:i|we|he|she|they|you|it|there|the|that|this|my|his|her|our|their)\b"
    r"|(?:\w+\s){1,3}?(?:said|says|told|added|explained|reported|replied|cried|answered|asked)\b)"
)
_SPLICE = re.compile(r",\s(?:i|we|he|she|they|you|it|there|that)(?:['’]\w+)?\s")
_SUBORDINATE = re.compile(r"(?:if|when|whenever|while|once|after|before|as|although|though|unless|until)\b")
_QUOTE = re.compile(r"[\"'“”‘’]")
_EDGES = " \t,;:.!…—–-"


def trim_first(side: str) -> str:
    """The clause before the cue: what follows the last break, without markers at either end."""
    side = _without_asides(side.rstrip(_EDGES))
    start = 0
    for match in _BREAK.finditer(side):
        start = match.end()
    return _trim_ends(_without(_LEADING, side[start:].lstrip(_EDGES + "\"'“‘(")))


def trim_second(side: str) -> str:
    """The clause after the cue: up to the next break, new clause, or end of the quotation."""
    side = _without(_LINKING, _without_asides(side).lstrip(_EDGES)).lstrip(_EDGES)
    small = side.lower()
    end = len(side)
    quote = find_quote(side)
    if quote > 0 and side[quote - 1] in ".,!?":
        end = quote
    if new := _NEW_CLAUSE.search(small, 1, end):
        end = new.start()
    if not _SUBORDINATE.match(small) and (splice := _SPLICE.search(small, 1, end)):
        end = splice.start()
    return _trim_ends(side[:end])


def find_quote(side: str) -> int:
    """The position of the first quotation mark that is not an apostrophe; -1 if there is none."""
    for quote in _QUOTE.finditer(side):
        at = quote.start()
        if side[at] in '"“”‘':
            return at
        before, after = side[:at][-1:], side[at + 1 : at + 2]
        closes = before in (".", ",", "!", "?") and (not after or after == " ")
        if closes or (before == " " and after.isalnum()):
            return at
    return -1


def _without(opening: re.Pattern[str], side: str) -> str:
    if side.partition(" ")[0].rstrip(",.").lower() not in _FIRST_WORDS:
        return side
    match = opening.match(side)
    return side[match.end() :] if match else side


def _without_asides(side: str) -> str:
    return _ASIDE.sub("", side) if "(" in side else side


def _trim_ends(side: str) -> str:
    side = side.strip(_EDGES + "\"'“”‘’")
    return _TRAILING.sub("", _FILLER.sub("", side)).rstrip(_EDGES) if ", " in side else side
