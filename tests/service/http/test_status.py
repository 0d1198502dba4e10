"""What the service says about itself."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from service.app import create_app
from service.http.status import livez
from tests.service.serving import Service, running, settings


def test_a_service_that_has_proved_itself_is_ready(service: Service) -> None:
    for path in ("/livez", "/readyz"):
        answer = service.client.get(path)
        assert (answer.status_code, answer.text) == (200, "ok")


def test_health_shows_every_verdict(service: Service) -> None:
    answer = service.client.get("/health")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    for name in ("letters", "noise"):
        model = answer.json()["models"][name]
        assert model["ready"] is True
        assert model["attestation"]["ok"] is True
        assert model["attestation"]["max_error"] <= model["attestation"]["bound"]


def test_models_are_listed_as_openai_lists_them(service: Service) -> None:
    body = service.client.get("/v1/models").json()
    assert body["object"] == "list"
    assert [model["id"] for model in body["data"]] == ["letters", "noise"]
    for model in body["data"]:
        assert (model["object"], model["owned_by"]) == ("model", "evenkeel")
        assert model["created"] == 0  # as artifacts have no date
        assert service.client.get(f"/v1/models/{model['id']}").json() == model


def test_a_model_tells_where_it_comes_from(service: Service) -> None:
    model = service.client.get("/v1/models/letters").json()
    assert model["provenance"]["data"] == {"name": "made for the tests"}
    assert model["hyperparameters"]["units"] == 48
    assert len(model["digest"]) == 64
    assert model["variant"] is None  # it is as trained
    answer = service.complete(max_tokens=1)
    assert answer["system_fingerprint"] == model["system_fingerprint"]
    assert model["system_fingerprint"] == f"{model['digest'][:16]}-{model['runtime']}"


def test_an_unknown_model_is_a_404(service: Service) -> None:
    answer = service.client.get("/v1/models/gpt")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"


def test_metrics_are_in_prometheus_text_format(service: Service) -> None:
    service.complete(max_tokens=1)
    answer = service.client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    for line in (
        'evenkeel_requests_running{model="letters"} 0.0',
        'evenkeel_requests_waiting{model="letters"} 0.0',
        "# TYPE evenkeel_rows_per_run histogram",
        "# TYPE evenkeel_steps_total counter",
    ):
        assert line in answer.text.splitlines()


def test_the_page_needs_nothing_from_elsewhere(scan: Service) -> None:
    page = scan.client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert page.text.lower().startswith("<!doctype html>")
    for reach in ('src="http', "src='http", 'href="http', "//cdn", "@import"):
        assert reach not in page.text


def test_the_schema_is_served_and_the_page_that_would_load_scripts_is_not(scan: Service) -> None:
    paths = scan.client.get("/openapi.json").json()["paths"]
    assert "/v1/completions" in paths
    assert scan.client.get("/redoc").status_code == 404


def test_a_completion_has_the_form_of_openais(scan: Service) -> None:
    answer = scan.complete(max_tokens=3, seed=5)
    assert answer["id"].startswith("cmpl-")
    assert answer["object"] == "text_completion"
    assert answer["model"] == "letters"
    assert answer["seed"] == 5
    assert answer["choices"][0].keys() == {"index", "text", "logprobs", "finish_reason"}


def test_usage_comes_last_in_a_stream_that_asks_for_it(scan: Service) -> None:
    body = {"prompt": "é", "max_tokens": 30, "n": 2}
    assert all("usage" not in event or not event["usage"] for event in scan.events(**body))
    *events, last = scan.events(**body, stream_options={"include_usage": True})
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 2, "completion_tokens": 60, "total_tokens": 62}
    assert len({event["id"] for event in (*events, last)}) == 1


@pytest.mark.parametrize("slots", [1, 2, 7])
def test_any_number_of_slots_serves(letters: Path, slots: int) -> None:
    with running(settings(letters, slots=slots, runner="slots")) as service:
        assert service.complete(n=9, max_tokens=12)["usage"]["completion_tokens"] == 108


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}], ids=str)
def test_usage_comes_in_no_stream_that_does_not_ask_for_it(
    scan: Service, options: dict[str, bool] | None
) -> None:
    assert all(event["choices"] for event in scan.events(max_tokens=2, stream_options=options))


@pytest.mark.parametrize("path", ["/readyz", "/health"])
def test_a_service_that_is_not_ready_says_when_to_ask_again(artifacts: Path, path: str) -> None:
    answer = TestClient(create_app(settings(artifacts))).get(path)  # its models never start
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")


def test_every_model_that_is_stuck_is_named() -> None:
    models = SimpleNamespace(stuck=lambda limit_s: ["one", "other"])
    state = SimpleNamespace(models=models, settings=settings(Path()))
    request: Any = SimpleNamespace(app=SimpleNamespace(state=state))
    assert asyncio.run(livez(request)).body == b"stuck: one, other"
