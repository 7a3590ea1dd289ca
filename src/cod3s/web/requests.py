"""What clients send: the models of request bodies. JSON in, checked values out.

The models say what the fields mean; `bounded` adds one server's limits and its bundle's names, which pydantic then
checks and OpenAPI tells.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo
from starlette.requests import Request

from cod3s.bundle import BundleFacts
from cod3s.decode.config import DEFAULT, DecodeConfig
from cod3s.decode.systems import SYSTEMS, TORCH
from cod3s.selection import METHODS
from cod3s.serving.refusals import WrongTypeError
from cod3s.web.limits import Limits

Model = TypeVar("Model", bound=BaseModel)

SERVED_SYSTEMS = tuple(system.name for system in SYSTEMS.values() if system.kind != TORCH)
"""Those that need no torch."""


class Body(BaseModel):
    """What all bodies have in common: no field that is not named, and nothing read as what it is not."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _take_whole_numbers(cls, values: Any) -> Any:
        """JSON knows one kind of number: 3.0 is as good as 3."""
        if not isinstance(values, dict):
            return values
        return {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in values.items()
        }


class Question(Body):
    """A sentence to answer, and how; the options are those of DecodeConfig, with its defaults."""

    text: str = Field(min_length=1, description="The sentence to answer.")
    relation: str = Field(description="What the answers are to the sentence.")
    k: int = Field(DEFAULT.k, ge=1, description="How many answers.")
    signature_search: Literal["beam", "exact"] = Field("beam", description="How signatures are found.")
    signature_beam: int = Field(DEFAULT.signature_beam, ge=1, description="Signatures that are ranked.")
    rerank_signatures: Literal["auto", "mmi", "prior", "none"] = Field("auto", description="How they are ranked.")
    signature_weight: float = Field(DEFAULT.signature_weight, ge=0, le=1e6, description="Weight of mmi.")
    prior_weight: float = Field(DEFAULT.prior_weight, ge=0, le=1e6, description="Weight of prior.")
    min_hamming: int = Field(DEFAULT.min_hamming, ge=0, description="Signatures differ in more bits; 0 is off.")
    apart: Literal["relax", "refill", "strict"] = Field("relax", description="If too few differ so.")
    search: Literal["beam", "sample"] = Field("beam", description="How sentences are found.")
    beam: int = Field(DEFAULT.beam, ge=1, description="Width of the beam of each bin.")
    samples: int = Field(DEFAULT.samples, ge=1, description="Samples of each bin.")
    top_k: int = Field(DEFAULT.top_k, ge=1, le=1000, description="Tokens that are sampled from.")
    temperature: float = Field(DEFAULT.temperature, ge=0.01, le=100, description="Of sampling.")
    rerank_sentences: Literal["auto", "mmi", "none"] = Field("auto", description="How sentences are ranked.")
    sentence_weight: float = Field(
        DEFAULT.sentence_weight, ge=0, le=1e6, description="Weight of mmi: more is more specific to the text."
    )
    normalise: Literal["text", "original"] = Field("text", description="Whether scores count the signature.")
    fresh: bool = Field(DEFAULT.fresh, description="Put what only repeats the text or itself last.")
    per_bin: int = Field(DEFAULT.per_bin, ge=1, description="Answers of each bin.")
    max_tokens: int = Field(DEFAULT.max_tokens, ge=1, description="Length of an answer.")
    check: bool = Field(False, description="Sign the answers and compare with their bins.")
    faithful: Literal["auto", "weigh", "rerank", "filter", "none"] = Field(
        "auto", description="Prefer answers that lie in their bin; auto where the bundle can tell by itself."
    )
    faithful_within: int = Field(DEFAULT.faithful_within, ge=0, le=256, description="Bits that filter lets pass.")
    bit_weight: float = Field(DEFAULT.bit_weight, ge=0, le=1e6, description="weigh: cost of a bit off the bin.")
    nearness_weight: float = Field(
        DEFAULT.nearness_weight, ge=0, le=1e6, description="weigh: cost of the cosine to the nearest answer."
    )
    seed: int = Field(DEFAULT.seed, ge=0, le=2**31 - 1, description="Of sampling.")
    baseline_beam: int = Field(DEFAULT.baseline_beam, ge=1, description="Beam or samples of systems of one stage.")
    baseline_top_k: int = Field(DEFAULT.baseline_top_k, ge=1, le=1000, description="Of sampling in one stage.")

    def options(self) -> DecodeConfig:
        """All options of decoding."""
        names = type(self).model_fields.keys() & DecodeConfig.__dataclass_fields__.keys()
        return DecodeConfig(**{name: getattr(self, name) for name in names})


class GenerateRequest(Question):
    """A question to one system, or for the bins that are named."""

    system: str = Field("cod3s", description="The system that answers: see docs/decoding.md.")
    signatures: list[str] | None = Field(None, min_length=1, description="Write in these bins.")
    like: str | None = Field(None, min_length=1, description="Write in the bin of this sentence.")


class SelectRequest(Body):
    """Candidates of any origin, best first."""

    candidates: list[str] = Field(min_length=1, description="The candidates, best first.")
    k: int = Field(10, ge=1, description="How many to keep.")
    method: str = Field("signatures", description="How they are chosen.")


def bounded(model: type[Model], limits: Limits, facts: BundleFacts) -> type[Model]:
    """The model within a server's limits, for the relations and signatures of its bundle."""
    sentence = Annotated[str, Field(max_length=limits.text)]
    signature = Annotated[str, Field(pattern=f"^[01]{{{facts.bits}}}$")]
    kinds: dict[str, Any] = {
        "text": sentence,
        "like": sentence | None,
        "relation": Literal[tuple(facts.models)],
        "system": Literal[SERVED_SYSTEMS],
        "method": Literal[tuple(METHODS)],
        "signatures": Annotated[list[signature], Field(max_length=limits.k)] | None,
        "candidates": Annotated[list[sentence], Field(max_length=limits.candidates)],
    }
    most = {
        "k": limits.k,
        "min_hamming": facts.bits,
        "max_tokens": limits.tokens,
        **dict.fromkeys(("signature_beam", "beam", "samples", "per_bin", "baseline_beam"), limits.beams),
    }
    fields: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if name in kinds:
            fields[name] = (kinds[name], field)
        elif name in most:
            fields[name] = _at_most(most[name], field)
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)


def _at_most(limit: int, field: FieldInfo) -> tuple[Any, Any]:
    """A whole number's field with one more bound, which its default keeps too."""
    (least,) = [bound.ge for bound in field.metadata if isinstance(bound, Ge)]
    return int, Field(min(field.default, limit), ge=least, le=limit, description=field.description)


def body_of(model: type[Model]) -> Callable[[Request], Awaitable[Model]]:
    """A dependency that reads the request's body, which must be declared as JSON, as `model`."""

    async def read(request: Request) -> Model:
        if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise WrongTypeError()
        try:
            return model.model_validate_json(await request.body())
        except ValidationError as error:
            raise RequestValidationError(error.errors(include_input=False, include_url=False)) from None

    return read
