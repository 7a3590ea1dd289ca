"""How a model reads a source: as the pieces of a text, or as the beginning of a statement."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cod3s.model.shape import Shape
from cod3s.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Reader:
    """`read` gives the ids of a text; `nothing` are those of an empty source; `tokens[i]` names id i.

    A text that has more ids than the model's positions is cut by `read`; `cuts` says whether it is.
    """

    read: Callable[[str], list[int]]
    cuts: Callable[[str], bool]
    nothing: list[int]
    pad: int
    tokens: list[str]

    def ids(self, source: str | None) -> list[int]:
        """What is read of a source; None is an empty one."""
        return self.nothing if source is None else self.read(source)


def open_reader(shape: Shape, vocabulary: Vocabulary, template: str = "") -> Reader:
    """The reader of a shape; a causal model reads the statement of `template` up to its target."""
    limit = shape.max_tokens
    if shape.causal:
        return _prompt_reader(vocabulary, template, limit)
    return Reader(
        read=lambda text: [*vocabulary.encode_text(text)[: limit - 1], vocabulary.end],
        cuts=lambda text: len(vocabulary.encode_text(text)) > limit - 1,
        nothing=[vocabulary.end],
        pad=vocabulary.pad,
        tokens=vocabulary.tokens,
    )


def padded(rows: Sequence[Sequence[int]], filler: int) -> list[list[int]]:
    """The rows, each filled up to the longest."""
    longest = max(map(len, rows))
    return [[*row, *[filler] * (longest - len(row))] for row in rows]


def _prompt_reader(vocabulary: Vocabulary, template: str, limit: int) -> Reader:
    """Reads a source as the beginning of the relation's statement, up to where a role's tag takes over.

    If a source is too long, its end is left out; the connective stays whole.
    """
    connective = connective_pieces(vocabulary, template)[:-1]
    room = limit // 2 - len(connective)  # the other half is for the tag, the signature and what is written

    def pieces(text: str) -> list[int]:
        return vocabulary.encode_text(text[:1].upper() + text[1:])

    return Reader(
        read=lambda text: [*pieces(text)[:room], *connective],
        cuts=lambda text: len(pieces(text)) > room,
        nothing=[],
        pad=vocabulary.pad,
        tokens=vocabulary.tokens,
    )


def connective_pieces(vocabulary: Vocabulary, template: str) -> list[int]:
    """The pieces between source and target, such as those of ", so"; a role's tag replaces the last."""
    before, _, _ = template.partition("{target}")
    marker = "x"  # something for the connective to follow, as the tokenizer starts every text with a space
    whole = vocabulary.encode_text(before.format(source=marker).rstrip())
    return whole[len(vocabulary.encode_text(marker)) :]
