"""The loop of beam searches on torch: step, choose, set aside what has ended, until nothing better can come.

A request has at least one list of hypotheses (the groups of diverse beam search); tensors are (lists, width, …),
the lists of a request side by side.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Any, Protocol, TypeVar

import torch

from cod3s.decode.baselines.torch_model import Decoding, TorchModel
from cod3s.errors import Cod3sError
from cod3s.model.engine import Request
from cod3s.records import Hypothesis

MAX_BEAMS = 512  # hypotheses that step together: more fill the caches of a processor and gain nothing


@dataclass(frozen=True)
class Choice:
    """Continuations best first, (lists, n) each; a score of -inf marks a missing continuation."""

    scores: Any
    parents: Any  # which hypothesis of the list it continues
    tokens: Any


class Chooser(Protocol):
    """The step that differs between searches."""

    def choose(self, log_probs: Any, scores: Any, left: int) -> Choice:
        """Twice the list's width of continuations, so that enough continue where half of them end.

        `log_probs` (lists, width, vocabulary) of the next token; `scores` (lists, width) so far; `left` is how
        many tokens may follow this token.
        """

    def follow(self, parents: Any, tokens: Any) -> None:
        """Take these continuations, (lists, width), as the hypotheses from now on."""

    def keep(self, lists: Any) -> None:
        """Continue with these lists only."""


@dataclass
class _Running:
    """What each list is writing; `sums` are plain log-probabilities, `scores` are what the search ranks by."""

    scores: Any  # (lists, width)
    sums: Any  # (lists, width)
    parents: Any  # (lists, width): which hypothesis of the step before each continues
    texts: Any  # (lists, width, max_tokens)


@dataclass
class _Finished:
    """The best finished hypotheses of every list, best first; a score of -inf marks an empty slot."""

    scores: Any  # (lists, width), per token
    sums: Any  # (lists, width)
    lengths: Any  # (lists, width)
    texts: Any  # (lists, width, max_tokens)

    def with_ended(self, scores: Any, sums: Any, length: int, texts: Any) -> "_Finished":
        """The best of these and of what ended at this step (a score of -inf where nothing did)."""
        lengths = torch.full(scores.shape, length)
        finished, ended = (self.scores, self.sums, self.lengths, self.texts), (scores, sums, lengths, texts)
        both = [torch.cat(pair, dim=1) for pair in zip(finished, ended, strict=True)]
        best = both[0].topk(self.scores.shape[1], dim=1).indices
        return _Finished(*(_pick(tensor, best) for tensor in both))

    def hypotheses(self, row: int, end: int) -> list[Hypothesis]:
        """The finished hypotheses of the list in this row."""
        hypotheses = []
        for score, total, length, text in zip(
            self.scores[row], self.sums[row], self.lengths[row], self.texts[row], strict=True
        ):
            if score.isfinite():
                tokens = tuple(text[: int(length)].tolist())
                written = tokens[:-1] if tokens[-1] == end else tokens
                hypotheses.append(Hypothesis(written, float(total), int(length)))
        return hypotheses


def search(
    model: TorchModel,
    requests: Sequence[Request],
    chooser: Callable[[Sequence[int]], Chooser],
    *,
    lists: int,
    width: int,
    max_tokens: int,
    stop_when_full: bool,
) -> list[list[list[Hypothesis]]]:
    """For every request, for each of its lists, the finished hypotheses, best first by log-probability per token.

    `chooser` makes the chooser of a batch from the requests' numbers. A list is done when it holds `width`
    finished hypotheses and, unless `stop_when_full`, no running hypothesis is better than the worst of them.
    """
    if width < 1 or max_tokens < 1:
        raise Cod3sError(
            f"a search with beam {width} and {max_tokens} tokens finds nothing", hint="both must be 1 or more"
        )
    finished: list[list[list[Hypothesis]]] = [[] for _ in requests]
    with torch.inference_mode():
        for batch in _batches(model, requests, max(1, MAX_BEAMS // (lists * width))):
            room = model.positions - len(requests[batch[0]].prefix)
            asked = [requests[number] for number in batch]
            begun = _Search(model, asked, chooser(batch), lists, width, min(max_tokens, room))
            for number, result in zip(batch, begun.run(stop_when_full), strict=True):
                finished[number] = result
    return finished


def continuing(choice: Choice, end: int, width: int) -> Any:
    """The columns of the `width` best continuations that do not end; dead ones come last."""
    stopped = (choice.tokens == end) | choice.scores.isneginf()
    return stopped.to(torch.uint8).argsort(dim=1, stable=True)[:, :width]


def _batches(model: TorchModel, requests: Sequence[Request], size: int) -> Iterator[list[int]]:
    """Numbers of requests that go together: prefixes of equal length, sources of similar length."""
    lengths = [(len(request.prefix), len(model.reader.ids(request.source))) for request in requests]
    order = sorted(range(len(requests)), key=lambda number: lengths[number])
    for _, group in groupby(order, key=lambda number: lengths[number][0]):
        alike = list(group)
        yield from (alike[start : start + size] for start in range(0, len(alike), size))


_Tensors = TypeVar("_Tensors", _Running, _Finished)


class _Search:
    """The search for a batch of requests."""

    def __init__(
        self,
        model: TorchModel,
        requests: Sequence[Request],
        chooser: Chooser,
        lists: int,
        width: int,
        max_tokens: int,
    ) -> None:
        self._end, self._chooser, self._lists, self._width = model.end, chooser, lists, width
        self._max_tokens = max_tokens
        self._decoding = Decoding(model, requests, lists * width)
        self._requests = torch.arange(len(requests))  # the numbers of those that are not done
        shape = (len(requests) * lists, width)
        nothing, zero = torch.full(shape, -torch.inf), torch.zeros(shape, dtype=torch.long)
        blank = torch.zeros((*shape, max_tokens), dtype=torch.long)
        self._finished = _Finished(nothing, torch.zeros(shape), zero, blank)
        scores = nothing.clone()
        scores[:, 0] = 0.0  # all hypotheses begin alike, so only the first counts
        self._running = _Running(scores, torch.zeros(shape), zero, blank)

    def run(self, stop_when_full: bool) -> list[list[list[Hypothesis]]]:
        """For every request, for each of its lists, the finished hypotheses."""
        results: list[list[list[Hypothesis]]] = [[] for _ in self._requests]
        for step in range(1, self._max_tokens + 1):
            self._step(step)
            done = self._nothing_better(step, stop_when_full)
            self._running.scores[done] = -torch.inf
            over = done.view(-1, self._lists).all(dim=1) | (step == self._max_tokens)  # requests
            for row in over.nonzero().flatten().tolist():
                lists = range(row * self._lists, (row + 1) * self._lists)
                results[int(self._requests[row])] = [
                    self._finished.hypotheses(number, self._end) for number in lists
                ]
            if over.all():
                break
            if over.any():
                self._keep((~over).nonzero().flatten())
            running = self._running
            self._decoding.advance(self._flat(running.parents), running.texts[:, :, step - 1].flatten())
        return results

    def _step(self, step: int) -> None:
        """Continue every list by a token, and set aside what ends with it."""
        running = self._running
        log_probs = self._decoding.log_probs.view(*running.scores.shape, -1)
        choice = self._chooser.choose(log_probs, running.scores, self._max_tokens - step)
        added = log_probs.flatten(1).gather(1, choice.parents * log_probs.shape[2] + choice.tokens)
        sums = running.sums.gather(1, choice.parents) + added
        texts = _pick(running.texts, choice.parents)
        texts[:, :, step - 1] = choice.tokens
        # Only the best `width` may end: the others continue in their place.
        ends = (choice.tokens == self._end) | (step == self._max_tokens)
        ends[:, self._width :] = False
        ended = choice.scores.masked_fill(~ends, -torch.inf) / step
        self._finished = self._finished.with_ended(ended, sums, step, texts)
        on = continuing(choice, self._end, self._width)
        scores = choice.scores.masked_fill(choice.tokens == self._end, -torch.inf)
        running = _Running(*(_pick(tensor, on) for tensor in (scores, sums, choice.parents, texts)))
        self._chooser.follow(running.parents, running.texts[:, :, step - 1])
        self._running = running

    def _nothing_better(self, step: int, stop_when_full: bool) -> Any:
        """Which lists are done; the best score still to come is estimated by the best running score per token."""
        best, worst = self._running.scores.amax(dim=1) / step, self._finished.scores[:, -1]
        return best.isneginf() | (~worst.isneginf() & (stop_when_full | (best <= worst)))

    def _keep(self, rows: Any) -> None:
        """Continue with these requests only."""
        lists = (rows[:, None] * self._lists + torch.arange(self._lists)).flatten()
        self._requests = self._requests[rows]
        self._decoding.keep(rows)
        self._chooser.keep(lists)
        self._running, self._finished = _rows(self._running, lists), _rows(self._finished, lists)

    def _flat(self, parents: Any) -> Any:
        """Numbers within a list → numbers within the batch."""
        return (parents + torch.arange(len(parents))[:, None] * self._width).flatten()


def _pick(tensor: Any, columns: Any) -> Any:
    """tensor[list, columns[list]] for every list."""
    return tensor[torch.arange(len(columns))[:, None], columns]


def _rows(tensors: _Tensors, lists: Any) -> _Tensors:
    return replace(tensors, **{field.name: getattr(tensors, field.name)[lists] for field in fields(tensors)})
