"""Filters against the noise of harvested pairs: broken sentences, chat, copies, sensitive topics.

The rules were written after reading pairs of thirteen corpora; docs/measured/corpus.md shows what each removes.
They favour precision: a rule that also removed many good pairs was narrowed or left out.
"""

from collections.abc import Callable

from cod3s.corpus.conditions import Filter, either, matches, side_filter, word_count
from cod3s.unsuitable import HARMLESS, PROFANITY, read_rules
from cod3s.word_lists import word_pattern

_START = r"^[^\p{L}\p{N}]*"
_END = r"[^\p{L}\p{N}]*$"
_AFTER = r"($|[^\p{L}\p{N}'’-])"
_FEW_WORDS = 3


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


def _unsuitable(name: str, reason: str, about: Callable[[str], bool]) -> Filter:
    """Removes a pair if a side says what an answer must not say, even if the other side mentions it as well."""
    rules = read_rules()
    alone = [rule for rule in rules.stops if about(rule.topic) and rule.kind != "beside"]
    stops = "|".join(rule.pattern for rule in alone)
    keys = f" ({'|'.join(sorted({key for rule in alone for key in rule.keys}))}) "

    def removes(side: str) -> str:
        plain = f"plain_words({side})"
        serious = plain
        for _ in range(2):  # neighbouring phrases share a space
            serious = f"regexp_replace({serious}, '{rules.harmless}', ' {HARMLESS} ', 'g')"
        stopped = f"{matches(plain, stops)} AND {matches(serious, stops)}"
        return f"CASE WHEN {matches(plain, keys)} THEN {stopped} ELSE FALSE END"

    return Filter(name, reason, either(removes))


def _whole(name: str) -> str:
    """A pattern for any of the words of a list as a whole, in any case."""
    return rf"(?i)(^|[^\p{{L}}\p{{N}}'’-])({_curly(name)}){_AFTER}"


def _curly(name: str) -> str:
    """The words of a list, with either apostrophe."""
    return word_pattern(name).replace("'", "['’]")


NOISE: tuple[Filter, ...] = (
    _unsuitable("profanity", "a swear word from a short list", lambda topic: topic == PROFANITY),
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
    _unsuitable(
        "sensitive",
        "slurs, sex, suicide, or a person's origin, colour, faith, sex, orientation or disability: not for the"
        " invented sentences of a demo",
        lambda topic: topic != PROFANITY,
    ),
)
