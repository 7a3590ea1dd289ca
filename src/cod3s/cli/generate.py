"""`cod3s generate`: k answers that mean different things."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cod3s.cli.output import print_json, print_table, progress, say
from cod3s.cli.parameters import BundleOption, ColumnOption, JsonOption, Options, takes_options
from cod3s.decode.decode_config import DEFAULT, PRESETS, DecodeConfig
from cod3s.decode.systems import ENGINE_SYSTEMS, TORCH_SYSTEMS
from cod3s.errors import Cod3sError, Progress, UsageError, require
from cod3s.records import Answer, AnswerMade, AnswerSet
from cod3s.text import settings_line

if TYPE_CHECKING:
    from cod3s.bulk import Job
    from cod3s.decode.generator import Generator

_SETTINGS = ("bundle", "search", "beam", "samples", "top_k", "seed")
_MORE_SETTINGS = ("bundle", "rerank_signatures", "min_hamming", *_SETTINGS[1:-1], "rerank_sentences", "seed")
_OTHER_SEARCH = {"beam": ("samples", "top_k"), "sample": ("beam",)}  # options that play no part in a search
_ALSO = {"beam": ("samples", "baseline_beam"), "top_k": ("baseline_top_k",)}
"""Flags that also set other options, unless those are given, too: `--beam 5` works with any search."""
_MANY = 100  # answers per source: more than this takes minutes on two cores
_WHOLE_BITS = 32  # signatures up to this length are never split over two lines

SystemOption = Annotated[
    str,
    typer.Option(
        "--system",
        help=f"Which system answers: {', '.join(ENGINE_SYSTEMS)}, or another name explained in docs/decoding.md; "
        f"{' and '.join(TORCH_SYSTEMS)} need a seq2seq bundle exported with --with-torch.",
    ),
]
InputOption = Annotated[
    Path | None, typer.Option("--input", "-i", help="Read sources from a file, or - for stdin; streamed.")
]
PresetOption = Annotated[
    str, typer.Option("--preset", help=f"Defaults for options that are not given: {' or '.join(PRESETS)}.")
]
SignatureOption = Annotated[
    list[str] | None,
    typer.Option(
        "--signature",
        help="Write in this bin instead of inferred ones; repeatable.",
        rich_help_panel="Stage 1: which bins",
    ),
]
LikeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--like", help="Write in the bin of this sentence; repeatable.", rich_help_panel="Stage 1: which bins"
    ),
]
_MANY_SOURCES = "Many sources"
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="Write the answers as JSON lines to shards in this folder (also s3:// or gs://); a rerun continues.",
        rich_help_panel=_MANY_SOURCES,
    ),
]
EngineOption = Annotated[
    Literal["local", "ray"],
    typer.Option("--engine", help="Run on this machine or on a Ray cluster.", rich_help_panel=_MANY_SOURCES),
]
WorkersOption = Annotated[
    int, typer.Option("--workers", min=1, help="Ray actors, each with one core.", rich_help_panel=_MANY_SOURCES)
]
ShardOption = Annotated[
    int,
    typer.Option(
        "--shard-size",
        min=1,
        help="Sources per shard; a stopped run loses at most one shard per worker.",
        rich_help_panel=_MANY_SOURCES,
    ),
]


@takes_options(DecodeConfig)
def generate(
    relation: Annotated[str, typer.Argument(help="A relation of the bundle, such as effect or cause.")],
    options: Options,
    sources: Annotated[list[str] | None, typer.Argument(help="Sentences to answer, or - for stdin.")] = None,
    bundle: BundleOption = None,
    input: InputOption = None,
    column: ColumnOption = None,
    system: SystemOption = "cod3s",
    preset: PresetOption = "default",
    signature: SignatureOption = None,
    like: LikeOption = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show signatures, bins and all settings.")
    ] = False,
    json: JsonOption = False,
    output: OutputOption = None,
    engine: EngineOption = "local",
    workers: WorkersOption = 2,
    shard_size: ShardOption = 256,
) -> None:
    """Answer each source k times, each time in a different semantic bin.

    Answers are in the order of their bins, with the best-fitting bin first;
    one-stage systems put the best score first.
    Unless you set them, --samples and --baseline-beam follow --beam, and --baseline-top-k follows --top-k.
    """
    from cod3s.decode.decode_config import find_preset
    from cod3s.decode.generator import load
    from cod3s.decode.systems import find_system

    if column and input is None:
        raise UsageError("--column is for tables that --input reads", hint="add --input FILE")
    if output is None and engine == "ray":
        raise UsageError("--engine ray writes to a folder, but none was given", hint="add -o answers/")
    if not sources and input is None:
        raise _nothing_to_answer(relation, bundle)
    for flag, others in _ALSO.items():
        if flag in options:
            options = {**dict.fromkeys(others, options[flag]), **options}
    find_system(system).require_undecided(options)
    config = find_preset(preset).with_values(**options)
    if config.k > _MANY:
        say(f"{config.k} answers per source take about {config.k // DEFAULT.k} times as long as {DEFAULT.k}")
    generator = load(bundle)
    chosen = [*(signature or []), *(generator.signer.signatures(like) if like else [])] or None
    skipped: list[int] = []
    texts = _read_sources(sources or [], input, column, skipped.append)
    if output is not None:
        require("pyarrow", "corpus")
        from cod3s.bulk import Job

        job = Job(relation, bundle, system, config, tuple(chosen) if chosen else None)
        _write_shards(texts, output, job, shard_size, engine, workers, json)
        return _say_skipped(skipped, input)
    requests = ((source, chosen) for source in texts)
    counted = None if input or "-" in (sources or []) else len(sources or [])
    if counted is not None and not json and sys.stderr.isatty():
        watched = _watched(generator, requests, relation, system, config)
        answered = _print_all(watched, lambda _done: None, json, verbose)
    else:
        with progress("sources", counted) as advance:
            answers = generator.generate_many(requests, relation, system=system, options=config)
            answered = _print_all(answers, advance, json, verbose)
    _say_skipped(skipped, input)
    if not answered:
        raise Cod3sError(f"{input or 'stdin'} contains no sentences")


def _say_skipped(skipped: Sequence[int], input: Path | None) -> None:
    if skipped:
        say(f"skipped {len(skipped)} blank lines of {input or 'stdin'}")


def _write_shards(
    texts: Iterable[str], output: str, job: "Job", shard_size: int, engine: str, workers: int, json: bool
) -> None:
    """Answer into a folder and say what is in it; on Ray each worker has one thread and one core."""
    from cod3s.bulk import answer_in_bulk
    from cod3s.corpus.engines import find_engine

    result = answer_in_bulk(
        texts,
        output,
        job,
        shard_size=shard_size,
        engine=find_engine(engine, workers),
        threads=1 if engine == "ray" else None,
        stage=progress,
    )
    if not result.written:
        say(f"{output} is finished: nothing to do")
    if json:
        print_json(asdict(result))
    else:
        print_table(f"answers in {output}", ("sources", "shards", "written now"), [astuple(result)[1:]])


def _nothing_to_answer(relation: str, bundle: Path | None) -> UsageError:
    """The error for a missing source: was it the source or the relation that was left out?"""
    from cod3s.bundle import default_bundle, read_facts

    facts = read_facts(bundle or default_bundle())
    if relation in facts.models:
        return UsageError(
            "no source was given", hint=f'for example: cod3s generate {relation} "it rained all day"'
        )
    relations = [*facts.models]
    return UsageError(
        f"{relation!r} is not a relation; the bundle {facts.name} has {' and '.join(relations)}",
        hint=f'put the relation first: cod3s generate {relations[0]} "{relation}"',
    )


def _read_sources(
    sources: Sequence[str], input: Path | None, column: str | None, skipped: Progress
) -> Iterator[str]:
    """The sources of the command line, then those of `input`; - stands for the lines of standard input."""
    from cod3s.files.tables import read_sentences

    for source in sources:
        yield from read_sentences(Path(source), column, skipped) if source == "-" else [source]
    if input:
        yield from read_sentences(input, column, skipped)


def _watched(
    generator: "Generator",
    sources: Iterable[tuple[str, list[str] | None]],
    relation: str,
    system: str,
    config: DecodeConfig,
) -> Iterator[AnswerSet]:
    """The answers to each source, shown on the terminal as they are written and cleared at the end."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    for source, chosen in sources:
        lines = ["choosing bins …"]
        with Live(Text(lines[0]), console=Console(stderr=True), transient=True, auto_refresh=False) as live:
            for event in generator.stream(source, relation, system=system, options=config, signatures=chosen):
                if isinstance(event, AnswerSet):
                    answers = event
                    continue
                if isinstance(event, AnswerMade):
                    lines.insert(-1, f"{event.place + 1:4}   {event.answer.text}")
                lines[-1] = "writing …"
                live.update(Text("\n".join(lines)), refresh=True)
        yield answers


def _print_all(sets: Iterable[AnswerSet], advance: Progress, json: bool, verbose: bool) -> int:
    """Print each source's answers as soon as they are ready; return the number of sources.

    A remark on the source itself is always printed, any other only the first time.
    """
    from cod3s.decode.statement import remarks_on

    printed: set[str] = set()
    answered = 0
    for answers in sets:
        answered += 1
        advance(1)
        for remark in answers.remarks:
            if remark not in printed:
                say(f"{answers.source[:60]}: {remark}")
        printed.update(set(answers.remarks) - set(remarks_on(answers.source)))
        print_json(answers.to_dict()) if json else _print_answers(answers, verbose)
        sys.stdout.flush()
    return answered


def _print_answers(answers: AnswerSet, verbose: bool) -> None:
    """A table that fits 80 columns: number, answer and score; with `verbose` also the bins."""
    judged = any(answer.plausibility is not None for answer in answers)
    columns = ["#", "answer", "critic" if judged else "score"]
    held = any(answer.constraint for answer in answers)
    in_bins = any(answer.signature for answer in answers)
    signed = verbose and in_bins
    checked = (verbose or answers.settings["check"]) and any(answer.realised for answer in answers)
    columns += ["must contain"] if held else []
    columns += ["signature", "its bin is like"] if signed else []
    columns += ["off by" if in_bins else "realised"] if checked else []

    def row(number: int, answer: Answer) -> list[str | int]:
        value = f"{answer.score:.3f}" if answer.plausibility is None else f"{answer.plausibility:.2f}"
        cells: list[str | int] = [number, answer.text, value]
        cells += [answer.constraint] if held else []
        cells += [answer.signature, f"{answer.medoid} ({answer.count})" if answer.medoid else ""] if signed else []
        off = "" if answer.hamming is None else answer.hamming
        return cells + ([off if in_bins else answer.realised] if checked else [])

    rows = [row(number, answer) for number, answer in enumerate(answers, 1)]
    hidden = _OTHER_SEARCH[str(answers.settings["search"])]
    names = [name for name in (_MORE_SETTINGS if verbose else _SETTINGS) if name not in hidden]
    shown = {name: answers.settings[name] for name in names if name in answers.settings}
    short = all(len(answer.signature) <= _WHOLE_BITS for answer in answers)
    print_table(
        f"{answers.relation} of: {answers.source}",
        columns,
        rows,
        settings_line({"system": answers.system, **shown}),
        whole=("#", "score", "critic", *(("signature", "realised") if short else ())),
    )
