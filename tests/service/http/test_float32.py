"""Every number of a request is one that float32 holds, where the graphs compute, and nothing that
is not finite comes out or is signed."""

import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from service.http.fields import _in_float32
from service.state import Moment
from service.text.schemas import CompletionRequest
from tests.service.serving import contents
from tests.service.writing import InkService, online

_JSON = {"content-type": "application/json"}
_TEXT_FIELDS = {"temperature", "top_p", "min_p", "logit_bias"}
_INK_FIELDS = {"bias", "line_height", "stroke_width", "thinning", "wander"}
_TOO_SMALL = [1e-46, -1e-46, 5e-324, 1e-39, -1e-40, 2.0**-127]
_LEAST = 2.0**-126
_ROUNDED_TO_IT = _LEAST - 2.0**-150
_TOO_LARGE = [1e39, -1e39, 1.7e308, 3.4028236e38]


def _post(service: InkService, path: str, body: dict[str, Any]) -> Any:
    # Not the client's own JSON, which has no word for an infinity.
    return service.client.post(path, content=json.dumps(body), headers=_JSON)


def _strokes(y: float = 1.0) -> list[Any]:
    return [[[i, i % 5] for i in range(20)] + [[20, y]]]


def _numbers(schema: Any, name: str, schemas: dict[str, Any]) -> set[str]:
    """The properties in a request that have a number in them, however deep."""
    if isinstance(schema, list):
        return set().union(*(_numbers(part, name, schemas) for part in schema))
    if not isinstance(schema, dict):
        return set()
    found = {name} if schema.get("type") == "number" else set()
    if "$ref" in schema:
        found |= _numbers(schemas[schema["$ref"].rpartition("/")[2]], name, schemas)
    for key, part in schema.items():
        if key == "properties":
            for inner, property_schema in part.items():
                found |= _numbers(property_schema, inner, schemas)
        elif key not in ("default", "title", "description"):
            found |= _numbers(part, name, schemas)
    return found


def test_these_are_all_the_numbers_there_are(ink: InkService) -> None:
    schemas = ink.client.get("/openapi.json").json()["components"]["schemas"]
    requests = {name: schema for name, schema in schemas.items() if name.endswith("Request")}
    assert len(requests) == 6
    found = set().union(*(_numbers(schema, "", schemas) for schema in requests.values()))
    # No graph has the rest.
    lengths = {"width", "height", "margin"}
    assert found == _TEXT_FIELDS | _INK_FIELDS | lengths | {"strokes", "origin", "deadline_s"}


@pytest.mark.parametrize("value", [*_TOO_LARGE, float("inf"), float("nan")], ids=str)
def test_a_length_of_a_sheet_is_of_paper(ink: InkService, value: float) -> None:
    for options in (
        {"page": {"width": value, "height": 100}},
        {"page": {"width": 100, "height": value}},
        {"page": "a4", "margin": value},
    ):
        answer = _post(ink, "/v1/handwriting", {"text": "a"} | options)
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("value", [*_TOO_SMALL, *_TOO_LARGE], ids=str)
@pytest.mark.parametrize("field", sorted(_TEXT_FIELDS | _INK_FIELDS))
def test_a_number_that_float32_cannot_hold_is_refused(
    ink: InkService, field: str, value: float
) -> None:
    body = {field: {"65": value} if field == "logit_bias" else value}
    if field in _TEXT_FIELDS:
        answer = _post(ink, "/v1/completions", {"model": "letters"} | body)
    else:
        answer = _post(ink, "/v1/handwriting", {"text": "a"} | body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == field
    assert field in error["message"]


@pytest.mark.parametrize("least", [_LEAST, _ROUNDED_TO_IT], ids=str)
@pytest.mark.parametrize("field", sorted(_TEXT_FIELDS))
def test_the_least_number_of_float32_is_answered(ink: InkService, field: str, least: float) -> None:
    value = {"65": -least} if field == "logit_bias" else least
    body = {"model": "letters", "max_tokens": 20, "logprobs": 2, "seed": 1, field: value}
    answer = _post(ink, "/v1/completions", body)
    assert answer.status_code == 200
    assert np.isfinite(answer.json()["choices"][0]["logprobs"]["token_logprobs"]).all()


@pytest.mark.parametrize("value", [*_TOO_SMALL, *_TOO_LARGE], ids=str)
def test_a_coordinate_that_float32_cannot_hold_is_refused_everywhere(
    ink: InkService, value: float
) -> None:
    own = {"strokes": _strokes(value), "text": "ab"}
    page = {"text": "a", "style": own}
    answers = [
        _post(ink, "/v1/handwriting", page | option)
        for option in ({"format": "json"}, {"format": "svg"}, {"stream": True})
    ]
    for answer in (*answers, _post(ink, "/v1/styles", own)):
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("value", [*_TOO_SMALL, *_TOO_LARGE], ids=str)
def test_a_number_of_a_session_that_float32_cannot_hold_ends_it(
    ink: InkService, value: float
) -> None:
    for opening in (
        {"bias": value},
        {"line_height": value},
        {"origin": [0.0, value]},
        {"style": {"strokes": _strokes(value), "text": "ab"}},
    ):
        with online(ink) as session:
            answer = session.ask(model="scrawl", text="a", **opening)
            assert next(iter(opening)) in answer["error"]["message"]
            assert session.closed() == 1008
    for point in ([value, 0, 0], [0, value, 0], [0, 0, value]):
        with online(ink, model="scrawl", text="a") as session:
            assert "point" in session.ask(point=point)["error"]["message"]
            assert session.closed() == 1008


def _finite(found: Any) -> bool:
    """Whether all numbers in parsed JSON are."""
    if isinstance(found, dict):
        return all(map(_finite, found.values()))
    if isinstance(found, list):
        return all(map(_finite, found))
    return not isinstance(found, float) or bool(np.isfinite(found))


def _sound(moment: Moment[Any]) -> bool:
    tensors = [a for a in moment.state.values() if np.issubdtype(a.dtype, np.floating)]
    return all(np.isfinite(a).all() for a in tensors) and _finite(moment.edge.model_dump())


def _odd_strokes() -> dict[str, Any]:
    """Ink nobody writes: flat, upright, tiny, huge, far away, standing still."""
    ramp = [float(i) for i in range(30)]
    zigzag = [float(i % 2) for i in range(30)]

    def line(xs: list[float], ys: list[float]) -> list[Any]:
        return [[[x, y] for x, y in zip(xs, ys, strict=True)]]

    def times(scale: float, values: list[float], shift: float = 0.0) -> list[float]:
        return [shift + scale * value for value in values]

    none = times(0.0, ramp)
    return {
        "one point": [[[5.0, 5.0]]],
        "all points equal": [[[5.0, 5.0]] * 30],
        "strokes of one point": [[[x, 0.0]] for x in ramp],
        "no height": line(ramp, none),
        "no width": line(none, ramp),
        "a height of almost nothing": line(ramp, times(_LEAST, zigzag)),
        "a width of almost nothing": line(times(_LEAST, zigzag), ramp),
        "almost nothing": line(times(_LEAST, ramp), times(_LEAST, zigzag)),
        "tiny": line(times(1e-30, ramp), times(1e-30, zigzag)),
        "just enough": line(times(1e-3 / 29, ramp), times(1e-9, zigzag)),
        "just enough, far away": line(times(1e-4, ramp, 999_990.0), times(1e-9, zigzag, -1e6)),
        "less, far away": line(times(1e-8, ramp, 1e6 - 1), times(1e-12, zigzag, 1e6 - 1)),
        "huge": line(times(1e6 / 29, ramp), times(1e6, zigzag)),
        "from edge to edge": line(times(2e6, zigzag, -1e6), times(2e6, zigzag, -1e6)),
        "one jump": [[[0.0, 0.0]] * 29 + [[1e6, 1e6]]],
        "a dot and a continent": [[[0.0, 0.0]], *line(times(3e4, ramp), times(1e6, zigzag))],
    }


@pytest.mark.parametrize("name", _odd_strokes())
@pytest.mark.parametrize("text", ["a", "a.'-b c"])
def test_odd_strokes_are_refused_or_answered_in_finite_numbers(
    ink: InkService, name: str, text: str
) -> None:
    own = {"strokes": _odd_strokes()[name], "text": text}
    page = {"text": "a word", "style": own, "seed": 1, "return_state": True}
    made = _post(ink, "/v1/styles", own)
    drawn = _post(ink, "/v1/handwriting", page | {"format": "json"})
    streamed = _post(ink, "/v1/handwriting", page | {"stream": True})
    svg = _post(ink, "/v1/handwriting", page | {"return_state": False})
    assert {made.status_code, drawn.status_code, streamed.status_code, svg.status_code} in (
        {200},
        {400},
    )
    if made.status_code == 400:
        assert "strokes has" in made.json()["error"]["message"]
        return
    assert _finite([made.json(), drawn.json(), contents(streamed.text)])
    assert "nan" not in svg.text
    assert "inf" not in svg.text
    for token in (made.json()["style"], drawn.json()["style"], drawn.json()["state"]):
        assert _sound(ink.model.codec.decode(token))


def test_ink_at_random_is_refused_or_answered_in_finite_numbers(ink: InkService) -> None:
    random = np.random.default_rng(0)
    scales = [0.0, _LEAST, 1e-20, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6]
    answered = 0
    for _ in range(80):
        count = int(random.integers(1, 40))
        points = random.choice(scales, (count, 2)) * random.choice([-1, 0, 0.5, 1], (count, 2))
        ends = sorted({count, *random.integers(1, count + 1, 2).tolist()})
        starts = [0, *ends[:-1]]
        strokes = [points[a:b].tolist() for a, b in zip(starts, ends, strict=True)]
        answer = _post(ink, "/v1/styles", {"strokes": strokes, "text": "ab"})
        if answer.status_code == 200:
            answered += 1
            assert _finite(answer.json()), strokes
            assert _sound(ink.model.codec.decode(answer.json()["style"])), strokes
        else:
            assert answer.status_code == 400, strokes
    assert answered > 20


def test_what_would_be_rounded_to_infinity_is_none_and_what_comes_before_it_is() -> None:
    past = 2.0**128 - 2.0**103  # half of a step past the largest
    assert _in_float32(float(np.nextafter(past, 0))) < past
    for number in (past, -past):
        with pytest.raises(ValueError, match="float32 has no such number"):
            _in_float32(number)


@pytest.mark.parametrize("seed", [-(2**63), 2**63 - 1, 2.0**53 - 1, 1 - 2.0**53])
def test_a_seed_is_any_whole_number_of_64_bits(seed: float) -> None:
    assert CompletionRequest(seed=seed).seed == seed


@pytest.mark.parametrize("seed", [-(2**63) - 1, 2**63, 2.0**53, -(2.0**53), 0.5])
def test_a_seed_that_a_client_has_rounded_is_none(seed: float) -> None:
    """9007199254740993.0 is read as one less."""
    with pytest.raises(ValidationError):
        CompletionRequest(seed=seed)
