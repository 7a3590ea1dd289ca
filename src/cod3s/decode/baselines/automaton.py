"""Disjunctive constraints as automata: how far a text has come towards containing an alternative of each set.

A set's alternatives form a trie with the failure links of Aho and Corasick (1975), so shared beginnings are
followed together and a match that breaks falls back to the longest that still holds. State 0 of every row
means: held for good.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.errors import Cod3sError

Alternatives = Sequence[Sequence[int]]
"""A constraint: token sequences, one of which the text must contain."""

Ints = npt.NDArray[np.int64]
HELD = 0


@dataclass(frozen=True)
class Automata:
    """The tables of a batch: each row has a list of sets, with the states of all its sets numbered together."""

    tokens: Ints  # (rows, columns): the tokens of its alternatives; -1 in column 0, which is for any other token
    steps: Ints  # (rows, states, columns): the next state
    missing: Ints  # (rows, states): the fewest tokens to the end of an alternative
    whole: Ints  # (rows, states): the same from the start of the state's set; 0 where it is held
    starts: Ints  # (rows, sets): where each set begins; HELD where a row has fewer sets


def build_automata(rows: Sequence[Sequence[Alternatives]]) -> Automata:
    """The automata of every row's sets."""
    tables = [_row(sets) for sets in rows]
    return Automata(
        tokens=_padded([table.tokens for table in tables], -1),
        steps=_padded([table.steps for table in tables], HELD),
        missing=_padded([table.missing for table in tables], 0),
        whole=_padded([table.whole for table in tables], 0),
        starts=_padded([table.starts for table in tables], HELD),
    )


def _row(sets: Sequence[Alternatives]) -> Automata:
    """The tables of a row, without the dimension of rows."""
    for alternatives in sets:
        if not alternatives or not all(alternatives):
            raise Cod3sError("a constraint needs alternatives of at least 1 token each")
    tokens = [-1, *sorted({token for alternatives in sets for sequence in alternatives for token in sequence})]
    column = {token: number for number, token in enumerate(tokens)}
    steps = [np.zeros((1, len(tokens)), np.int64)]  # once held, always held
    missing, whole, starts = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)], []
    states = 1
    for alternatives in sets:
        table, complete = _set([[column[token] for token in sequence] for sequence in alternatives], len(tokens))
        steps.append(table + states)
        missing.append(_distances(table, complete))
        whole.append(np.full(len(table), missing[-1][0]))
        starts.append(states)
        states += len(table)
    return Automata(
        tokens=np.array(tokens, np.int64),
        steps=np.concatenate(steps),
        missing=np.concatenate(missing),
        whole=np.concatenate(whole),
        starts=np.array(starts or [HELD], np.int64),
    )


def _set(alternatives: list[list[int]], columns: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The automaton of a set: (states, columns) next states, and which states end an alternative."""
    children: list[dict[int, int]] = [{}]
    ends = [False]
    for alternative in alternatives:
        state = 0
        for column in alternative:
            if column not in children[state]:
                children[state][column] = len(children)
                children.append({})
                ends.append(False)
            state = children[state][column]
        ends[state] = True
    table = np.zeros((len(children), columns), np.int64)
    complete = np.array(ends)
    queue = [(child, 0) for child in children[0].values()]  # (state, the longest other match that it ends in)
    table[0, list(children[0])] = list(children[0].values())
    for state, fallback in queue:
        table[state] = table[fallback]
        complete[state] |= complete[fallback]
        for column, child in children[state].items():
            queue.append((child, int(table[state, column])))
            table[state, column] = child
    return table, complete


def _distances(table: Ints, complete: npt.NDArray[np.bool_]) -> Ints:
    """How many tokens each state lacks, by going backwards from the states that lack none."""
    missing = np.where(complete, 0, len(table))
    for _ in range(len(table)):
        missing = np.minimum(missing, 1 + missing[table].min(axis=1))
    return missing


def _padded(arrays: Sequence[Ints], filler: int) -> Ints:
    """The arrays stacked, each filled up to the largest."""
    shape = np.max([array.shape for array in arrays], axis=0)
    stacked = np.full((len(arrays), *shape), filler, np.int64)
    for number, array in enumerate(arrays):
        stacked[number][tuple(slice(size) for size in array.shape)] = array
    return stacked
