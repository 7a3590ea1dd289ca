"""One-stage systems: the paper's baselines S2S, S2S-RS, S2S + Sigs and DPC."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cod3s.decode.choose import SUITABLE, keep_suitable
from cod3s.decode.config import DecodeConfig
from cod3s.decode.dpc import answer_with_constraints
from cod3s.decode.request import Batch
from cod3s.decode.sentences import read_candidates, write
from cod3s.decode.systems import SENTENCES, SIGNED_SENTENCES
from cod3s.models import BundleModels
from cod3s.records import Answer, AnswerMade, Event, SignaturesChosen, StageStarted, mean_log_prob
from cod3s.signatures.signer import Signer


def answer_in_one_stage(models: BundleModels, batch: Batch, signer: Signer | None) -> Iterator[tuple[int, Event]]:
    """Each source's events with its position: the first k suitable answers, signed if there is a `signer`."""
    for position in range(len(batch.sources)):
        yield position, StageStarted("writing")
    if batch.system.kind == SENTENCES:
        rows = write_plainly(models, batch.relation, batch.sources, batch.config)
    elif batch.system.kind == SIGNED_SENTENCES:
        rows = write_signed(models, batch.relation, batch.sources, batch.config)
    else:
        rows = answer_with_constraints(models, batch.relation, batch.sources, batch.config)
    for position, row in enumerate(rows):
        answers = _first_suitable(batch, position, row)
        yield position, SignaturesChosen(())
        for place, answer in enumerate(_realised(signer, answers) if signer else answers):
            yield position, AnswerMade(place, answer)


def write_plainly(
    models: BundleModels, relation: str, sources: Sequence[str], config: DecodeConfig
) -> list[list[Answer]]:
    """S2S and S2S-RS: the texts of a beam, or of the samples, without signatures; likeliest first."""
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
    """S2S + Sigs: the texts of a beam over signature and sentence, likeliest first; scores count both."""
    model = models.sentence(relation)
    length = len(model.words.signature.groups)
    beam = max(config.baseline_beam, config.k)
    rows = model.engine.search(
        [model.request(source) for source in sources],
        beam=beam,
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


def _first_suitable(batch: Batch, position: int, written: Sequence[Answer]) -> list[Answer]:
    """The first k answers that may be shown; a remark says why there are fewer."""
    suitable = keep_suitable(batch.config, batch.texts[position], written)
    if len(suitable) < batch.config.k:
        remarks = batch.remarks[position]
        remarks.append(f"only {len(suitable)} of {batch.config.k} answers were found")
        if len(suitable) < len(written):
            remarks.append(f"{len(written) - len(suitable)} of {len(written)} answers were not {SUITABLE}")
    return suitable[: batch.config.k]


def _realised(signer: Signer, answers: Sequence[Answer]) -> list[Answer]:
    signatures = signer.signatures([answer.text for answer in answers])
    return [replace(answer, realised=realised) for answer, realised in zip(answers, signatures, strict=True)]
