"""The options of `diversify`: what each does, its default and its bounds."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from cod3s.errors import UsageError
from cod3s.options import check_options, option, with_values
from cod3s.selection.config import SelectConfig

STRATEGIES = {
    "auto": "resample while that brings new answers, then try others and use whichever brings the most per token",
    "resample": "send the same prompt again",
    "temperature": "raise the temperature whenever a call brings nothing new",
    "avoid": "list the answers so far and ask for something different",
    "verbalized": "ask for several answers with their probabilities in a single reply",
    "seed": "put a random string into the prompt and ask the model to let it decide",
    "persona": "answer as a different person in every call, by a system prompt",
    "paraphrase": "let the model reword the prompt, and send each wording in turn",
    "attributes": "let the model name what answers can differ in, and ask for combinations of that",
    "bins": "let the model name subjects, and hint at the one that is farthest from all answers so far",
}
_strategy = partial(option, panel="Strategies")
_choice = partial(option, panel="Choice of the answers")
_limit = partial(option, panel="Limits of the whole run")
_table = partial(option, panel="Tables of prompts")


@dataclass(frozen=True)
class Prices:
    """Dollars per million tokens."""

    prompt: float
    completion: float


@dataclass(frozen=True)
class DiversifyConfig(SelectConfig):
    """How to get k different answers to a prompt and choose among all answers, and what a run may cost."""

    k: int = option(10, "How many different answers to get.", least=1, flags=("-k", "--count"))
    strategy: Literal[
        "auto",
        "resample",
        "temperature",
        "avoid",
        "verbalized",
        "seed",
        "persona",
        "paraphrase",
        "attributes",
        "bins",
    ] = option("auto", "What each call sends; see docs/diversify.md.")
    budget: int = option(50, "The maximum number of calls per prompt.", least=1)
    token_budget: int | None = option(
        None, "Stop a prompt after this many tokens of requests and answers.", least=1
    )
    min_gain: float = option(
        0.05, "Stop a prompt when another call should bring fewer new answers than this.", least=0, most=1
    )
    concurrency: int = option(1, "Calls at the same time per prompt.", least=1, most=1000)

    list_size: int = _strategy(5, "verbalized: answers per reply.", least=2, most=50)
    tail: float | None = _strategy(
        None, "verbalized: ask for answers that are each less likely than this.", above=0, most=1
    )
    turns: int = _strategy(1, "verbalized: replies per conversation, each asked to go on.", least=1, most=20)
    personas: tuple[str, ...] = ()  # for the strategy `persona`; by default those in `strategies`

    encoder: Any = _choice(  # noqa: RUF009 - an Encoder, which does not change, or its name
        "static",
        "static, fast, fast-int8 or sbert; fast:FOLDER, sbert:NAME or sbert:FOLDER.",
        flags=("--encoder", "-e"),
    )
    compare: str = _choice("", "The field of JSON answers that is compared, such as answer or plan.title.")
    floor: float | None = _choice(None, "Leave out answers with a score below this.")

    rate: float | None = _limit(None, "Calls per minute.", above=0)
    total_calls: int | None = _limit(None, "Calls in all.", least=1)
    total_tokens: int | None = _limit(None, "Tokens in all.", least=1)
    total_cost: float | None = _limit(None, "Dollars in all; needs --price.", above=0)
    price: str = _limit("", "Dollars per million tokens as PROMPT,ANSWER, to state and to limit what calls cost.")

    rows_at_once: int = _table(8, "Rows at the same time.", least=1, most=1000)
    part_size: int = _table(1000, "Rows per file of answers.", least=1)
    select_only: bool = _table(
        False, "Make no calls: choose again among the answers that the folder has.", flags=("--select-only",)
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.total_cost is not None and self.prices is None:
            raise UsageError("a limit in dollars needs the price of a token", hint="--price 0.15,0.60")
        self.resolve()  # what `select` checks

    def with_values(self, k: int | None = None, **values: Any) -> "DiversifyConfig":
        """A copy with some options changed."""
        changed = with_values(self, "diversify", values) if values else self
        return changed if k is None else replace(changed, k=k)

    @property
    def prices(self) -> Prices | None:
        """The prices of tokens, if they were stated."""
        if not self.price:
            return None
        try:
            prompt, completion = map(float, self.price.split(","))
        except ValueError:
            raise UsageError(
                f"the price is two numbers separated by a comma, not {self.price!r}", hint="--price 0.15,0.60"
            ) from None
        return Prices(prompt, completion)


DEFAULT = DiversifyConfig()
