"""`/openapi.json` is true: whatever schemathesis makes of it, right or wrong, is answered as it
says.

`make fuzz` makes more of it.
"""

import os
import re
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import CHECKS
from schemathesis.python.asgi import ASGIClient
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http import admin, status
from service.http.document import DescribedApp
from service.kinds import KINDS
from tests.service.serving import Service, running, settings

_EXAMPLES = int(os.environ.get("EVENKEEL_FUZZ", "25"))  # of each route
_TOKENS = {"prompt", "tokens"}
# The rules no schema can state, and one that schemathesis computes in too few digits.
_MORE_THAN_A_SCHEMA_SAYS = re.compile(
    "|".join([
        r"^seed is -?9223372036854\d+: Input should be (less|greater) than .*9223372036854775808$",
        r"float32 has no such number$",
        r"^max_tokens is \d+; it must be at most 64$",
        r"; at most 128 choices$",
        r"^logprobs of \d+ at ",
        r"^best_of is \d+; this service only takes 1, or n$",
        r"^state is not a token of this service",
        r"^state knows its line: ",
        r"^style is .* it must be made-up, a token of this service",
        r"^model .* is of kind .*, which cannot do this$",
        r"this model writes printable ASCII, Latin letters with accents, ¿ ¡ ° and € £ ¥$",
        r"^text has nothing but spaces$",
        r"^text has .*a page of .* px; at most",
        r"^(style\.)?text is empty$",
        r"^(style\.)?text has \d+ characters, ellipses and the like written out; ",
        r"^(style\.)?strokes has ",
        r"\d points; at most 200 of 8000$",
        r"^resume (goes on with json|needs stream)",
        r"^first_line is \d+; the last line with a text is ",
        r"^return_state needs format json",
        r"^style and state are both the hand",
        r"^the ink is either strokes or inkml; ",
        r"^origin is a place on a ruled line; ",
        r"^return_state needs line_height: ",
        r"^(judge|best_by) is for best_of; ",
        r"^the margins leave \d+ px of the width",
        r"^page has a width of its own; ",
        r"^inkml (is|has) ",
        r"^the ink has no line in it$",
        r"^the ink is \d+ pieces long, for its size; at most \d+$",
        r"^candidate is one draw alone; ",
        r"^best_of needs a model that reads ink",
    ])
)  # fmt: skip


class _Service:
    """An application like that of the service, without any model until one is running."""

    def __init__(self) -> None:
        app = DescribedApp()
        for router in (
            status.router,
            admin.router,
            *(r for kind in KINDS.values() for r in kind.routers),
        ):
            app.include_router(router)
        self.app: ASGIApp = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":  # which is the business of whoever runs it
            await self.app(scope, receive, send)


_SERVICE = _Service()
# Of its own schemathesis makes one for each request, and that looks up proxies in the environment.
_CLIENT = ASGIClient(_SERVICE)
_CLIENT.trust_env = False
_SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", _SERVICE)


# schemathesis calls the tests of all routes alike, of which workers run one, unless they have a
# parameter as well.
@pytest.fixture(scope="module", params=["scan"])
def served(request: pytest.FixtureRequest, inks: Path) -> Iterator[Service]:
    with running(settings(inks, runner=request.param, max_tokens=64)) as service:
        yield service


@pytest.fixture(scope="module", params=["scan"])
def locked(
    request: pytest.FixtureRequest, inks: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service whose only key nobody has."""
    keys = tmp_path_factory.mktemp("keys") / "keys.toml"
    keys.write_text(f'[nobody]\nsha256 = "{"0" * 64}"\n')
    with running(settings(inks, runner=request.param, keys=keys)) as service:
        yield service


def _whole(body: Any) -> Any:
    """The same with 65 for 65.0, which no schema can tell apart: tokens have no point."""
    if isinstance(body, list):
        return [_whole(value) for value in body]
    return int(body) if isinstance(body, float) and body.is_integer() else body


def _name_what_there_is(case: schemathesis.Case) -> None:
    """Most names that are made up belong to nobody, and nothing more is looked at."""
    if case.path_parameters.get("name"):
        case.path_parameters["name"] = "letters"
    if case.path_parameters.get("style"):
        case.path_parameters["style"] = "upright"
    if isinstance(case.body, dict):
        model = "letters" if "completions" in case.path else "scrawl"
        given = {"model": model, "state": None}
        case.body |= {name: value for name, value in given.items() if case.body.get(name)}


def _breaks_a_rule_beyond_the_schema(response: Any) -> bool:
    if response.status_code != 400:
        return False
    return bool(_MORE_THAN_A_SCHEMA_SAYS.search(response.json()["error"]["message"]))


def _tries(count: int, *phases: hypothesis.Phase) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=count,
        phases=phases or list(hypothesis.Phase),
        deadline=None,
        derandomize=_EXAMPLES < 100,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


@_SCHEMA.parametrize()
@_tries(_EXAMPLES)
def test_every_answer_is_one_that_the_schema_tells_of(
    case: schemathesis.Case, served: Service
) -> None:
    _SERVICE.app = served.app
    case.body = copy(case.body)  # of an example, which is part of the schema
    if case.meta is not None and case.meta.generation.mode.is_positive:
        if len(repr(case.body)) % 2:  # half of them
            _name_what_there_is(case)
        if isinstance(case.body, dict):
            tokens = {name: _whole(case.body[name]) for name in _TOKENS & case.body.keys()}
            case.body |= tokens
            if case.body.get("deadline_s"):
                case.body["deadline_s"] += 60  # of what nobody can do in time a 504 is right
    response = case.call(session=_CLIENT)
    beyond = []
    if _breaks_a_rule_beyond_the_schema(response):
        beyond = ["positive_data_acceptance"]
    elif response.status_code == 413:  # of a whole body no schema says how long it may be
        beyond = ["positive_data_acceptance", "negative_data_rejection"]
    case.validate_response(response, excluded_checks=[CHECKS.get_one(name) for name in beyond])


@_SCHEMA.parametrize()
@_tries(1 + _EXAMPLES // 10, hypothesis.Phase.generate)  # and not for every value of every field
def test_without_a_key_only_probes_answer(case: schemathesis.Case, locked: Service) -> None:
    _SERVICE.app = locked.app
    response = case.call(session=_CLIENT)
    assert (response.status_code == 401) == (case.path not in {"/livez", "/readyz"})
    case.validate_response(response)


def test_the_schema_is_that_of_the_service(served: Service) -> None:
    assert served.client.get("/openapi.json").json() == _SCHEMA.raw_schema


def test_no_route_answers_422(served: Service) -> None:
    document = served.client.get("/openapi.json").text
    assert '"422"' not in document
    assert "HTTPValidationError" not in document
