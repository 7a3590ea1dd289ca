"""Stage 1: the k signatures to write in for each source (section 3.1 of the paper).

Only signature tokens are searched and no end is written, so all hypotheses are signatures of equal length. The
original searches the whole vocabulary and counts the end; a trained model gives other tokens next to nothing.
"""

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush

from cod3s.decode.config import DecodeConfig
from cod3s.decode.request import Batch
from cod3s.decode.rerank import (
    Ranked,
    rank,
    rank_against_prior,
    score_signatures_backward,
)
from cod3s.errors import BundleError, Cod3sError
from cod3s.models import Models, RoleModel, Words
from cod3s.records import Bin, ChosenSignature, Hypothesis, mean_log_prob
from cod3s.signatures import from_text, keep_apart
from cod3s.unsuitable import presentable

_EXPANDED_TOGETHER = 32  # prefixes of a source: more fill the engine better, but expand some in vain


def choose_signatures(models: Models, batch: Batch) -> list[list[ChosenSignature]]:
    """For each source, the signatures that its user wants, or else the inferred ones; with their bins."""
    inferred = [position for position, wanted in enumerate(batch.wanted) if wanted is None]
    if inferred and batch.system.oracle:
        raise Cod3sError(
            f"the system {batch.system.name} needs each source's signature", hint="pass signatures=[[…], …]"
        )
    model, config = models.signature(batch.relation), batch.config
    for signature in (signature for wanted in batch.wanted for signature in wanted or ()):
        from_text(signature, model.words.signature.bits)  # an error unless it has as many bits
    chosen = [[*map(ChosenSignature, dict.fromkeys(wanted or ()))] for wanted in batch.wanted]
    if inferred:
        sources = [batch.sources[position] for position in inferred]
        rows = find_signatures(model, sources, config)
        rankings = rank_signatures(models, batch.relation, sources, rows, config)
        for position, ranking in zip(inferred, rankings, strict=True):
            chosen[position] = keep_signatures_apart(ranking, config, batch.remarks[position])
    return with_bins(models, batch, chosen)


def find_signatures(model: RoleModel, sources: Sequence[str], config: DecodeConfig) -> list[list[Hypothesis]]:
    """The n best signatures of each source that the model finds, by beam or exactly, likeliest first."""
    best = min(max(config.signature_beam, config.bins), 2**model.words.signature.bits)
    if config.signature_search == "exact":
        return _search_exactly(model, sources, best)
    return _search_by_beam(model, sources, best)


def rank_signatures(
    models: Models,
    relation: str,
    sources: Sequence[str],
    rows: Sequence[Sequence[Hypothesis]],
    config: DecodeConfig,
) -> list[list[ChosenSignature]]:
    """The signatures of each source, best first by `config.rerank_signatures`."""
    if config.rerank_signatures == "prior":
        rankings = _rank_against_bins(models, relation, rows, config.prior_weight)
    elif config.rerank_signatures == "mmi":
        backwards = score_signatures_backward(models.need_inverse(relation), sources, rows)
        rankings = [
            rank([*map(mean_log_prob, hypotheses)], backward, config.signature_weight)
            for hypotheses, backward in zip(rows, backwards, strict=True)
        ]
    else:
        rankings = [rank([*map(mean_log_prob, hypotheses)]) for hypotheses in rows]
    words = models.signature(relation).words

    def chosen(hypothesis: Hypothesis, number: int, ranked: Ranked) -> ChosenSignature:
        signature = words.read_signature(hypothesis.tokens) or ""
        return ChosenSignature(signature, number, ranked.score, ranked.forward, ranked.backward)

    return [
        [chosen(hypotheses[row.position], number, row) for number, row in enumerate(ranking)]
        for hypotheses, ranking in zip(rows, rankings, strict=True)
    ]


def keep_signatures_apart(
    ranking: Sequence[ChosenSignature], config: DecodeConfig, remarks: list[str]
) -> list[ChosenSignature]:
    """The best ones that the Hamming rule keeps (section 4), up to the number of bins that are written in.

    `remarks` says if the rule was relaxed or kept fewer. If more bins than answers are asked for, the extra bins
    must be far enough apart, too: whichever k of them give the answers, those obey the rule.
    """
    signatures = [chosen.signature for chosen in ranking]
    apart = keep_apart(signatures, config.min_hamming, config.k, config.if_too_few)
    if apart.min_hamming != config.min_hamming:
        remarks.append(
            f"too few signatures differ in more than {config.min_hamming} bits: "
            f"these differ in more than {apart.min_hamming}"
        )
    if len(apart.kept) < config.k:
        remarks.append(f"only {len(apart.kept)} of {config.k} signatures were found")
    if config.bins == config.k:
        return [ranking[row] for row in apart.kept]
    spare = keep_apart(signatures, apart.min_hamming, config.bins, "strict").kept
    return [ranking[row] for row in dict.fromkeys([*apart.kept, *spare])][: config.bins]


def group_tokens(words: Words) -> list[list[int]]:
    """For each token of a signature, the ids it may have, in counting order."""
    return [[words.id(name) for name in names] for names in words.signature.choices()]


def _search_by_beam(model: RoleModel, sources: Sequence[str], best: int) -> list[list[Hypothesis]]:
    words = model.words
    written = model.engine.search(
        [model.request(source) for source in sources],
        beam=best,
        max_tokens=len(words.signature.groups),
        only=[words.id(name) for name in words.signature.names()],
    )
    rows = [
        [hypothesis for hypothesis in hypotheses if words.read_signature(hypothesis.tokens) is not None]
        for hypotheses in written
    ]
    # A model that has learned little writes positional tokens in wrong places; the exact search cannot.
    short = [position for position, hypotheses in enumerate(rows) if len(hypotheses) < best / 2]
    exact = _search_exactly(model, [sources[position] for position in short], best)
    for position, hypotheses in zip(short, exact, strict=True):
        rows[position] = hypotheses
    return rows


def _search_exactly(model: RoleModel, sources: Sequence[str], best: int) -> list[list[Hypothesis]]:
    """The true n best of all signatures: in each round, every source expands its best prefixes.

    A prefix is at least as likely as everything it starts, so a whole signature that is likelier than every prefix
    left is the next best.
    """
    groups = group_tokens(model.words)
    tries = [_Trie(len(groups), best) for _ in sources]
    while open_prefixes := [
        (number, prefix) for number, trie in enumerate(tries) for prefix in trie.next_prefixes()
    ]:
        for depth, group in enumerate(groups):
            rows = [(number, prefix) for number, prefix in open_prefixes if len(prefix.tokens) == depth]
            requests = [model.request(sources[number], prefix.tokens) for number, prefix in rows]
            if requests:
                weights = model.engine.weigh(requests, group)
                for (number, prefix), weight in zip(rows, weights, strict=True):
                    tries[number].expand(prefix, group, weight.tolist())
    return [trie.signatures for trie in tries]


class _Trie:
    """One source's best-first search over the prefixes of signatures."""

    def __init__(self, depth: int, best: int) -> None:
        self._depth, self._best = depth, best
        self._heap: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]  # minus log-probability, tokens
        self.signatures: list[Hypothesis] = []

    def next_prefixes(self) -> list[Hypothesis]:
        """The prefixes to expand now, best first; none when the search is over."""
        prefixes: list[Hypothesis] = []
        whole: list[tuple[float, tuple[int, ...]]] = []
        while self._heap and len(self.signatures) + len(whole) < self._best and len(prefixes) < _EXPANDED_TOGETHER:
            cost, tokens = heappop(self._heap)
            if len(tokens) < self._depth:
                prefixes.append(Hypothesis(tokens, -cost, len(tokens)))
            elif not prefixes:
                self.signatures.append(Hypothesis(tokens, -cost, len(tokens)))
            else:  # a prefix that is about to be expanded may still lead to a better signature
                whole.append((cost, tokens))
        for node in whole:
            heappush(self._heap, node)
        return prefixes

    def expand(self, node: Hypothesis, group: Sequence[int], weights: Sequence[float]) -> None:
        for token, weight in zip(group, weights, strict=True):
            heappush(self._heap, (-(node.log_prob + weight), (*node.tokens, token)))


def _rank_against_bins(
    models: Models, relation: str, rows: Sequence[Sequence[Hypothesis]], weight: float
) -> list[list[Ranked]]:
    words = models.signature(relation).words
    signatures = [
        [words.read_signature(hypothesis.tokens) or "" for hypothesis in hypotheses] for hypotheses in rows
    ]
    file = models.bins(relation)
    if file is None:
        raise BundleError(
            f"{models.label} has no bins for {relation!r}, which `prior` needs",
            hint="choose --rerank-signatures mmi or none",
        )
    with file as bins:
        sentences = bins.facts.sentences
        populated = bins.find(signature for ranking in signatures for signature in ranking)
        counts = {signature: bin.count for signature, bin in populated.items()}
    return [
        rank_against_prior(
            hypotheses,
            [counts.get(signature, 0) for signature in ranking],
            sentences=sentences,
            bits=words.signature.bits,
            weight=weight,
        )
        for hypotheses, ranking in zip(rows, signatures, strict=True)
    ]


def with_bins(
    models: Models, batch: Batch, chosen: Sequence[Sequence[ChosenSignature]]
) -> list[list[ChosenSignature]]:
    """The signatures with the size and medoid of their bins, where a bins file knows them."""
    known: dict[str, Bin] = {}
    if file := models.bins(batch.relation):
        with file as bins:
            known = bins.find([signature.signature for signatures in chosen for signature in signatures])

    def described(signature: ChosenSignature) -> ChosenSignature:
        if (bin := known.get(signature.signature)) is None:
            return signature
        medoid = bin.medoid if batch.config.unfiltered else presentable(bin.medoid)
        return replace(signature, count=bin.count, medoid=medoid)

    return [[described(signature) for signature in signatures] for signatures in chosen]
