"""Which candidates say something: texts in, those that only repeat the source or themselves last.

Beams of a small model copy their source, and MMI likes that: nothing foretells a source better than its own words.
"""

from collections.abc import Sequence
from dataclasses import replace

from cod3s.decode.sentences import Candidate
from cod3s.text import words

_SMALL_WORDS = frozenset(
    words(
        "a an the this that these those i you he she it we they me him her us them my your his its our their who "
        "what which there and or but so as if than to of in on at for with from by about into out up down off "
        "over is are was were be been being am"
    )
)
_STEM = 4  # letters that forms of a word share: enough to tell most words apart, as in the filter `copied`


def is_stale(source: str, text: str) -> bool:
    """Whether `text` holds a word of its own twice, or no word but small ones that `source` lacks."""
    stems = _stems(text)
    return len(set(stems)) < len(stems) or set(stems) <= set(_stems(source))


def fresh_first(source: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates in their order, stale ones marked and behind all others: taken where nothing else is left."""
    marked = [replace(one, stale=is_stale(source, one.text)) for one in candidates]
    return sorted(marked, key=lambda one: one.stale)


def _stems(text: str) -> list[str]:
    return [word[:_STEM] for word in words(text) if word not in _SMALL_WORDS]
