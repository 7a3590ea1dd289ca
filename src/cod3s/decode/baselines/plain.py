"""One-stage systems: the paper's baselines. Sources in, k candidate answers each out."""

from collections.abc import Sequence

from cod3s.decode.config import DecodeConfig
from cod3s.decode.players import Players
from cod3s.decode.rerank import mean_log_prob
from cod3s.decode.sentences import candidates, write
from cod3s.decode.signatures import read_signature
from cod3s.records import Answer


def write_plainly(
    players: Players, relation: str, sources: Sequence[str], config: DecodeConfig
) -> list[list[Answer]]:
    """S2S and S2S-RS: the k likeliest of one beam, or of the samples, with no signature anywhere."""
    player = players.plain(relation)
    width = max(config.baseline_beam, config.k)
    wide = config.with_values(beam=width, samples=width, top_k=config.baseline_top_k)
    found = write(player, [[player.request(source)] for source in sources], wide)
    return [
        [Answer(one.text, one.score, one.forward) for one in candidates(players.vocabulary, own)[: config.k]]
        for own in found
    ]


def write_signed(
    players: Players, relation: str, sources: Sequence[str], config: DecodeConfig
) -> list[list[Answer]]:
    """S2S + Sigs: the k likeliest texts of one beam over signature and sentence; scores count both."""
    player, words = players.sentence(relation), players.vocabulary
    length = len(words.signature.groups)
    beam = max(config.baseline_beam, config.k)
    found = player.engine.search(
        [player.request(source) for source in sources],
        beam=beam,
        best=beam,
        max_tokens=length + config.max_tokens,
    )
    answers: list[list[Answer]] = []
    for own in found:
        texts: dict[str, Answer] = {}
        for one in sorted(own, key=mean_log_prob, reverse=True):
            text = words.decode_text(one.tokens).strip()
            signature = read_signature(words, one.tokens[:length]) or ""
            if text:
                texts.setdefault(text, Answer(text, mean_log_prob(one), mean_log_prob(one), signature=signature))
        answers.append(list(texts.values())[: config.k])
    return answers
