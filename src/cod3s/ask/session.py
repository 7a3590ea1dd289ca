"""Ask a generator until k answers differ, then choose the k best: one prompt, several calls at once."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cod3s.ask.collection import Collection, Shown
from cod3s.ask.config import DEFAULT, DiversifyConfig
from cod3s.ask.diversified import Candidate, Diversified
from cod3s.ask.limits import Meter
from cod3s.ask.planning import Call, View
from cod3s.ask.prompts import Prompt, PromptLike, read_prompt
from cod3s.ask.quality import Score, name_of, score_answers
from cod3s.ask.replies import Reply, failed_reply, read_reply
from cod3s.ask.running import call as call_function
from cod3s.ask.running import run
from cod3s.ask.strategies import open_strategy
from cod3s.ask.structure import InvalidAnswerError, Structure, read_structure
from cod3s.errors import MissingExtraError

Watch = Callable[[Collection], None]
"""Called after every call, to show progress."""


@dataclass(frozen=True)
class Exchange:
    """A call that was made, its reply, and the scores of the answers in it: what a journal keeps."""

    call: int
    strategy: str
    reply: Reply
    preparation: bool = False
    repair: bool = False
    scores: tuple[float | None, ...] | None = None  # of each answer; None if no score function was used
    unscored: tuple[str, ...] = ()  # why answers have no score
    scorer: str = ""  # the name of the score function


Record = Callable[[Exchange], Any]
"""Called with every exchange as soon as its reply is there."""


def diversify(
    generate: Callable[..., Any],
    prompt: PromptLike,
    k: int | None = None,
    *,
    config: DiversifyConfig = DEFAULT,
    score: Score | None = None,
    schema: Any = None,
    unlike: Sequence[str] = (),
    like: Sequence[str] = (),
    watch: Watch | None = None,
    **options: Any,
) -> Diversified:
    """Call `generate(prompt)` until k answers differ, within the budget; then choose the k best.

    `generate` is a CompletionServer, or a function that returns a text, a list of texts, (text, score) or a list
    of (text, score), and samples again on each call. `options` change single values of `config`. `score` rates an
    answer to a prompt; `schema` is a JSON schema or a pydantic model that every answer has to fit. Answers are
    kept away from the texts in `unlike`, and near those in `like`.
    """
    work = diversify_async(
        generate,
        prompt,
        k,
        config=config,
        score=score,
        schema=schema,
        unlike=unlike,
        like=like,
        watch=watch,
        **options,
    )
    return run(work, generate, getattr(score, "server", None))


async def diversify_async(
    generate: Callable[..., Any],
    prompt: PromptLike,
    k: int | None = None,
    *,
    config: DiversifyConfig = DEFAULT,
    score: Score | None = None,
    schema: Any = None,
    unlike: Sequence[str] = (),
    like: Sequence[str] = (),
    shown: Shown | None = None,
    meter: Meter | None = None,
    earlier: Sequence[Exchange] = (),
    record: Record | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> Diversified:
    """`diversify` for asynchronous programs: `generate` may be a coroutine function, plain ones run in threads.

    Replies count in the order of the calls, so the result does not depend on which comes back first. All prompts
    of a run share a `meter`, and `shown`, which replaces `unlike` and `like`. `earlier` exchanges count as if they
    had just been made, and `record` gets each new one.
    """
    config = config.with_values(k, **options)
    session = Session(
        generate,
        read_prompt(prompt),
        config,
        read_structure(schema, config.compare),
        score,
        shown or Shown.of(unlike, like, config),
    )
    meter = meter or Meter(config)
    await session.replay(earlier, meter, record)
    while calls := session.plan(config.concurrency):
        made = await asyncio.gather(*(session.make(call, number, meter, record) for number, call in calls))
        for (_, call), new in zip(calls, made, strict=True):
            session.add(call, new)
            if watch is not None:
                watch(session.collection)
    return session.conclude()


class Session:
    """The asking of a prompt: plans calls with a strategy, makes them, and adds what they bring."""

    def __init__(
        self,
        generate: Callable[..., Any],
        prompt: Prompt,
        config: DiversifyConfig,
        structure: Structure | None,
        score: Score | None,
        shown: Shown,
    ) -> None:
        self._generate, self._prompt, self._config = generate, prompt, config
        self._structure, self._score = structure, score
        self._strategy = open_strategy(config, generate, structure)
        self._scorer = "" if score is None else f"{name_of(score)} {config.compare}".strip()
        self._repairs: list[Call] = []
        self._next_call = 0
        self.collection = Collection(config, shown)

    def plan(self, most: int) -> list[tuple[int, Call]]:
        """Up to `most` numbered calls within the budget; none when it is time to stop."""
        if self.collection.stopped or self._config.select_only:
            return []
        view = View(self.collection.kept(), self.collection.distances)
        calls = []
        for _ in range(min(most, self.collection.left)):
            call = self._repairs.pop(0) if self._repairs else self._strategy.plan(self._prompt, view)
            calls.append((self._next_call, call))
            self._next_call += 1
        return calls

    async def make(self, call: Call, number: int, meter: Meter, record: Record | None) -> Exchange | None:
        """Make a call and score its answers; None if the limits of the run do not allow it."""
        if not await meter.admit():
            return None
        reply = Reply()
        try:
            reply = await self._ask(call)
        finally:
            meter.settle(reply.tokens)
        exchange = Exchange(number, call.strategy, reply, call.preparation, call.repair)
        if self._score is not None and not reply.failure and not call.preparation:
            exchange = await self._scored(exchange, call, meter)
        if record is not None:
            record(exchange)
        return exchange

    async def replay(self, exchanges: Sequence[Exchange], meter: Meter, record: Record | None = None) -> None:
        """Add the exchanges of earlier runs; answers that this score function has not scored are scored now."""
        for exchange in exchanges:
            self._next_call = max(self._next_call, exchange.call + 1)
            call = Call(exchange.strategy, self._prompt, preparation=exchange.preparation, repair=True)
            if self._score is None:
                replayed = replace(exchange, scores=None, unscored=())
            elif exchange.preparation or (exchange.scorer == self._scorer and not exchange.unscored):
                replayed = exchange
            else:
                replayed = await self._scored(exchange, call, meter)
                if record is not None:
                    record(replayed)
            self._add(call, replayed)
        if exchanges:
            self.collection.forgive_failures()
            self.collection.decide()

    def add(self, call: Call, exchange: Exchange | None) -> None:
        """Add what a call brought to the collection, and let the strategy learn from it."""
        if exchange is None:
            self.collection.stopped = self.collection.stopped or "limit"
            return
        self._add(call, exchange)
        self.collection.decide()

    def _add(self, call: Call, exchange: Exchange) -> None:
        reply = exchange.reply
        candidates: list[Candidate] = []
        strategy = self._strategy.called(call.strategy)
        if call.preparation and not reply.failure:
            if strategy is not None and not strategy.prepare(reply.texts[0]):
                reply = replace(reply, failure=f"the model did not list what {call.strategy!r} needs")
        elif not reply.failure:
            candidates, invalid = self._read(call, exchange)
            if invalid is not None and not call.repair:
                self._repairs.append(self._repair(call, invalid))
            if not candidates:
                reply = replace(reply, failure=_no_answers(reply, invalid))
        new_bins = self.collection.add(reply, candidates, call.strategy, exchange.unscored)
        texts = () if reply.failure else reply.texts
        if strategy is not None:
            self._strategy.learn(call, texts, new_bins, reply.tokens.total if reply.tokens else 0)

    def conclude(self) -> Diversified:
        """Choose k of everything that was collected."""
        return self.collection.conclude(self._prompt, self._structure)

    async def _ask(self, call: Call) -> Reply:
        """The reply to a call; an error of the generator is a reply that failed."""
        prompt = call.prompt.to_send(getattr(self._generate, "chat", False) is True)
        ask = getattr(self._generate, "ask", None)
        try:
            value = await (ask(prompt, **call.settings) if ask else call_function(self._generate, prompt))
        except MissingExtraError:
            raise
        except Exception as error:
            return failed_reply(error)
        return read_reply(value)

    def _read(self, call: Call, exchange: Exchange) -> tuple[list[Candidate], "_Invalid | None"]:
        """The answers in a reply, and the first that is invalid."""
        candidates: list[Candidate] = []
        invalid = None
        # An earlier run may have used another strategy, which knows how its replies are read.
        reader = self._strategy.called(call.strategy) or open_strategy(
            self._config.with_values(strategy=call.strategy), self._generate, self._structure
        )
        for text, generator_score in zip(exchange.reply.texts, exchange.reply.scores, strict=True):
            try:
                answers = reader.read(call, text)
            except InvalidAnswerError as error:
                answers, invalid = [], invalid or _Invalid(text, str(error))
            for answer, probability in answers:
                candidate = Candidate(
                    answer, generator_score if len(answers) == 1 else None, probability, exchange.call
                )
                if self._structure is not None:
                    try:
                        compared, record = self._structure.read(answer)
                    except InvalidAnswerError as error:
                        invalid = invalid or _Invalid(text, str(error))
                        continue
                    candidate = replace(candidate, text=compared, record=record)
                candidates.append(candidate)
        if exchange.scores is not None and len(exchange.scores) == len(candidates):
            scored = zip(candidates, exchange.scores, strict=True)
            candidates = [replace(candidate, score=score) for candidate, score in scored]
        return candidates, invalid

    async def _scored(self, exchange: Exchange, call: Call, meter: Meter) -> Exchange:
        """The exchange with the score of each answer; a judge's tokens count among its own."""
        assert self._score is not None
        candidates, _ = self._read(call, replace(exchange, scores=None))
        answers = [candidate.text if self._structure is None else candidate.record for candidate in candidates]
        scores: list[float | None] = [None] * len(answers)
        if exchange.scorer == self._scorer and len(exchange.scores or ()) == len(answers):
            scores = list(exchange.scores or ())
        missing = [number for number, score in enumerate(scores) if score is None]
        scored = await score_answers(
            self._score, self._prompt.text, [answers[number] for number in missing], meter
        )
        tokens = exchange.reply.tokens
        for number, item in zip(missing, scored, strict=True):
            scores[number] = item.value
            if item.tokens is not None:
                tokens = item.tokens if tokens is None else tokens + item.tokens
        return replace(
            exchange,
            reply=replace(exchange.reply, tokens=tokens),
            scores=tuple(scores),
            unscored=tuple(item.reason for item in scored if item.value is None),
            scorer=self._scorer,
        )

    def _repair(self, call: Call, invalid: "_Invalid") -> Call:
        """The conversation after an invalid answer, with the reason and the request for another."""
        request = f"This answer cannot be used: {invalid.reason}. Answer again, with JSON that fits the schema."
        settings = call.settings | ({"samples": 1} if "response_format" in call.settings else {})
        return Call(call.strategy, call.prompt.continued(invalid.text, request), settings, repair=True)


@dataclass(frozen=True)
class _Invalid:
    """A text that does not fit the schema, and why."""

    text: str
    reason: str


def _no_answers(reply: Reply, invalid: _Invalid | None) -> str:
    """Why a reply with texts brought no answer."""
    begins = f"the reply, which begins {reply.texts[0][:80]!r}"
    return f"there were no answers in {begins}" if invalid is None else f"{invalid.reason}: {begins}"
