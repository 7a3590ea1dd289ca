"""Group the inflected forms of English words under their base.

A form belongs to a base if the rules of English spelling make it from that base and the base was counted too. The
rules write forms rather than cut endings off, so "hoping" belongs to "hope" and "hopping" to "hop".
"""

import re
from collections.abc import Iterator, Mapping

from cod3s.harvest.lexicon import NO_PAST, third_person
from cod3s.word_lists import word_groups

_VOWELS = "aeiou"
_SYLLABLE = re.compile(r"[aeiouy]+")
_MIN_BASE = 3  # letters; shorter words give more false forms than true forms
_MIN_SHARE = 0.01  # a base that is this much rarer than its form is most likely a typo

# Words that look like forms of others, and are not.
_ALONE = NO_PAST | {"news", "evening", "morning", "wedding", "ceiling", "clothes", "glasses", "being", "things"}

_IRREGULAR_FORMS = {base: tuple(forms) for base, *forms in word_groups("irregular forms")}


def find_bases(counts: Mapping[str, int]) -> dict[str, str]:
    """The base of every counted word, in lower case; a word that is not a form of another is its own base."""
    parents: dict[str, str] = {}
    for base in sorted(counts, key=lambda word: (-counts[word], word)):
        if len(base) < _MIN_BASE or not base.isalpha():
            continue
        for form in _forms(base):
            if form in counts and form not in _ALONE and counts[base] >= _MIN_SHARE * counts[form]:
                parents.setdefault(form, base)
    return {word: _root(word, parents) for word in counts}


def _root(word: str, parents: Mapping[str, str]) -> str:
    """The base at the end of the chain: "buildings" comes from "building", which comes from "build"."""
    seen = {word}
    while (above := parents.get(word)) is not None and above not in seen:
        word = above
        seen.add(word)
    return word


def _forms(base: str) -> Iterator[str]:
    """The forms of a noun or verb; an irregular past replaces the regular past."""
    yield third_person(base)
    if base.endswith("o"):
        yield base + "s"
    yield f"{base}'s"
    yield from (stem + "ing" for stem in _ing_stems(base))
    if base in _IRREGULAR_FORMS:
        yield from _IRREGULAR_FORMS[base]
    elif base.endswith("e"):
        yield base + "d"
    elif base.endswith("y") and base[-2] not in _VOWELS:
        yield base[:-1] + "ied"
    else:
        yield from (stem + "ed" for stem in _stems(base))


def _ing_stems(base: str) -> Iterator[str]:
    if base.endswith("ie"):
        yield base[:-2] + "y"
    elif base.endswith("e") and base[-2] not in "eoy":
        yield base[:-1]
    else:
        yield from _stems(base)


def _stems(base: str) -> Iterator[str]:
    """Before -ed and -ing: the last consonant doubled after a single vowel; in long words, stress decides."""
    doubles = base[-1] not in _VOWELS + "wxy" and base[-2] in _VOWELS and base[-3] not in _VOWELS
    if doubles:
        yield base + base[-1]
    if not doubles or len(_SYLLABLE.findall(base)) > 1:
        yield base
