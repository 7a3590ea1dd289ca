"""Stage 1: sources in, their n best signatures out, by a beam or exactly.

Only signature tokens are searched and no end is written, so hypotheses are signatures of equal length. The
original searches the whole vocabulary and counts the end; a trained model gives other tokens next to nothing.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

from cod3s.decode.players import Player
from cod3s.errors import SignatureError
from cod3s.records import Hypothesis
from cod3s.tokens.vocabulary import Vocabulary

_EXPANDED_TOGETHER = 32  # prefixes of one source: more fill the engine better and look at more than they must


def find_signatures(
    player: Player, vocabulary: Vocabulary, sources: Sequence[str], *, search: str, best: int
) -> list[list[Hypothesis]]:
    """Up to `best` signatures of each source, likeliest first; `search` is `beam` or `exact`."""
    best = min(best, 2**vocabulary.signature.bits)
    if search == "exact":
        return _exact(player, vocabulary, sources, best)
    return _beam(player, vocabulary, sources, best)


def read_signature(vocabulary: Vocabulary, tokens: Sequence[int]) -> str | None:
    """The signature that the tokens write, None where they write none."""
    try:
        return vocabulary.signature.join([vocabulary.tokens[number] for number in tokens])
    except SignatureError:
        return None


def group_tokens(vocabulary: Vocabulary) -> list[list[int]]:
    """For each token of a signature, the ids it may have, in counting order."""
    return [[vocabulary.id(name) for name in names] for names in vocabulary.signature.choices()]


def _beam(player: Player, vocabulary: Vocabulary, sources: Sequence[str], best: int) -> list[list[Hypothesis]]:
    found = player.engine.search(
        [player.request(source) for source in sources],
        beam=best,
        best=best,
        max_tokens=len(vocabulary.signature.groups),
        only=range(vocabulary.first_signature, len(vocabulary)),
    )
    whole = [[one for one in own if read_signature(vocabulary, one.tokens) is not None] for own in found]
    # A model that has learned little writes positional tokens in wrong places; the exact search cannot.
    short = [place for place, own in enumerate(whole) if len(own) < best / 2]
    anew = _exact(player, vocabulary, [sources[place] for place in short], best)
    for place, own in zip(short, anew, strict=True):
        whole[place] = own
    return whole


def _exact(player: Player, vocabulary: Vocabulary, sources: Sequence[str], best: int) -> list[list[Hypothesis]]:
    """The true n best of all signatures, all sources in step: each round, every source expands its best prefixes.

    A prefix is at least as likely as what it starts, so a whole signature that is likelier than every prefix left
    is the next best one.
    """
    groups = group_tokens(vocabulary)
    tries = [_Trie(len(groups), best) for _ in sources]
    while open_nodes := [(place, node) for place, trie in enumerate(tries) for node in trie.next_prefixes()]:
        for depth, group in enumerate(groups):
            own = [(place, node) for place, node in open_nodes if len(node.tokens) == depth]
            requests = [player.request(sources[place], node.tokens) for place, node in own]
            if requests:
                weights = player.engine.weigh(requests, group)
                for (place, node), row in zip(own, weights, strict=True):
                    tries[place].expand(node, group, row.tolist())
    return [trie.found for trie in tries]


class _Trie:
    """One source's best-first search over the prefixes of signatures."""

    def __init__(self, depth: int, best: int) -> None:
        self._depth, self._best = depth, best
        self._heap: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]  # minus log-probability, tokens
        self.found: list[Hypothesis] = []

    def next_prefixes(self) -> list[Hypothesis]:
        """The prefixes to expand now, best first; none when the search is over."""
        prefixes: list[Hypothesis] = []
        whole: list[tuple[float, tuple[int, ...]]] = []
        while self._heap and len(self.found) + len(whole) < self._best and len(prefixes) < _EXPANDED_TOGETHER:
            cost, tokens = heappop(self._heap)
            if len(tokens) < self._depth:
                prefixes.append(Hypothesis(tokens, -cost, len(tokens)))
            elif not prefixes:
                self.found.append(Hypothesis(tokens, -cost, len(tokens)))
            else:  # a prefix that is about to be expanded may still hold a better one
                whole.append((cost, tokens))
        for node in whole:
            heappush(self._heap, node)
        return prefixes

    def expand(self, node: Hypothesis, group: Sequence[int], weights: Sequence[float]) -> None:
        for token, weight in zip(group, weights, strict=True):
            heappush(self._heap, (-(node.log_prob + weight), (*node.tokens, token)))
