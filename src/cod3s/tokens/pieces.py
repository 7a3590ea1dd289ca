"""Text pieces: a file in, text ↔ piece ids out. Knows nothing about tags and signatures.

Two kinds of file, recognised by what they hold: a SentencePiece model (learned from a corpus) and the JSON of a
tokenizer (brought along by a pretrained model).
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from cod3s.errors import FileFormatError
from cod3s.files.disk import existing_file

_INSIDE_WORD = re.compile(r"(?<=\w) (['’-]) (?=\w)")
_LONE_I = re.compile(r"(?<![\w'’-])i(?![\w-])")
_BEFORE_MARK = re.compile(r" +(?=[.,;:!?])")


class Pieces(Protocol):
    """`tokens[i]` is the name of piece i."""

    tokens: list[str]

    def encode(self, text: str) -> list[int]:
        """The ids of a text's pieces, without anything before or after."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the pieces; control pieces write nothing."""
        ...


def open_pieces(path: Path) -> Pieces:
    """The pieces in a file of either kind."""
    with existing_file(path).open("rb") as file:
        is_json = file.read(1) == b"{"
    try:
        return _TokenizerPieces(path) if is_json else _SentencePieces(path)
    except Exception as error:  # the tokenizers library raises plain Exceptions
        raise FileFormatError(f"{path} holds no text pieces: {error}", hint="export it again") from error


def piece_names(tokenizer: Any) -> list[str]:
    """The names of a tokenizer's ids, in order; an id without a name gets one."""
    names = {number: name for name, number in tokenizer.get_vocab(with_added_tokens=True).items()}
    return [names.get(number, f"<unused:{number}>") for number in range(max(names) + 1)]


class _SentencePieces:
    def __init__(self, path: Path) -> None:
        import sentencepiece

        self._model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self.tokens: list[str] = [self._model.id_to_piece(n) for n in range(self._model.get_piece_size())]

    def encode(self, text: str) -> list[int]:
        found: list[int] = self._model.encode(text)
        return found

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._model.decode(list(ids))
        return text


class _TokenizerPieces:
    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer, decoders

        self._tokenizer = Tokenizer.from_file(str(path))
        self.tokens = piece_names(self._tokenizer)
        self._says_spaces = not isinstance(self._tokenizer.decoder, decoders.WordPiece)

    def encode(self, text: str) -> list[int]:
        found: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return found

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text.strip() if self._says_spaces else _closed_up(text)


def _closed_up(text: str) -> str:
    """Word pieces say neither spaces nor capitals: `couldn ' t , i` is `couldn't, I`."""
    return _LONE_I.sub("I", _BEFORE_MARK.sub("", _INSIDE_WORD.sub(r"\1", text)).strip())
