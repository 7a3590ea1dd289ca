"""The bodies of requests, with the options of DecodeConfig; pydantic checks and OpenAPI describes them."""

from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, create_model

from cod3s.bundle import BundleFacts
from cod3s.decode.config import DecodeConfig, defaults_of
from cod3s.decode.systems import CONSTRAINED, LISTED_SYSTEMS, find_system
from cod3s.errors import UsageError
from cod3s.options import options_of
from cod3s.selection import METHODS
from cod3s.web.bodies import Body, option_field
from cod3s.web.limits import Limits

Model = TypeVar("Model", bound=BaseModel)

_OPTIONS = options_of(DecodeConfig)
"""What clients may choose."""


def _served_system(name: str) -> str:
    """`name` if it is a system that this server can run; pydantic tells the client what is wrong otherwise."""
    try:
        system = find_system(name)
    except UsageError as error:
        raise ValueError(f"{error.message}; {error.hint}") from error
    if system.kind == CONSTRAINED:
        raise ValueError(f"{name} takes too long to be served; `cod3s generate --system {name}` runs it")
    return name


class GenerateRequest(Body):
    """A sentence to answer, and how; the options are those of DecodeConfig, with the bundle's defaults."""

    text: str = Field(min_length=1, description="The sentence to answer.")
    relation: str = Field(description="How the answers relate to the sentence.")
    system: Annotated[str, AfterValidator(_served_system)] = Field(
        "cod3s",
        description="The system that answers: any that /api/info lists, or another of docs/decoding.md.",
        examples=[name for name in LISTED_SYSTEMS if name != "dpc"],
    )
    signatures: list[str] | None = Field(None, min_length=1, description="Write in these bins.")
    like: str | None = Field(None, min_length=1, description="Write in the bin of this sentence.")

    def options(self) -> DecodeConfig:
        """All options of decoding; only models made by `generate_request` have them."""
        return DecodeConfig(**{name: getattr(self, name) for name in _OPTIONS})


class SelectRequest(Body):
    """Candidates of any origin, best first."""

    candidates: list[str] = Field(min_length=1, description="The candidates, best first.")
    k: int = Field(10, ge=1, description="How many to keep.")
    method: str = Field("auto", description="How they are chosen.")


def generate_request(limits: Limits, facts: BundleFacts) -> type[GenerateRequest]:
    """The body of a question to this bundle, within these limits, with a field for each option of decoding."""
    most = {
        "k": limits.k,
        "min_hamming": facts.bits,
        "max_tokens": limits.tokens,
        **dict.fromkeys(("signature_beam", "beam", "samples", "per_bin", "baseline_beam"), limits.beams),
    }
    sentence = Annotated[str, Field(max_length=limits.text)]
    signature = Annotated[str, Field(pattern=f"^[01]{{{facts.bits}}}$")]
    defaults = defaults_of(facts)
    fields: dict[str, Any] = {
        name: option_field(replace(option, default=getattr(defaults, name)), most.get(name))
        for name, option in _OPTIONS.items()
    }
    kinds = {
        "text": sentence,
        "relation": Literal[tuple(facts.models)],
        "signatures": Annotated[list[signature], Field(max_length=limits.k)] | None,
        "like": sentence | None,
    }
    return _narrowed(GenerateRequest, kinds, fields)


def select_request(limits: Limits) -> type[SelectRequest]:
    """The body of a selection within these limits."""
    sentence = Annotated[str, Field(max_length=limits.text)]
    kinds = {
        "candidates": Annotated[list[sentence], Field(max_length=limits.candidates)],
        "k": Annotated[int, Field(le=limits.k)],
        "method": Literal[tuple(METHODS)],
    }
    return _narrowed(SelectRequest, kinds, {})


def _narrowed(model: type[Model], kinds: dict[str, Any], fields: dict[str, Any]) -> type[Model]:
    """The model with narrower types for some of its fields, and with further fields."""
    fields = {**{name: (kind, model.model_fields[name]) for name, kind in kinds.items()}, **fields}
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)
