"""`cod3s codes`: codes learned from sentences, saved for later."""

from pathlib import Path
from typing import Annotated

import typer

from cod3s.cli.options import (
    BitsOption,
    ColumnOption,
    EncoderOption,
    JsonOption,
    SeedOption,
    SentencesArgument,
)
from cod3s.cli.output import print_json, progress, say
from cod3s.errors import Cod3sError, UsageError, did_you_mean
from cod3s.options import BITS, SEED

_MOST_FITTED = 200_000  # sentences; more change a code of 256 bits no further and only take memory


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Learned codes: balanced bits (median) or rotated principal axes (itq).")
    group.command("fit", epilog="Example: cod3s codes fit sentences.txt -o code/ --kind itq --bits 16")(fit)
    app.add_typer(group, name="codes", no_args_is_help=True)


def fit(
    sentences: SentencesArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")],
    kind: Annotated[str, typer.Option("--kind", help="median or itq.")] = "median",
    column: ColumnOption = None,
    bits: BitsOption = BITS,
    encoder: EncoderOption = "fast",
    seed: SeedOption = SEED,
    json: JsonOption = False,
) -> None:
    """Fit a code on up to 200,000 sentences and save it: JSON and plain arrays, for `--code FOLDER`."""
    from itertools import islice

    import numpy as np

    from cod3s.encode import load_encoder
    from cod3s.files.sentences import read_sentences
    from cod3s.signatures import itq_code, median_code
    from cod3s.signatures.signer import encode_sentences

    makers = {"median": median_code, "itq": itq_code}
    if kind not in makers:
        raise UsageError(f"no learned code is called {kind!r}", hint=did_you_mean(kind, makers))
    chosen = load_encoder(encoder)
    texts = islice(read_sentences(sentences, column), _MOST_FITTED)
    blocks = []
    with progress("encoding", None) as advance:
        for block, vectors in encode_sentences(chosen, texts):
            blocks.append(vectors)
            advance(len(block))
    if not blocks:
        raise Cod3sError(f"{sentences} holds no sentences")
    stacked = np.concatenate(blocks)
    code = makers[kind](stacked, bits, seed)
    code.save(output, chosen.id)
    say(f"fitted {kind} code of {bits} bits on {len(stacked)} sentences: {output}")
    if json:
        record = {"folder": str(output), "kind": kind, "bits": bits, "seed": seed, "encoder": chosen.id}
        print_json({**record, "sentences": len(stacked)})
