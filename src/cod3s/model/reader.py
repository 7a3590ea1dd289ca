"""How a model's encoder reads a source: by its own tokenizer (warm, pretrained), or by the decoder's pieces."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cod3s.model.shape import Shape
from cod3s.tokens.pieces import piece_names
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
    tokenizer: Any = None


def open_reader(shape: Shape, vocabulary: Vocabulary, tokenizer_file: Path) -> Reader:
    """The reader of a shape; `tokenizer_file` is only opened where a pretrained encoder reads."""
    limit = shape.max_tokens
    if not (shape.warm or shape.pretrained):

        def read(text: str) -> list[int]:
            return [*vocabulary.encode_text(text)[: limit - 1], vocabulary.end]

        def cuts(text: str) -> bool:
            return len(vocabulary.encode_text(text)) > limit - 1

        return Reader(read, cuts, [vocabulary.end], vocabulary.pad, vocabulary.tokens)
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)

    def read_pieces(text: str) -> list[int]:
        return list(tokenizer.encode(text).ids)

    def cuts_pieces(text: str) -> bool:
        return bool(tokenizer.encode(text).overflowing)

    if shape.pretrained:  # one table for both sides
        pad, names = vocabulary.pad, vocabulary.tokens
    else:
        names = piece_names(tokenizer)
        pad = names.index("[PAD]")
    return Reader(read_pieces, cuts_pieces, read_pieces(""), pad, names, tokenizer)
