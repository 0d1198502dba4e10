"""The Write tab visited without a browser: what is asked for, shown, and taken away."""

import json
from typing import Any

import pytest

from tests.site.visiting import (
    HEAD,
    INK,
    PEN,
    PENCIL,
    TEXT,
    USAGE,
    WRITTEN,
    Visitor,
    serving,
    styles,
)  # fmt: skip

_ROUTE = "/v1/handwriting"
_ASKED = ["asked", _ROUTE]
_PATH = "M20,60 C26.67,63.33 33.33,70 40,70 C46.67,70 53.33,63.33 60,60"
_PROGRESS, _ERROR = ["look", "#write-progress"], ["look", "#write-error"]
_STALE = [["look", "#write-stale", "hidden"], ["look", "#write-sheet", "className"]]
_AT_ONCE = ["fill", "#write-speed", "Infinity"]
_FILLED = {
    "#write-text": 'it\'s "ink"', "#write-bias": "2.1", "#write-color": "#204060",
    "#write-size": "60", "#write-nib": "3.25", "#write-thinning": "0.8", "#write-seed": "13",
}  # fmt: skip
_FILL = [["fill", field, text] for field, text in _FILLED.items()]
_WRITE = [_AT_ONCE, *_FILL, ["asked"], ["press", "#write-start"]]
_BODY: dict[str, Any] = {
    "model": "pen", "text": 'it\'s "ink"', "bias": 2.1, "style": None, "line_height": 60,
    "stroke_width": 3.25, "thinning": 0.8, "color": "#204060", "seed": 13, "width": 880,
    "format": "json", "stream": True,
}  # fmt: skip
_TEXT = "text/plain;charset=utf-8"
_JUDGED = {"best_of": 4, "best_by": "word", "judge": "reads"}
_SECOND = INK | {"points": [[120, 60, 0], [140, 70, 1]], "line": 1, "character": 0}
_BUTTONS = ("start", "again", "stop", "svg", "png", "pdf", "curl", "python", "link")
_PRESSABLE = ["all", ", ".join(f"#write-{name}" for name in _BUTTONS), "ariaDisabled"]


def _open(*events: dict[str, Any]) -> dict[str, Any]:
    return {_ROUTE: [{"events": WRITTEN}, {"events": events, "open": True}]}


def _may(found: list[str]) -> list[str]:
    return [name for name, off in zip(_BUTTONS, found, strict=True) if off == "false"]


def test_what_stands_in_the_form_is_asked_for(visit: Visitor) -> None:
    found = visit(
        *_WRITE,
        _ASKED,
        _PROGRESS,
        ["press", "#write-again"],
        _ASKED,
        ["look", "#write-seed", "value"],
    )
    assert [asked["body"] for asked in found[1]] == [_BODY | _JUDGED]
    assert found[2] == "2 characters, the most legible of 4 draws of each word\nseed 3"
    again = {name: value for name, value in _BODY.items() if name != "seed"} | _JUDGED
    assert ([asked["body"] for asked in found[3]], found[4]) == ([again], "")


@pytest.mark.parametrize(("room", "width"), [(2000, 1000), (100, 280), (500.7, 481)])
def test_a_page_is_as_wide_as_there_is_room(visit: Visitor, room: float, width: int) -> None:
    answers = serving(PEN, TEXT)
    wide = ["sets", "#write-desk", "clientWidth", room]
    found = visit(wide, *_WRITE, _ASKED, _PROGRESS, answers=answers)
    assert [asked["body"] for asked in found[1]] == [_BODY | {"width": width}]
    assert found[2] == "2 characters, 9 points\nseed 3"  # no model reads


def test_ink_is_shown_as_it_comes_and_may_be_stopped(visit: Visitor) -> None:
    now, ho = ["all", ".now", "textContent"], "h\U0001d11e"
    found = visit(
        ["press", "#write-stop"], _PRESSABLE, *_WRITE, _PRESSABLE, _PROGRESS,
        ["says", HEAD | {"lines": [ho, "it"], "seed": 13}], _PROGRESS,
        ["all", "#write-echo .line", "textContent"],
        ["look", "#write-sheet", "@aria-label"],
        ["says", INK], ["all", "#write-sheet path", "@d"], now, ["says", _SECOND],
        ["all", "#write-sheet path", "@d"], now, ["all", "#write-sheets button", "title"],
        ["press", "#write-stop"], _PROGRESS, _PRESSABLE, now, ["look", "#write-error", "hidden"],
        ["all", "#write-sheets button", "title"], ["look", "#write-sheet", "hidden"],
        ["press", "#write-sheets button[title^=ho]"], _PRESSABLE,
        ["press", "#write-sheets button"], _PROGRESS, _PRESSABLE,
        ["look", "#write-sheet", "@aria-label"], answers=serving(**_open()),
    )  # fmt: skip
    before, _, writing, *told, stopped, now_none, quiet, sheets, no_sheet, whole = found[:-3]
    assert _may(before) == [name for name in _BUTTONS if name != "stop"]
    assert _may(writing) == ["stop"]
    assert told == [
        "Writing…",
        "Writing…\nseed 13",
        [ho, "it"],
        f"Handwriting: {ho} it",
        [_PATH],
        [ho[1]],
        [_PATH, "M120,60 C126.67,63.33 133.33,66.67 140,70"],
        ["i"],
        ["ho, seed 3"],
        "Stopped\nseed 13",
    ]
    assert _may(stopped) == [name for name in _BUTTONS if name not in ("stop", "pdf")]
    assert (now_none, quiet, no_sheet) == ([], True, False)
    assert sheets == [f"{ho} it, seed 13", "ho, seed 3"]
    assert _may(whole) == _may(before)
    assert found[-3:] == ["Stopped\nseed 13", stopped, f"Handwriting: {ho} it"]


def test_the_letter_being_written_is_brought_in_sight_once_a_line(visit: Visitor) -> None:
    later = "#write-echo .line span:not(.now)"
    places = [("#write-echo", "offsetTop", 100), (later, "offsetTop", 170)]
    laid = [["sets", *place] for place in (*places, (later, "offsetHeight", 20))]
    scrolled = [["look", "#write-echo", "scrollTop"], ["look", "#write-sheet .tip", "scrolled"]]
    more = _SECOND | {"points": [[140, 90, 0], [160, 90, 1]], "character": 1}
    found = visit(
        *_WRITE, ["says", HEAD | {"lines": ["a", "it"]}, INK | {"character": 0}], *scrolled, *laid,
        ["says", _SECOND], *scrolled, ["sets", "#write-echo", "scrollTop", 7], ["says", more],
        *scrolled, ["all", ".now", "textContent"], answers=serving(**_open()),
    )  # fmt: skip
    assert found[1:] == [0, 0, 50, 1, 7, 1, ["t"]]


def test_what_was_stopped_before_anything_came_is_no_sheet(visit: Visitor) -> None:
    found = visit(
        *_WRITE, ["press", "#write-stop"], _PROGRESS, ["all", "#write-sheets button", "title"],
        _STALE[0], _PRESSABLE, answers=serving(**_open()), address="#write",
    )  # fmt: skip
    _, progress, sheets, fresh, pressable = found
    assert progress == "2 characters, 9 points\nseed 3"  # of the sheet that is there
    assert sheets == ["ho, seed 3"]
    assert fresh is False
    assert _may(pressable) == [name for name in _BUTTONS if name != "stop"]


@pytest.mark.parametrize(("field", "text"), [*_FILLED.items()])
def test_ink_of_before_the_last_change_is_marked(visit: Visitor, field: str, text: str) -> None:
    other = "3" if field == "#write-seed" else text
    written = [*_WRITE, ["fill", "#write-seed", ""], *_STALE]
    before = "" if field == "#write-seed" else _FILLED[field]
    changed = {"#write-text": "any", "#write-color": "#000000", "#write-seed": "4"}.get(
        field, "1.5" if field != "#write-size" else "61"
    )
    found = visit(
        *written, ["type", field, changed], *_STALE, ["type", field, before], *_STALE,
        ["type", "#write-seed", "3"], _STALE[0], ["type", "#write-seed", other], _STALE[0],
    )  # fmt: skip
    assert found[1:3] == [True, "sheet"]
    assert found[3:5] == [False, "sheet stale"]
    assert found[5:7] == [True, "sheet"]
    assert found[7] is True  # that seed is what it was written with


def test_another_hand_or_model_marks_it_too(visit: Visitor) -> None:
    hands = styles("ada", "bea") + styles("cyd", of="pencil")
    found = visit(
        *_WRITE, _STALE[0], ["type", "#write-seed", ""], ["press", "#write-hands input[value=ada]"],
        _STALE[0], ["press", '#write-hands input[value=""]'], _STALE[0],
        ["fill", "#write-model", "pencil"], _STALE[0], ["look", "#write-count"],
        ["all", "#write-hands span", "textContent"],
        answers=serving(PEN, PENCIL, TEXT, hands=hands),
    )  # fmt: skip
    assert found[1:] == [False, False, True, False, "3 to choose from", ["Any", "Cyd", "Made up"]]


def test_a_file_is_what_is_shown(visit: Visitor) -> None:
    head = HEAD | {"thinning": 0.5, "lines": ["a<b", "c"]}
    pdf = {"text": "%PDF", "headers": {"X-Evenkeel-Fingerprint": "any"}}
    answers = serving(
        **{_ROUTE: [{"events": WRITTEN}, {"events": [head, INK, _SECOND, USAGE]}, pdf]}
    )
    found = visit(
        *_WRITE, ["press", "#write-svg"], _PROGRESS, ["saved"], ["press", "#write-png"], _PROGRESS,
        ["saved"], _ASKED, ["fill", "#write-text", ""], ["press", "#write-pdf"], _PROGRESS,
        ["saved"], _ASKED,
        ["all", "#write-sheet path", "outerHTML"], ["revoked"], ["passes", 60000], ["revoked"],
        answers=answers,
    )  # fmt: skip
    _, told_svg, saved_svg, told_png, saved_png, since, *made, asked, paths, soon, late = found
    assert len(paths) > 1
    assert {path.partition('stroke-width="')[2][:4] for path in paths} == {"1.19"}  # it is fast
    assert told_svg == "Saved evenkeel-3.svg\nseed 3"
    ((name, svg, kind),) = saved_svg
    assert (name, kind) == ("evenkeel-3.svg", "image/svg+xml")
    assert svg == (
        '<svg width="600" height="128" viewBox="0 0 600 128" role="img">'
        '<title>a&lt;b\nc</title><g fill="none" stroke="#123456" stroke-width="2" '
        f'stroke-linecap="round" stroke-linejoin="round">{"".join(paths)}</g></svg>'
    )
    assert told_png == "Saved evenkeel-3.png\nseed 3"
    ((name, png, kind),) = saved_png
    (white, image) = json.loads(png)
    assert (name, kind, white) == ("evenkeel-3.png", "image/png", ["white", 0, 0, 600, 128])
    assert image[1:] == [0, 0, 600, 128]
    assert [one["method"] for one in since] == ["POST"]  # the writing alone
    assert made == ["Saved evenkeel-3.pdf\nseed 3", [["evenkeel-3.pdf", "%PDF", _TEXT]]]
    body = _BODY | _JUDGED | {"format": "pdf", "seed": 3}
    del body["stream"]
    assert [one["body"] for one in asked] == [body]
    # The picture that a PNG is made of; and in the end nothing is kept of what has been saved.
    assert (len(soon), len(late)) == (1, 4)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"headers": {"X-Evenkeel-Fingerprint": "other"}}, "has another model by now"),
        ({}, "has another model by now"),
        ({"status": 422, "body": {"error": {"message": "", "param": "judge"}}}, "no reader any"),
        ({"status": 422, "body": {"error": {"message": "no room", "param": "text"}}}, "no room"),
    ],
)  # fmt: skip
def test_a_file_that_would_not_be_what_is_shown_is_none(
    visit: Visitor, answer: dict[str, Any], told: str
) -> None:
    answers = serving(**{_ROUTE: [{"events": WRITTEN}, {"events": WRITTEN}, answer]})
    found = visit(*_WRITE, ["press", "#write-pdf"], _ERROR, ["saved"], _PROGRESS, answers=answers)
    assert told in found[1]
    assert found[2:] == [[], "2 characters, the most legible of 4 draws of each word\nseed 3"]


def test_a_sheet_larger_than_a_png_says_so(visit: Visitor) -> None:
    found = visit(*_WRITE, ["press", "#write-png"], _ERROR, ["saved"], noPng=True)
    assert found[1].startswith("600 \u00d7 128 px are more than")
    assert found[2] == []


@pytest.mark.parametrize("shut", [False, True])
def test_what_is_copied_is_said_and_shown_where_there_is_no_clipboard(
    visit: Visitor, shut: bool
) -> None:
    kinds = ("curl", "python", "link")
    steps = [step for kind in kinds for step in (["press", f"#write-{kind}"], _PROGRESS)]
    none = ["fill", "#write-text", ""]  # which nothing could be asked with
    found = visit(*_WRITE, none, *steps, ["copied"], noClipboard=shut)
    told, copied = found[1:4], found[4]
    if shut:
        assert copied == []
        copied = told
    else:
        assert told == 3 * ["Copied\nseed 3"]
    curl, python, link = copied
    assert curl.startswith("curl ")
    assert "httpx" in python
    assert all('"seed": 3' in text.replace('"seed":3', '"seed": 3') for text in (curl, python))
    assert all("ink" in text for text in copied)
    assert "seed=3&" in link
    assert "draws=4" in link


def test_sheets_of_this_visit_are_put_back_as_they_were(visit: Visitor) -> None:
    other = INK | {"points": [[5, 5, 0], [9, 9, 1]]}
    second = HEAD | {
        "seed": 4,
        "lines": ["other"],
        "width": 500,
        "color": "#654321",
        "stroke_width": 4,
    }
    events = [WRITTEN, WRITTEN, [second, other, USAGE]]
    told = [*({"events": one} for one in events), {"events": [], "open": True}]
    answers = serving(**{_ROUTE: told})
    look = [
        ["all", "#write-sheet path", "@d"], ["look", "#write-sheet", "@viewBox"], _PROGRESS,
        _STALE[0], *[["look", field, "value"] for field in _FILLED], ["look", "#write-echo"],
        ["all", "#write-sheets button", "@aria-current"], ["look", "#write-sheet", "@aria-label"],
        ["look", "#write-sheet", "style.strokeWidth"],
    ]  # fmt: skip
    found = visit(
        *_WRITE, *look, ["fill", "#write-text", "other"], ["fill", "#write-seed", "4"],
        ["fill", "#write-size", "70"], ["press", "#write-hands input[value=bea]"],
        ["press", "#write-start"], ["asked"], *look,
        ["press", "#write-sheets button[title^=ho]"], *look, ["press", "#write-svg"],
        ["saved"], ["all", "#write-hands input:checked", "value"], ["asked"],
        ["press", "#write-start"], ["press", "#write-sheets button[title^=other]"],
        look[0], answers=answers,
    )  # fmt: skip
    n = len(look)
    first, then, back = (found[i : i + n] for i in (1, n + 2, 2 * n + 2))
    saved, hands, asked, not_put_back = found[3 * n + 2 :]
    assert first[:4] == [[_PATH], "0 0 600 128", first[2], False]
    assert then[:2] == [["M5,5 C6.33,6.33 7.67,7.67 9,9"], "0 0 500 128"]
    assert back[:4] == [[_PATH], "0 0 600 128", first[2], True]
    assert back[4 : 4 + len(_FILLED)] == [*[*_FILLED.values()][:-1], "3"]
    assert back[-4:] == ["ho", ["false", "true", "false"], "Handwriting: ho", "2"]
    assert then[-4:] == ["other", ["true", "false", "false"], "Handwriting: other", 4]
    ((name, svg, _),) = saved
    assert name == "evenkeel-3.svg"
    assert _PATH in svg
    assert 'stroke="#123456" stroke-width="2"' in svg
    assert (hands, asked) == ([""], [])
    assert not_put_back == [_PATH]  # nothing is put back while another is written


def test_the_verdict_is_that_of_the_sheet_that_is_put_back(visit: Visitor) -> None:
    lost = {**PENCIL, "ready": False, "failed": "it is lost"}
    verdict = ["look", "#verdict"]
    found = visit(
        *_WRITE, ["fill", "#write-model", "pencil"], verdict, ["press", "#write-sheets button"],
        verdict, answers=serving(PEN, lost, TEXT),
    )  # fmt: skip
    assert found[1] == "Not served: it is lost."
    assert found[2].startswith("Ready")


def test_a_pen_that_is_stopped_stops_and_one_whose_ink_is_lost_draws_what_came(
    visit: Visitor,
) -> None:
    points = {"points": [[5 * i, 60 + i % 2, 0] for i in range(100)]}
    came = [*_WRITE[1:], ["says", HEAD, INK | points]]
    drawn = ["all", "#write-sheet path", "@d"]
    goes_on = 5 * [["passes", 0]]
    stopped = [*goes_on, ["press", "#write-stop"], drawn, *goes_on, drawn]
    found = visit(*came, *stopped, frames=3, answers=serving(**_open()))
    assert found[1] == found[2]
    assert 0 < found[2][0].count(" C") < 50
    found = visit(*came, ["cuts"], drawn, _ERROR, frames=3, answers=serving(**_open()))
    assert (found[1][0].count(" C"), found[2]) == (99, "The connection broke off.")


def test_a_pen_goes_half_of_the_way_in_half_of_the_time(visit: Visitor) -> None:
    points = {"points": [[90 * i, 45 * i, 0] for i in range(9)]}
    came = [["fill", "#write-speed", "0.5"], *_WRITE[1:], ["says", HEAD, INK | points]]
    tip = [["look", "#write-sheet .tip", name] for name in ("@cx", "@cy")]
    looks = [["look", "#write-sheet path", "@d"], *tip]
    found = visit(
        *came, *7 * [["passes", 0]], *4 * looks, frames=1, answers=serving(**_open())
    )  # fmt: skip
    ends = [[float(x) for x in way.rpartition(" ")[2].split(",")] for way in found[1::3]]
    # 16 ms from look to look, 60 points a second, after 0.05 s in the air.
    places = [90 * 60 * (0.5 * 0.016 * look - 0.05) for look in range(8, 20)]
    assert ends == [pytest.approx([x, x / 2], abs=0.006) for x in places[::3]]
    assert [float(x) for x in found[2::3]] == pytest.approx(places[1::3])
    assert [2 * float(y) for y in found[3::3]] == pytest.approx(places[2::3])


def test_what_is_typed_before_the_ink_comes_marks_it(visit: Visitor) -> None:
    typed = ["type", "#write-text", "later"]
    found = visit(
        *_WRITE, typed, ["says", HEAD | {"seed": 13}, None], *_STALE, answers=serving(**_open())
    )
    assert found[1:] == [False, "sheet stale"]


def test_the_opening_is_put_back_as_it_was(visit: Visitor) -> None:
    """Which the form does not ask for until then."""
    opening = [HEAD | {"lines": ["Steady"], "seed": 9}, INK, USAGE]
    answers = serving(**{_ROUTE: [{"events": opening}, {"events": WRITTEN}]})
    found = visit(
        _STALE[0], *_WRITE, ["press", "#write-sheets button[title^=Steady]"], _STALE[0],
        ["look", "#write-size", "value"], ["look", "#write-seed", "value"],
        ["type", "#write-size", "64"], _STALE[0], answers=answers,
    )  # fmt: skip
    assert found[2:] == [True, "88", "9", False]


def test_the_last_point_is_drawn_when_its_line_is_over(visit: Visitor) -> None:
    drawn = INK | {"points": [[20, 60, 0], [40, 70, 0], [60, 60, 0]]}
    paths = ["all", "#write-sheet path", "@d"]
    found = visit(
        *_WRITE, ["says", HEAD, drawn], paths, ["says", {"finish_reason": "stop"}], paths,
        ["says", USAGE, None], _PROGRESS, answers=serving(PEN, TEXT, **_open()),
    )  # fmt: skip
    assert found[1:] == [[_PATH.rpartition(" C")[0]], [_PATH], "2 characters, 9 points\nseed 3"]


def test_lines_that_are_cut_or_hard_to_read_are_told(visit: Visitor) -> None:
    ends = [{"finish_reason": reason} for reason in ("length", "unreadable", "unreadable", "stop")]
    drawn = INK | {"points": [[20, 60, 0], [40, 70, 0]]}
    answers = serving(**{_ROUTE: {"events": [HEAD, drawn, ends[0], drawn, *ends[1:], USAGE]}})
    found = visit(*_WRITE, _PROGRESS, ["all", "#write-sheet path"], answers=answers)
    assert len(found[2]) == 2  # with the pen off the paper between them
    assert found[1].endswith("of each word; 1 line not finished; 2 lines hard to read\nseed 3")
