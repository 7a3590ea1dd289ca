"""Trim what stands before or after a cue to the clause that belongs to it. Strings in, strings out.

Trimming takes off what says nothing (markers, asides, quotes) and what belongs to another clause; it never
cuts inside a clause.
"""

import re

_LEADING = re.compile(
    r"""\A(?:(?:well|oh|ah|yeah|yep|yes|no|nope|okay|ok|right|alright|sure|look|listen|see|now|anyway|actually|basically|
    honestly|frankly|obviously|exactly|also|hey|hmm|like|however|then|again|therefore|thus|consequently|of\ course|
    in\ fact|to\ be\ honest|you\ know|i\ mean|you\ see|as\ a\ result|in\ other\ words|for\ example)(?:,|\.\.\.)\s+
    |(?:and|but|so|or|um|uh|er|then|yet)\b,?\s+)+""",
    re.IGNORECASE | re.VERBOSE,
)
_LINKING = re.compile(
    r"\A(?:(?:now|then|naturally|obviously|of course|eventually|finally|basically|actually|you know|i mean|well|"
    r"at least|in the end|for example|clearly|ultimately|essentially|however|yeah|like),?\s+)*"
    r"(?:it (?:happened|happens|follows|came to pass|came about|came|was|is) that\s+)?",
    re.IGNORECASE,
)
_FILLER = re.compile(r",\s+(?:you know|i mean|i guess|like|sort of|kind of)(?=,)", re.IGNORECASE)
_TRAILING = re.compile(
    r"(?:,\s+(?:you know|right|though|of course|i mean|obviously|really|basically|okay|i think|i guess|huh|too|"
    r"et cetera|etc|and so on|and so forth|and stuff|or something|or whatever))+$",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\s*\([^()]*\)")
# After the last of these the clause before the cue begins.
_BREAK = re.compile(r"[;:—–…]|--|\.\.\.|\s-\s|,\s+but\s|[!?]['\"”’]?\s")
# At the first of these the clause after the cue ends.
_NEW_CLAUSE = re.compile(
    r"[;:—–…]|--|\.\.\.|\s-\s|[!?]['\"”’]?\s"
    r"|\s(?:but|yet|although|though|whereas|because|which is why|which means|therefore)\b"
    r"|,\s(?:(?:and\s)?(?:so|thus|hence|that['’]s why|since)\b|for (?:i|he|she|we|they)\b"
    r"|(?:and|or)\s(?:then\s)?(?:i|we|he|she|they|you|it|there|the|that|this|my|his|her|our|their)\b"
    r"|(?:\w+\s){1,3}?(?:said|says|told|added|explained|reported|replied|cried|answered|asked)\b)",
    re.IGNORECASE,
)
_SPLICE = re.compile(r",\s(?:i|we|he|she|they|you|it|there|that)(?:['’]\w+)?\s", re.IGNORECASE)
_SUBORDINATE = re.compile(r"(?:if|when|whenever|while|once|after|before|as|although|though|unless|until)\b", re.IGNORECASE)
QUOTE = re.compile(r"[\"“”‘]|(?<=[.,!?])['’](?=\s|$)|(?<=\s)['’](?=\w)")
_EDGES = " \t,;:.!…—–-"


def trim_first(side: str) -> str:
    """The clause that stands before the cue: what follows the last break, without markers at either end."""
    side = _without_asides(side.rstrip(_EDGES))
    start = 0
    for match in _BREAK.finditer(side):
        start = match.end()
    return _trim_ends(_LEADING.sub("", side[start:].lstrip(_EDGES + "\"'“‘(")))


def trim_second(side: str) -> str:
    """The clause that stands after the cue: up to the next break, new clause, or end of the quotation."""
    side = _LINKING.sub("", _without_asides(side).lstrip(_EDGES)).lstrip(_EDGES)
    end = len(side)
    if quote := QUOTE.search(side):
        end = quote.start() if side[: quote.start()].endswith((".", ",", "!", "?")) else end
    if new := _NEW_CLAUSE.search(side, 1, end):
        end = new.start()
    if not _SUBORDINATE.match(side) and (splice := _SPLICE.search(side, 1, end)):
        end = splice.start()
    return _trim_ends(side[:end])


def _without_asides(side: str) -> str:
    return _ASIDE.sub("", side) if "(" in side else side


def _trim_ends(side: str) -> str:
    side = side.strip(_EDGES + "\"'“”‘’")
    return _TRAILING.sub("", _FILLER.sub("", side)).rstrip(_EDGES) if ", " in side else side
