"""Text on the site, with a network of a few sums: asked for, cut and told of as by the service."""

import base64
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.state import Moment
from service.text.completion import Completion, CompletionSpec, TextEdge, TextPiece
from service.text.offsets import TextOffsets
from service.text.routes import _logprobs
from service.text.sampling import Sampling
from tests.site import networks
from tests.site.conftest import Ask

_STATE = [{"name": n, "dtype": "int64", "shape": []} for n in ("drawn", "total")]
_CASES: list[tuple[dict[str, Any], bytes | None]] = [
    ({"prompt": "To be", "max_tokens": 60, "temperature": 0.7}, None),
    ({"prompt": "\u20ac", "max_tokens": 3, "temperature": 0}, None),
    ({"prompt": "", "max_tokens": 45, "temperature": 1e-9}, b""),
    ({"prompt": "", "max_tokens": 45, "temperature": 2}, b"\xe2\x82"),
    ({"prompt": "so", "max_tokens": 45}, b"\xe2\x82"),
    ({"prompt": "", "max_tokens": 9, "seed": 0}, b""),  # goes on with other randomness
    ({"prompt": "a prompt of more bytes than a run"}, None),
    ({"prompt": "To be", "max_tokens": 45, "seed": 19}, None),  # ends in the midst of a character
]


def test_a_text_is_what_the_service_makes_of_the_same_outputs(
    ask: Ask, artifact: Callable[[str], Path]
) -> None:
    manifest = json.loads((artifact("shakespeare") / "manifest.json").read_text())
    manifest["ports"]["state"] = _STATE
    cases = []
    for number, (goes_on, (body, undecided)) in enumerate(product((False, True), _CASES)):
        told = {"seed": 31 * number} | body | {"logprobs": 1, "return_state": goes_on}
        begun = undecided is not None and {
            "seed": 5, "drawn": 11, "drawn_last": 65, "total": 9,
            "undecided": base64.b64encode(undecided).decode(),
        }  # fmt: skip
        cases.append({"manifest": manifest, "body": told, "moment": begun or None})
        if begun and "seed" not in body:
            del told["seed"]
    left = [
        _left_undecided(case, found)
        for case, found in zip(cases, ask("completed", cases), strict=True)
    ]
    assert any(left)


def _left_undecided(case: dict[str, Any], found: dict[str, Any]) -> bytes:
    """What a completion that is as in the service leaves to be gone on with."""
    body, begun = case["body"], case["moment"]
    prompt = body["prompt"].encode()
    undecided = base64.b64decode(begun["undecided"]) if begun else b""
    numbers = (begun["drawn_last"], begun["total"]) if begun else (0, 0)
    state = {n: np.array(x) for n, x in zip(("drawn", "total"), numbers, strict=True)}
    seed, drawn = (body["seed"], 0) if "seed" in body else (begun["seed"], begun["drawn"])
    moment = Moment(state, seed, 0, drawn, TextEdge(undecided=undecided))
    spec = CompletionSpec(
        prompt=prompt, max_tokens=body.get("max_tokens", 16), logprobs=1,
        sampling=Sampling(temperature=body.get("temperature", 1.0)),
        wants_state=body["return_state"],
    )  # fmt: skip
    pieces: list[TextPiece] = []
    job = Completion(spec, moment, pieces.append)
    networks.write(job, networks.text, found["runs"], forced=np.int64)
    offsets = TextOffsets(undecided, between=bool(prompt))
    expected = [(p.text, _logprobs(p.logprobs, offsets)) for p in pieces]
    *told, last, usage = found["events"]
    parts = [event["choices"][0] for event in (*told, last)]
    # The site tells of runs in which no text became final as well.
    shown = [part for part in parts[:-1] if part["text"] or part["logprobs"]["tokens"]] + parts[-1:]
    assert [part["text"] for part in shown] == [text for text, _ in expected]
    for part, (_, logprobs) in zip(shown, expected, strict=True):
        for name, values in logprobs.items():
            if name in ("tokens", "text_offset"):
                assert part["logprobs"][name] == values
        ours, theirs = part["logprobs"], logprobs
        assert ours["token_logprobs"] == pytest.approx(theirs["token_logprobs"], abs=1e-5)
        assert [*map(list, ours["top_logprobs"])] == [*map(list, theirs["top_logprobs"])]
        for one, other in zip(ours["top_logprobs"], theirs["top_logprobs"], strict=True):
            assert one == pytest.approx(other, abs=1e-5)
    assert [part["finish_reason"] for part in parts] == [*(None for _ in told), "length"]
    assert usage["usage"] == {"prompt_tokens": len(prompt), "completion_tokens": job.written}
    assert {event["seed"] for event in found["events"]} == {seed}
    whole = found["whole"]
    (choice,) = whole["choices"]
    assert choice["text"] == "".join(text for text, _ in expected)
    assert choice["logprobs"]["tokens"] == [t for _, p in expected for t in p["tokens"]]
    assert whole["usage"] == usage["usage"]
    states = ["state" in part for part in (*parts, choice)]
    assert states == [*(False for _ in told), *2 * [body["return_state"]]]
    return _undecided(found["after"], pieces[-1].moment) if body["return_state"] else b""


def _undecided(after: dict[str, Any], moment: Moment[TextEdge] | None) -> bytes:
    """The bytes that a moment holds back, which is the same `after` a text of the site."""
    assert moment
    assert (after["seed"], after["drawn"]) == (moment.seed, moment.drawn)
    assert base64.b64decode(after["undecided"]) == moment.edge.undecided
    for name, told in after["state"].items():
        assert base64.b64decode(told) == moment.state[name].tobytes()
    return moment.edge.undecided


def test_of_a_sample_those_bytes_count_that_are_the_same(
    ask: Ask, artifact: Callable[[str], Path]
) -> None:
    manifest = json.loads((artifact("shakespeare") / "manifest.json").read_text())
    manifest["ports"]["state"] = _STATE
    sample = {"manifest": manifest, "request": {"prompt": "", "max_tokens": 9, "seed": 1}}
    same, other = ask("sampled", [sample | {"ending": ending} for ending in ("", "\x00\x01")])
    assert same["equal"] == same["of"]
    assert other["equal"] == other["of"] - 2
    assert (same["unit"], same["runtime"]) == ("bytes", "theirs")
