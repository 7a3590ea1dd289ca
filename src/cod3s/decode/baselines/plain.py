"""The paper's baselines that write in one search: S2S, S2S-RS and S2S + Sigs."""

from collections.abc import Sequence

from cod3s.decode.config import DecodeConfig
from cod3s.decode.models import BundleModels
from cod3s.decode.rerank import mean_log_prob
from cod3s.decode.sentences import read_candidates, write
from cod3s.records import Answer


def write_plainly(
    models: BundleModels, relation: str, sources: Sequence[str], config: DecodeConfig
) -> list[list[Answer]]:
    """S2S and S2S-RS: the texts of one beam, or of the samples, without signatures; likeliest first."""
    model = models.plain(relation)
    width = max(config.baseline_beam, config.k)
    wide = config.with_values(beam=width, samples=width, top_k=config.baseline_top_k)
    rows = write(model, [[model.request(source)] for source in sources], wide)
    return [
        [
            Answer(candidate.text, candidate.score, candidate.forward)
            for candidate in read_candidates(model.words, hypotheses)
        ]
        for hypotheses in rows
    ]


def write_signed(
    models: BundleModels, relation: str, sources: Sequence[str], config: DecodeConfig
) -> list[list[Answer]]:
    """S2S + Sigs: the texts of one beam over signature and sentence, likeliest first; scores count both."""
    model = models.sentence(relation)
    length = len(model.words.signature.groups)
    beam = max(config.baseline_beam, config.k)
    rows = model.engine.search(
        [model.request(source) for source in sources],
        beam=beam,
        best=beam,
        max_tokens=length + config.max_tokens,
    )
    answers: list[list[Answer]] = []
    for hypotheses in rows:
        by_text: dict[str, Answer] = {}
        for hypothesis in sorted(hypotheses, key=mean_log_prob, reverse=True):
            text = model.words.decode_text(hypothesis.tokens).strip()
            signature = model.words.read_signature(hypothesis.tokens[:length]) or ""
            score = mean_log_prob(hypothesis)
            if text:
                by_text.setdefault(text, Answer(text, score, score, signature=signature))
        answers.append(list(by_text.values()))
    return answers
