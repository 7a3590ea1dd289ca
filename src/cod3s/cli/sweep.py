"""`cod3s sweep`: what the options of decoding do to diversity, fidelity and plausibility."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cod3s.cli.evaluate import (
    LimitOption,
    RelationOption,
    SecondOption,
    SeedOption,
    print_cells,
    require_evaluation,
)
from cod3s.cli.output import print_json, progress, say
from cod3s.cli.parameters import JsonOption
from cod3s.decode.config import DEFAULT, DecodeConfig
from cod3s.errors import UsageError
from cod3s.options import SEED, options_of

_VALUES = "Several values with commas; the base value is always among them. `-` leaves this option as it is."


def _axis(name: str) -> Any:
    """The values to try for an option of decoding."""
    return typer.Option(f"--{name.replace('_', '-')}", help=f"{options_of(DecodeConfig)[name].help} {_VALUES}")


def sweep(
    data: Annotated[Path, typer.Argument(help="What `cod3s evaluate` takes.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write; a stopped sweep continues.")
    ],
    bundle: Annotated[
        list[Path] | None, typer.Option(help="Repeat to compare bits or tokens; the first judges.")
    ] = None,
    # The values that the paper tried for t, lambda_s and lambda_y, or orders of magnitude where it says so.
    min_hamming: Annotated[str, _axis("min_hamming")] = "0,1,2,3,4,5,6",
    signature_weight: Annotated[str, _axis("signature_weight")] = "0,1,10,100,1000,10000",
    sentence_weight: Annotated[str, _axis("sentence_weight")] = "0,0.1,0.2,0.3,0.5,1,3",
    grid: Annotated[bool, typer.Option("--grid", help="All combinations, not one option at a time.")] = False,
    k: Annotated[int, typer.Option("-k", min=2, help="Answers per source.")] = DEFAULT.k,
    limit: LimitOption = 20,
    relation: RelationOption = "",
    second_encoder: SecondOption = "none",
    preset: Annotated[str, typer.Option(help="Options that the axes leave open: paper or default.")] = "paper",
    seed: SeedOption = SEED,
    json: JsonOption = False,
) -> None:
    """Decode with many settings and show the curves, and which settings no other beats.

    As in the paper's appendix D: the Hamming threshold t, and the weights of MMI for signatures and for sentences.
    Bundles with other bit lengths, or with all bits in one token, become lines of their own.
    """
    given = {"min_hamming": min_hamming, "signature_weight": signature_weight, "sentence_weight": sentence_weight}
    axes = {name: _values(text, name) for name, text in given.items() if text != "-"}
    require_evaluation()
    from cod3s.bundle import default_bundle
    from cod3s.decode.config import find_preset
    from cod3s.evaluate.items import read_data
    from cod3s.evaluate.judges import open_bundle
    from cod3s.evaluate.sweep import plan, sweep_table, write_sweep
    from cod3s.evaluate.sweep import sweep as run_sweep
    from cod3s.files.lock import sole_writer

    chosen = read_data(data, relation).first(limit)
    base = find_preset(preset).with_values(k=k, seed=seed)
    bundles = {path.resolve().name: open_bundle(path, second_encoder) for path in bundle or [default_bundle()]}
    if len(bundles) < len(bundle or [1]):
        raise UsageError(
            "two bundles have folders of the same name", hint="rename one: the names label the curves"
        )
    total = len(plan(list(bundles), axes, base, grid)) * len(chosen.items)
    with sole_writer(output), progress("generating", total) as advance:
        swept = run_sweep(bundles, chosen, output, axes=axes, base=base, grid=grid, seed=seed, progress=advance)
        write_sweep(output, swept)
    say(f"sweep: {output / 'sweep.html'}")
    if json:
        print_json(swept.record())
    else:
        print_cells(sweep_table(swept), swept.line)


def _values(text: str, name: str) -> list[float]:
    try:
        return sorted({float(part) for part in text.split(",")})
    except ValueError:
        option = f"--{name.replace('_', '-')}"
        raise UsageError(f"{option} takes numbers with commas between them, not {text!r}") from None
