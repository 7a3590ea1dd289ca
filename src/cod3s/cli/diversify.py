"""`cod3s diversify`: k different answers from any model behind an OpenAI-compatible server."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import cod3s
from cod3s.cli.output import print_json, say
from cod3s.cli.parameters import BitsOption, EncoderOption, JsonOption
from cod3s.errors import UsageError
from cod3s.io.disk import open_text
from cod3s.options import find_name

if TYPE_CHECKING:
    from cod3s.ask import Diversified
    from cod3s.ask.inquiry import Inquiry

_KEY_VARIABLE = "OPENAI_API_KEY"
_APIS = ("chat", "completions")
_STOPPED = {
    "filled": "{k} answers differ",
    "exhausted": "another call would hardly bring anything new",
    "budget": "all calls of --budget were made",
    "tokens": "the --token-budget was spent",
    "failures": "calls failed",
}

ServerOption = Annotated[
    str, typer.Option(help="Address of the API, such as http://localhost:8000/v1.", show_default=False)
]
TokenBudgetOption = Annotated[
    int | None, typer.Option(min=1, help="Stop after this many tokens of prompts and answers.")
]
KeyOption = Annotated[str, typer.Option(help="Environment variable that holds the server's key.")]
PriceOption = Annotated[
    str | None, typer.Option(help="Dollars per million tokens as PROMPT,ANSWER, to show what the calls cost.")
]
SeedOption = Annotated[
    int | None,
    typer.Option(min=0, help="Seed sent to the server, which may ignore it; goes up by 1 with each call."),
]


def diversify(
    prompt: Annotated[str, typer.Argument(help="What to ask; - reads it from stdin.")],
    server: ServerOption,
    model: Annotated[str, typer.Option(help="The model's name on that server.", show_default=False)],
    k: Annotated[int, typer.Option("-k", "--count", min=1, help="How many different answers to get.")] = 10,
    strategy: Annotated[str, typer.Option(help="auto, resample, temperature, avoid or verbalized.")] = "auto",
    api: Annotated[str, typer.Option(help="chat, or completions for a model that continues text.")] = "chat",
    budget: Annotated[int, typer.Option(min=1, help="The maximum number of calls.")] = 50,
    token_budget: TokenBudgetOption = None,
    samples: Annotated[int, typer.Option(min=1, help="Answers to request per call.")] = 4,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum tokens per answer.")] = 64,
    temperature: Annotated[
        float, typer.Option(min=0, max=2, help="Sampling temperature; higher is bolder.")
    ] = 1.0,
    top_p: Annotated[
        float, typer.Option(min=0, max=1, help="Sample from the likeliest tokens that sum to this probability.")
    ] = 1.0,
    key_env: KeyOption = _KEY_VARIABLE,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for a reply.")] = 60.0,
    retries: Annotated[int, typer.Option(min=0, help="Retries of a failed call.")] = 3,
    price: PriceOption = None,
    method: Annotated[str, typer.Option(help="How the k answers are chosen, as in `cod3s select`.")] = "auto",
    seed: SeedOption = None,
    encoder: EncoderOption = "static",
    bits: BitsOption = 128,
    json: JsonOption = False,
) -> None:
    """Ask a model until k of its answers mean different things: ask, hash, keep what is new, ask again.

    Works with OpenAI, vLLM, llama.cpp's server, Ollama and others. The cost is printed on stderr at the end.
    """
    from cod3s.ask import CompletionServer

    find_name("API", api, _APIS)
    prices = _read_prices(price)
    answers = cod3s.diversify(
        CompletionServer(
            server,
            model,
            samples=samples,
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            chat=api == "chat",
            seed=seed,
            key=_read_key(key_env),
            timeout=timeout,
            retries=retries,
        ),
        _read_prompt(prompt),
        k,
        strategy=strategy,
        budget=budget,
        token_budget=token_budget,
        method=method,
        bits=bits,
        encoder=encoder,
        watch=_show_progress if sys.stderr.isatty() else None,
    )
    if json:
        print_json(answers.to_dict())
    else:
        for text in answers.texts:
            print(" ".join(text.split()))
    _tell_cost(answers, prices)


def _read_prompt(prompt: str) -> str:
    text = prompt
    if prompt == "-":
        with open_text(Path("-")) as stream:
            text = stream.read().strip()
    if not text.strip():
        raise UsageError("the prompt is empty", hint='for example: cod3s diversify "Name a use for a brick." …')
    return text


def _read_key(variable: str) -> str | None:
    """The key in the environment; an error if the user named a variable that is empty."""
    key = os.environ.get(variable)
    if not key and variable != _KEY_VARIABLE:
        raise UsageError(f"the environment variable {variable} is empty or not set", hint=f"export {variable}=…")
    return key or None


def _read_prices(price: str | None) -> tuple[float, float] | None:
    if price is None:
        return None
    try:
        prompt, answer = map(float, price.split(","))
    except ValueError:
        raise UsageError(
            f"--price takes two numbers separated by a comma, not {price!r}", hint="--price 0.15,0.60"
        ) from None
    return prompt, answer


def _show_progress(inquiry: "Inquiry") -> None:
    """One line that is overwritten: calls, bins and tokens so far."""
    tokens = "" if inquiry.tokens is None else f", {inquiry.tokens.total} tokens"
    end = "\n" if inquiry.stopped else ""
    sys.stderr.write(f"\r\033[K{inquiry.calls} calls, {inquiry.bins_filled} different answers{tokens}{end}")
    sys.stderr.flush()


def _tell_cost(answers: "Diversified", prices: tuple[float, float] | None) -> None:
    calls = f"{answers.calls} call" + ("" if answers.calls == 1 else "s")
    reason = _STOPPED[answers.stopped].format(k=answers.selection.k)
    say(f"{len(answers)} answers of {len(answers.candidates)} in {calls}; stopped because {reason}")
    if answers.tokens is not None:
        about = "about " if answers.tokens.estimated else ""
        cost = ""
        if prices is not None:
            dollars = (answers.tokens.prompt * prices[0] + answers.tokens.completion * prices[1]) / 1e6
            cost = f", {about}${dollars:.4f}"
        say(
            f"{about}{answers.tokens.prompt} prompt tokens, {about}{answers.tokens.completion} answer tokens{cost}"
        )
    for remark in answers.selection.remarks:
        say(remark)
    for reason in dict.fromkeys(answers.failures):
        say(f"a call failed: {reason}")
