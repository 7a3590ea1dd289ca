"""What each role of a relation learns, pair by pair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.model.causal import IGNORED
from cod3s.model.roles import tag
from cod3s.tokens.vocabulary import Vocabulary
from cod3s.train.pairs import Keys, PairTable, Ragged, text_keys

Shares = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """After reading `read` (nothing for None), the model is given a role's tag and `given`, and writes `written`.

    With `plausible`, it then judges what was written: the probability that the verdict after the end is yes. What
    is not `learned` is only there to be judged.
    """

    tag: str
    read: Ragged | None
    given: Ragged | None
    written: tuple[Ragged, ...]
    shares: Shares  # how likely an epoch takes each pair
    trunks: Keys | None = None  # pairs with the same key read the same
    plausible: Shares | None = None
    learned: bool = True

    def __len__(self) -> int:
        return len(self.written[0])


def role_task(
    relation: str,
    role: str,
    tables: Mapping[str, PairTable],
    inverses: Mapping[str, str],
    share: float = 1.0,
    *,
    hidden: bool = False,
    judged: bool = False,
) -> Task:
    """The task of a role with the pairs whose order matches its direction of inference (section 3 of the paper).

    For the inverse role, those are the pairs of the other relation, where the speaker starts with the result:
    p(source given signature) of `effect` is learned from "EFFECT because CAUSE". A relation without an inverse
    uses only its pairs.

    With the source `hidden`, the signature is all that is known about a target, so it must be used; and the plain
    role learns how likely a target is by itself. If `judged`, the targets are also called plausible.
    """
    name, pairs = tag(relation, role), tables[relation]
    if role == "inverse":
        if (other := tables.get(inverses.get(relation, ""))) is not None:
            return Task(name, None, other.source_signature, (other.target,), share * other.shares)
        return Task(name, None, pairs.signature, (pairs.source,), share * pairs.shares)
    written = {
        "plain": (pairs.target,),
        "signature": (pairs.signature,),
        "sentence": (pairs.signature, pairs.target),
    }[role]
    if hidden:
        return Task(name, None, None, written, share * pairs.shares)
    plausible = np.ones(len(pairs)) if judged else None
    return Task(name, pairs.read, None, written, share * pairs.shares, _trunks(relation, pairs.sources), plausible)


def judgement_task(
    relation: str, read: Ragged, sources: Keys, targets: Ragged, plausible: Shares, shares: Shares
) -> Task:
    """Judge targets that are not to be learned: `plausible` are the probabilities of yes."""
    keys = _trunks(relation, sources)
    return Task(tag(relation, "plain"), read, None, (targets,), shares, keys, plausible, learned=False)


def _trunks(relation: str, sources: Keys) -> Keys:
    return sources ^ text_keys([relation])


@dataclass(frozen=True)
class Example:
    """What the model reads, what it is given after that, and what it learns to write (`IGNORED` where nothing).

    `plausible` is the probability of the verdict yes behind the last token that is given; None for no verdict.
    """

    read: list[int]
    given: list[int]
    labels: list[int]
    plausible: float | None = None


class Examples:
    """Every pair of every task, task after task, by number."""

    def __init__(self, tasks: Sequence[Task], vocabulary: Vocabulary, nothing: list[int]) -> None:
        self._tasks, self._words = tasks, vocabulary
        self._nothing = nothing  # what the model reads for an empty source
        self._starts = np.cumsum([0, *map(len, tasks)])
        self.lengths = np.concatenate([self._lengths(task) for task in tasks])
        self.shares = np.concatenate([task.shares for task in tasks])
        alone = np.arange(len(self), dtype=np.uint64)
        self.trunks = np.concatenate(
            [
                alone[start : start + len(task)] if task.trunks is None else task.trunks
                for start, task in zip(self._starts.tolist(), tasks, strict=False)
            ]
        )

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, number: int) -> Example:
        index = int(np.searchsorted(self._starts, number, side="right")) - 1
        task, row = self._tasks[index], number - int(self._starts[index])
        read = task.read[row] if task.read else self._nothing
        given = [self._words.id(task.tag), *(task.given[row] if task.given else [])]
        written = [number for column in task.written for number in column[row]]
        labels = [IGNORED] * (len(given) - 1) + written + [self._words.end]
        given += written
        if task.plausible is None:
            return Example(read, given, labels)
        if not task.learned:
            labels = [IGNORED] * len(labels)
        return Example(read, [*given, self._words.end], [*labels, IGNORED], float(task.plausible[row]))

    def _lengths(self, task: Task) -> npt.NDArray[np.int64]:
        """Tokens read, and tokens given and written, of each example in its order: (examples, 2)."""
        read = task.read.lengths if task.read else np.full(len(task), len(self._nothing))
        columns = [*task.written, task.given] if task.given else task.written
        more = 1 if task.plausible is None else 2  # the tag, and the end before a verdict
        return np.stack([read, np.sum([column.lengths for column in columns], axis=0) + more], 1).astype(np.int64)
