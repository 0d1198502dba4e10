"""Ink on the site, with a network of a few sums: asked for, placed, told of as by the service."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from contract.ink import InkManifest
from service.artifact import load_artifact
from service.engine.jobs import Job
from service.ink import hands
from service.ink.breaking import break_text
from service.ink.layout import Layout
from service.ink.letters import written
from service.ink.line import InkEdge, InkLine, InkPiece, at_end, hand_after, row_of
from service.ink.measure import measure
from service.ink.online import OnlineInk
from service.ink.pen import LinePen, strokes
from service.ink.squeeze import Squeeze
from service.state import Moment
from tests.site import networks
from tests.site.conftest import Ask

_STATE = [{"name": n, "dtype": "float32", "shape": [s]} for n, s in (("point", 3), ("kappa", 2))]
_STYLES = [
    {"id": "ada", "description": "", "context": ",", "height": -1.25, "advance": 3.5},
    {"id": "ben", "description": "", "context": "?", "height": 0.75, "advance": 5.0},
    {"id": "cleo", "description": "", "context": "a", "height": 0.0, "advance": 4.0},
]
_OWN = {
    "text": "  to  sea\u2026",
    "strokes": [[[3.0 * i, 40 + 9.0 * (i // 3 % 5)] for i in range(n, n + 40)] for n in (50, 0)],
}
_BODIES: list[dict[str, Any]] = [
    {"text": "Steady as she goes", "seed": 0, "width": 300, "line_height": 40.3},
    {"text": "one\n\ntwo three", "seed": -1, "bias": 3},
    {"text": "made up\nand gone on with\nand on\n\n", "seed": 4, "style": "made-up", "bias": 0.5},
    {"text": "heave\nho", "seed": 5, "style": "ben", "stroke_width": 4},
    {"text": "my hand goes on\nagain", "seed": 6, "style": _OWN, "bias": 0, "width": 250},
    {"text": "and again", "seed": 7, "style": "the last"},
    {"text": "made up and laid out", "seed": 9, "style": "made-up", "width": 300},
    {"text": "alone\n\n", "seed": 10, "style": "made-up"},
    {"text": "abcd\nbe", "seed": 8, "style": "made-up", "bias": 5},  # whose lines are cut off
]


@pytest.fixture(scope="module")
def manifests(artifact: Callable[[str], Path]) -> tuple[InkManifest, dict[str, Any]]:
    """The shipped pen's, and that of a pen with a smaller state and two hands."""
    folder = artifact("handwriting")
    changed = json.loads((folder / "manifest.json").read_text()) | {"styles": _STYLES}
    changed["ports"]["state"] = _STATE
    manifest = load_artifact(folder).manifest
    assert isinstance(manifest, InkManifest)
    return manifest, changed


def _begun(seed: int) -> Moment[InkEdge]:
    state = {"point": np.zeros(3, np.float32), "kappa": np.zeros(2, np.float32)}
    return Moment(state, seed, 0, 0, InkEdge())


def _hand(
    style: Any, seed: int, manifest: InkManifest, runs: list[networks.Run]
) -> Moment[InkEdge]:
    if style == "made-up":
        return _begun(seed)
    if isinstance(style, dict):
        return replace(_own(style, manifest, runs), seed=seed)
    number = [known["id"] for known in _STYLES].index(style)
    told = {name: _STYLES[number][name] for name in ("context", "height", "advance")}
    point, kappa = np.arange(3, dtype=np.float32), np.arange(2, dtype=np.float32)
    state = {"point": point + number, "kappa": kappa - number}
    return Moment(state, seed, 0, 0, InkEdge.model_validate(told))


def _own(style: dict[str, Any], manifest: InkManifest, runs: list[networks.Run]) -> Moment[InkEdge]:
    text = " ".join(written(style["text"], manifest).split())
    known, start = hands.offsets_of(style["strokes"], text), _begun(0)
    given = {"forced": known, "force": np.ones(len(known), bool)}
    given["uniform"] = np.full(len(known), 0.5, np.float32)
    given["normal"] = np.zeros((len(known), 2), np.float32)
    row = row_of(text, start.edge, manifest, bias=0.0)
    run = runs.pop(0)
    asked = networks.unpacked(run)
    np.testing.assert_allclose(asked["forced"].reshape(-1, 3), known, atol=1e-5)
    given["forced"] = asked["forced"].reshape(-1, 3)  # which are the same but for rounding
    networks.same(run, start.state, given, row)
    state, _ = networks.ink(start.state, given, row)
    hand = at_end(hand_after(start, text, given["forced"], state, drawn=0))
    of_ink = measure(known, len(text)).units_per_character
    advance = hands._ADVANCE + hands._ADVANCE_OF_INK * of_ink
    return replace(hand, edge=hand.edge.model_copy(update={"advance": advance}))


def test_a_page_is_what_the_service_makes_of_the_same_outputs(
    ask: Ask, manifests: tuple[InkManifest, dict[str, Any]]
) -> None:
    manifest, changed = manifests
    (pages,) = ask("penned", [{"manifest": changed, "bodies": _BODIES}])
    hand, token = _begun(0), ""
    for body, found in zip(_BODIES, pages, strict=True):
        seed, named = body["seed"], found["page"]["style"]
        style = body.get("style", _STYLES[seed % 3]["id"])
        if style == "the last":
            hand, style = replace(hand, seed=seed), token
        else:
            hand = _hand(style, seed, manifest, found["runs"])
        if isinstance(style, dict):
            style = token = named
            assert token.startswith("handwriting/")
        assert named == style
        _assert_page(body, hand, manifest, found)


def test_a_stream_begins_with_how_its_page_looks(
    ask: Ask, manifests: tuple[InkManifest, dict[str, Any]]
) -> None:
    looks = {"color": "#204060", "thinning": 0.4, "stroke_width": 4}
    body = {"text": "a\nb", "seed": 2, "stream": True}
    bodies = [body | looks | {"line_height": 40}, body]
    heads = [
        page["page"] for page in ask("penned", [{"manifest": manifests[1], "bodies": bodies}])[0]
    ]
    usual = {"color": "#1b2a49", "thinning": 0, "stroke_width": 2}
    for head, expected in zip(
        heads, (looks | {"height": 120}, usual | {"height": 192}), strict=True
    ):
        assert {name: head[name] for name in expected} == expected


def _assert_page(
    body: dict[str, Any], hand: Moment[InkEdge], manifest: InkManifest, found: dict[str, Any]
) -> None:
    page, bias, units = found["page"], body.get("bias", 1.0), manifest.ink
    layout = Layout(
        width_px=body.get("width", 800),
        line_height_px=body.get("line_height", 64),
        stroke_width_px=body.get("stroke_width", 2),
        color="#1b2a49",
        units_per_line=units.units_per_line,
        units_per_character=hands.advance_in(hand, units, bias),
    )
    lines = break_text(written(body["text"], manifest), layout.room)
    assert [line["text"] for line in page["lines"]] == lines
    assert page["height"] == layout.height_px(len(lines))
    assert (page["width"], page["seed"]) == (layout.width_px, body["seed"])
    points = 0
    for number, (text, told) in enumerate(zip(lines, page["lines"], strict=True)):
        if not text:
            assert told == {"text": "", "finish_reason": "stop", "strokes": []}
            continue
        pieces: list[InkPiece] = []
        further = any(lines[number + 1 :])
        job = InkLine(text, hand, manifest, pieces.append, bias=bias, wants_state=further)
        networks.write(job, networks.ink, found["runs"])
        pen, squeeze = LinePen(layout, number), Squeeze(layout, text)
        placed = []
        for piece in pieces:
            placed.append(pen.move(piece.offsets))
            placed[-1][:, 0] = squeeze.place(placed[-1][:, 0], piece.characters)
        ours = [np.array(stroke) for stroke in told["strokes"]]
        theirs = strokes(np.concatenate(placed))
        assert [*map(len, ours)] == [*map(len, theirs)]
        np.testing.assert_allclose(np.concatenate(ours), np.concatenate(theirs), atol=0.0051)
        assert told["finish_reason"] == pieces[-1].finish_reason
        points += job.written
        hand = pieces[-1].moment or hand
    assert page["usage"] == {"characters": len("".join(lines)), "points": points}
    assert found["runs"] == []  # and nothing else was asked for


def test_of_a_sample_those_points_count_that_are_in_their_place(
    ask: Ask, manifests: tuple[InkManifest, dict[str, Any]]
) -> None:
    request = {"text": "heave\nho", "seed": 1, "format": "json"}
    moved = ([], [[0.09, 0], [0, -0.09], [0.2, 0], [0, 0.2]])
    cases = [{"manifest": manifests[1], "request": request, "moved": some} for some in moved]
    same, other = ask("sampled", cases)
    assert same["equal"] == same["of"] - 1
    assert other == same | {"equal": same["equal"] - 2}
    assert (same["unit"], same["runtime"]) == ("points", "theirs")


class _Engine:
    """Runs a job at once with the network, and sees that the site asked for the same."""

    def __init__(self, runs: list[networks.Run]) -> None:
        self._runs = runs

    def run_now(self, job: Job) -> bool:
        steps = job.inputs(job.steps_wanted())
        networks.same(self._runs.pop(0), job.state, steps, job.row)
        state, outputs = networks.ink(job.state, steps, job.row)
        job.accept(outputs)
        job.finish(state)
        return True


_POINTS = [[20, 130, 0], [24.5, 120, 0], [24.5, 120, 1], [300, 60, 0.5], [280, 66, 0]]
_OPENINGS: list[dict[str, Any]] = [
    {"text": "even\u00a0keel\nso", "seed": 4, "line_height": 70, "origin": [20, 130]},
    {"text": "even keel", "seed": 5, "bias": 2, "style": "ada", "origin": [20, 130]},
    {"text": "", "seed": 6, "style": "ben"},
]


def test_where_a_pen_is_expected_is_what_the_service_says_of_the_same_outputs(
    ask: Ask, manifests: tuple[InkManifest, dict[str, Any]]
) -> None:
    manifest, changed = manifests
    cases = [{"manifest": changed, "opening": o, "points": _POINTS} for o in _OPENINGS]
    for opening, found in zip(_OPENINGS, ask("followed", cases), strict=True):
        runs = found["runs"]
        hand = _hand(opening.get("style", "made-up"), opening["seed"], manifest, runs)
        text = written(opening["text"], manifest).replace("\n", " ")
        row = row_of(text, hand.edge, manifest, opening.get("bias", 0))
        artifact = SimpleNamespace(manifest=manifest)
        model = SimpleNamespace(manifest=manifest, artifact=artifact, engine=_Engine(runs))
        px_per_unit = opening.get("line_height", 64) / manifest.ink.units_per_line
        session = OnlineInk(cast(Any, model), hand, row, px_per_unit, opening.get("origin"))
        for point, ours in zip(_POINTS, found["answers"], strict=True):
            theirs = asyncio.run(session.answer({"point": point}))
            mine, others = (answer.pop("mixture") for answer in (ours, theirs))
            assert ours == pytest.approx(theirs)
            for name, off in (("weight", 1e-9), ("mean", 0.011), ("sigma", 0.0011), ("rho", 1e-9)):
                found_here = np.array([gaussian[name] for gaussian in mine])
                np.testing.assert_allclose(found_here, [g[name] for g in others], atol=off, rtol=0)
