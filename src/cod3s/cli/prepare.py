"""`cod3s prepare`: pairs → a corpus folder of signed training shards."""

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import cod3s
from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.cli.parameters import JsonOption, Options, takes_options
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.errors import require_all

if TYPE_CHECKING:
    from cod3s.corpus.manifest import Manifest

PairsArgument = Annotated[
    list[str],
    typer.Argument(
        help="Files of pairs, or folders of them: TSV, CSV or JSONL (also .gz) or Parquet with the columns "
        "relation, source and target; cause and effect; or source and target. CausalBank as released. - for stdin."
    ),
]
OutputOption = Annotated[str, typer.Option("--output", "-o", help="The corpus folder to write.")]
_run_option = partial(typer.Option, rich_help_panel="Where it runs")
EngineOption = Annotated[Literal["local", "ray"], _run_option(help="Run on this machine or on a Ray cluster.")]
WorkersOption = Annotated[int, _run_option(min=1, help="Ray actors, each with an encoder.")]
MemoryOption = Annotated[str, _run_option(help="Memory for sorting; the rest spills to disk.")]


@takes_options(PrepareConfig)
def prepare(
    pairs: PairsArgument,
    output: OutputOption,
    options: Options,
    engine: EngineOption = "local",
    workers: WorkersOption = 2,
    memory: MemoryOption = "2GB",
    json: JsonOption = False,
) -> None:
    """Filter, de-duplicate, split, embed and sign pairs: a corpus that `cod3s train` reads.

    All targets of a source go into one split, and no source of dev or test is anywhere in train. A column `split`
    (train, dev or test) decides instead, and a column `group` keeps near-duplicate sources together.

    Continues where a killed run stopped; does nothing if the corpus is finished. A folder with a different corpus
    is refused.
    """
    require_all("corpus", "pyarrow", "duckdb")
    from cod3s.corpus.engines import find_engine
    from cod3s.corpus.manifest import remarks_on

    manifest, is_new = cod3s.prepare(
        pairs, output, PrepareConfig(**options), engine=find_engine(engine, workers), memory=memory, stage=progress
    )
    if not is_new:
        say(f"{output} is finished: nothing to do")
    for remark in remarks_on(manifest):
        say(remark)
    if json:
        print_json(asdict(manifest))
    else:
        _print_corpus(output, manifest)


def _print_corpus(output: str, manifest: "Manifest") -> None:
    config = manifest.config
    settings = (
        f"encoder {manifest.encoder or 'none'} | bits {config.bits} | seed {config.seed} | filter {config.filter}"
    )
    for name, facts in manifest.relations.items():
        rows = [
            (step.name, f"{step.rows_in:,}", f"{step.removed:,}", f"{step.rows_out:,}")
            for step in facts.funnel
            if step.removed or step.name in ("exact duplicate", "near duplicate", "leaked")
        ]
        splits = [f"{split} {count:,}" for split, count in facts.splits.items()]
        splits += [f"{facts.bins.rows:,} bins"] if facts.bins else []
        caption = f"{output}/{name}: {' | '.join(splits)}\n{settings}"
        print_table(f"Funnel of {name}", ("step", "rows in", "removed", "rows out"), rows, caption)
