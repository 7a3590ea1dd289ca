"""What the bodies of all requests have in common: strict JSON, with the options of a config as fields."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.requests import Request

from cod3s.options import Option
from cod3s.web.error_replies import RefusedError

Model = TypeVar("Model", bound=BaseModel)


class Body(BaseModel):
    """What all bodies have in common: no unknown fields, and no conversion between types."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _read_whole_numbers(cls, values: Any) -> Any:
        """JSON has only one kind of number: 3.0 is as good as 3."""
        if not isinstance(values, dict):
            return values
        return {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in values.items()
        }


def option_field(option: Option, limit: int | None = None) -> tuple[Any, Any]:
    """An option as a field of JSON; a server's limit bounds its default and help, too."""
    most, default = (option.most, option.default) if limit is None else (limit, min(option.default, limit))
    kind: Any = Literal[option.choices] if option.choices else option.kind
    kind = kind | None if option.optional else kind
    help = re.sub(r"; at most \d+", "", option.help)
    help = re.sub(r"--([a-z-]+)", lambda flag: flag[1].replace("-", "_"), help)
    return kind, Field(default, ge=option.least, gt=option.above, le=most, description=help)


def body_of(model: type[Model]) -> Callable[[Request], Awaitable[Model]]:
    """A dependency that reads the request's body, which must be declared as JSON, as `model`."""

    async def read(request: Request) -> Model:
        require_json(request)
        try:
            return model.model_validate_json(await request.body())
        except ValidationError as error:
            raise RequestValidationError(error.errors(include_input=False, include_url=False)) from None

    return read


def require_json(request: Request) -> None:
    """Refuse a body that is not declared as JSON: any page may send other types without asking first."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        hint = "send the header Content-Type: application/json"
        raise RefusedError(415, "the body is not marked as JSON", hint=hint)
