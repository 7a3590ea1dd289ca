"""`cod3s prepare`: pairs → a corpus folder of signed training shards."""

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from cod3s.cli.options import BitsOption, CodeOption, JsonOption, SeedOption
from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.errors import require

if TYPE_CHECKING:
    from cod3s.corpus.manifest import Manifest


class Orders(str, Enum):
    """Which pairs teach a causal relation."""

    matching = "matching"
    all = "all"


class BadRows(str, Enum):
    """What happens at a row that is not a pair."""

    stop = "stop"
    skip = "skip"


class EngineName(str, Enum):
    """Where the steps run."""

    local = "local"
    ray = "ray"


PairsArgument = Annotated[
    list[str],
    typer.Argument(
        help="Files of pairs, or folders of them: TSV, CSV or JSONL (also .gz, .zst) or Parquet with the columns "
        "cause and effect, or source and target; or CausalBank as released. Also s3:// and gs://."
    ),
]
OutputOption = Annotated[str, typer.Option("--output", "-o", help="The corpus folder to write.")]
RelationOption = Annotated[
    str, typer.Option("--relation", help="effect, cause, both, or a name of your own with --template.")
]
TemplateOption = Annotated[
    str, typer.Option("--template", help='The completed statement of your own relation: "{source} {target}".')
]
OrdersOption = Annotated[
    Orders,
    typer.Option(help='matching: effect learns from "X, so Y", cause from "X because Y", as in the paper.'),
]
FilterOption = Annotated[
    str,
    typer.Option(
        "--filter", help="paper, original, default, clean, none, or names like empty,length:20,dangling."
    ),
]
LimitOption = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many pairs of train.")]
DevOption = Annotated[int, typer.Option("--dev", min=0, help="At most so many pairs of dev.")]
TestOption = Annotated[int, typer.Option("--test", min=0, help="At most so many pairs of test.")]
HeldOutOption = Annotated[
    float, typer.Option("--held-out", help="The share that dev may come from, and test as much: 0 to 0.25.")
]
EncoderOption = Annotated[
    str, typer.Option("--encoder", "-e", help="static, fast, sbert[:NAME], …; none leaves the pairs unsigned.")
]
BinsOption = Annotated[bool, typer.Option("--bins/--no-bins", help="Also write the bins of the targets.")]
ShardRowsOption = Annotated[int, typer.Option("--shard-rows", min=1, help="Pairs a shard.")]
BadRowsOption = Annotated[
    BadRows, typer.Option("--bad-rows", help="stop at a row that is not a pair, or skip and count it.")
]
EngineOption = Annotated[EngineName, typer.Option("--engine", help="On this machine, or on a Ray cluster.")]
WorkersOption = Annotated[int, typer.Option("--workers", min=1, help="Ray actors, each with its encoder.")]
MemoryOption = Annotated[str, typer.Option("--memory", help="What sorting may use before it spills to disk.")]


def register(app: typer.Typer) -> None:
    app.command(
        "prepare",
        epilog="Example: cod3s prepare pairs.tsv.gz -o corpus/ --relation both --bits 16 --filter paper",
    )(prepare)


def prepare(
    pairs: PairsArgument,
    output: OutputOption,
    relation: RelationOption = "both",
    template: TemplateOption = "",
    orders: OrdersOption = Orders.matching,
    filters: FilterOption = "default",
    limit: LimitOption = None,
    dev: DevOption = 4000,
    test: TestOption = 4000,
    held_out: HeldOutOption = 0.02,
    encoder: EncoderOption = "fast",
    code: CodeOption = "random",
    bits: BitsOption = 16,
    seed: SeedOption = 1234,
    bins: BinsOption = True,
    shard_rows: ShardRowsOption = 100_000,
    bad_rows: BadRowsOption = BadRows.stop,
    engine: EngineOption = EngineName.local,
    workers: WorkersOption = 2,
    memory: MemoryOption = "2GB",
    json: JsonOption = False,
) -> None:
    """Filter, de-duplicate, split, embed and sign pairs: a corpus that `cod3s train` reads.

    Resumes where a killed run stopped; does nothing where the corpus is finished.
    """
    for module in ("pyarrow", "duckdb"):
        require(module, "corpus")
    from cod3s.corpus.engines import find_engine
    from cod3s.corpus.manifest import PrepareConfig, as_json, remarks_on_splits
    from cod3s.corpus.prepare import prepare as run

    config = PrepareConfig(
        relation=relation,
        template=template,
        orders=orders.value,
        filter=filters,
        limit=limit,
        dev=dev,
        test=test,
        held_out=held_out,
        shard_rows=shard_rows,
        bad_rows=bad_rows.value,
        encoder=encoder,
        code=code,
        bits=bits,
        seed=seed,
        bins=bins,
    )
    where = find_engine(engine.value, workers)
    manifest, made = run(pairs, output, config, engine=where, memory=memory, stage=progress)
    if not made:
        say(f"{output} is finished: nothing to do")
    for remark in remarks_on_splits(manifest):
        say(remark)
    if json:
        print_json(as_json(manifest))
    else:
        _print_corpus(output, manifest)


def _print_corpus(output: str, manifest: "Manifest") -> None:
    config = manifest.config
    settings = f"encoder {manifest.encoder} | bits {config.bits} | seed {config.seed} | filter {config.filter}"
    for name, facts in manifest.relations.items():
        rows = [
            (step.name, f"{step.rows_in:,}", f"{step.removed:,}", f"{step.rows_out:,}")
            for step in facts.funnel
            if step.removed or step.name in ("exact duplicate", "near duplicate", "leaked")
        ]
        splits = [f"{split} {count:,}" for split, count in facts.splits.items()]
        splits += [f"{facts.bins.rows:,} bins"] if facts.bins else []
        splits += [f"{manifest.shared_sentences} sentences of dev and test in train"]
        caption = f"{output}/{name}: {' | '.join(splits)}\n{settings}"
        print_table(f"Funnel of {name}", ("step", "rows in", "removed", "rows out"), rows, caption)
