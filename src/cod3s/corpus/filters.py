"""The named filters of pairs and their presets.

A filter is an SQL condition over `source`, `target` and their `bare` forms that is true for pairs to remove.
"""

from collections.abc import Sequence

from cod3s.corpus.conditions import Filter, either, matches, side_filter, word_count
from cod3s.corpus.noise import NOISE
from cod3s.errors import Cod3sError, UsageError, did_you_mean
from cod3s.word_lists import word_pattern

# The original code's list, as whole words: it compared the ends of strings, and so also dropped "describe".
_DANGLING = r"(?i)(^|[^\p{L}\p{N}'’])(be|maybe|actually|partly|it is|it was|that was|that is)[^\p{L}\p{N}]*$"


def _empty(words: int = 2) -> Filter:
    def removes(side: str) -> str:
        letter = matches(side, r"\p{L}")
        return f"{word_count(side)} < {words} OR NOT {letter}"

    return Filter(f"empty:{words}", f"a side has fewer than {words} words, or no letter", either(removes))


def _length(words: int = 12) -> Filter:
    many = either(lambda side: f"{word_count(side)} > {words}")
    return Filter(f"length:{words}", f"a side has more than {words} words", many)


def _repeated() -> Filter:
    def loops(side: str) -> str:
        words = f"string_split(lower({side}), ' ')"
        return f"{word_count(side)} > 3 AND 2 * list_unique({words}) <= {word_count(side)}"

    return Filter(
        "repeated",
        "both sides say the same thing, or at least half of a side's words are repetitions",
        f"source_bare = target_bare OR {either(loops)}",
    )


def _english() -> Filter:
    both = "source || ' ' || target"
    letters = f"length(regexp_replace({both}, '[^\\p{{L}}]+', '', 'g'))"
    ascii_letters = f"length(regexp_replace({both}, '[^A-Za-z]+', '', 'g'))"
    foreign = f"(NOT regexp_full_match({both}, '[ -~]*') AND 10 * {ascii_letters} < 9 * {letters})"
    common = matches(both, rf"(?i)(^|[^\p{{L}}'’])({word_pattern('function words')})($|[^\p{{L}}])")
    return Filter(
        "english",
        "not English: under nine tenths of the letters are ASCII, or no common English word in eight or more",
        f"{foreign} OR ({word_count('source')} + {word_count('target')} >= 8 AND NOT {common})",
    )


_WITH_NUMBER = {"empty": _empty, "length": _length}
_PLAIN = {
    filter.label: filter
    for filter in (
        side_filter(
            "characters",
            "a digit or a special character: anything but letters, spaces and sentence punctuation",
            r"""[^\p{L}\p{M}\s.,;:!?'"’‘“”()…–—-]""",
        ),
        side_filter(
            "symbols",
            "markup, an address, code or replacement characters; digits may stay",
            r"[<>{}\[\]|\\^~_=@#*+/`�]|\p{Co}|www\.|[.,!?]{4,}",
        ),
        Filter("dangling", "the target breaks off: it ends in be, maybe, it is, …", matches("target", _DANGLING)),
        _repeated(),
        _english(),
        *NOISE,
    )
}
FILTERS = (*_WITH_NUMBER, *_PLAIN)

_DEFAULT = "empty:2,length:12,symbols,dangling,repeated,english"
PRESETS = {
    "paper": "characters,length:12",  # appendix B
    "original": "length:20,dangling",  # what the authors' code drops, with whole words
    "default": _DEFAULT,
    # For public use: without the noise that shows when harvested pairs are read.
    "clean": f"{_DEFAULT},broken,unfinished,headless,filler,chat,vague,copied,template,meta,profanity,sensitive",
    "none": "",
}


def find_filters(names: str) -> list[Filter]:
    """The filters of a preset, or of a comma list such as `empty,length:20,dangling`, in that order."""
    listed = PRESETS.get(names, names)
    return [_find(name.strip()) for name in listed.split(",") if name.strip()]


def removed_by(filters: Sequence[Filter]) -> str:
    """An SQL expression: the label of the first filter that removes the row, or NULL."""
    if not filters:
        return "NULL::VARCHAR"
    cases = " ".join(f"WHEN {filter.removes} THEN '{filter.label}'" for filter in filters)
    return f"CASE {cases} END"


def _find(name: str) -> Filter:
    kind, mark, number = name.partition(":")
    if kind in _PLAIN:
        if mark:
            raise Cod3sError(f"the filter {kind!r} takes no number", hint=f"write it as {kind}")
        return _PLAIN[kind]
    if make := _WITH_NUMBER.get(kind):
        if not mark:
            return make()
        if number.isdecimal() and int(number) > 0:
            return make(int(number))
        raise Cod3sError(f"{name!r} needs a whole number of words", hint=f"for example {make().label}")
    raise UsageError(f"there is no filter {name!r}", hint=did_you_mean(kind, [*FILTERS, *PRESETS]))
