"""`cod3s bench`: speed, side by side in the same run, as ratios."""

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cod3s
from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.cli.parameters import BitsOption, ColumnOption, JsonOption
from cod3s.decode.decode_config import DEFAULT, MAX_K, PAPER
from cod3s.errors import Cod3sError, require, require_all
from cod3s.io.tables import read_sentences
from cod3s.options import BITS, SEED
from cod3s.text import settings_line
from cod3s.train.config import find_preset

if TYPE_CHECKING:
    from cod3s.bench.baseline import Change, Machine
    from cod3s.bench.decoding import Growth, StageSpeed
    from cod3s.bench.encoders import EncoderSpeed
    from cod3s.bench.training import TrainingSpeed

AgainstOption = Annotated[
    Path | None, typer.Option(help="Compare with the record of an earlier run; exit 1 if a ratio fell too far.")
]
FallOption = Annotated[float, typer.Option(min=0, max=1, help="How far a ratio may fall, as a share of itself.")]


def encode(
    encoder: Annotated[
        list[str], typer.Option("--encoder", "-e", help="An encoder; repeatable. The first is the reference.")
    ] = ["sbert", "fast", "fast-int8", "static"],  # noqa: B006 - typer copies the default
    sentences: Annotated[int, typer.Option("--sentences", "-n", min=1, help="How many made-up sentences.")] = 2000,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="Use sentences of a file instead.")] = None,
    column: ColumnOption = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds per encoder.")] = 5,
    bits: BitsOption = BITS,
    against: AgainstOption = None,
    allow: FallOption = 0.2,
    json: JsonOption = False,
) -> None:
    """Measure sentences per second, and how far each encoder's vectors and bits agree with those of the first."""
    from cod3s.bench import bench_encoders, bench_sentences

    texts = list(islice(read_sentences(input, column), sentences)) if input else bench_sentences(sentences)
    if not texts:
        raise Cod3sError(f"{input} contains no sentences")
    encoders = [cod3s.load_encoder(name) for name in encoder]
    machine = _check_machine(None)
    with progress("rounds", rounds * len(encoders)) as advance:
        speeds = bench_encoders(encoders, texts, rounds=rounds, bits=bits, progress=advance)
    settings = {
        "sentences": len(texts),
        "rounds": rounds,
        "bits": bits,
        "seed": SEED,
        "reference": speeds[0].encoder,
        **_run_settings(machine),
    }
    record = {"settings": settings, "rows": [asdict(row) for row in speeds]}
    if not json:
        _print_encoders(speeds, machine.busy, settings_line(settings))
    _conclude(record, json, against, allow)


def _print_encoders(speeds: "list[EncoderSpeed]", busy: bool, settings: str) -> None:
    def percent(share: float | None) -> str:
        return "–" if share is None else f"{100 * share:.2f} %"

    rows = [
        (
            row.encoder,
            f"{row.sentences_per_second:.0f}",
            f"{row.processor_ratio if busy else row.ratio:.2f} x",
            "–" if row.cosine_mean is None else f"{row.cosine_mean:.6f} / {row.cosine_min:.6f}",
            percent(row.equal_bits),
            percent(row.equal_signatures),
        )
        for row in speeds
    ]
    columns = ("encoder", "sentences/s", "ratio", "cosine mean / min", "equal bits", "equal signatures")
    print_table("Encoders, side by side", columns, rows, settings)


def decode(
    shape: Annotated[str, typer.Option(help="Shape of the random weights: paper, small or tiny.")] = "paper",
    inputs: Annotated[int, typer.Option("--inputs", "-n", min=1, help="Sources to decode.")] = 2,
    k: Annotated[int, typer.Option("-k", min=1, max=MAX_K, help="Answers per source.")] = DEFAULT.k,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens per sentence.")] = 12,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads on both sides; default: all cores.")] = None,
    bundle: Annotated[Path | None, typer.Option(help="Also time the first answers of this bundle.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small shape and narrow beams; takes seconds.")] = False,
    against: AgainstOption = None,
    allow: FallOption = 0.2,
    json: JsonOption = False,
) -> None:
    """Time the two stages with MMI against the same work in transformers, stage by stage, on random weights.

    Also shows how time and memory grow with inputs and k. Uses the paper's beams (100 and 40) unless --quick.
    """
    require_all("train", "torch", "transformers")
    from cod3s.bench.decoding import bench_decoding, bench_first_answer, bench_growth, growth_cases
    from cod3s.bench.random_bundle import RELATION, made_sentences, make_random_bundle

    machine = _check_machine(threads)
    threads = machine.threads
    config = DEFAULT.with_values(
        k=k, beam=PAPER.beam, max_tokens=max_tokens, rerank_signatures="mmi", rerank_sentences="mmi"
    )
    if quick:
        shape = "small" if shape == "paper" else shape
        config = config.with_values(signature_beam=20, beam=8, k=min(k, 4))
    cases = growth_cases(config.k)
    with TemporaryDirectory() as folder, progress("runs", 3 + len(cases)) as advance:
        random_bundle = make_random_bundle(Path(folder), shape)
        stages = bench_decoding(
            random_bundle, made_sentences(inputs, 9), config, threads=threads, progress=advance
        )
        generator = cod3s.load(random_bundle.folders["int8"], threads=threads)
        growth = bench_growth(generator, RELATION, config, cases, progress=advance)
    first = bench_first_answer(bundle, RELATION, DEFAULT.with_values(k=k), threads) if bundle else None
    settings = {
        "shape": shape,
        "inputs": inputs,
        "k": config.k,
        "beams": f"{config.signature_beam}/{config.beam}",
        "tokens": max_tokens,
        "threads": threads,
        **_run_settings(machine),
    }
    rows = {"stages": [asdict(row) for row in stages], "growth": [asdict(row) for row in growth]}
    if not json:
        _print_decoding(stages, growth, settings_line(settings))
    if first and not json:
        cells = (first.bundle, f"{first.load:.2f}", f"{first.first:.2f}", f"{first.next:.2f}")
        print_table("Seconds that a user waits", ("bundle", "load", "first answers", "next answers"), [cells])
    _conclude({"settings": settings, **rows, "first": asdict(first) if first else None}, json, against, allow)


def train(
    preset: Annotated[list[str], typer.Option(help="A preset of `cod3s train`; repeatable.")] = [  # noqa: B006
        "causal",
        "small",
        "paper",
    ],
    batch_tokens: Annotated[
        int | None, typer.Option(min=64, help="Tokens per batch; by default, as in each preset.")
    ] = None,
    steps: Annotated[int, typer.Option("--steps", "-n", min=1, help="Steps per preset.")] = 5,
    threads: Annotated[int | None, typer.Option(min=1, help="By default, all cores.")] = None,
    compiled: Annotated[bool, typer.Option("--compile", help="Use torch.compile; needs a C++ compiler.")] = False,
    against: AgainstOption = None,
    allow: FallOption = 0.2,
    json: JsonOption = False,
) -> None:
    """Measure pairs per second in training, and how close it comes to the machine's limit for matrix products."""
    torch = require("torch", "train")
    require("transformers", "train")
    from cod3s.bench.training import bench_training

    machine = _check_machine(threads)
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    changed = {"batch_tokens": batch_tokens} if batch_tokens else {}
    presets = {name: find_preset(name).with_values(**changed) for name in preset}
    try:
        with progress("steps", (steps + 1) * (len(presets) + 1)) as advance:
            speeds, limit = bench_training(presets, steps=steps, compiled=compiled, progress=advance)
        settings = {
            "steps": steps,
            "threads": torch.get_num_threads(),
            "compile": compiled,
            "limit_gflops": round(limit),
            **_run_settings(machine),
        }
    finally:
        torch.set_num_threads(before)
    if not json:
        sizes = {name: config.batch_tokens for name, config in presets.items()}
        _print_training(speeds, sizes, machine.busy, settings_line(settings))
    _conclude({"settings": settings, "rows": [asdict(row) for row in speeds]}, json, against, allow)


def _print_training(speeds: "list[TrainingSpeed]", sizes: dict[str, int], busy: bool, settings: str) -> None:
    rows = [
        (
            row.name,
            sizes[row.name],
            f"{row.parameters / 1e6:.1f}",
            f"{row.pairs_per_second:.1f}",
            f"{row.gflops:.0f}",
            f"{row.processor_share if busy else row.share:.2f}",
        )
        for row in speeds
    ]
    columns = ("preset", "tokens per batch", "million weights trained", "pairs/s", "GFLOP/s", "of the limit")
    print_table("Training steps", columns, rows, settings)


def _check_machine(threads: int | None) -> "Machine":
    """The state of the machine before the benchmark, with a remark if it is busy."""
    from cod3s.bench.baseline import look_at_machine

    machine = look_at_machine(threads)
    if machine.busy:
        say(machine.remark)
    return machine


def _run_settings(machine: "Machine") -> dict[str, str | float]:
    return {"load": machine.load, "clock": machine.clock}


def _conclude(record: dict[str, Any], json: bool, against: Path | None, allow: float) -> None:
    """Print the record if `json`, and compare it with the baseline, if any; an error if a ratio fell too far."""
    from cod3s.bench.baseline import compare_with_baseline

    if against is None:
        if json:
            print_json(record)
        return
    changes, clock = compare_with_baseline(against, record)
    if json:
        print_json({**record, "against": {"clock": clock, "changes": [asdict(change) for change in changes]}})
    else:
        _print_changes(changes, f"Ratios of {clock} time against {against}")
    if fallen := [change.name for change in changes if change.fall > allow]:
        raise Cod3sError(
            f"{len(fallen)} of {len(changes)} ratios fell by more than {allow:.0%}: {', '.join(fallen)}",
            hint=f"run again to rule out noise; if the change is intended, write a new {against} with --json",
        )


def _print_changes(changes: "list[Change]", title: str) -> None:
    rows = [
        (
            change.name,
            f"{change.before:.2f}",
            f"{change.now:.2f}",
            f"{100 * (change.now / change.before - 1):+.0f} %",
        )
        for change in changes
    ]
    print_table(title, ("what", "before", "now", "change"), rows)


def _print_decoding(stages: "list[StageSpeed]", growth: "list[Growth]", settings: str) -> None:
    columns = ("stage", "int8", "float32", "transformers", "ratio", "in processor time", "of float32")
    rows = [
        (
            row.stage,
            *(f"{seconds:.3f}" for seconds in (row.int8, row.float32, row.peer)),
            *(f"{ratio:.1f} x" for ratio in (row.ratio, row.processor_ratio, row.processor_ratio_float32)),
        )
        for row in stages
    ]
    print_table("Seconds per input, stage by stage", columns, rows, settings)
    grown = [
        (
            row.inputs,
            row.k,
            f"{row.seconds:.2f}",
            f"{row.processor_seconds:.2f}",
            f"{row.processor_an_answer:.4f}",
            f"{row.peak_mb:.0f}",
        )
        for row in growth
    ]
    heads = ("inputs", "k", "seconds", "processor seconds", "per answer", "peak MB")
    print_table("Growth with inputs and k (weights in int8, computed in float32)", heads, grown, settings)
