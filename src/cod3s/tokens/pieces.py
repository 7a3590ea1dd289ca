"""Turn text into piece ids and back.

The pieces come from a SentencePiece model (learned from a corpus) or from the JSON of a tokenizer (part of a
pretrained model); the file is recognised by its content.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from cod3s.errors import FileFormatError, MissingExtraError, require
from cod3s.io.disk import existing_file

_RARE = "ꙮ"  # a character that no vocabulary is expected to have


class Pieces(Protocol):
    """`tokens[i]` is the name of piece i."""

    tokens: list[str]

    def encode(self, text: str) -> list[int]:
        """The ids of a text's pieces, without special tokens."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the pieces; control pieces give no text."""
        ...


def open_pieces(path: Path) -> Pieces:
    """The pieces in a file of either kind."""
    with existing_file(path).open("rb") as file:
        is_json = file.read(1) == b"{"
    try:
        return _TokenizerPieces(path) if is_json else _SentencePieces(path)
    except MissingExtraError:
        raise
    except Exception as error:  # the tokenizers library raises plain Exceptions
        raise FileFormatError(f"there are no text pieces in {path}: {error}", hint="export it again") from error


class _SentencePieces:
    def __init__(self, path: Path) -> None:
        self._model = require("sentencepiece", "engine").SentencePieceProcessor(model_file=str(path))
        self.tokens: list[str] = [self._model.id_to_piece(n) for n in range(self._model.get_piece_size())]

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._model.encode(text)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._model.decode(list(ids))
        return text


class _TokenizerPieces:
    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(path))
        names = {number: name for name, number in self._tokenizer.get_vocab(with_added_tokens=True).items()}
        self.tokens = [names[number] for number in range(len(names))]
        self.encode(_RARE)  # fails now, and not in the middle of an answer, if the unknown token is missing

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text.strip()
