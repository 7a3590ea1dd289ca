"""Bring a sentence into the form it needs: cleaned, for embedding, for modelling, in a statement."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from cod3s.errors import SentenceError
from cod3s.word_lists import word_set

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNSEEN = {"Cf", "Zs", "Mn", "Me"}  # zero-width characters, spaces, marks without a letter
_SPACES = re.compile(r"\s+")
_LONE_I = re.compile(r"i(?<![\w']i)(?![\w'.])")  # the letter stands first, so that the search can skip to it
_SMALL_I = re.compile(r"(?<![\w'])i(?=(?:'(?:m|ve|ll|d|s))?(?![\w'.]))")  # also i'm, i've
_PLAIN_QUOTES = str.maketrans("‘’“”", "''\"\"")
_CLOSING = "\"'”’)]"
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_SMALL_WORDS = word_set("small words")
_STEM = 4  # letters: enough to tell most words apart, as in the filter `copied`


def clean(text: str) -> str:
    """One line of text in NFC, with single spaces instead of white space, control characters and lone surrogates.

    Text without a visible character is an error: it has no meaning to hash.
    """
    if not isinstance(text, str):
        raise SentenceError(f"{text!r} is {type(text).__name__}, not text", hint="give sentences as strings")
    if _is_clean_ascii(text):
        return text
    line = _SPACES.sub(" ", _CONTROL.sub(" ", unicodedata.normalize("NFC", text))).strip()
    if all(unicodedata.category(character) in _UNSEEN for character in line):
        raise SentenceError("an empty sentence cannot be encoded", hint="give at least one visible character")
    return line


def is_visible(text: str) -> bool:
    """Whether a text has a visible character, so that `clean` accepts it."""
    if text[:1].isalnum():  # true for almost every sentence, and a hundred times as fast
        return True
    try:
        clean(text)
    except SentenceError:
        return False
    return True


def for_embedding(text: str) -> str:
    """The form for encoders: a capital first, a full stop unless punctuated, a lone i as I.

    The same normalisation as the original code, so that "it rained" and "It rained." share a signature.
    """
    line = clean(text)
    line = _LONE_I.sub("I", line[0].upper() + line[1:])
    return line if _ends_in_punctuation(line) else line + "."


def all_for_embedding(texts: Sequence[str]) -> list[str]:
    """`for_embedding` of each text, in less than half the time: as much as possible is done to all texts at once.

    Clean texts are single lines, so joined by line ends they stay apart.
    """
    if not texts:
        return []
    lines = texts if _are_clean_ascii(texts) else [clean(text) for text in texts]
    capitals = [line if line[0].isupper() else line[0].upper() + line[1:] for line in lines]
    lines = _LONE_I.sub("I", "\n".join(capitals)).split("\n")
    return [line if line[-1] in ".!?" or _ends_in_punctuation(line) else line + "." for line in lines]


def for_modelling(text: str) -> str:
    """The form that models read and write: first letter in lower case, no final punctuation, plain quotes.

    Unlike in the original code, I, I'm, acronyms and names with inner capitals keep their case, and a lone i
    becomes I. A whole sentence in capitals is read as if it were in lower case.
    """
    line = clean(text).translate(_PLAIN_QUOTES)
    if line.isupper() and line.count(" ") > 1:
        line = line.lower()
    line = _SMALL_I.sub("I", line)
    line = line.rstrip(".!?;:, ") or line
    first = line.split(" ", 1)[0]
    if first == "I" or first.startswith("I'") or first[1:] != first[1:].lower():
        return line
    return line[0].lower() + line[1:]


def complete(template: str, source: str, target: str) -> str:
    """The completed statement of a relation, such as "The well ran dry, so we moved." """
    return for_embedding(template.format(source=for_modelling(source), target=for_modelling(target)))


def words(text: str) -> list[str]:
    """The words in lower case: runs of letters and digits, with inner apostrophes."""
    return _WORD.findall(text.lower())


def content_stems(text: str) -> list[str]:
    """The beginnings of the words that carry meaning, which the forms of a word share."""
    return [word[:_STEM] for word in words(text) if word not in _SMALL_WORDS]


def settings_line(settings: Mapping[str, Any]) -> str:
    """The settings behind a table of figures, as a line to print below it."""
    return " | ".join(f"{name} {value}" for name, value in settings.items())


def _is_clean_ascii(text: str) -> bool:
    """Whether `clean` would change nothing: most sentences, told without a regular expression."""
    return (
        text.isascii()
        and text.isprintable()
        and text[:1] not in ("", " ")
        and text[-1] != " "
        and "  " not in text
    )


def _are_clean_ascii(texts: Sequence[str]) -> bool:
    """Whether `clean` would change none of them."""
    try:
        joined = "\n".join(texts)
    except TypeError:  # not all are text: `clean` says which
        return False
    return (
        joined.isascii()
        and joined.count("\n") == len(texts) - 1
        and joined.replace("\n", "").isprintable()
        and not any(gap in f"\n{joined}\n" for gap in ("\n\n", "\n ", " \n", "  "))
    )


def _ends_in_punctuation(line: str) -> bool:
    if line[-1] in ".!?" or line[-1].isalnum():
        return not line[-1].isalnum()
    bare = line.rstrip(_CLOSING) or line
    return unicodedata.category(bare[-1]).startswith("P")
