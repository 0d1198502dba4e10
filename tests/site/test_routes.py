"""What the page is answered on a device before any model computes."""

import pytest

from tests.site.conftest import Ask


@pytest.mark.parametrize(
    ("path", "param"),
    [
        ("POST /v1/completions", "model"), ("POST /v1/handwriting", "model"),
        ("GET /v1/models/another", "model"), ("POST /v1/no", None),
    ],
)  # fmt: skip
def test_a_refusal_names_its_field_as_the_services_does(
    ask: Ask, path: str, param: str | None
) -> None:
    method, path = path.split()
    asked = {"method": method, "path": path, "body": {"model": "another"}}
    (answer,) = ask("routed", [asked])
    error = answer["body"]["error"]
    assert answer["status"] == 404
    assert (error["type"], error["param"]) == ("invalid_request_error", param)


def test_news_of_a_model_comes_when_there_is_some(ask: Ask) -> None:
    """Nobody has to ask again and again; the list says how it is now."""
    paths = ("/v1/models/it", "/v1/models")
    one, every = ask("routed", [{"method": "GET", "path": path} for path in paths])
    assert one == {"status": 200, "body": {"id": "it", "proved": True}}
    assert every["body"]["data"] == [{"id": "it", "proved": False}]
