"""Hands to write in: those that are stored, those made of strokes, and what is no hand at all."""

import json
import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from service.errors import InvalidRequest
from service.ink import hands
from service.ink.line import InkEdge
from service.ink.schemas import StrokesWithText
from service.state import StateCodec
from tests.artifacts import HANDS, invented_ink
from tests.service.serving import KEY, Service
from tests.service.writing import InkService

_BODY = {"text": "a hand\nof my own", "seed": 6}


def _strokes(scale: float = 1.0) -> dict[str, Any]:
    """A row of arches of 12 points each, the pen lifted after every third."""
    arch = [[6 * i / 11, 8 - 8 * np.sin(np.pi * i / 11)] for i in range(12)]
    points = [[(x + 7 * n) * scale, y * scale] for n in range(9) for x, y in arch]
    return {"strokes": [points[:36], points[36:72], points[72:]], "text": "mmm mmm mmm"}


def test_the_state_of_a_page_is_the_hand_it_is_in(ink: InkService) -> None:
    """So a hand that is kept as a token gets a new signature: by writing in it."""
    token = ink.client.post("/v1/styles", json=_strokes()).json()["style"]
    page = ink.write(**_BODY, style=token, return_state=True)
    assert page["state"] != token
    assert ink.write(**_BODY, style=page["state"])["lines"] == page["lines"]


def _refusal(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    return response.json()["error"]


def test_stored_hands_are_listed_with_what_they_look_like(ink: InkService) -> None:
    answer = ink.client.get("/v1/styles").json()
    assert answer["object"] == "list"
    assert [style["id"] for style in answer["data"]] == list(HANDS)
    for style in answer["data"]:
        assert style.keys() == {
            "id", "model", "description", "slant_degrees", "size", "speed", "preview",
        }  # fmt: skip
        assert style["model"] == "scrawl"
        assert style["description"] == f"invented, {style['id']}"
        assert -60 <= style["slant_degrees"] <= 60
        assert style["size"] > 0 < style["speed"]
    assert ink.client.get("/v1/styles").json() == answer


def test_a_service_without_hands_lists_none(scan: Service) -> None:
    assert scan.client.get("/v1/styles").json() == {"object": "list", "data": []}


def test_each_hand_writes_its_own_ink(pen: InkService) -> None:
    hands = ["made-up", *HANDS, _strokes()]
    inks = [pen.strokes(**_BODY, style=hand) for hand in hands]
    assert all(inks[i] != inks[j] for i in range(4) for j in range(i))
    for hand, ink in zip(hands, inks, strict=True):
        assert pen.strokes(**_BODY, style=hand) == ink


def test_a_hand_is_not_its_seed(ink: InkService) -> None:
    token = ink.write(**_BODY, style=_strokes())["style"]
    for style in ("upright", token):
        one, other = (ink.write(**_BODY | {"seed": n}, style=style) for n in (1, 2))
        assert one["lines"] != other["lines"]
        assert (one["seed"], other["seed"], one["style"]) == (1, 2, style)


def test_a_stored_hand_is_the_state_it_was_stored_as(ink: InkService) -> None:
    moment = ink.model.styles["hasty"]
    assert (moment.edge.context, moment.edge.height != 0) == ("d", True)
    state = ink.model.codec.encode(replace(moment, seed=6))
    assert ink.strokes(text=_BODY["text"], state=state) == ink.strokes(**_BODY, style="hasty")


def test_the_service_reads_ink_into_the_state_that_export_stored(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two programs, one hand: exported with the artifact, and read here as a caller's ink is."""
    assert ink.client.portal is not None
    for i, hand in enumerate(HANDS):
        read = invented_ink(hand, i)
        monkeypatch.setattr(hands, "offsets_of", lambda *_, ink=read: ink.offsets)
        body = StrokesWithText(strokes=[[[0.0, 0.0]]], text=read.text)
        found, _ = ink.client.portal.call(hands.read_strokes, ink.model, body)
        stored = ink.model.styles[hand]
        assert found.edge.context == stored.edge.context == read.text[-1]
        for name in stored.state.keys() - {"kappa"}:
            assert found.state[name].tobytes() == stored.state[name].tobytes(), name
        assert np.array_equal(found.state["kappa"], stored.state["kappa"].clip(-1, 1.5))


def test_strokes_become_a_token_that_is_the_same_hand(pen: InkService) -> None:
    first = pen.write(**_BODY, style=_strokes())
    assert len(first["style"]) > 500
    assert pen.write(**_BODY, style=first["style"])["lines"] == first["lines"]
    assert pen.events(**_BODY, style=_strokes())[0]["style"] == first["style"]
    made = pen.client.post("/v1/styles", json=_strokes()).json()
    assert pen.strokes(**_BODY, style=made["style"]) == [line["strokes"] for line in first["lines"]]


def test_a_style_of_strokes_is_measured(ink: InkService) -> None:
    made = ink.client.post("/v1/styles", json=_strokes() | {"model": "scrawl"}).json()
    assert made.keys() == {
        "model", "system_fingerprint", "style", "slant_degrees", "size", "speed",
    }  # fmt: skip
    sheared = _strokes()
    sheared["strokes"] = [[[x - 0.3 * y, y] for x, y in s] for s in sheared["strokes"]]
    assert ink.client.post("/v1/styles", json=sheared).json()["slant_degrees"] == pytest.approx(
        made["slant_degrees"] + np.degrees(np.arctan(0.3)), abs=4
    )


@pytest.mark.parametrize("degrees", [-40.0, 20.0, 40.0])
def test_a_line_written_askew_shows_the_same_hand(ink: InkService, degrees: float) -> None:
    angle, askew = np.radians(degrees), _strokes()
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    askew["strokes"] = [(np.array(s) @ turn).tolist() for s in askew["strokes"]]
    level = ink.client.post("/v1/styles", json=_strokes()).json()
    made = ink.client.post("/v1/styles", json=askew).json()
    assert made["size"] == pytest.approx(level["size"], rel=0.2)
    assert made["slant_degrees"] == pytest.approx(level["slant_degrees"], abs=6)


def test_a_page_twice_as_large_shows_the_same_hand(ink: InkService) -> None:
    small, large = (ink.client.post("/v1/styles", json=_strokes(s)).json() for s in (1, 2))
    assert small == large
    assert ink.client.post("/v1/styles", json=_strokes(1.3)).json()["size"] == pytest.approx(
        small["size"]
    )


def test_a_pen_that_rests_on_the_paper_shows_the_same_hand(ink: InkService) -> None:
    rested = _strokes()
    rested["strokes"] = [[*[s[0]] * 20, *s, *[s[-1]] * 90] for s in rested["strokes"]]
    made, usual = (ink.client.post("/v1/styles", json=own).json() for own in (rested, _strokes()))
    assert made == usual


def test_spaces_around_the_text_of_strokes_say_nothing(ink: InkService) -> None:
    spaced = _strokes() | {"text": "  mmm \n mmm  mmm "}
    assert ink.strokes(**_BODY, style=spaced) == ink.strokes(**_BODY, style=_strokes())
    made, usual = (ink.client.post("/v1/styles", json=own).json() for own in (spaced, _strokes()))
    assert made["style"] == usual["style"]  # which knows how wide the hand is


def test_a_hand_of_strokes_is_as_wide_as_the_model_will_write_it(ink: InkService) -> None:
    """By the line through the hands it was measured on, between its own width and theirs."""
    assert ink.client.portal is not None
    for stretch in (1.0, 1.8):
        own = _strokes()
        own["strokes"] = [[[stretch * x, y] for x, y in stroke] for stroke in own["strokes"]]
        read = hands.read_strokes, ink.model, StrokesWithText(**own)
        hand, looks = ink.client.portal.call(*read)
        assert hand.edge.advance == pytest.approx(2.34 + 0.34 * looks.units_per_character)
        made = ink.client.post("/v1/styles", json=own).json()
        told = (looks.slant_degrees, looks.size_units, looks.units_per_point)
        assert (made["slant_degrees"], made["size"], made["speed"]) == told


@pytest.mark.in_process
def test_strokes_that_are_not_read_cost_nothing(
    ink: InkService, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="evenkeel.request"):
        assert ink.post(**_BODY, style=_strokes(), deadline_s=1e-9).status_code == 504
        assert ink.post(**_BODY, style=_strokes()).status_code == 200
    late, read = (json.loads(line.message)["steps"] for line in caplog.records)
    assert late == 0 < read


def test_two_points_a_character_are_enough() -> None:
    ink = [[[0.0, 0], [10, 0], [20, 5], [30, 0]]]
    assert len(hands.offsets_of(ink, "ab"))
    with pytest.raises(InvalidRequest, match=r"has 1\.3 points a character"):
        hands.offsets_of(ink, "abc")
    nearly = [[[10.0 * i, i % 3] for i in range(59)]]
    with pytest.raises(InvalidRequest, match=r"has 1\.9 points a character"):  # not 2.0
        hands.offsets_of(nearly, 30 * "a")


def test_a_hand_is_of_8000_points_at_most() -> None:
    stroke = [[0.0, 0.0]] * 8000
    assert StrokesWithText(strokes=[stroke], text="a")
    with pytest.raises(ValidationError, match="2 strokes of 8001 points; at most 200 of 8000"):
        StrokesWithText(strokes=[stroke, stroke[:1]], text="a")


def test_an_unknown_style_is_refused_by_name_with_those_there_are(ink: InkService) -> None:
    for name in ("nobody", "x" * 300, "", "\u00fc", "nobody.else"):
        error = _refusal(ink.post(**_BODY, style=name), 400)
        assert error["param"] == "style"
        assert error["message"].endswith("upright, hasty")
        assert len(error["message"]) < 200


def test_a_token_of_another_model_is_a_conflict(ink: InkService) -> None:
    other = replace(ink.model.artifact, digest="0" * 64)
    codec = StateCodec(KEY.encode(), other, ink.model.runtime.fingerprint, InkEdge)
    foreign = codec.encode(ink.model.styles["upright"])
    begun = ink.client.post(
        "/v1/completions", json={"model": "letters", "max_tokens": 1, "return_state": True}
    ).json()
    for token in (foreign, begun["choices"][0]["state"]):
        for field in ("style", "state"):
            error = _refusal(ink.post(text="a", **{field: token}), 409)
            assert error["code"] == "state_mismatch"
            assert error["message"].startswith(f"{field} is of another model: ")
            assert error["param"] == field
    state = ink.write(text="a", return_state=True)["state"]
    refused = ink.client.post("/v1/completions", json={"model": "letters", "state": state})
    assert _refusal(refused, 409)["code"] == "state_mismatch"


def test_a_page_without_a_style_takes_a_stored_hand_by_its_seed(ink: InkService) -> None:
    for seed, style in ((0, "upright"), (1, "hasty"), (6, "upright"), (-1, "hasty")):
        page = ink.write(text="in whose hand?", seed=seed)
        assert page["style"] == style
        assert page["lines"] == ink.lines(text="in whose hand?", seed=seed, style=style)
    made_up = ink.write(text="in whose hand?", seed=1, style="made-up")
    assert made_up["style"] == "made-up"
    assert made_up["lines"] != page["lines"]


def test_a_model_without_stored_hands_makes_one_up(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ink.write(text="in whose hand?", seed=5, style="made-up")
    monkeypatch.setattr(ink.model, "styles", {})
    page = ink.write(text="in whose hand?", seed=5)
    assert (page["style"], page["lines"]) == ("made-up", expected["lines"])


@pytest.mark.parametrize(("bias", "share"), [(0.0, 0.98), (1.0, 0.86), (4.0, 0.8264)])
def test_a_hand_that_is_made_up_is_as_wide_as_such_hands_are_at_that_bias(
    ink: InkService, bias: float, share: float
) -> None:
    units = ink.model.manifest.ink
    made_up = hands.advance_in(ink.model.fresh(0), units, bias)
    assert made_up == pytest.approx(share * units.units_per_character, rel=1e-12)
    stored = ink.model.styles["hasty"]
    assert hands.advance_in(stored, units, bias) == stored.edge.advance


def test_a_hand_is_the_same_whatever_has_been_written_in_it(ink: InkService) -> None:
    texts = ("a", "all of this\nand of that")
    tokens = [ink.write(text=t, seed=5, style="hasty", return_state=True)["state"] for t in texts]
    inks = [ink.strokes(**_BODY, style=token) for token in tokens]
    assert inks[0] == inks[1] == ink.strokes(**_BODY, style="hasty")


@pytest.mark.parametrize("style", ["hasty", "strokes", "made-up"])
def test_every_line_of_a_page_is_written_in_the_state_of_its_hand(
    ink: InkService, style: str
) -> None:
    """A stored one, that of a person, or that after the first line in a hand that was made up."""
    own = {"strokes": [[[x, x % 7] for x in range(60)]], "text": "own"}
    hand = own if style == "strokes" else style
    body = {"style": hand, "seed": 4, "return_state": True}
    tokens = [ink.write(**body, text="\n".join(["a line"] * n))["state"] for n in (1, 2, 4)]
    moments = [ink.model.codec.decode(token) for token in tokens]
    if style == "hasty":
        moments.append(ink.model.styles["hasty"])
    for moment in moments[1:]:
        assert moment.edge == moments[0].edge
        for name, array in moment.state.items():
            assert array.tobytes() == moments[0].state[name].tobytes()
    # Only the randomness goes on.
    assert moments[0].drawn < moments[1].drawn < moments[2].drawn


def test_a_style_and_a_state_are_one_too_many(ink: InkService) -> None:
    state = ink.write(text="a", return_state=True)["state"]
    assert "style" in _refusal(ink.post(text="a", style="upright", state=state), 400)["message"]


@pytest.mark.parametrize(
    ("strokes", "text", "reason"),
    [
        ([[[5, 5]]], "dot", "no line in it"),
        ([[[5, 5], [5, 5]], [[5, 5]]], "dot", "no line in it"),
        ([[[0, 0], [9, 9]]], "far too long for this", "0.1 points a character that move"),
        ([[[0, 0], [9, 9]]], "   ", "text is empty"),
        ([[[0, 0], [9, 9]]], "n漢", "'漢'"),
    ],
)
def test_strokes_that_cannot_be_the_text_are_refused(
    ink: InkService, strokes: list[Any], text: str, reason: str
) -> None:
    style = {"strokes": strokes, "text": text}
    page, made = ink.post(**_BODY, style=style), ink.client.post("/v1/styles", json=style)
    told = _refusal(page, 400), _refusal(made, 400)
    assert all(reason in error["message"] for error in told)
    param = "text" if "text" in reason or "\u6f22" in reason else "strokes"
    assert [error["param"] for error in told] == ["style", param]
