"""Sign sentences: texts become vectors, vectors become signatures, with margins and pairwise distances."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path

import numpy as np

from cod3s.encode import ENCODERS, Encoder, Vectors, load_encoder
from cod3s.errors import EncoderError, Progress, SentenceError, UsageError
from cod3s.options import BITS, SEED
from cod3s.records import SentencePair, SignedSentence
from cod3s.signatures import Bits, Code, cosine_estimate, hamming, load_code, pack, random_code, to_text
from cod3s.text import all_for_embedding, clean

# Encoding alone or in any batch moves a vector by rounding only: measured below 1e-6 in cosine, so a bit whose
# margin is larger than this is the same in every batch, on every run (docs/encoders.md).
FRAGILE_MARGIN = 1e-5
_BLOCK = 8192  # sentences encoded at a time


@dataclass(frozen=True)
class Signed:
    """The result of `sign`: the settings that made the signatures, the sentences, and their pairs."""

    encoder: str
    code: str
    bits: int
    seed: int
    sentences: tuple[SignedSentence, ...]
    pairs: tuple[SentencePair, ...]


def sign(
    sentences: Sequence[str],
    *,
    encoder: Encoder | str = "static",
    code: Code | None = None,
    bits: int = BITS,
    seed: int = SEED,
    with_pairs: bool = True,
) -> Signed:
    """Signatures of `sentences` with margins, and a comparison of all pairs (quadratic in their number)."""
    if isinstance(sentences, str):
        raise SentenceError("one sentence was given, but a list of sentences is needed", hint="put it in a list")
    texts = [clean(sentence) for sentence in sentences]
    signer = open_signer(encoder, bits, seed, code)
    code, vectors = signer.code, signer.vectors(texts)
    signed = code.sign(vectors)
    rows = zip(texts, to_text(signed), code.margin(vectors), strict=True)
    return Signed(
        encoder=signer.encoder.id,
        code=code.kind,
        bits=code.bits,
        seed=code.seed,
        sentences=tuple(
            SignedSentence(text, signature, round(float(margin), 6)) for text, signature, margin in rows
        ),
        pairs=_compare(vectors, signed) if with_pairs else (),
    )


class Signer:
    """Signs texts with an encoder and a code: the only way from a text to its signature."""

    def __init__(self, encoder: Encoder, code: Code) -> None:
        self.encoder, self.code = encoder, code

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts in the form that is embedded: (texts, dim)."""
        return embed(self.encoder, texts)

    def signatures(self, texts: Sequence[str]) -> list[str]:
        """The signature of each text as a string of 0 and 1."""
        return self.signatures_of(self.vectors(texts))

    def signatures_of(self, vectors: Vectors) -> list[str]:
        """The signature of each vector, for callers that also need the vectors."""
        return to_text(self.code.sign(vectors))


def open_signer(encoder: Encoder | str, bits: int, seed: int, code: Code | None = None) -> Signer:
    """A signer with an encoder, or the one of this name, and a code; random hyperplanes if there is none."""
    opened = load_encoder(encoder) if isinstance(encoder, str) else encoder
    return Signer(opened, code or random_code(bits, opened.dim, seed))


def embed(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    """Unit vectors of the texts in the form that is embedded: (texts, dim)."""
    if not texts:
        return np.empty((0, encoder.dim), np.float32)
    return encoder.encode(all_for_embedding(texts))


def encode_sentences(
    encoder: Encoder, sentences: Iterable[str], progress: Progress = lambda _: None
) -> Iterator[tuple[list[str], Vectors]]:
    """Blocks of (sentences, vectors): memory stays flat however many there are."""
    stream = iter(sentences)
    while chunk := list(islice(stream, _BLOCK)):
        yield chunk, embed(encoder, chunk)
        progress(len(chunk))


def embed_all(encoder: Encoder, sentences: Iterable[str], progress: Progress) -> Vectors:
    """The vectors of all sentences, encoded in blocks: (sentences, dim)."""
    blocks = [vectors for _, vectors in encode_sentences(encoder, sentences, progress)]
    return np.concatenate(blocks) if blocks else np.empty((0, encoder.dim), np.float32)


def open_code(name: str, encoder: Encoder, bits: int | None, seed: int) -> Code:
    """The code a user asked for: `random`, or the folder of a code that was fitted for this encoder.

    Without `bits`, a fitted code keeps its number of bits, and a random code has BITS.
    """
    if name == "random":
        return random_code(BITS if bits is None else bits, encoder.dim, seed)
    code, fitted_for = load_code(Path(name))
    if fitted_for != encoder.id:
        raise EncoderError(
            f"the code in {name} was fitted for {fitted_for}, but the encoder is {encoder.id}",
            hint="choose that encoder, or fit a code with `cod3s prepare --code median`",
        )
    if bits not in (None, code.bits):
        raise UsageError(
            f"the code in {name} has {code.bits} bits, not {bits}",
            hint=f"use --bits {code.bits}, or another code",
        )
    return code


def open_encoder(id: str) -> Encoder:
    """The encoder with this id, as bundles and bins files name it; an error if it has changed since."""
    kind = id.partition(":")[0]
    names = [kind] if kind in ENCODERS else []  # the embedded model
    names += [id] if kind == "sbert" else []  # a model that the id names
    others: list[str] = []
    for name in names:
        encoder = load_encoder(name)
        if encoder.id == id:
            return encoder
        others.append(encoder.id)
    raise EncoderError(
        f"the encoder {id} is not available" + (f", only {' and '.join(others)}" if others else ""),
        hint="open it with load_encoder and pass it to cod3s.load(…, encoder=…), or with --encoder",
    )


def _compare(vectors: Vectors, signed: Bits) -> tuple[SentencePair, ...]:
    packed, bits = pack(signed), signed.shape[1]
    distances = hamming(packed[:, None], packed)  # (n, n)
    cosines = vectors @ vectors.T
    estimates = cosine_estimate(distances, bits)
    return tuple(
        SentencePair(a, b, int(distances[a, b]), round(float(cosines[a, b]), 6), round(float(estimates[a, b]), 6))
        for a, b in combinations(range(len(vectors)), 2)
    )
