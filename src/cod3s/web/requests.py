"""The models of request bodies, checked by pydantic and described by OpenAPI.

The options of a question are derived from the fields of DecodeConfig; `bounded` adds a server's limits and the
names of its bundle.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from annotated_types import Ge
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo
from starlette.requests import Request

from cod3s.bundle import BundleFacts
from cod3s.decode.decode_config import DecodeConfig
from cod3s.decode.systems import ENGINE_SYSTEMS, TORCH, find_system
from cod3s.errors import UsageError
from cod3s.options import options_of
from cod3s.selection import METHODS
from cod3s.web.error_replies import RefusedError
from cod3s.web.limits import Limits

Model = TypeVar("Model", bound=BaseModel)

_TORCH_OPTIONS = ("diversity_penalty",)


def _served_system(name: str) -> str:
    """`name` if it is a system that this server can run; pydantic tells the client what is wrong otherwise."""
    try:
        system = find_system(name)
    except UsageError as error:
        raise ValueError(f"{error.message}; {error.hint}") from error
    if system.kind == TORCH:
        raise ValueError(f"{name} runs on torch weights, which are not served")
    return name


class Body(BaseModel):
    """What all bodies have in common: no unknown fields, and no conversion between types."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _take_whole_numbers(cls, values: Any) -> Any:
        """JSON has only one kind of number: 3.0 is as good as 3."""
        if not isinstance(values, dict):
            return values
        return {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in values.items()
        }


_OPTIONS: dict[str, Any] = {
    name: (
        Literal[option.choices] if option.choices else option.kind,
        Field(option.default, ge=option.least, gt=option.above, le=option.most, description=option.help),
    )
    for name, option in options_of(DecodeConfig).items()
    if name not in _TORCH_OPTIONS
}
"""A field for each option of decoding, with its choices, bounds and default, as pydantic takes them."""


class _Source(Body):
    """A sentence, and how its answers relate to it."""

    text: str = Field(min_length=1, description="The sentence to answer.")
    relation: str = Field(description="How the answers relate to the sentence.")


if TYPE_CHECKING:
    _WithOptions = _Source
else:
    _WithOptions = create_model("_WithOptions", __base__=_Source, **_OPTIONS)


class Question(_WithOptions):
    """A sentence to answer, and how; the options are those of DecodeConfig, with its defaults."""

    def options(self) -> DecodeConfig:
        """All options of decoding."""
        return DecodeConfig(**{name: getattr(self, name) for name in _OPTIONS})


class GenerateRequest(Question):
    """A question to a system, or for bins named by the client."""

    system: Annotated[str, AfterValidator(_served_system)] = Field(
        "cod3s",
        description="The system that answers: any that /api/info lists, or another of docs/decoding.md.",
        examples=[*ENGINE_SYSTEMS],
    )
    signatures: list[str] | None = Field(None, min_length=1, description="Write in these bins.")
    like: str | None = Field(None, min_length=1, description="Write in the bin of this sentence.")


class SelectRequest(Body):
    """Candidates of any origin, best first."""

    candidates: list[str] = Field(min_length=1, description="The candidates, best first.")
    k: int = Field(10, ge=1, description="How many to keep.")
    method: str = Field("auto", description="How they are chosen.")


def bounded(model: type[Model], limits: Limits, facts: BundleFacts) -> type[Model]:
    """The model within a server's limits, for the relations and signatures of its bundle."""
    sentence = Annotated[str, Field(max_length=limits.text)]
    signature = Annotated[str, Field(pattern=f"^[01]{{{facts.bits}}}$")]
    kinds: dict[str, Any] = {
        "text": sentence,
        "like": sentence | None,
        "relation": Literal[tuple(facts.models)],
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
    """An integer field with a further bound, which also limits its default."""
    (least,) = [bound.ge for bound in field.metadata if isinstance(bound, Ge)]
    return int, Field(min(field.default, limit), ge=least, le=limit, description=field.description)


def body_of(model: type[Model]) -> Callable[[Request], Awaitable[Model]]:
    """A dependency that reads the request's body, which must be declared as JSON, as `model`."""

    async def read(request: Request) -> Model:
        if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            # Any page may send other types without asking first.
            hint = "send the header Content-Type: application/json"
            raise RefusedError(415, "the body is not marked as JSON", hint=hint)
        try:
            return model.model_validate_json(await request.body())
        except ValidationError as error:
            raise RequestValidationError(error.errors(include_input=False, include_url=False)) from None

    return read
