"""`cod3s sign`: print the signatures of sentences."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import cod3s
from cod3s.cli.generate import read_texts
from cod3s.cli.output import print_json, print_table, say
from cod3s.cli.parameters import (
    CodeBitsOption,
    CodeOption,
    ColumnOption,
    EncoderOption,
    JsonOption,
    SeedOption,
)
from cod3s.errors import UsageError
from cod3s.options import SEED

_MAX_COMPARED = 100  # sentences; the number of pairs grows with the square


def sign(
    texts: Annotated[list[str] | None, typer.Argument(help="Sentences to sign, or - for stdin.")] = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="A file of sentences; - for stdin.")] = None,
    column: ColumnOption = None,
    bits: CodeBitsOption = None,
    encoder: EncoderOption = "static",
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
