"""What models write on the site, in WebAssembly: the text of the service, and its ink."""

import itertools
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.serving import Service
from tests.site.conftest import Ask

_CASES = 200 if os.environ.get("EVENKEEL_LONG") else 40
_SAME_PX = 0.1
_WORDS = ["to", "a", "jig", "Ox!", "it", "(7)", "I.", "no"]

Requests = list[dict[str, Any]]


@dataclass(frozen=True)
class Written:
    """What a model said of itself, the requests of a kind by its name, and the answers here."""

    described: dict[str, Any]
    requests: dict[str, Requests]
    answers: dict[str, list[Any]]

    def both(self, kind: str) -> Iterator[tuple[dict[str, Any], Any]]:
        return zip(self.requests[kind], self.answers[kind], strict=True)


@pytest.fixture(scope="module")
def here(ask: Ask, artifact: Callable[[str], Path], onnxruntime_web: str) -> Callable[..., Written]:
    """Has a model answer requests on this device, all in one process."""

    def write(name: str, **requests: Requests) -> Written:
        asked = ["describe", *itertools.chain(*requests.values())]
        described, *answers = ask("requests", asked, str(artifact(name)), onnxruntime_web)
        left = iter(answers)
        told = {kind: list(itertools.islice(left, len(some))) for kind, some in requests.items()}
        return Written(described, requests, told)

    return write


def _texts() -> Requests:
    temperatures = itertools.cycle([0.0, 0.5, 1.0, 2.0])
    prompts = itertools.cycle(["", "ROMEO:", "What light", "é€", "\n"])
    cases: Requests = [
        {"prompt": p, "max_tokens": 8, "temperature": t, "seed": 31 * n, "logprobs": 1}
        for n, p, t in zip(range(_CASES), prompts, temperatures, strict=False)
    ]
    cold = {"prompt": "ROMEO:", "max_tokens": 8, "temperature": 1.2e-38, "seed": 7, "logprobs": 1}
    return [*cases, {"prompt": "ROMEO:", "seed": 7, "logprobs": 1}, cold]


def _parts() -> Requests:
    whole = {"prompt": "ROMEO:", "max_tokens": 60, "temperature": 2, "seed": 5}
    part = {**whole, "max_tokens": 25, "return_state": True}
    return [whole, part, {"max_tokens": 35, "temperature": 2, "state": "the last"}]


@pytest.fixture(scope="module")
def text(here: Callable[..., Written]) -> Written:
    """What the language model wrote."""
    return here("shakespeare", texts=_texts(), parts=_parts())


def _lines(service: Service) -> Requests:
    random = np.random.default_rng(7)
    stored = [style["id"] for style in service.client.get("/v1/styles").json()["data"]]
    drawn = _write(service, text="even keel", seed=3, bias=2, format="json")
    own = {"strokes": drawn["lines"][0]["strokes"], "text": "even keel"}
    hands: list[Any] = [None, "made-up", *stored, own]
    cases: Requests = [
        {"text": str(random.choice(_WORDS)), "bias": bias, "style": hands[number % len(hands)]}
        for number, bias in zip(range(_CASES), itertools.cycle([0.0, 0.5, 1.0, 3.0]), strict=False)
    ]
    # Longer ones, and pages whose lines go on in one hand, of its own too.
    cases[0] |= {"text": "What is served is what was trained."}
    cases[1] |= {"text": "no\n\nto and fro"}
    cases[2] |= {"text": "Steady as she goes", "width": 300}
    cases[3] |= {"text": "\u201cit\u2019s\u201d\u00a0\u2014\u00adso\u2026\r\nno"}
    cases[4] |= {
        "text": "\u00c0 bient\u00f4t, se\u00f1or \u0141\u0119cki; \u00bfd\u00eda \u0142atwy?"
    }
    cases[5] |= {"text": "\u20ac5 or \u00a37, \u00fe\u00e6r \u00f8re\n\na\u030a i\u0308d\u00ed"}
    own["text"] = "\u00e9ven\u2009keel"
    cases[len(hands) - 1] |= {"text": "Steady as she goes", "width": 300}
    lines = [{**case, "seed": 17 * n, "format": "json"} for n, case in enumerate(cases)]
    return [*lines, {"text": "to", "seed": -7, "format": "json"}]  # a hand that the seed takes


def _followed() -> Requests:
    points = [[20, 130, 0], [24, 120, 0], [30, 110, 0], [33, 125, 1], [50, 128, 0], [52, 119, 1]]
    page = {"text": "even", "seed": 4, "line_height": 70, "origin": [20, 130], "points": points}
    return [page | {"style": style} for style in (None, "ada")]


@pytest.fixture(scope="module")
def ink(here: Callable[..., Written], service: Service) -> Written:
    """What the handwriting model wrote, and where it expected a pen."""
    return here("handwriting", lines=_lines(service), followed=_followed())


def _write(service: Service, **body: Any) -> dict[str, Any]:
    response = service.client.post("/v1/handwriting", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_models_prove_themselves(text: Written, ink: Written) -> None:
    for described, steps in ((text.described, 400), (ink.described, 640)):
        verdict = described["attestation"]
        assert verdict["ok"], verdict
        assert verdict["steps"] == steps
        assert verdict["max_error"] < verdict["bound"] / 2
        assert described["runtime"].startswith("wasm-ort1.30")


def test_the_text_is_the_services(service: Service, text: Written) -> None:
    for case, ours in text.both("texts"):
        theirs = service.choice(model="shakespeare", **case)
        (choice,) = ours["choices"]
        assert choice["text"] == theirs["text"], case
        assert choice["finish_reason"] == theirs["finish_reason"]
        for name in ("tokens", "text_offset"):
            assert choice["logprobs"][name] == theirs["logprobs"][name]
        expected = pytest.approx(theirs["logprobs"]["token_logprobs"], abs=1e-4)
        assert choice["logprobs"]["token_logprobs"] == expected


def test_a_text_goes_on_from_its_token(text: Written) -> None:
    whole, part, rest = (answer["choices"][0]["text"] for answer in text.answers["parts"])
    assert part + rest == whole


def _points(answer: dict[str, Any]) -> list[list[float]]:
    return [point for line in answer["lines"] for stroke in line["strokes"] for point in stroke]


def test_the_ink_is_the_services(service: Service, ink: Written) -> None:
    for case, ours in ink.both("lines"):
        theirs = _write(service, **case)
        for mine, line in zip(ours["lines"], theirs["lines"], strict=True):
            assert mine["text"] == line["text"]
            assert mine["finish_reason"] == line["finish_reason"], case
            assert [*map(len, mine["strokes"])] == [*map(len, line["strokes"])], case
        apart = np.hypot(*(np.array(_points(ours)) - np.array(_points(theirs))).T)
        assert len(apart)
        assert apart.max() < _SAME_PX, case
        for name in ("seed", "width", "height", "usage"):
            assert ours[name] == theirs[name]


def test_where_the_pen_is_expected_is_the_services(service: Service, ink: Written) -> None:
    for case, answers in ink.both("followed"):
        opening = {name: value for name, value in case.items() if name != "points"}
        with service.client.websocket_connect("/v1/online") as socket:
            socket.send_text(json.dumps({"model": "handwriting", **opening}))
            socket.receive_json()
            for point, mine in zip(case["points"], answers, strict=True):
                socket.send_text(json.dumps({"point": point}))
                theirs = socket.receive_json()
                assert (mine["character"], mine["step"]) == (theirs["character"], theirs["step"])
                assert mine["pen_up"] == pytest.approx(theirs["pen_up"], abs=1e-4)
                assert len(mine["mixture"]) == len(theirs["mixture"])
                for a, b in zip(mine["mixture"], theirs["mixture"], strict=True):
                    assert a["weight"] == pytest.approx(b["weight"], abs=1e-4)
                    assert a["rho"] == pytest.approx(b["rho"], abs=1e-3)
                    theirs_px = pytest.approx([*b["mean"], *b["sigma"]], abs=0.02)
                    assert [*a["mean"], *a["sigma"]] == theirs_px
