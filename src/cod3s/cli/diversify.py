"""`cod3s diversify`: k different answers from any model behind an OpenAI-compatible server."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cod3s
from cod3s.ask.config import DiversifyConfig
from cod3s.ask.server import CompletionServer
from cod3s.cli.output import print_json, say
from cod3s.cli.parameters import JsonOption, Options, takes_options
from cod3s.errors import UsageError
from cod3s.io.disk import open_text, read_json
from cod3s.options import options_of, with_values

if TYPE_CHECKING:
    from cod3s.ask import Diversified
    from cod3s.ask.collection import Collection

_KEY_VARIABLE = "OPENAI_API_KEY"
_STOPPED = {
    "filled": "{k} answers differ",
    "exhausted": "another call would hardly bring anything new",
    "budget": "all calls of --budget were made",
    "tokens": "the --token-budget was spent",
    "limit": "a limit of the run was reached",
    "failures": "calls failed",
}

ServerOption = Annotated[
    str, typer.Option(help="Address of the API, such as http://localhost:8000/v1.", show_default=False)
]
SchemaOption = Annotated[
    Path | None, typer.Option(help="A file with the JSON schema that every answer has to fit.")
]
UnlikeOption = Annotated[
    Path | None, typer.Option(help="A file of texts, one per line, from which answers are kept away.")
]
SystemOption = Annotated[str, typer.Option(help="A system prompt.")]
KeyOption = Annotated[str, typer.Option(help="Environment variable that holds the server's key.")]


@takes_options(DiversifyConfig, CompletionServer)
def diversify(
    prompt: Annotated[str, typer.Argument(help="What to ask; - reads it from stdin.")],
    server: ServerOption,
    model: Annotated[str, typer.Option(help="The model's name on that server.", show_default=False)],
    options: Options,
    key_env: KeyOption = _KEY_VARIABLE,
    system: SystemOption = "",
    schema: SchemaOption = None,
    unlike: UnlikeOption = None,
    json: JsonOption = False,
) -> None:
    """Ask a model until k of its answers mean different things: ask, hash, keep what is new, ask again.

    Works with OpenAI, vLLM, llama.cpp's server, Ollama and others. The cost is printed on stderr at the end.
    """
    config = DiversifyConfig().with_values(**_part(options, DiversifyConfig))
    text = _read_prompt(prompt)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    generate = CompletionServer(server, model, key=_read_key(key_env))
    answers = cod3s.diversify(
        with_values(generate, "the server", _part(options, CompletionServer)),
        messages if system else text,
        config=config,
        schema=None if schema is None else read_json(schema),
        unlike=_read_lines(unlike),
        watch=_show_progress if sys.stderr.isatty() else None,
    )
    if json:
        print_json(answers.to_dict())
    else:
        for answer in answers:
            record = answers.candidates[answer.index].record
            print_json(record) if schema is not None else print(" ".join(answer.text.split()))
    _tell_cost(answers, config)


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


def _read_lines(path: Path | None) -> list[str]:
    """The lines of a file that are not blank; none without a file."""
    if path is None:
        return []
    with open_text(path) as stream:
        return [line.strip() for line in stream if line.strip()]


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
    for reason in dict.fromkeys(answers.failures):
        say(f"a call failed: {reason}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
