"""`cod3s sign` and `cod3s codes fit`: print the signatures of sentences, and fit a code that signs them."""

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

import cod3s
from cod3s.cli.generate import read_texts
from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.cli.parameters import (
    BitsOption,
    CodeBitsOption,
    CodeOption,
    ColumnOption,
    EncoderOption,
    ForceOption,
    JsonOption,
    SeedOption,
    SentencesArgument,
)
from cod3s.errors import Cod3sError, UsageError
from cod3s.io.disk import require_new, require_own
from cod3s.io.tables import read_sentences
from cod3s.options import BITS, SEED, find_name

_MAX_COMPARED = 100  # sentences; the number of pairs grows with the square
_MAX_FITTED = 200_000  # sentences: more do not improve a code of 256 bits, they only take memory


def sign(
    texts: Annotated[list[str] | None, typer.Argument(help="Sentences to sign, or - for stdin.")] = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="A file of sentences; - for stdin.")] = None,
    column: ColumnOption = None,
    bits: CodeBitsOption = None,
    encoder: EncoderOption = "fast",
    code: CodeOption = "random",
    seed: SeedOption = SEED,
    json: JsonOption = False,
) -> None:
    """Sign sentences: bits, margin (|cosine| to the nearest hyperplane) and, for pairs, Hamming and cosine.

    A margin near 0 marks a fragile signature: a small change to the sentence, or rounding, can flip a bit.
    """
    from cod3s.signatures.signer import FRAGILE_MARGIN, open_code

    sentences = list(read_texts(texts or [], input, column))
    if not sentences:
        raise UsageError("there are no sentences to sign", hint='for example: cod3s sign "It rained all day."')
    loaded = cod3s.load_encoder(encoder)
    compared = len(sentences) <= _MAX_COMPARED
    signed = cod3s.sign(sentences, encoder=loaded, code=open_code(code, loaded, bits, seed), with_pairs=compared)
    if not compared:
        say(f"{len(sentences)} sentences: only up to {_MAX_COMPARED} are compared in pairs")
    if json:
        print_json(asdict(signed))
        return
    settings = f"encoder {signed.encoder} | code {signed.code} | bits {signed.bits} | seed {signed.seed}"
    rows = [
        (
            number,
            row.signature,
            f"{row.margin:.4f}" + (" fragile" if row.margin < FRAGILE_MARGIN else ""),
            row.text,
        )
        for number, row in enumerate(signed.sentences)
    ]
    print_table("Signatures", ("#", "signature", "margin", "sentence"), rows, settings)
    if signed.pairs:
        pairs = [
            (f"{pair.a} – {pair.b}", pair.hamming, f"{pair.estimate:.3f}", f"{pair.cosine:.3f}")
            for pair in signed.pairs
        ]
        print_table("Pairs", ("pair", "Hamming", "estimated cosine", "cosine"), pairs)


def fit(
    sentences: SentencesArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    kind: Annotated[str, typer.Option(help="median or itq.")] = "median",
    column: ColumnOption = None,
    bits: BitsOption = BITS,
    encoder: EncoderOption = "fast",
    seed: SeedOption = SEED,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Fit a code on up to 200,000 sentences and save it: JSON and plain arrays, for `--code FOLDER`."""
    from cod3s.signatures.signer import embed_all

    makers = {"median": cod3s.median_code, "itq": cod3s.itq_code}
    find_name("learned code", kind, makers)
    require_own(output, "code.json")
    require_new(output, force)
    loaded = cod3s.load_encoder(encoder)
    with progress("encoding", None) as advance:
        vectors = embed_all(loaded, islice(read_sentences(sentences, column), _MAX_FITTED), advance)
    if not len(vectors):
        raise Cod3sError(f"there are no sentences in {sentences}")
    code = makers[kind](vectors, bits, seed)
    code.save(output, loaded.id)
    say(f"fitted a {kind} code of {bits} bits on {len(vectors)} sentences: {output}")
    if json:
        record = {"folder": str(output), "kind": kind, "bits": bits, "seed": seed, "encoder": loaded.id}
        print_json({**record, "sentences": len(vectors)})
