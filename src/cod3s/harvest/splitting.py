"""Cut English text into paragraphs and paragraphs into sentences, by rules.

Rules rather than a library: harvesting reads tens of megabytes per second, and it needs Markdown (speaker
labels, headings, links) removed on the way.
"""

import re
from collections.abc import Iterator

from cod3s.word_lists import word_set

# A line of this length may have been wrapped by an editor; any other line ends its paragraph.
_WRAPPED = range(40, 121)

_STRUCTURE = re.compile(r"\s*(?:#{1,6}\s|[=\-*_]{3,}\s*$|[-*+•]\s|>|\d{1,3}[.)]\s|\||```|~~~)")
_HEADING = re.compile(r"\s*(?:#{1,6}\s|\||```|~~~|[=\-*_]{3,}\s*$)")
_MARKER = re.compile(r"\s*(?:>\s*|[-*+•]\s+|\d{1,3}[.)]\s+)+")
_LABEL = re.compile(r"\*\*[^*\n]{1,60}?(?::\*\*|\*\*:)\s*")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_EMPHASIS = re.compile(r"(?<![\w*_])(\*\*|__|\*|_)(?=\S)([^*_]+?)(?<=\S)\1(?![\w*_])")

# Where a sentence may end: a stop, closing quotes, space, and then something that may open a sentence.
_END = re.compile(r"""[.!?…]+["'”’)\]]*\s+(?=["'“‘(\[]*[^\Wa-zß-öø-ÿ_])""")
# People end sentences with these instead of a stop, or after it.
_EMOJI = re.compile("\\s*[\U0001f000-\U0001faff\u2600-\u27bf\u2b50\u2b55\ufe0f\u200d]+\\s*")

_TITLES = word_set("titles")
_BEFORE_NUMBERS = word_set("before numbers")
_SHORTENED = word_set("shortened")
_OPENERS = word_set("openers")


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of `text`, each on a single line without Markdown; headings, tables and rules are left out.

    A blank line ends a paragraph. A single line break does too, unless the line looks wrapped by an editor.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        is_blank = not line or line.isspace()
        structure = None if is_blank else _STRUCTURE.match(line)
        if lines and (is_blank or structure):
            yield _plain(" ".join(lines))
            lines = []
        if is_blank or (structure and _HEADING.match(line)):
            continue
        lines.append(_MARKER.sub("", line, count=1) if structure else line)
        if len(line) not in _WRAPPED:
            yield _plain(" ".join(lines))
            lines = []
    if lines:
        yield _plain(" ".join(lines))


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph, in order, each with its end punctuation; only spaces and emoji are lost."""
    return [paragraph[start:end].strip() for start, end in sentence_spans(paragraph)]


def sentence_spans(paragraph: str) -> list[tuple[int, int]]:
    """Where each sentence of a paragraph begins and ends, including the space after it; emoji end a sentence."""
    if paragraph.isascii():
        return _spans(paragraph, 0, len(paragraph))
    spans, start = [], 0
    for emoji in _EMOJI.finditer(paragraph):
        spans += _spans(paragraph, start, emoji.start())
        start = emoji.end()
    return spans + _spans(paragraph, start, len(paragraph))


def _spans(paragraph: str, start: int, end: int) -> list[tuple[int, int]]:
    """The sentences between two positions, between which no emoji stands."""
    spans = []
    for match in _END.finditer(paragraph, start, end):
        stop, after = match.span()
        is_plain_stop = paragraph[stop] == "." and after - stop == 2
        # No abbreviation is longer than seven letters: most words need no closer look.
        if is_plain_stop and stop - paragraph.rfind(" ", 0, stop) <= 8 and _is_abbreviated(paragraph, stop, after):
            continue
        spans.append((start, after))
        start = after
    if paragraph[start:end].strip():
        spans.append((start, end))
    return spans


def _plain(paragraph: str) -> str:
    if paragraph.startswith("**"):
        paragraph = _LABEL.sub("", paragraph, count=1)
    if "*" in paragraph or "_" in paragraph:
        paragraph = _EMPHASIS.sub(r"\2", paragraph)
    if "](" in paragraph:
        paragraph = _LINK.sub(r"\1", paragraph)
    return paragraph.strip()


def _is_abbreviated(paragraph: str, stop: int, after: int) -> bool:
    """Whether the full stop at `stop` belongs to an abbreviation or an initial rather than to the sentence."""
    word = paragraph[max(0, stop - 12) : stop].rpartition(" ")[2].lstrip("\"'“‘([").lower()
    if word in _TITLES or (word in _BEFORE_NUMBERS and paragraph[after].isdigit()):
        return True
    if word not in _SHORTENED and (len(word) != 1 or word == "i" or word.isdigit()):
        return False
    opener = paragraph[after : after + 16].lstrip("\"'“‘([").split(" ", 1)[0]
    return opener.rstrip(",.;:'’").lower() not in _OPENERS
