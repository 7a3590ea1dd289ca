"""Stage 2: sources and the signatures chosen for them in, candidate sentences of each signature out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cod3s.decode.config import DecodeConfig
from cod3s.decode.players import Player
from cod3s.decode.rerank import mean_log_prob
from cod3s.encode import Vectors
from cod3s.model.engine import Request
from cod3s.records import Hypothesis
from cod3s.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Candidate:
    """A sentence and its scores; see `cod3s.decode.rerank` for what they are."""

    text: str
    forward: float
    score: float
    backward: float | None = None
    realised: str = ""
    hamming: int | None = None
    vector: Vectors | None = field(default=None, repr=False, compare=False)
    stale: bool = False  # it only repeats the source or itself


def write_sentences(
    player: Player,
    vocabulary: Vocabulary,
    sources: Sequence[str],
    signatures: Sequence[Sequence[str]],
    config: DecodeConfig,
) -> list[list[list[Candidate]]]:
    """The candidates of each source and signature, best forward score first, each text once."""
    prefixes = [[vocabulary.encode_signature(signature) for signature in own] for own in signatures]
    requests = [
        [player.request(source, prefix) for prefix in own] for source, own in zip(sources, prefixes, strict=True)
    ]
    flat = [request for own in requests for request in own]
    found = iter(write(player, requests, config))
    shares = iter(_prefix_shares(player, flat) if config.normalise == "original" else [None] * len(flat))
    return [[candidates(vocabulary, next(found), share=next(shares)) for _ in own] for own in requests]


def write(player: Player, requests: Sequence[Sequence[Request]], config: DecodeConfig) -> list[list[Hypothesis]]:
    """The hypotheses of every request of every source, in one row.

    Sampling asks source by source: what is drawn for one does not depend on its neighbours.
    """
    if config.search == "beam":
        beam = max(config.beam, config.per_bin)
        return player.engine.search(
            [request for own in requests for request in own], beam=beam, best=beam, max_tokens=config.max_tokens
        )
    drawn: list[list[Hypothesis]] = []
    for own in requests:
        drawn += player.engine.sample(
            own,
            samples=max(config.samples, config.per_bin),
            top_k=config.top_k,
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            seed=config.seed,
        )
    return drawn


def candidates(
    vocabulary: Vocabulary, hypotheses: Sequence[Hypothesis], share: Hypothesis | None = None
) -> list[Candidate]:
    """The texts of the hypotheses, best forward score first, each text once with its best score.

    `share` is the prefix with its own log-probability, where that counts.
    """
    best: dict[str, float] = {}
    for one in hypotheses:
        text = vocabulary.decode_text(one.tokens).strip()
        forward = mean_log_prob(one if share is None else _with_share(one, share))
        if text and forward > best.get(text, float("-inf")):
            best[text] = forward
    rows = [Candidate(text, forward, forward) for text, forward in best.items()]
    return sorted(rows, key=lambda row: -row.forward)


def _prefix_shares(player: Player, requests: Sequence[Request]) -> list[Hypothesis]:
    """What the original counts too: the signature's log-probability under the model that writes the sentence."""
    bare = [Request(request.source, request.prefix[:1]) for request in requests]
    return player.engine.score(bare, [request.prefix[1:] for request in requests], end=False)


def _with_share(one: Hypothesis, share: Hypothesis) -> Hypothesis:
    return Hypothesis(one.tokens, one.log_prob + share.log_prob, one.length + share.length)
