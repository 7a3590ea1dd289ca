"""Diverse beam search (Vijayakumar et al. 2016, arXiv 1610.02424): groups of beams that avoid each other.

The groups take their tokens in turn; a token costs a group `penalty` for every hypothesis of an earlier group that
has just taken it at the same position (the Hamming diversity of the paper).
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

import torch

from cod3s.decode.baselines.beam import Choice, continuing, search
from cod3s.decode.baselines.torch_model import TorchModel
from cod3s.errors import Cod3sError
from cod3s.model.engine import Request
from cod3s.records import Hypothesis


def diverse_beam_search(
    model: TorchModel,
    requests: Sequence[Request],
    *,
    groups: int,
    group_beam: int,
    penalty: float,
    best: int,
    max_tokens: int,
) -> list[list[Hypothesis]]:
    """Up to `best` different hypotheses per request: the best of each group in turn, then the second best.

    Groups rank by log-probability less penalties, per token; the hypotheses report the log-probability alone. The
    paper recommends penalties from 0.2 to 0.8. With a single group it is plain beam search.
    """
    if groups < 1 or penalty < 0:
        raise Cod3sError(
            f"{groups} groups with a penalty of {penalty} cannot be searched",
            hint="ask for at least 1 group, and a penalty of 0 or more",
        )
    rows = search(
        model,
        requests,
        lambda _: _Groups(groups, penalty, model.end),
        lists=groups,
        width=group_beam,
        max_tokens=max_tokens,
        stop_when_full=False,
    )
    return [in_turn(lists)[:best] for lists in rows]


def in_turn(lists: Iterable[Sequence[Hypothesis]]) -> list[Hypothesis]:
    """The first of each list, then the second of each …, every text once."""
    seen: dict[tuple[int, ...], Hypothesis] = {}
    for round_ in zip_longest(*lists):
        for hypothesis in round_:
            if hypothesis is not None:
                seen.setdefault(hypothesis.tokens, hypothesis)
    return list(seen.values())


class _Groups:
    """Chooses for each group in turn; the lists of a request are its groups."""

    def __init__(self, groups: int, penalty: float, end: int) -> None:
        self._groups, self._penalty, self._end = groups, penalty, end

    def choose(self, log_probs: Any, scores: Any, left: int) -> Choice:
        width, vocabulary = log_probs.shape[1:]
        totals = (scores[:, :, None] + log_probs).view(-1, self._groups, width, vocabulary)
        taken = torch.zeros(len(totals), 1, vocabulary)  # how many hypotheses of earlier groups took each token
        choices = []
        for group in range(self._groups):
            penalised = totals[:, group] - self._penalty * taken
            top = penalised.flatten(1).topk(2 * width, dim=1)
            choice = Choice(top.values, top.indices // vocabulary, top.indices % vocabulary)
            choices.append(choice)
            on = continuing(choice, self._end, width)
            tokens = choice.tokens.gather(1, on)
            alive = ~choice.scores.gather(1, on).isneginf() & (tokens != self._end)
            taken[:, 0].scatter_add_(1, tokens, alive.to(taken.dtype))
        names = ("scores", "parents", "tokens")
        columns = ([getattr(choice, name) for choice in choices] for name in names)
        return Choice(*(torch.stack(column, dim=1).flatten(0, 1) for column in columns))

    def follow(self, parents: Any, tokens: Any) -> None:
        """Nothing is remembered from step to step: earlier penalties are in the scores."""

    def keep(self, lists: Any) -> None:
        """Nothing to keep."""
