"""`cod3s bench`: speed, side by side in one run, as ratios."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cod3s.cli.options import BitsOption, ColumnOption, JsonOption
from cod3s.cli.output import print_json, print_table, progress, settings_line
from cod3s.errors import Cod3sError


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Speed, measured side by side in one run.")
    group.command("encode", epilog="Example: cod3s bench encode --encoder sbert --encoder fast")(encode)
    group.callback()(lambda: None)
    app.add_typer(group, name="bench", no_args_is_help=True)


def encode(
    encoder: Annotated[
        list[str], typer.Option("--encoder", "-e", help="Encoder; repeat it. The first is the reference.")
    ] = ["sbert", "fast", "fast-int8", "static"],  # noqa: B006 - typer copies the default
    sentences: Annotated[int, typer.Option("--sentences", "-n", min=1, help="How many made-up sentences.")] = 2000,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="Use sentences of a file instead.")] = None,
    column: ColumnOption = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Turns that each encoder takes.")] = 5,
    bits: BitsOption = 16,
    json: JsonOption = False,
) -> None:
    """Sentences a second of each encoder, and how far its vectors and bits agree with the first one's."""
    from itertools import islice

    from cod3s.bench import bench_encoders, bench_sentences
    from cod3s.encode import load_encoder
    from cod3s.sentences import read_sentences

    texts = list(islice(read_sentences(input, column), sentences)) if input else bench_sentences(sentences)
    if not texts:
        raise Cod3sError(f"{input} holds no sentences")
    opened = [load_encoder(name) for name in encoder]
    with progress("rounds", rounds * len(opened)) as advance:
        found = bench_encoders(opened, texts, rounds=rounds, bits=bits, progress=advance)
    settings = {
        "sentences": len(texts),
        "rounds": rounds,
        "bits": bits,
        "seed": 1234,
        "reference": found[0].encoder,
    }
    if json:
        print_json({"settings": settings, "rows": [asdict(row) for row in found]})
        return

    def percent(share: float | None) -> str:
        return "–" if share is None else f"{100 * share:.2f} %"

    rows = [
        (
            row.encoder,
            f"{row.sentences_per_second:.0f}",
            f"{row.ratio:.2f} x",
            "–" if row.cosine_mean is None else f"{row.cosine_mean:.6f} / {row.cosine_min:.6f}",
            percent(row.equal_bits),
            percent(row.equal_signatures),
        )
        for row in found
    ]
    columns = ("encoder", "sentences/s", "ratio", "cosine mean / min", "equal bits", "equal signatures")
    print_table("Encoders, side by side", columns, rows, settings_line(settings))
