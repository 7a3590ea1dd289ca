"""What scores the outputs of an evaluation, and a bundle opened both to generate and to judge."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cod3s.bundle import NAME as BUNDLE_JSON
from cod3s.bundle import read_facts
from cod3s.corpus.relations import TEMPLATES
from cod3s.decode.generator import Generator, load
from cod3s.decode.pair_likelihoods import BundleLikelihoods
from cod3s.decode.plausibility import Judge, open_judge
from cod3s.encode import Encoder, load_encoder
from cod3s.io.disk import sha256
from cod3s.model.shape import SHAPES
from cod3s.signatures import Code, load_code
from cod3s.signatures.signer import Signer, open_encoder

NO_ENCODER = "none"
_REMEMBERED = 1_000_000  # hypotheses per model: systems and settings share their stages


@dataclass(frozen=True)
class Judges:
    """An encoder, perhaps a second encoder, a code that signs, and a model that scores likelihoods."""

    encoder: Encoder
    second: Encoder | None = None
    code: Code | None = None  # for vectors of `encoder`
    model: BundleLikelihoods | None = None
    judge: Judge | None = None  # the bundle's critic
    templates: Mapping[str, str] = field(default_factory=lambda: TEMPLATES)
    settings: Mapping[str, Any] = field(default_factory=dict)  # what else determines the figures: the bundle

    @property
    def judge_of_alternatives(self) -> Judge | None:
        """The bundle's critic, as it judges the alternatives of questions."""
        return self.judge and self.judge.choosing


@dataclass(frozen=True)
class OpenBundle:
    """The generator of a bundle and its judges, with the same models and the same encoder."""

    generator: Generator
    judges: Judges


def open_bundle(folder: Path, second: str = "static") -> OpenBundle:
    """The bundle in `folder`; `second` names an encoder that had no part in making the signatures."""
    encoder = open_encoder(read_facts(folder).encoder)
    generator = load(folder, encoder=encoder, remember=_REMEMBERED)
    facts, models = generator.facts, generator.models
    # What a judge computes must not depend on what was generated before. A language model scores each row alone,
    # so its judge may remember what the systems have asked: it is the same to the last bit.
    if not SHAPES[facts.shape].causal:
        models = models.without_memory()
    code, _ = load_code(folder / "code")
    judges = Judges(
        encoder=encoder,
        second=open_second(second, encoder),
        code=code,
        model=BundleLikelihoods(models),
        judge=open_judge(folder, facts, models, Signer(encoder, code)) if facts.critic else None,
        templates={name: relation["template"] for name, relation in facts.relations.items()},
        settings={
            "bundle": f"{facts.name}@{sha256(folder / BUNDLE_JSON)[:8]}",
            "bits": facts.bits,
            "bits_per_token": facts.bits_per_token,
            "shape": facts.shape,
            "quantization": facts.quantization,
        },
    )
    return OpenBundle(generator, judges)


def open_second(name: str, first: Encoder) -> Encoder | None:
    """The second encoder; None for `none`, and if it is the first again."""
    if name == NO_ENCODER:
        return None
    encoder = load_encoder(name)
    return None if encoder.id == first.id else encoder
