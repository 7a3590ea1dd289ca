"""The named filters of pairs and their presets, as SQL conditions that are true for pairs to remove.

The filters from `broken` on work against the noise of harvested pairs; they were written after reading pairs of
thirteen corpora (docs/measured/corpus.md shows what each removes) and favor precision.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cod3s.errors import Cod3sError, UsageError, did_you_mean
from cod3s.io.scan import literal
from cod3s.word_lists import word_pattern

# The original code's list, as whole words: it compared the ends of strings, and so also dropped "describe".
_DANGLING = r"(?i)(^|[^\p{L}\p{N}'’])(be|maybe|actually|partly|it is|it was|that was|that is)[^\p{L}\p{N}]*$"
_START = r"^[^\p{L}\p{N}]*"
_END = r"[^\p{L}\p{N}]*$"
_AFTER = r"($|[^\p{L}\p{N}'’-])"
_FEW_WORDS = 3


@dataclass(frozen=True)
class Filter:
    """A reason to remove a pair; its label is its name, with its number if it has one."""

    label: str
    reason: str
    removes: str  # an SQL condition over source, target, source_bare and target_bare


def either(condition: Callable[[str], str]) -> str:
    """True when the condition holds for the source or for the target."""
    return f"({condition('source')}) OR ({condition('target')})"


def word_count(side: str) -> str:
    # Sides are clean, so single spaces separate the words; an empty side has no word.
    return f"(CASE {side} WHEN '' THEN 0 ELSE length({side}) - length(replace({side}, ' ', '')) + 1 END)"


def matches(side: str, pattern: str) -> str:
    return f"regexp_matches({side}, {literal(pattern)})"


def side_filter(label: str, reason: str, *patterns: str) -> Filter:
    """A filter that removes a pair if any of the patterns matches either side."""
    return Filter(label, reason, either(lambda side: " OR ".join(matches(side, pattern) for pattern in patterns)))


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


def _vague() -> Filter:
    nothing = rf"(?i)^([^\p{{L}}]*({_curly('vague')})($|[^\p{{L}}'’]+))+$"
    short = either(lambda side: f"{word_count(side)} <= {_FEW_WORDS} AND {matches(side, nothing)}")
    return Filter(
        "vague",
        f"both sides, or one of at most {_FEW_WORDS} words, hold only pronouns and words that can mean anything",
        f"{short} OR ({matches('source', nothing)} AND {matches('target', nothing)})",
    )


def _copied() -> Filter:
    def stems(side: str) -> str:
        plain = f"regexp_replace(lower({side}), '[^\\p{{L}}\\p{{N}} ]', '', 'g')"
        return f"list_distinct(list_transform(string_split({plain}, ' '), lambda word: word[:4]))"

    source, target = stems("source"), stems("target")
    return Filter(
        "copied",
        "more than four fifths of a side's words, by their first four letters, are in the other side",
        f"5 * len(list_intersect({source}, {target})) > 4 * least(len({source}), len({target}))",
    )


def _template() -> Filter:
    wrong = r"(?i)(^|[^\p{L}'’])(i|you|we|they) (feels|wants|likes|needs|has|knows|loves|thinks|is|goes)( |$)"
    ending = r"\p{L}\(\p{L}+\)"
    would, want = r"(?i)^you would ", r"(?i)^(you|your) "
    return Filter(
        "template",
        "filled into a pattern: wrong agreement (they feels), an ending left to choose (own(s)), or"
        " `you would … because you …`",
        f"({either(lambda side: f'{matches(side, wrong)} OR {matches(side, ending)}')})"
        f" OR ({matches('source', would)} AND {matches('target', want)})"
        f" OR ({matches('target', would)} AND {matches('source', want)})",
    )


def _whole(name: str) -> str:
    """A pattern for any of the words of a list as a whole, in any case."""
    return rf"(?i)(^|[^\p{{L}}\p{{N}}'’-])({_curly(name)}){_AFTER}"


def _curly(name: str) -> str:
    """The words of a list, with either apostrophe."""
    return word_pattern(name).replace("'", "['’]")


_NOISE: tuple[Filter, ...] = (
    Filter("profanity", "a swear word from a short list", either("unsuitable({}) = 'profanity'".format)),
    side_filter(
        "broken",
        "a word or a contraction cut in two, speech cut off, or letters in a wrong encoding",
        r"\p{L}[-‐] \p{L}",
        r"--|\p{L}[-–—]$",
        r"(?i) (n['’]t|nt|['’](s|re|ve|ll|d|m))( |$)",
        r"\p{L} [.,;:!?]|[.,;:!?]\p{L}{2}",
        r"[âÃÂ]( |$|\p{P})|â€",
        r"\p{L}[$%*!]+\p{L}",
    ),
    side_filter(
        "unfinished",
        "a side ends in a word that asks for another: an article, a conjunction, a title, a shortened verb",
        rf"(?i)(^|[^\p{{L}}\p{{N}}'’])({_curly('unfinished')}){_END}",
        rf" a{_END}",  # small: with a capital it can be a grade
    ),
    side_filter(
        "headless",
        "a side lost its beginning: it starts with a number, a verb, or what follows `no` or `so`",
        rf"(?i){_START}({_curly('headless')}|{word_pattern('lost no')}){_AFTER}",
        rf"{_START}\p{{N}}+[,.):]",
    ),
    side_filter(
        "filler",
        "a side begins, continues or ends with filler words: well, I mean, you see",
        rf"(?i){_START}({_curly('filler openings')}){_AFTER}",
        rf"(?i)(^|[^\p{{L}}])({_curly('fillers')})($|[^\p{{L}}])",
        rf"(?i), ({_curly('tags')}){_END}",
    ),
    side_filter(
        "chat",
        "net speak, missing apostrophes, laughter, stretched letters or shouting",
        _whole("chat"),
        "|".join(f"{letter}{{3,}}" for letter in "abcdefghijklmnopqrstuvyz"),
        r"\b\p{Lu}{5,}\b",
        r"[!?]{2}|&|;\)|:\)",
    ),
    _vague(),
    _copied(),
    _template(),
    side_filter(
        "meta", "it is about the text it comes from: this post, my third reason, this film", _whole("own text")
    ),
    Filter(
        "sensitive",
        "slurs, sex, suicide, or a person's origin, color, faith, sex, orientation or disability: not for the"
        " invented sentences of a demo",
        either("unsuitable({}) = 'sensitive'".format),
    ),
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
        *_NOISE,
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
