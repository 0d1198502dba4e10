"""Whatever cannot be answered gets a 4xx with OpenAI's error body and a clear reason."""

import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.service.serving import Service
from tests.service.writing import InkService, online

_URL = "/v1/completions"
_JSON = {"content-type": "application/json"}


def _error(response: Any, status: int) -> dict[str, Any]:
    """The error of a response, its form checked."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body.keys() == {"error"}
    error = body["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert error["message"]
    assert "Traceback" not in error["message"]
    return error


def _raw(service: Service, content: bytes | Iterator[bytes], **headers: str) -> Any:
    return service.client.post(_URL, content=content, headers=_JSON | headers)


_WRONG = [
    ({"max_tokens": 65537}, "max_tokens"),
    ({"max_tokens": 10**30}, "max_tokens"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"max_tokens": 1.5}, "max_tokens"),
    ({"max_tokens": True}, "max_tokens"),
    ({"max_tokens": "5"}, "max_tokens"),
    ({"temperature": 9.0}, "temperature"),
    ({"temperature": -0.1}, "temperature"),
    ({"temperature": float("nan")}, "temperature"),
    ({"temperature": float("inf")}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"temperature": True}, "temperature"),
    ({"top_p": 0}, "top_p"),
    ({"top_p": 1.01}, "top_p"),
    ({"top_p": float("nan")}, "top_p"),
    ({"top_k": 0}, "top_k"),
    ({"top_k": True}, "top_k"),
    ({"min_p": -0.5}, "min_p"),
    ({"min_p": float("-inf")}, "min_p"),
    ({"n": 0}, "n"),
    ({"n": 129}, "n"),
    ({"n": 65, "prompt": ["a", "b"]}, "n"),
    ({"n": True}, "n"),
    ({"seed": 2**63}, "seed"),
    ({"seed": 1.5}, "seed"),
    ({"seed": True}, "seed"),
    ({"logprobs": 257}, "logprobs"),
    ({"logprobs": True}, "logprobs"),
    ({"echo": 1}, "echo"),
    ({"stream": "yes"}, "stream"),
    ({"stop": ["x"] * 17}, "stop"),
    ({"stop": [1]}, "stop"),
    ({"stop": "x" * 257}, "stop"),
    ({"stop": ["a", "x" * 257]}, "stop"),
    ({"stop": "\ud800"}, "stop"),
    ({"logit_bias": {"256": 1}}, "logit_bias"),
    ({"logit_bias": {"-1": 1}}, "logit_bias"),
    ({"logit_bias": {"a": 1}}, "logit_bias"),
    ({"logit_bias": {"65": 1, "065": 2}}, "logit_bias"),
    ({"logprobs": 256, "max_tokens": 100_000}, "logprobs"),
    ({"resume": True}, "resume"),
    ({"logit_bias": {"": 1}}, "logit_bias"),
    ({"logit_bias": {"²": 1}}, "logit_bias"),
    ({"logit_bias": {"9" * 5000: 1}}, "logit_bias"),
    ({"logit_bias": {"\ud800": 1}}, "logit_bias"),
    ({"logit_bias": {"65": 101}}, "logit_bias"),
    ({"logit_bias": {"65": float("nan")}}, "logit_bias"),
    ({"logit_bias": [1]}, "logit_bias"),
    ({"prompt": "\ud800"}, "prompt"),
    ({"prompt": ["fine", "\udfff"]}, "prompt"),
    ({"prompt": [256]}, "prompt"),
    ({"prompt": [-1]}, "prompt"),
    ({"prompt": [True]}, "prompt"),
    ({"prompt": [1.0]}, "prompt"),
    ({"prompt": [[1], [999]]}, "prompt"),
    ({"prompt": [[1], ["a"]]}, "prompt"),
    ({"prompt": [[1], [True]]}, "prompt"),
    ({"prompt": [1, "a"]}, "prompt"),
    ({"prompt": 5}, "prompt"),
    ({"presence_penalty": 0.5}, "presence_penalty"),
    ({"frequency_penalty": -2}, "frequency_penalty"),
    ({"frequency_penalty": float("nan")}, "frequency_penalty"),
    ({"frequency_penalty": False}, "frequency_penalty"),
    ({"presence_penalty": False}, "presence_penalty"),
    ({"repetition_penalty": True}, "repetition_penalty"),
    ({"repetition_penalty": 1.1}, "repetition_penalty"),
    ({"best_of": True}, "best_of"),
    ({"best_of": 2}, "best_of"),
    ({"best_of": 3, "n": 2}, "best_of"),
    ({"suffix": "end"}, "suffix"),
    ({"surprise": 1}, "surprise"),
    ({"stream_options": {"include_usage": 1}}, "stream_options"),
    ({"stream_options": {"chunky": True}}, "stream_options"),
    ({"state": "forged"}, "state"),
    ({"state": "\ud800"}, "state"),
    ({"state": 5}, "state"),
    ({"model": 5}, "model"),
]


@pytest.mark.parametrize(("change", "field"), _WRONG, ids=lambda value: ascii(value)[:40])
def test_a_wrong_value_is_named(scan: Service, change: dict[str, Any], field: str) -> None:
    content = json.dumps({"model": "letters", "max_tokens": 2} | change).encode()
    error = _error(_raw(scan, content), 400)
    assert error["param"] == field
    assert field in error["message"]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"temperature": 9.0}, ["9.0", "2"]),
        ({"max_tokens": 65537}, ["65537", "65536"]),
        ({"presence_penalty": 0.5}, ["0.5"]),
        ({"stream_options": {"chunky": True}}, ["chunky"]),
        ({"prompt": [65, 300]}, ["300", "256"]),
        ({"logit_bias": {"256": 1}}, ["256", "255"]),
        ({"stop": "x" * 257}, ["257 characters; at most 256 are taken"]),
        ({"stop": ["a", "x" * 257]}, ["257 characters; at most 256 are taken"]),
        ({"stop": ["a", "b\ud800"]}, ["character 1 is half of a surrogate pair"]),
        ({"top_p": 1e-46}, ["top_p is 1e-46: float32 has no such number"]),
    ],
)
def test_a_message_holds_the_value_and_the_rule(
    scan: Service, change: dict[str, Any], parts: list[str]
) -> None:
    content = json.dumps({"model": "letters"} | change).encode()
    message = _error(_raw(scan, content), 400)["message"]
    for part in parts:
        assert part in message


def test_where_several_models_can_a_missing_one_is_named(scan: Service) -> None:
    error = _error(_raw(scan, b"{}"), 404)
    assert error["param"] == "model"
    assert error["message"] == "model is missing; those that can do this: letters, noise"


def test_a_long_wrong_value_is_not_sent_back_whole(scan: Service) -> None:
    for change in ({"suffix": "x" * 10_000}, {"temperature": "x" * 10_000}, {"y" * 10_000: 1}):
        assert len(_error(scan.post(**change), 400)["message"]) < 500
    assert len(_error(scan.post(logit_bias={"a" * 10_000: 1}), 400)["message"]) < 500


def test_a_long_name_that_nothing_has_is_not_sent_back_whole(ink: InkService) -> None:
    name = "x" * 5000
    asked = [
        ink.client.get(f"/v1/{path}") for path in (f"models/{name}", f"styles/{name}/preview.svg")
    ]
    for answer in (ink.post(text="a", model=name), *asked):
        told = _error(answer, 404)["message"]
        assert f"'{'x' * 37}...'" in told
        assert len(told) < 500
    with online(ink) as session:
        assert len(session.ask(model=name)["error"]["message"]) < 500


def test_an_unknown_field_that_is_not_unicode_is_refused(scan: Service) -> None:
    _error(_raw(scan, b'{"model": "letters", "\\ud800": 1}'), 400)


def test_an_unknown_model_is_a_404_that_lists_those_there_are(scan: Service) -> None:
    error = _error(scan.post(model="gpt"), 404)
    assert (error["code"], error["param"]) == ("model_not_found", "model")
    assert error["message"] == "model is 'gpt'; this service has: letters, noise"
    _error(_raw(scan, b'{"model": "\\ud800"}'), 404)


def test_an_empty_body_says_so(scan: Service) -> None:
    assert "empty" in _error(_raw(scan, b""), 400)["message"]


@pytest.mark.parametrize("content", [b"[]", b'"text"', b"5", b"true", b"null"])
def test_a_body_that_is_not_an_object_says_so(scan: Service, content: bytes) -> None:
    error = _error(_raw(scan, content), 400)
    assert error["param"] is None
    assert "object" in error["message"]
    assert not error["message"].startswith("None")


@pytest.mark.parametrize("content", [b"{", b"prompt=x", b"{'a': 1}", b"\x00", b"{} trailing"])
def test_a_body_that_is_not_json_says_so(scan: Service, content: bytes) -> None:
    assert "not JSON" in _error(_raw(scan, content), 400)["message"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"prompt": "\xff"}', "is not JSON in UTF-8: invalid start byte at byte 12"),
        ('{"prompt": "é"}'.encode("latin-1"), "is not JSON in UTF-8: .* at byte 12"),
        (b"\xfe\xff\x00{", "is not JSON: .* at character 1"),
        (b"{} trailing", "is not JSON: Extra data at character 3"),
        (b'{"a": "\n"}', "is not JSON: Invalid control character at character 7"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"seed": ' + b"9" * 5000 + b"}", "has a whole number of over 4300 digits"),
    ],
    ids=[
        "invalid",
        "latin-1",
        "half utf-16",
        "trailing",
        "control",
        "too deep",
        "too long a number",
    ],
)
def test_a_body_that_cannot_be_parsed_is_told_why(scan: Service, content: bytes, why: str) -> None:
    assert re.fullmatch(f"the request body {why}", _error(_raw(scan, content), 400)["message"])


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (b'{"model": "letters", "\\ud800": 1}', r"\ud800"),
        (b'{"stream_options": {"\\udfffx": 1}}', r"stream_options.\udfffx"),
    ],
)
def test_a_name_that_is_half_of_a_pair_is_unknown(
    scan: Service, content: bytes, field: str
) -> None:
    assert _error(_raw(scan, content), 400)["message"] == f"unknown field: {field}"


_PLAIN = b'{"model": "letters", "max_tokens": 1}'


@pytest.mark.parametrize("content", [gzip.compress(_PLAIN), _PLAIN], ids=["is so", "is not"])
@pytest.mark.parametrize("coding", ["gzip", "GZIP", "identity, gzip"])
def test_a_compressed_body_is_told_that_none_is_read(
    scan: Service, content: bytes, coding: str
) -> None:
    """Nor is one that is only said to be: whoever sent it meant something else."""
    answer = _raw(scan, content, **{"content-encoding": coding})
    error = _error(answer, 415)
    assert error["code"] == "coded_body"
    assert (
        error["message"] == "the request body is in content-encoding gzip; this service reads none"
    )
    assert answer.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("content", [gzip.compress(_PLAIN), _PLAIN], ids=["is so", "is not"])
def test_nor_is_one_that_was_compressed_on_its_way(scan: Service, content: bytes) -> None:
    """Chunks are taken apart, and what was in them would be read as it is (RFC 9112 §7)."""
    error = _error(_raw(scan, content, **{"transfer-encoding": "gzip, chunked"}), 415)
    told = "the request body is in transfer-encoding gzip; this service reads none"
    assert (error["code"], error["message"]) == ("coded_body", told)
    assert _raw(scan, _PLAIN, **{"transfer-encoding": "Chunked"}).status_code == 200


def test_a_body_in_chunks_is_told_so_too(scan: Service) -> None:
    _error(_raw(scan, iter([_PLAIN]), **{"content-encoding": "br"}), 415)


def test_a_coding_of_any_length_is_told_by_its_beginning(scan: Service) -> None:
    coding = {"content-encoding": "x" * 5000}
    assert len(_error(_raw(scan, _PLAIN, **coding), 415)["message"]) < 200


@pytest.mark.parametrize("coding", ["identity", "Identity", ""])
def test_a_body_that_is_said_to_be_as_it_is_is_read(scan: Service, coding: str) -> None:
    assert _raw(scan, _PLAIN, **{"content-encoding": coding}).status_code == 200


def test_what_has_no_body_is_in_no_coding(scan: Service) -> None:
    assert scan.client.get("/livez", headers={"content-encoding": "gzip"}).status_code == 200


def test_a_body_of_another_type_is_refused(scan: Service) -> None:
    response = scan.client.post(_URL, content=b'{"model": "letters"}', headers={})
    _error(response, 400)
    response = scan.client.post(_URL, data={"model": "letters"})
    _error(response, 400)


def test_a_body_over_the_limit_is_refused_by_its_length(scan: Service) -> None:
    content = json.dumps({"model": "letters", "prompt": "x" * 2**20}).encode()
    error = _error(_raw(scan, content), 413)
    assert error["message"] == "the request body is over 1048576 bytes"
    assert error["code"] == "body_too_large"


def test_a_body_over_the_limit_is_refused_while_it_arrives(scan: Service) -> None:
    sent = []

    def chunks() -> Iterator[bytes]:
        yield b'{"model": "letters", "prompt": "'
        for _ in range(40):
            sent.append(1)
            yield b"x" * 2**16

    error = _error(_raw(scan, chunks()), 413)
    assert error["message"] == "the request body is over 1048576 bytes"
    assert error["code"] == "body_too_large"


@pytest.mark.parametrize("length", ["-1", "many", ""])
def test_a_length_that_is_a_lie_does_not_open_the_limit(scan: Service, length: str) -> None:
    content = json.dumps({"model": "letters", "prompt": "x" * 2**20}).encode()
    _error(_raw(scan, content, **{"content-length": length}), 413)


def test_a_body_just_under_the_limit_is_read(scan: Service) -> None:
    frame = len(json.dumps({"model": "letters", "user": ""}))
    content = json.dumps({"model": "letters", "user": "x" * (2**20 - frame)}).encode()
    assert len(content) == 2**20
    assert _raw(scan, content).status_code == 200


@pytest.mark.parametrize(
    "neutral",
    [
        {"best_of": 1},
        {"best_of": None},
        {"presence_penalty": 0},
        {"presence_penalty": 0.0},
        {"repetition_penalty": 1.0},
        {"frequency_penalty": None},
        {"suffix": ""},
        {"suffix": None},
        {"logit_bias": {}},
        {"logit_bias": None},
        {"stop": None},
        {"stop": []},
        {"stop": ["x" * 256] * 16},
        {"seed": None},
        {"logprobs": None},
        {"state": None},
        {"stream_options": None},
        {"user": "somebody"},
        {"top_k": 10**9},
        {"prompt": []},
        {"prompt": ""},
        {"prompt": [[]]},
        {"temperature": 1},
    ],
)
def test_a_neutral_value_changes_nothing(scan: Service, neutral: dict[str, Any]) -> None:
    plain = {"seed": 3, "max_tokens": 20}
    expected = scan.text(**plain)
    if "seed" in neutral:
        assert scan.post(**plain | neutral).status_code == 200
    else:
        assert scan.text(**plain | neutral) == expected


def test_a_refused_request_is_counted(scan: Service) -> None:
    def count() -> float:
        registry = scan.app.state.metrics.registry
        return registry.get_sample_value("evenkeel_requests_rejected_total", {"status": "400"}) or 0

    before = count()
    scan.post(temperature=9.0)
    assert count() == before + 1


@pytest.mark.parametrize(("method", "path"), [("GET", "/nowhere"), ("GET", "/v1/nowhere")])
def test_an_unknown_path_is_a_404_with_the_error_body(
    scan: Service, method: str, path: str
) -> None:
    _error(scan.client.request(method, path), 404)


def test_a_wrong_method_is_a_405_with_the_error_body(scan: Service) -> None:
    _error(scan.client.get(_URL), 405)
