"""Stage 2: candidate sentences for each source and chosen signature (section 3.2 of the paper)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log

from cod3s.critic.judge import Judge
from cod3s.critic.likelihoods import Pair
from cod3s.decode.config import DecodeConfig
from cod3s.decode.request import Batch
from cod3s.decode.rerank import rank, score_texts
from cod3s.encode import Vectors
from cod3s.model.engine import Draws, Request
from cod3s.models import Models, RoleModel, Words
from cod3s.records import ChosenSignature, Hypothesis, mean_log_prob


@dataclass(frozen=True)
class Candidate:
    """A sentence and its scores; `cod3s.decode.rerank` says what they are."""

    text: str
    forward: float
    score: float
    backward: float | None = None
    plausibility: float | None = None  # by the critic, from 0 to 1
    realised: str = ""  # the signature that the text has, where an encoder looked
    hamming: int | None = None  # from `realised` to the signature that it was written for
    vector: Vectors | None = field(default=None, repr=False, compare=False)
    stale: bool = False  # it only repeats the source or itself


Bins = list[list[Candidate]]
"""The candidates of a source: a list per signature, best first."""


def write_sentences(
    models: Models, batch: Batch, chosen: Sequence[Sequence[ChosenSignature]], judge: Judge | None
) -> list[Bins]:
    """The candidates of each source and signature, likeliest first; all of them go to the engine together.

    A judge gets a shortlist.
    """
    signatures = [[signature.signature for signature in row] for row in chosen]
    bins = write_candidates(models.sentence(batch.relation), batch.sources, signatures, batch.config)
    most = batch.config.shortlist if judge else None
    return [[candidates[:most] for candidates in rows] for rows in bins]


def rank_sentences(models: Models, batch: Batch, bins: list[Bins], judge: Judge | None) -> list[Bins]:
    """The candidates of each source and bin, best first, by what the options rank them by."""
    if batch.config.rerank_sentences == "mmi":
        backward = models.need_backward(batch.relation)
        return rerank_candidates(backward, batch.sources, bins, batch.config.sentence_weight)
    return judge_candidates(judge, batch, bins) if judge else bins


def write_candidates(
    model: RoleModel, sources: Sequence[str], signatures: Sequence[Sequence[str]], config: DecodeConfig
) -> list[Bins]:
    """The candidates of each source and signature, best forward score first, each text once."""
    requests = [
        [model.request(source, model.words.encode_signature(signature)) for signature in row]
        for source, row in zip(sources, signatures, strict=True)
    ]
    written = iter(write(model, requests, config))
    every = [request for row in requests for request in row]
    shares = iter(_prefix_shares(model, every) if config.normalise == "original" else [None] * len(every))
    return [[read_candidates(model.words, next(written), next(shares)) for _ in row] for row in requests]


def rerank_candidates(
    backward: RoleModel, sources: Sequence[str], bins: Sequence[Bins], weight: float
) -> list[Bins]:
    """The candidates ranked by MMI, with a single backward call for all of them."""
    pairs = [
        (candidate.text, source)
        for source, rows in zip(sources, bins, strict=True)
        for candidates in rows
        for candidate in candidates
    ]
    means = score_texts(backward, [text for text, _ in pairs], [source for _, source in pairs])
    scores = dict(zip(pairs, means, strict=True))

    def reranked(source: str, candidates: Sequence[Candidate]) -> list[Candidate]:
        forwards = [candidate.forward for candidate in candidates]
        backwards = [scores[candidate.text, source] for candidate in candidates]
        return [
            replace(candidates[row.position], score=row.score, backward=row.backward)
            for row in rank(forwards, backwards, weight)
        ]

    return [
        [reranked(source, candidates) for candidates in rows] for source, rows in zip(sources, bins, strict=True)
    ]


def judge_candidates(judge: Judge, batch: Batch, bins: Sequence[Bins]) -> list[Bins]:
    """Each bin's candidates, most plausible first; the score is the logarithm of the plausibility.

    Every text is encoded once; its vector is kept for the choice.
    """
    candidates = [candidate for rows in bins for row in rows for candidate in row]
    vectors = {candidate.text: candidate.vector for candidate in candidates if candidate.vector is not None}
    texts = {candidate.text for candidate in candidates} | set(batch.sources)
    vectors |= judge.vectors(sorted(texts - set(vectors)))
    pairs = list(
        dict.fromkeys(
            Pair(batch.relation, source, candidate.text)
            for source, rows in zip(batch.sources, bins, strict=True)
            for row in rows
            for candidate in row
        )
    )
    plausible = dict(zip(pairs, judge(pairs, vectors).tolist(), strict=True))

    def judged(source: str, candidate: Candidate) -> Candidate:
        probability = plausible[Pair(batch.relation, source, candidate.text)]
        vector = vectors[candidate.text]
        return replace(candidate, score=log(probability), plausibility=probability, vector=vector)

    return [
        [
            sorted((judged(source, candidate) for candidate in candidates), key=lambda candidate: -candidate.score)
            for candidates in rows
        ]
        for source, rows in zip(batch.sources, bins, strict=True)
    ]


def write(model: RoleModel, requests: Sequence[Sequence[Request]], config: DecodeConfig) -> list[list[Hypothesis]]:
    """The hypotheses of every request of every source, in a single list.

    Samples are drawn source by source, so that they do not depend on the neighbours of a source.
    """
    if config.search == "beam":
        beam = max(config.beam, config.per_bin)
        every = [request for row in requests for request in row]
        return model.engine.search(every, beam=beam, max_tokens=config.max_tokens)
    draws = Draws(
        samples=max(config.samples, config.per_bin),
        top_k=config.top_k,
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        seed=config.seed,
    )
    return [drawn for row in requests for drawn in model.engine.sample(row, draws)]


def read_candidates(
    words: Words, hypotheses: Sequence[Hypothesis], share: Hypothesis | None = None
) -> list[Candidate]:
    """The texts of the hypotheses, best forward score first, each text once with its best score.

    `share` is the prefix with its log-probability, if that counts too.
    """
    best: dict[str, float] = {}
    for hypothesis in hypotheses:
        text = words.decode_text(hypothesis.tokens).strip()
        forward = mean_log_prob(hypothesis if share is None else _with_share(hypothesis, share))
        if text and forward > best.get(text, float("-inf")):
            best[text] = forward
    candidates = [Candidate(text, forward, forward) for text, forward in best.items()]
    return sorted(candidates, key=lambda candidate: -candidate.score)


def _prefix_shares(model: RoleModel, requests: Sequence[Request]) -> list[Hypothesis]:
    """The log-probability of each signature under the model that writes the sentence; the original counts it."""
    bare = [model.request(request.source) for request in requests]
    return model.engine.score(bare, [request.prefix[len(model.start) :] for request in requests], end=False)


def _with_share(hypothesis: Hypothesis, share: Hypothesis) -> Hypothesis:
    return Hypothesis(hypothesis.tokens, hypothesis.log_prob + share.log_prob, hypothesis.length + share.length)
