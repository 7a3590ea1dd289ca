"""`cod3s generate`: k answers that mean different things."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import cod3s
from cod3s.cli.output import (
    OPENING,
    counted,
    live_text,
    on_terminal,
    open_console,
    print_json,
    print_table,
    progress,
    say,
    shortened,
)
from cod3s.cli.parameters import BundleOption, ColumnOption, JsonOption, Options, takes_options
from cod3s.decode.config import MAX_K, PRESETS, DecodeConfig, find_preset
from cod3s.decode.systems import LISTED_SYSTEMS, find_system
from cod3s.errors import Cod3sError, Progress, UsageError
from cod3s.io.tables import read_sentences
from cod3s.records import Answer, AnswerMade, AnswerSet, Event, StageStarted, figure_of
from cod3s.text import settings_line

if TYPE_CHECKING:
    from cod3s.bulk import Job

_SETTINGS = ("bundle", "search", "beam", "samples", "top_k", "seed")
_MORE_SETTINGS = ("bundle", "rerank_signatures", "min_hamming", *_SETTINGS[1:-1], "rerank_sentences", "seed")
_OTHER_SEARCH = {"beam": ("samples", "top_k"), "sample": ("beam",)}  # options that play no part in a search
_ALSO = {"beam": ("samples", "baseline_beam"), "top_k": ("baseline_top_k",)}
"""Flags that also set other options, unless those are given, too: `--beam 5` works with any search."""
_MANY = 100  # answers per source: more than this takes long enough to be announced
_ANSWERS_PER_MINUTE = 300  # ten in two seconds on two cores
_WHOLE_BITS = 32  # signatures up to this length are never split over two lines

SystemOption = Annotated[
    str,
    typer.Option(
        help=f"Which system answers: {', '.join(LISTED_SYSTEMS)}, or another name explained in docs/decoding.md."
    ),
]
InputOption = Annotated[
    Path | None, typer.Option("--input", "-i", help="Read sources from a file, or - for stdin; streamed.")
]
PresetOption = Annotated[str, typer.Option(help=f"Defaults for options you do not set: {' or '.join(PRESETS)}.")]
_bins_option = partial(typer.Option, rich_help_panel="Stage 1: which bins")
SignatureOption = Annotated[
    list[str] | None, _bins_option(help="Write in this bin instead of inferred ones; repeatable.")
]
LikeOption = Annotated[list[str] | None, _bins_option(help="Write in the bin of this sentence; repeatable.")]
VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Also show signatures, bins, where answers come from, and all settings."),
]
PlainOption = Annotated[
    bool,
    typer.Option("--plain", help="Print the answers only, one per line, as where stdout is not a terminal."),
]
_bulk_option = partial(typer.Option, rich_help_panel="Many sources")
OutputOption = Annotated[
    str | None,
    _bulk_option(
        "--output",
        "-o",
        help="Write the answers as JSON lines to shards in this folder; a rerun continues.",
    ),
]
EngineOption = Annotated[Literal["local", "ray"], _bulk_option(help="Run on this machine or on a Ray cluster.")]
WorkersOption = Annotated[int, _bulk_option(min=1, help="Ray actors, each with one core.")]
ShardOption = Annotated[
    int, _bulk_option(min=1, help="Sources per shard; a stopped run loses at most one shard per worker.")
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
    verbose: VerboseOption = False,
    plain: PlainOption = False,
    json: JsonOption = False,
    output: OutputOption = None,
    engine: EngineOption = "local",
    workers: WorkersOption = 2,
    shard_size: ShardOption = 256,
) -> None:
    """Answer each source k times, each time in a different semantic bin.

    The best answer comes first, and each of the others is unlike those above it. The paper's systems put the
    best-fitting bin first, and one-stage systems the best score.
    Unless you set them, --samples and --baseline-beam follow --beam, and --baseline-top-k follows --top-k.
    """
    sources = sources or []
    streamed = input is not None or "-" in sources
    if column and not streamed:
        raise UsageError("--column is for tables that are read", hint="add --input FILE, or - for stdin")
    show = _find_view(json, verbose, plain)
    if output is None and engine == "ray":
        raise UsageError("--engine ray writes to a folder, but none was given", hint="add -o answers/")
    _check_call(relation, sources, input, bundle)
    for flag, others in _ALSO.items():
        if flag in options:
            options = {**dict.fromkeys(others, options[flag]), **options}
    find_system(system).require_undecided(options)
    find_preset(preset).with_values(**options)  # fails early
    with live_text(OPENING):
        generator = cod3s.load(bundle)
    config = find_preset(preset, generator.defaults).with_values(**options)
    announce_many(config.k)
    with live_text(OPENING):
        signatures = [*(signature or []), *(generator.signer.signatures(like) if like else [])] or None
    if signatures and options.get("k", len(signatures)) != len(signatures):
        say(f"there are as many answers as bins that you named ({len(signatures)}), not k ({config.k})")
    skipped: list[int] = []
    texts = read_texts(sources, input, column, skipped.append)
    if output is not None:
        from cod3s.bulk import Job

        job = Job(relation, bundle, system, config, tuple(signatures) if signatures else None)
        _write_shards(texts, output, job, shard_size, engine, workers, json)
        return _say_skipped(skipped, input)
    if sys.stderr.isatty() and not streamed:
        stream = partial(
            generator.stream, relation=relation, system=system, options=config, signatures=signatures, stages=True
        )
        answered = _print_all(_watched(texts, stream), lambda _done: None, show)
    else:
        requests = ((text, signatures) for text in texts)
        with progress("sources", None) as advance:
            answers = generator.generate_many(requests, relation, system=system, options=config)
            answered = _print_all(answers, advance, show)
    _say_skipped(skipped, input)
    if not answered:
        raise Cod3sError(f"{input or 'stdin'} contains no sentences")


def announce_many(k: int) -> None:
    """Say how long very many answers take."""
    if k > _MANY:
        say(
            f"{k} answers per source ({MAX_K} is the most) take about {k / _ANSWERS_PER_MINUTE:.1f} minutes, "
            "estimated from ten in two seconds on two cores"
        )


def _say_skipped(skipped: Sequence[int], input: Path | None) -> None:
    if skipped:
        say(f"skipped {counted(len(skipped), 'blank line')} of {input or 'stdin'}")


def _write_shards(
    texts: Iterable[str], output: str, job: "Job", shard_size: int, engine: str, workers: int, json: bool
) -> None:
    """Answer into a folder and say what is in it; on Ray each worker has one thread and one core."""
    from cod3s.bulk import answer_in_bulk
    from cod3s.corpus.engines import find_engine

    result = answer_in_bulk(
        texts,
        Path(output),
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


def _check_call(relation: str, sources: Sequence[str], input: Path | None, bundle: Path | None) -> None:
    """Fail early if the source or the relation was left out, or if they were swapped."""
    from cod3s.bundle import find_bundle, read_facts

    facts = read_facts(find_bundle(bundle))
    relations = [*facts.models]
    swapped = [source for source in sources if source in relations]
    missing = not sources and input is None
    source = shortened(relation, 60)
    if relation not in relations and (swapped or missing):
        raise UsageError(
            f"{source!r} is not a relation; the bundle {facts.name} has {' and '.join(relations)}",
            hint=f'put the relation first: cod3s generate {(swapped or relations)[0]} "{source}"',
        )
    if missing:
        raise UsageError("no source was given", hint=f'for example: cod3s generate {relation} "it rained all day"')


def read_texts(
    texts: Sequence[str], input: Path | None, column: str | None, skipped: Progress = lambda _lines: None
) -> Iterator[str]:
    """The texts of the command line, then those of `input`; - stands for the lines of standard input."""
    for text in texts:
        yield from read_sentences(Path(text), column, skipped) if text == "-" else [text]
    if input:
        yield from read_sentences(input, column, skipped)


def _watched(sources: Iterable[str], stream: Callable[[str], Iterator[Event]]) -> Iterator[AnswerSet]:
    """The answers to each source; while it is answered, the terminal shows the stage and the answers so far."""
    for source in sources:
        shown = [OPENING]
        with live_text(OPENING) as show:
            for event in stream(source):
                if isinstance(event, StageStarted):
                    shown[-1] = f"{event} …"
                elif isinstance(event, AnswerMade):
                    shown.insert(-1, f"{event.place + 1:4}   {event.answer.text}")
                elif isinstance(event, AnswerSet):
                    answers = event
                show("\n".join(shown))
        yield answers


def _print_all(sets: Iterable[AnswerSet], advance: Progress, show: Callable[[AnswerSet], None]) -> int:
    """Show each source's answers as soon as they are ready; return the number of sources.

    A remark on the source itself is always printed, any other only the first time.
    """
    from cod3s.trust.gate import SOURCE_REMARKS
    from cod3s.trust.statements import remarks_on

    printed: set[str] = set()
    answered = 0
    for answers in sets:
        answered += 1
        advance(1)
        for remark in answers.remarks:
            if remark not in printed:
                say(f"{answers.source[:60]}: {remark}")
        printed.update(set(answers.remarks) - SOURCE_REMARKS - set(remarks_on(answers.source)))
        show(answers)
        sys.stdout.flush()
    return answered


def _find_view(json: bool, verbose: bool, plain: bool) -> Callable[[AnswerSet], None]:
    """The function that prints the answers to a source."""
    if plain and (verbose or json):
        other = "--json" if json else "--verbose"
        raise UsageError(
            f"--plain prints the answers only, and {other} more", hint=f"leave out --plain or {other}"
        )
    if json:
        return _print_record
    if verbose:
        return _print_details
    return _print_answers if on_terminal() and not plain else _print_lines


def _print_record(answers: AnswerSet) -> None:
    print_json(answers.to_dict())


def _print_lines(answers: AnswerSet) -> None:
    """One answer per line, and nothing else."""
    for answer in answers:
        sys.stdout.write(f"{answer.text}\n")


def _print_answers(answers: AnswerSet) -> None:
    """A table that fits 80 columns: number, answer and score."""
    columns: dict[str, Callable[[Answer], object]] = {
        "answer": lambda answer: answer.text,
        answers.figure_name: figure_of,
    }
    if any(answer.constraint for answer in answers):
        columns["must contain"] = lambda answer: answer.constraint
    if answers.settings["check"] and any(answer.realised for answer in answers):
        if any(answer.signature for answer in answers):
            columns["off by"] = lambda answer: "" if answer.hamming is None else answer.hamming
        else:
            columns["realised"] = lambda answer: answer.realised
    rows = [(number, *(cell(answer) for cell in columns.values())) for number, answer in enumerate(answers, 1)]
    short = all(len(answer.realised) <= _WHOLE_BITS for answer in answers)
    print_table(
        _title(answers),
        ("#", *columns),
        rows,
        _order(answers) + _settings(answers, _SETTINGS),
        whole=("#", "score", "critic", *(("realised",) if short else ())),
    )


def _print_details(answers: AnswerSet) -> None:
    """Two lines per answer: its text; its score, its signature and its bin."""
    from rich.text import Text

    console = open_console()
    console.print(Text(_title(answers), style="italic"), end="\n\n")
    for number, answer in enumerate(answers, 1):
        console.print(Text(f"{number:3}  {answer.text}"))
        line = Text(f"     {details_of(answer)}", style="dim")
        short = len(answer.signature or answer.realised) <= _WHOLE_BITS
        console.print(line, no_wrap=short, overflow="ellipsis" if short else "fold")
    console.print(Text(f"\n{_order(answers)}{_settings(answers, _MORE_SETTINGS)}", style="dim"))


def details_of(answer: Answer) -> str:
    """A line with an answer's score, its signature and its bin."""
    details = [f"{'score' if answer.plausibility is None else 'critic'} {figure_of(answer)}"]
    details += [f"must contain {answer.constraint}"] if answer.constraint else []
    details += [signature] if (signature := answer.signature or answer.realised) else []
    details += [] if answer.hamming is None or not answer.signature else [f"off by {answer.hamming}"]
    details += [f"bin of {answer.count} like: {answer.medoid}"] if answer.medoid else []
    return " | ".join(details)


def _title(answers: AnswerSet) -> str:
    return f"{answers.relation} of: {shortened(answers.source)}"


def _settings(answers: AnswerSet, names: Sequence[str]) -> str:
    """The line of settings that played a part in the search."""
    hidden = _OTHER_SEARCH[str(answers.settings["search"])]
    shown = {name: answers.settings[name] for name in names if name in answers.settings and name not in hidden}
    return settings_line({"system": answers.system, **shown})


def _order(answers: AnswerSet) -> str:
    """A line that says in which order the answers are; nothing if there are none."""
    if not len(answers):
        return ""
    if not answers[0].signature:
        return "order: best score first\n"
    if answers[0].signature_rank is None:
        return "order: that of the bins that you named\n"
    from_more_bins = float(answers.settings["bins_per_answer"] or 0) > 1
    return f"order: {'best first, each unlike those above it' if from_more_bins else 'best-fitting bin first'}\n"
