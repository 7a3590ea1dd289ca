"""The API against its own description: generated requests, valid and not, get only what OpenAPI promises."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from cod3s.decode.generator import load
from cod3s.web.app import create_app
from cod3s.web.limits import Limits
from tiny_bundle import TinyBundle

ROUTES = [
    ("POST", "/api/generate"),
    ("POST", "/api/stream"),
    ("POST", "/api/select"),
    ("GET", "/api/bins/{signature}"),
    ("GET", "/api/map"),
    ("GET", "/api/info"),
    ("GET", "/healthz"),
]


NOTHING_ASKED = ("/api/info", "/healthz")  # so nothing can be asked wrongly
QUESTIONS = ("/api/generate", "/api/stream")
"""Refused for reasons that a schema cannot tell: a text with nothing visible, a name that decides an option."""


@pytest.fixture(scope="module")
def described(tiny_bundle: TinyBundle) -> Any:
    limits = Limits(text=60, k=3, beams=8, tokens=8, candidates=5, body=16384)
    return schemathesis.openapi.from_asgi(
        "/openapi.json", create_app(load(tiny_bundle.small), limits, allowed_hosts=["testserver"])
    )


def test_the_description_has_these_routes(described: Any) -> None:
    paths = described.raw_schema["paths"]
    assert {(method.upper(), path) for path, methods in paths.items() for method in methods} == set(ROUTES)


BOTH = [*schemathesis.GenerationMode]
CASES = [
    (method, path, mode) for method, path in ROUTES for mode in (BOTH if path not in NOTHING_ASKED else BOTH[:1])
]


@pytest.mark.parametrize(("method", "path", "mode"), CASES, ids=[f"{path}-{mode}" for _, path, mode in CASES])
def test_generated_requests_get_what_the_description_promises(
    method: str, path: str, mode: Any, described: Any
) -> None:
    """No server error; status, type and body as declared; what the description forbids is refused."""

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=described[path][method].as_strategy(generation_mode=mode))
    def call(case: Any) -> None:
        case.call_and_validate(excluded_checks=[positive_data_acceptance] if path in QUESTIONS else [])

    call()
