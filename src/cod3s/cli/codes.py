"""The `codes` command: fit a code on sentences and save it."""

from pathlib import Path
from typing import Annotated

import typer

from cod3s.cli.output import print_json, progress, say
from cod3s.cli.parameters import (
    BitsOption,
    ColumnOption,
    EncoderOption,
    ForceOption,
    JsonOption,
    SeedOption,
    SentencesArgument,
)
from cod3s.errors import Cod3sError
from cod3s.options import BITS, SEED, find_name

_MAX_SENTENCES = 200_000  # more of them do not change a code of 256 bits, they only take memory


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
    from itertools import islice

    import numpy as np

    from cod3s.encode import load_encoder
    from cod3s.files.disk import require_new, require_own
    from cod3s.files.tables import read_sentences
    from cod3s.signatures import itq_code, median_code
    from cod3s.signatures.signer import encode_sentences

    makers = {"median": median_code, "itq": itq_code}
    find_name("learned code", kind, makers)
    require_own(output, "code.json")
    require_new(output, force)
    chosen = load_encoder(encoder)
    texts = islice(read_sentences(sentences, column), _MAX_SENTENCES)
    blocks = []
    with progress("encoding", None) as advance:
        for block, vectors in encode_sentences(chosen, texts):
            blocks.append(vectors)
            advance(len(block))
    if not blocks:
        raise Cod3sError(f"there are no sentences in {sentences}")
    stacked = np.concatenate(blocks)
    code = makers[kind](stacked, bits, seed)
    code.save(output, chosen.id)
    say(f"fitted a {kind} code of {bits} bits on {len(stacked)} sentences: {output}")
    if json:
        record = {"folder": str(output), "kind": kind, "bits": bits, "seed": seed, "encoder": chosen.id}
        print_json({**record, "sentences": len(stacked)})
