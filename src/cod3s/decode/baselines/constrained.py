"""Lexically constrained beam search with disjunctive positive constraints, by dynamic beam allocation.

Hypotheses contain an alternative of each set of their request. The beam is shared out among banks, the
hypotheses that lack equally many tokens (Post and Vilar 2018, arXiv 1804.06609), all sentences of a batch at once
(Hu et al. 2019, NAACL); sets of alternatives are those of Li et al. 2020 (IJCAI).
"""

from collections.abc import Sequence
from typing import Any

import torch

from cod3s.decode.baselines.automaton import HELD, Alternatives, build_automata
from cod3s.decode.baselines.beam import Choice, search
from cod3s.decode.baselines.torch_model import TorchModel
from cod3s.errors import Cod3sError
from cod3s.model.engine import Request
from cod3s.records import Hypothesis


def constrained_beam_search(
    model: TorchModel,
    requests: Sequence[Request],
    constraints: Sequence[Sequence[Alternatives]],
    *,
    beam: int,
    best: int,
    max_tokens: int,
    boundaries: Sequence[bool] | None = None,
) -> list[list[Hypothesis]]:
    """Up to `best` hypotheses per request, each with an alternative of every set in `constraints[request]`.

    `boundaries[token]` says that a word is over when this token follows: an alternative then counts only as whole
    words ("fired" does not contain "fire"). Without it, any sequence of tokens counts. If `max_tokens` leaves no
    room for the constraints, a request gets none.
    """
    if len(constraints) != len(requests):
        raise Cod3sError(f"{len(requests)} requests came with {len(constraints)} lists of constraints")
    over = None if boundaries is None else torch.tensor(boundaries, dtype=torch.bool)
    rows = search(
        model,
        requests,
        lambda batch: _Banks([constraints[number] for number in batch], beam, model.end, over),
        lists=1,
        width=beam,
        max_tokens=max_tokens,
        stop_when_full=True,
    )
    return [lists[0][:best] if lists else [] for lists in rows]


class _Banks:
    """Chooses round robin among the banks, starting with the bank that needs the least."""

    def __init__(self, rows: Sequence[Sequence[Alternatives]], beam: int, end: int, boundaries: Any) -> None:
        tables = build_automata(rows)
        self._tokens, self._steps = torch.from_numpy(tables.tokens), torch.from_numpy(tables.steps)
        self._missing, self._whole = torch.from_numpy(tables.missing), torch.from_numpy(tables.whole)
        # (lists, width, sets): how far each hypothesis is with each set
        self._states = torch.from_numpy(tables.starts)[:, None, :].expand(-1, beam, -1)
        self._end, self._boundaries = end, boundaries

    def choose(self, log_probs: Any, scores: Any, left: int) -> Choice:
        width, vocabulary = log_probs.shape[1:]
        totals = (scores[:, :, None] + log_probs).flatten(1)  # (lists, width * vocabulary)
        columns = self._candidates(totals, width, vocabulary)
        parents, tokens = columns // vocabulary, columns % vocabulary
        least, enough = self._lack(self._next(parents, tokens))
        values = totals.gather(1, columns)
        repeated = torch.zeros_like(values, dtype=torch.bool)
        repeated[:, 1:] = columns[:, 1:] == columns[:, :-1]
        # A text that ends must lack nothing, and a text that continues must have room for what it lacks.
        hopeless = least > torch.where(tokens == self._end, 0, left)
        values = values.masked_fill(repeated | hopeless, -torch.inf)
        order = _round_robin(values, bank=enough, late=enough > left)[:, : 2 * width]
        return Choice(*(tensor.gather(1, order) for tensor in (values, parents, tokens)))

    def follow(self, parents: Any, tokens: Any) -> None:
        self._states = self._next(parents, tokens)

    def keep(self, lists: Any) -> None:
        self._tokens, self._steps = self._tokens[lists], self._steps[lists]
        self._missing, self._whole = self._missing[lists], self._whole[lists]
        self._states = self._states[lists]

    def _candidates(self, totals: Any, width: int, vocabulary: int) -> Any:
        """Sorted columns of `totals`: the best of all, the best of each hypothesis, and all that advance a set."""
        best = totals.topk(2 * width, dim=1).indices
        likeliest = totals.view(-1, width, vocabulary).argmax(dim=2, keepdim=True)  # (lists, width, 1)
        wanted = self._tokens[:, None, :].expand(-1, width, -1)  # (lists, width, columns)
        each = torch.where(wanted < 0, likeliest, wanted) + vocabulary * torch.arange(width)[:, None]
        return torch.cat([best, each.flatten(1)], dim=1).sort(dim=1).values

    def _next(self, parents: Any, tokens: Any) -> Any:
        """(lists, n, sets): the states after these tokens."""
        states = self._states.gather(1, parents[:, :, None].expand(-1, -1, self._states.shape[2]))
        columns = (tokens[:, :, None] == self._tokens[:, None, :]).to(torch.uint8).argmax(dim=2)  # 0 where none is
        rows = torch.arange(len(states))[:, None, None]
        after = self._steps[rows, states, columns[:, :, None]]
        over = torch.ones_like(tokens, dtype=torch.bool) if self._boundaries is None else self._boundaries[tokens]
        return after.masked_fill((self._missing[rows, states] == 0) & over[:, :, None], HELD)

    def _lack(self, states: Any) -> tuple[Any, Any]:
        """(lists, n) each: the fewest tokens that these hypotheses lack, and a number that surely suffices.

        What suffices is the sum over all sets that are not held, less the progress in the nearest set: only one
        word at a time is sure to be finished before the next begins. So some token always lowers it, whereas a sum
        of what is missing in each set can get stuck (of "fire" and "fireman", each undoes the other).
        """
        rows = torch.arange(len(states))[:, None, None]
        missing, whole = self._missing[rows, states], self._whole[rows, states]
        least = missing.amax(dim=2)
        enough = whole.sum(dim=2) - (whole - missing).amax(dim=2)
        return least, enough.masked_fill(least == 0, 0)


def _round_robin(values: Any, bank: Any, late: Any) -> Any:
    """The order of candidates: the best of each bank, then the second of each …; late ones after all others.

    Every bank gets an equal share of the beam, and what a bank cannot fill goes to the others.
    """
    order = values.argsort(dim=1, descending=True, stable=True)
    order = order.gather(1, bank.gather(1, order).argsort(dim=1, stable=True))
    bank = bank.gather(1, order)
    position = torch.arange(bank.shape[1]).expand_as(bank)
    first = torch.ones_like(bank, dtype=torch.bool)
    first[:, 1:] = bank[:, 1:] != bank[:, :-1]
    rank = position - torch.where(first, position, 0).cummax(dim=1).values
    rank = rank + bank.shape[1] * (late.gather(1, order).long() + 2 * values.gather(1, order).isneginf())
    return order.gather(1, rank.argsort(dim=1, stable=True))
