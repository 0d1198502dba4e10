"""The Text tab visited without a browser: what is asked, shown, and gone on with."""

from typing import Any

import pytest

from tests.site.visiting import PEN, TEXT, Json, Visitor, model, serving

_ROUTE = "/v1/completions"
_ASKED = ["asked", _ROUTE]
_PROGRESS, _ERROR = ["look", "#text-progress"], ["look", "#text-error"]
_PASSAGE, _LINES = ["look", "#text-passage"], ["all", "#text-passage .line", "textContent"]
_START, _GO_ON, _STOP = (["press", f"#text-{name}"] for name in ("start", "goon", "stop"))
_MAY = [["look", f"#text-{name}", "ariaDisabled"] for name in ("start", "goon", "stop")]
_TOLD = {"model": "shakespeare", "seed": 7, "system_fingerprint": "any"}
_BODY: Json = {
    "model": "shakespeare", "prompt": "RO\nMEO", "max_tokens": 20, "temperature": 1.5, "seed": 0,
    "logprobs": 1, "stream": True, "stream_options": {"include_usage": True}, "return_state": True,
}  # fmt: skip
_FILL = [
    ["fill", "#text-prompt", "RO\nMEO"], ["fill", "#text-length", "20"],
    ["fill", "#text-temperature", "1.5"],
    ["fill", "#text-seed", "0"],
]  # fmt: skip


def _piece(text: str, chances: list[float], at: int = 0, **more: Any) -> Json:
    logprobs = {"text_offset": [at + i for i in range(len(chances))], "token_logprobs": chances}
    return _TOLD | {"choices": [{"index": 0, "text": text, "logprobs": logprobs, **more}]}


def _usage(count: int) -> Json:
    return _TOLD | {"choices": [], "usage": {"completion_tokens": count}}


_AUSTEN = model("austen", "language", default=True)
_FROM = {"data": {"name": "x"}, "from": {"name": "shakespeare"}}
_SMALL = model("small", "language", default=True, precision="int8", provenance=_FROM)
_WHOLE = [_piece("ab\n", [-1.0, -0.1, -3.0]), _piece("c", [-5.0], 3, state="after"), _usage(4)]


def _bodies(asked: list[Json]) -> list[Json]:
    return [one["body"] for one in asked]


def _visit(visit: Visitor, *steps: list[Any], answers: list[Json], **how: Any) -> list[Any]:
    return visit(*steps, answers=serving(**{_ROUTE: answers}), address="#text", **how)


def test_what_stands_in_the_form_is_asked_for_and_goes_on(visit: Visitor) -> None:
    found = _visit(
        visit, *_MAY, *_FILL, ["look", "#text-heat"], _START, _ASKED, _PASSAGE, _LINES, *_MAY,
        ["fill", "#text-seed", "9"], ["fill", "#text-prompt", "other"],
        ["fill", "#text-length", "5"],
        _GO_ON, _ASKED, _LINES, _PROGRESS, _GO_ON, _ASKED, _START, _ASKED, _PASSAGE,
        answers=[{"events": _WHOLE}, {"events": [_piece("d", [-1.0], state="then"), _usage(1)]},
                 {"events": _WHOLE}],
    )  # fmt: skip
    assert found[:4] == ["false", "true", "true", "1.5"]
    assert _bodies(found[4]) == [_BODY]
    assert found[5:7] == ["RO\nMEOab\nc", ["RO\n", "MEOab\n", "c"]]
    assert found[7:10] == ["false", "false", "true"]
    on = {name: value for name, value in _BODY.items() if name != "seed"}
    on |= {"max_tokens": 5, "prompt": ""}
    assert _bodies(found[10]) == [on | {"state": "after"}]
    assert found[11] == ["RO\n", "MEOab\n", "cd"]
    assert found[12].splitlines()[1] == "mean 1.44 bits per byte, seed 7"
    assert _bodies(found[13]) == [on | {"state": "then"}]
    assert _bodies(found[14]) == [_BODY | {"prompt": "other", "seed": 9, "max_tokens": 5}]
    assert found[15] == "otherab\nc"


def test_letters_are_shown_in_the_order_they_come_with_their_chance(visit: Visitor) -> None:
    held = {"events": [], "open": True}
    tints = ["all", "#text-passage [data-chance]", "className"]
    found = _visit(
        visit, _START, ["look", "#text-passage", "@aria-busy"], _PROGRESS, ["says", _WHOLE[0]],
        tints,
        _LINES, ["says", _WHOLE[1]], _LINES, *_MAY, ["says", _WHOLE[2], None], *_MAY,
        ["look", "#text-passage", "@aria-busy"], answers=[held],
    )  # fmt: skip
    assert found[:2] == ["true", "Writing…"]
    assert found[2:5] == [["likely1", "likely0", "likely3"], ["ab\n"], ["ab\n", "c"]]
    assert found[5:] == ["true", "true", "false", "false", "false", "true", "false"]


def test_how_fast_is_counted_from_the_first_bytes(visit: Visitor) -> None:
    held = {"events": [], "open": True}
    second = _piece("c" * 9, 9 * [-0.6931471805599453], 3)
    found = _visit(
        visit, _START, ["passes", 5000], ["says", _WHOLE[0]], ["passes", 1000],
        ["says", second, _usage(12), None],
        _PROGRESS, answers=[held],
    )  # fmt: skip
    # 9 bytes in the second after the first 3, which came after a prompt was read.
    assert found[0].startswith("Wrote 12 bytes in 1.33 s: 9 bytes/s\n")
    found = _visit(
        visit,
        _START,
        ["passes", 2000],
        ["says", _WHOLE[0], _usage(3), None],
        _PROGRESS,
        answers=[held],
    )
    assert found[0] == "Wrote 3 bytes in 2.00 s: 2 bytes/s\nmean 1.97 bits per byte, seed 7"
    found = _visit(visit, _START, _PROGRESS, answers=[{"events": [_usage(0)]}])
    assert found[0] == "Wrote 0 bytes in 0.00 s\nseed 7"


def test_what_was_stopped_goes_on_where_it_stopped(visit: Visitor) -> None:
    cut = _piece("ab\n", [-1.0, -0.1, -3.0], state="after")
    found = _visit(
        visit, ["fill", "#text-prompt", "R"], _START, ["says", _WHOLE[0]], ["passes", 500], _STOP,
        _PROGRESS, *_MAY,
        _ASKED, _GO_ON, _ASKED, _LINES, _GO_ON, _ASKED,
        answers=[{"events": [], "open": True}, {"body": cut}, {"events": _WHOLE}],
    )  # fmt: skip
    assert found[0] == "Stopped after 3 bytes in 0.50 s: 6 bytes/s\nmean 1.97 bits per byte, seed 7"
    assert found[1:4] == ["false", "false", "true"]
    (first,) = _bodies(found[4])
    again, on = _bodies(found[5])
    asked = first | {"max_tokens": 3, "stream": False, "seed": 7}
    del asked["stream_options"]
    assert again == asked
    assert (on["state"], on["prompt"], "seed" in on) == ("after", "", False)
    assert found[6] == ["Rab\n", "ab\n", "c"]
    assert _bodies(found[7])[0]["state"] == "after"


def test_what_another_model_would_write_is_not_gone_on_with(visit: Visitor) -> None:
    other = _piece("xy\n", [-1.0, -0.1, -3.0], state="after") | {"system_fingerprint": "other"}
    found = _visit(
        visit, _START, ["says", _WHOLE[0]], _STOP, _GO_ON, _ERROR, _LINES,
        answers=[{"events": [], "open": True}, {"body": other}],
    )  # fmt: skip
    assert "has another model by now" in found[0]
    assert found[1] == ["ab\n"]


def test_a_run_that_went_on_and_was_cut_goes_on_from_its_token(visit: Visitor) -> None:
    """And with no other seed than the token has."""
    found = _visit(
        visit, _START, _GO_ON, ["says", _piece("x", [-1.0])], ["cuts"], _ERROR, _PROGRESS, _ASKED,
        _GO_ON, _ASKED,
        answers=[{"events": _WHOLE}, {"events": [], "open": True},
                 {"body": _piece("x", [-1.0], state="x")}, {"events": _WHOLE}],
    )  # fmt: skip
    assert found[0] == "The connection broke off."
    assert found[1].startswith("Stopped after 1 byte in")
    again = _bodies(found[3])[0]
    assert (again["state"], again["max_tokens"], "seed" in again) == ("after", 1, False)


def test_a_run_of_which_nothing_came_leaves_what_was_there(visit: Visitor) -> None:
    refused = {"status": 422, "body": {"error": {"message": "too hot", "param": "temperature"}}}
    found = _visit(
        visit,
        _START,
        _START,
        _ERROR,
        _PASSAGE,
        _PROGRESS,
        *_MAY,
        _GO_ON,
        _ASKED,
        answers=[{"events": _WHOLE}, refused, {"events": _WHOLE}],
    )
    assert found[:2] == ["too hot", "ab\nc"]
    assert found[2].startswith("Wrote 4 bytes")
    assert found[3:6] == ["false", "false", "true"]
    assert _bodies(found[6])[-1]["state"] == "after"
    found = _visit(visit, _START, _STOP, _PROGRESS, *_MAY, answers=[{"events": [], "open": True}])
    assert found == ["Stopped", "false", "true", "true"]
    answers = [{"events": _WHOLE}, {"events": [], "open": True}]
    assert _visit(visit, _START, _START, _STOP, *_MAY, answers=answers) == ["false", "true", "true"]


def test_another_model_does_not_go_on_with_what_this_one_wrote(visit: Visitor) -> None:
    other = model("austen", "language")
    found = visit(
        _START, ["look", "#text-facts"], ["fill", "#text-model", "austen"], *_MAY,
        ["look", "#text-facts"],
        _GO_ON, _ASKED, ["fill", "#text-model", "shakespeare"], *_MAY, ["history"],
        address="#text", answers=serving(PEN, TEXT, other, **{_ROUTE: {"events": _WHOLE}}),
    )  # fmt: skip
    assert (
        found[0] == "LSTM, layer norm, 2 \u00d7 400 units, 1,234,567 parameters; "
        "trained on data of shakespeare"
    )
    assert found[1:4] == ["false", "true", "true"]
    assert found[4].endswith("data of austen")
    assert len(found[5]) == 1
    assert found[6:] == ["false", "false", "true", {"text-model": "shakespeare"}]


@pytest.mark.parametrize(
    ("models", "kept", "chosen"),
    [
        ([_AUSTEN, TEXT | {"default": False}], None, "shakespeare"),
        ([_AUSTEN, TEXT], "austen", "austen"),
        ([_AUSTEN, model("bible", "language")], "gone", "austen"),
        ([TEXT | {"default": False}, _SMALL], None, "small"),
    ],
)  # fmt: skip
def test_the_model_that_was_chosen_is_or_the_one_worth_reading(
    visit: Visitor, models: list[Json], kept: str | None, chosen: str
) -> None:
    found = visit(
        ["look", "#text-model", "value"],
        ["all", "#text-model option", "textContent"],
        address="#text",
        answers=serving(PEN, *models),
        history={"text-model": kept} if kept else None,
    )
    assert found[0] == chosen
    assert found[1] == [m["id"] + (", 8 bits" if m["precision"] == "int8" else "") for m in models]


def test_a_model_that_has_changed_is_asked_about_anew(visit: Visitor) -> None:
    changed = TEXT | {"system_fingerprint": "other", "provenance": {"data": {"name": "other data"}}}
    answers = serving(
        **{_ROUTE: {"events": [event | {"system_fingerprint": "other"} for event in _WHOLE]}}
    )
    answers["/v1/models/shakespeare"] = {"body": changed}
    found = visit(
        ["asked"],
        _START,
        ["asked", "/v1/models/shakespeare"],
        ["look", "#text-facts"],
        address="#text",
        answers=answers,
    )
    assert len(found[1]) == 1
    assert found[2].endswith("trained on other data")
    found = _visit(
        visit, ["asked"], _START, ["asked", "/v1/models/shakespeare"], answers=[{"events": _WHOLE}]
    )
    assert found[1] == []


def test_the_chance_of_a_letter_is_told_by_pointer_and_keyboard(visit: Visitor) -> None:
    told, letter = ["all", ".told", "textContent"], ["look", "#text-letter"]
    step = ["key", "ArrowRight", {}, "#text-paper"]
    back = ["key", "ArrowLeft", {}, "#text-paper"]
    found = _visit(
        visit, ["fill", "#text-prompt", "R"], _START, back, told, letter, back, told, step, told,
        step, told, step, told,
        ["heard", "pointerover", "#text-passage [data-chance]"], told, letter,
        ["heard", "click", "#text-passage .prompt"], told, back, told, letter,
        ["left", "keydown", "#text-paper", {"key": "ArrowRight"}],
        ["left", "keydown", "#text-paper", {"key": "ArrowRight", "altKey": True}],
        ["left", "keydown", "#text-paper", {"key": "ArrowUp"}], answers=[{"events": _WHOLE}],
    )  # fmt: skip
    assert found[:5] == [["c"], "c: 0.7 %", ["\n"], ["c"], ["c"]]
    assert found[5:] == [["c"], ["a"], "a: 37 %", ["a"], ["a"], "a: 37 %", False, True, True]


def test_a_form_that_is_wrong_is_not_sent(visit: Visitor) -> None:
    for field, text in (("length", "0"), ("length", "65537"), ("length", ""), ("seed", "-1")):
        found = _visit(
            visit,
            ["fill", f"#text-{field}", text],
            _START,
            _ASKED,
            ["at"],
            answers=[{"events": _WHOLE}],
        )
        assert found == [[], f"text-{field}"]
    found = _visit(
        visit, ["fill", "#text-length", "65536"], _START, _ASKED, answers=[{"events": _WHOLE}]
    )
    assert [body["max_tokens"] for body in _bodies(found[0])] == [65536]
