"""The vocabulary of a decoder: text pieces, role tags and signature tokens, in this order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import product
from pathlib import Path

from cod3s.errors import Cod3sError, SignatureError, require
from cod3s.io.disk import replaced_file
from cod3s.options import BITS
from cod3s.signatures import check_bits, from_text
from cod3s.tokens.pieces import open_pieces

UNKNOWN, END, PAD = "<unk>", "</s>", "<pad>"
MAX_BITS_PER_TOKEN = 16  # more than 2^16 signature tokens per group would fill the embedding table


@dataclass(frozen=True)
class SignatureTokens:
    """How a signature is written: `bits_per_token` bits per token; the last token takes the rest.

    The paper writes a bit per token, with two tokens for all positions; its ablation writes all 16 bits as one
    token. `positional` tokens include the number of their group, so that two groups share no token.
    """

    bits: int = BITS
    bits_per_token: int = 1
    positional: bool = False

    def __post_init__(self) -> None:
        check_bits(self.bits)
        if not 1 <= self.bits_per_token <= min(self.bits, MAX_BITS_PER_TOKEN):
            raise SignatureError(
                f"{self.bits_per_token} bits per token do not fit a signature of {self.bits} bits",
                hint=f"choose 1 to {min(self.bits, MAX_BITS_PER_TOKEN)}",
            )

    @property
    def groups(self) -> tuple[int, ...]:
        """The number of bits of each token, in order."""
        step = self.bits_per_token
        return tuple(min(step, self.bits - start) for start in range(0, self.bits, step))

    def names(self) -> list[str]:
        """All distinct signature tokens, by group and in counting order."""
        return list(dict.fromkeys(name for names in self.choices() for name in names))

    def choices(self) -> list[list[str]]:
        """The possible tokens of each group, in counting order."""
        return [
            [self._name(group, "".join(value)) for value in product("01", repeat=width)]
            for group, width in enumerate(self.groups)
        ]

    def split(self, signature: str) -> list[str]:
        """The tokens that write a signature."""
        from_text(signature, self.bits)
        step = self.bits_per_token
        starts = range(0, self.bits, step)
        return [self._name(group, signature[start : start + step]) for group, start in enumerate(starts)]

    def join(self, tokens: Sequence[str]) -> str:
        """The signature that the tokens write; other tokens, or another order, are an error."""
        signature = "".join(map(self.bits_of, tokens))
        if len(signature) != self.bits or set(signature) - {"0", "1"} or self.split(signature) != list(tokens):
            raise SignatureError(f"{' '.join(tokens)!r} does not write a signature of {self.bits} bits")
        return signature

    @staticmethod
    def bits_of(token: str) -> str:
        """The bits that a signature token writes."""
        return token.strip("<>").rpartition(":")[2]

    def _name(self, group: int, value: str) -> str:
        return f"<{group}:{value}>" if self.positional else f"<{value}>"


class Vocabulary:
    """The decoder's tokens: `tokens[i]` is the name of id i."""

    def __init__(self, pieces: Path, tags: Sequence[str], signature: SignatureTokens) -> None:
        self._pieces = open_pieces(pieces)
        texts = self._pieces.tokens
        self.signature = signature
        self.tags = tuple(tags)
        self.tokens: list[str] = [*texts, *self.tags, *signature.names()]
        self.text_size = len(texts)
        self.first_signature = self.text_size + len(self.tags)  # every id from here on is a signature token
        self._ids = {token: number for number, token in enumerate(self.tokens)}
        if len(self._ids) != len(self.tokens):
            raise Cod3sError("a tag or signature token is also a text piece", hint="choose other relation names")
        self.unknown, self.end, self.pad = (self.id(token) for token in (UNKNOWN, END, PAD))

    def __len__(self) -> int:
        return len(self.tokens)

    def id(self, token: str) -> int:
        """The id of a token; an unknown token is an error."""
        if token not in self._ids:
            raise Cod3sError(f"the vocabulary has no token {token!r}")
        return self._ids[token]

    def encode_text(self, text: str) -> list[int]:
        """The ids of a text's pieces; no end token."""
        return self._pieces.encode(text)

    def encode_signature(self, signature: str) -> list[int]:
        return [self._ids[token] for token in self.signature.split(signature)]

    def read_signature(self, ids: Sequence[int]) -> str | None:
        """The signature that the ids write; None if they write none."""
        try:
            return self.signature.join([self.tokens[number] for number in ids])
        except SignatureError:
            return None

    @property
    def verdicts(self) -> tuple[int, int]:
        """What a model writes after an answer that it finds plausible, or not: the first pieces of yes and no."""
        return self.encode_text("yes")[0], self.encode_text("no")[0]

    def decode_text(self, ids: Iterable[int]) -> str:
        """The text of the pieces among `ids`; tags, signatures and control tokens are left out."""
        return self._pieces.decode([number for number in ids if number < self.text_size])


def train_pieces(sentences: Iterable[str], path: Path, size: int) -> None:
    """Learn `size` BPE pieces (cased, every character covered) and write the SentencePiece model to `path`."""
    library = require("sentencepiece", "engine")
    model = BytesIO()
    try:
        library.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            vocab_size=size,
            model_type="bpe",
            character_coverage=1.0,
            hard_vocab_limit=False,
            unk_id=0,
            eos_id=1,
            pad_id=2,
            bos_id=-1,
            unk_piece=UNKNOWN,
            eos_piece=END,
            pad_piece=PAD,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise Cod3sError(
            f"a vocabulary of {size} pieces could not be learned: {error}",
            hint="give more sentences, or a smaller vocabulary",
        ) from error
    with replaced_file(path) as partial:
        partial.write_bytes(model.getvalue())
