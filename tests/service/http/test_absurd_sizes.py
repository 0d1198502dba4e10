"""What one stranger sends costs next to nothing to refuse: sizes are looked at before contents."""

import json
import time
import tracemalloc
from typing import Any

import pytest
from pydantic import ValidationError

from service.http.fields import RequestBody
from tests.service.writing import InkService

_PATIENCE_S = 1.0  # each took 10 s and more, and up to 1.3 GB, when pydantic saw all of it
_MOST_BYTES = 120e6
_JSON = {"content-type": "application/json"}
_STYLE = {"text": "a"}
_ABSURD: list[tuple[str, dict[str, Any]]] = [
    ("/v1/completions", {"prompt": [1] * 300_000 + [300]}),
    ("/v1/completions", {"prompt": [1] * 300_000 + ["a"]}),
    ("/v1/completions", {"prompt": [""] * 200_000}),
    ("/v1/completions", {"prompt": [[]] * 100_000}),
    ("/v1/completions", {"prompt": [[1], "a"] * 40_000}),
    ("/v1/completions", {"prompt": [None] * 150_000}),
    ("/v1/completions", {"stop": [1] * 300_000}),
    ("/v1/completions", {"logit_bias": {str(i): "x" for i in range(60_000)}}),
    ("/v1/completions", {"metadata": {str(i): 1 for i in range(60_000)}}),
    ("/v1/completions", {"logprobs": 256, "max_tokens": 20_000}),
    ("/v1/completions", {"logprobs": 5, "max_tokens": 60_000, "n": 128}),
    ("/v1/completions", {"logprobs": 5, "echo": True, "prompt": "a" * 100_000, "max_tokens": 0}),
    ("/v1/handwriting", {"text": "a", "style": _STYLE | {"strokes": [[]] * 100_000}}),
    ("/v1/handwriting", {"text": "a", "style": _STYLE | {"strokes": [[["a", "b"]] * 7000]}}),
    ("/v1/handwriting", {"text": "a", "style": _STYLE | {"strokes": [[[1] * 300_000]]}}),
    ("/v1/styles", _STYLE | {"strokes": [1] * 300_000}),
    ("/v1/styles", _STYLE | {"strokes": [[1] * 7000] * 2}),
    ("/detokenize", {"tokens": ["a"] * 200_000}),
]


@pytest.mark.parametrize(("path", "body"), _ABSURD, ids=range(len(_ABSURD)))
def test_an_absurd_request_is_refused_at_once(
    ink: InkService, path: str, body: dict[str, Any]
) -> None:
    model = {"model": "letters"} if path == "/v1/completions" else {}
    content = json.dumps(model | body)
    tracemalloc.start()
    try:
        began_s = time.perf_counter()
        answer = ink.client.post(path, content=content, headers=_JSON)
        taken_s = time.perf_counter() - began_s
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.status_code == 400, answer.text[:200]
    assert len(answer.text) < 1000
    # Tracing makes it several times slower.
    assert taken_s < 5 * _PATIENCE_S
    assert most < _MOST_BYTES


def _bodies(kind: type[RequestBody]) -> list[type[RequestBody]]:
    return [kind, *(below for one in kind.__subclasses__() for below in _bodies(one))]


@pytest.mark.parametrize("body", dict.fromkeys(_bodies(RequestBody)[1:]), ids=lambda b: b.__name__)
def test_one_unknown_field_is_looked_at_of_however_many(body: type[RequestBody]) -> None:
    """An error for each of them stopped the event loop for half a second."""
    with pytest.raises(ValidationError) as caught:
        body.model_validate({f"{i:x}": 1 for i in range(1000)})
    kinds = [error["type"] for error in caught.value.errors()]
    assert kinds.count("extra_forbidden") == 1


def test_the_work_of_one_request_is_bounded(ink: InkService) -> None:
    body = {"model": "letters", "max_tokens": 20_000}
    answer = ink.client.post("/v1/completions", json=body | {"n": 128})
    assert answer.status_code == 400
    assert "2,560,000 bytes" in answer.json()["error"]["message"]
    prompts = ["a" * 5_000] * 100
    answer = ink.client.post("/v1/completions", json=body | {"prompt": prompts})
    assert answer.status_code == 400
    assert "2,500,000 bytes" in answer.json()["error"]["message"]


def test_as_many_tokens_as_a_body_holds_are_read_without_a_stall(ink: InkService) -> None:
    began_s = time.perf_counter()
    body = {"model": "letters", "prompt": [1] * 200_000, "max_tokens": 0, "logprobs": None}
    answer = ink.client.post("/v1/completions", json=body | {"n": 1, "max_tokens": 70_000})
    assert answer.status_code == 400  # past the limit of tokens, so nothing has run
    assert time.perf_counter() - began_s < _PATIENCE_S


def test_logprobs_that_fit_are_given(ink: InkService) -> None:
    body = {"model": "letters", "max_tokens": 300, "logprobs": 256, "seed": 1}
    answer = ink.client.post("/v1/completions", json=body)
    assert len(answer.json()["choices"][0]["logprobs"]["top_logprobs"]) == 300
