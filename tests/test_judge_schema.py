"""The judge's API against generated requests, valid and not: an answer as declared, or a refusal with a reason."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import response_schema_conformance

from cod3s.study.collect.rating_store import database_url, open_store
from cod3s.study.collect.server import ServerOptions, create_app
from cod3s.study.plan.identities import new_token, token_hash
from cod3s.web.guard import HEADERS, Guard
from judge_study import a_made_study

ROUTES = [
    ("GET", "/healthz"),
    ("GET", "/api/study"),
    ("POST", "/api/raters"),
    ("GET", "/api/standing"),
    ("GET", "/api/statements/{position}"),
    ("PUT", "/api/statements/{position}"),
    ("GET", "/api/admin/progress"),
    ("GET", "/api/admin/ratings"),
]
OPEN = ("/healthz", "/api/study", "/api/raters")  # to everyone
WITH_INPUT = ("/api/raters", "/api/statements/{position}")  # only these can be asked wrongly
REFUSALS = {400, 401, 403, 404, 409, 422, 429}


@dataclass(frozen=True)
class Described:
    """The judge's routes as its framework describes them, and two tokens that open them."""

    schema: Any
    rater: str
    administrator: str

    def token(self, path: str) -> str:
        return self.administrator if "/admin/" in path else self.rater


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Described]:
    folder: Path = tmp_path_factory.mktemp("judged")
    made, administrator = a_made_study(folder), new_token()
    options = ServerOptions(allowed_hosts=["testserver"], admin_token_hash=token_hash(administrator))
    with open_store(database_url(folder / "study", ""), made.study) as store:
        app: Any = create_app(made.study, list(made.items), store, options)
        guard = app._app
        assert isinstance(guard, Guard)
        routes: Any = guard._app
        schema = schemathesis.openapi.from_dict(routes.openapi())
        schema.app = app
        joined = schema["/api/raters"]["POST"].Case(body={"name": "Ada"}, media_type="application/json").call()
        yield Described(schema, joined.json()["token"], administrator)


def test_the_judge_has_these_routes(described: Described) -> None:
    paths = described.schema.raw_schema["paths"]
    assert {(method.upper(), path) for path, methods in paths.items() for method in methods} == set(ROUTES)


BOTH = [*schemathesis.GenerationMode]
CASES = [(method, path, mode) for method, path in ROUTES for mode in (BOTH if path in WITH_INPUT else BOTH[:1])]


@pytest.mark.parametrize("known", [True, False], ids=["with a token", "without"])
@pytest.mark.parametrize(("method", "path", "mode"), CASES, ids=[f"{m} {path}-{mode}" for m, path, mode in CASES])
def test_generated_requests_are_answered_or_refused(
    method: str, path: str, mode: Any, known: bool, described: Described
) -> None:
    """Answers are as declared, refusals have a message, and only who knows a token reads or rates."""

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=described.schema[path][method].as_strategy(generation_mode=mode))
    def call(case: Any) -> None:
        reply = case.call(headers={"Authorization": f"Bearer {described.token(path)}"} if known else None)
        if reply.status_code < 300:
            assert known or path in OPEN
            case.validate_response(reply, checks=[response_schema_conformance])
        else:
            assert reply.status_code in REFUSALS
            assert set(reply.json()["error"]) == {"message", "hint"}
        assert {name: reply.headers[name.lower()][0] for name in HEADERS} == HEADERS

    call()
