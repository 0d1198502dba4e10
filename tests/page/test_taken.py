"""What is taken away from the page: files that are what is shown, and ways to ask for it again."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.page.answers import HEAD, USAGE, ink, stream, unready
from tests.page.conftest import Open
from tests.page.taken import download, drawn, numbers, paths, requests, same_ink
from tests.page.visit import Visit

_PATH = re.compile(r'<path d="([^"]+)" stroke-width="([^"]+)"')
_CLIPBOARD = ["clipboard-read", "clipboard-write"]
_ASKED = {
    "bias": "2.1", "seed": "13", "thinning": "0.8", "color": "#204060", "size": "60", "nib": "3.25",
}  # fmt: skip


def _copied(visit: Visit, kind: str) -> str:
    """What is on the clipboard after a button was pressed."""
    visit.press(f"#write-{kind}")
    visit.wait_done("write")
    content: str = visit.page.evaluate("navigator.clipboard.readText()")
    return content


def test_the_download_is_what_was_watched(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        asked = requests(visit)
        visit.write("Fair winds", seed=11)
        shown = visit.ink("#write-sheet")
        svg = download(visit, "svg").decode()
        assert paths(svg) == shown
        # The service draws the same, stroke by stroke and as wide.
        ours, theirs = (_PATH.findall(text) for text in (svg, drawn(handwriting, asked[-1])))
        assert len(ours) == len(theirs) > len(set("Fair winds"))
        for (path, width), (served, as_wide) in zip(ours, theirs, strict=True):
            assert numbers(path) == pytest.approx(numbers(served), abs=0.05)
            assert width == as_wide
        assert len({width for _, width in ours}) > 3
        assert "<title>Fair winds</title>" in svg
        image = Image.open(io.BytesIO(download(visit, "png"))).convert("L")
        assert image.size == (asked[-1]["width"], 128)
        assert image.getextrema()[0] < 128 < image.getextrema()[1]
        assert download(visit, "pdf").startswith(b"%PDF-")


def test_a_sheet_larger_than_a_png_of_this_browser(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.write("a")
        visit.page.evaluate("() => { HTMLCanvasElement.prototype.toBlob = (done) => done(null); }")
        visit.press("#write-png")
        visit.wait("#write-error")
        assert "more than this browser makes a PNG of" in visit.text("#write-error")


def test_what_was_stopped_is_saved_as_far_as_it_went(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.begin_writing("a long sentence that nobody waits for", speed="0.5", seed=None)
        visit.until("() => document.querySelectorAll('#write-sheet path').length > 3")
        visit.page.keyboard.press("Escape")
        visit.wait_done("write")
        shown = visit.ink("#write-sheet")
        assert paths(download(visit, "svg").decode()) == shown
        assert visit["#write-pdf"].get_attribute("aria-disabled") == "true"
        visit["#write-text"].fill("\u6f22")  # what is typed since is no matter of what is shown
        assert paths(download(visit, "svg").decode()) == shown


def test_a_model_that_has_changed_does_not_draw_the_file(handwriting: str, opened: Open) -> None:
    def of_another(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, headers=answer.headers | {"x-evenkeel-fingerprint": "other"})

    with opened(handwriting, "write") as visit:
        visit.write("mine")
        visit.page.route("**/v1/handwriting", of_another)
        visit.press("#write-pdf")
        visit.wait("#write-error")
        assert "another model" in visit.text("#write-error")


def test_the_command_that_is_copied_asks_for_this_ink(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write", permissions=_CLIPBOARD) as visit:
        visit.write("it's Ann's", seed=11)
        command = shlex.split(_copied(visit, "curl"))
        assert command[0] == "curl"
        assert f"{handwriting}/v1/handwriting" in command
        body = json.loads(command[command.index("-d") + 1])
        assert (body["text"], body["seed"]) == ("it's Ann's", 11)
        same_ink(download(visit, "svg").decode(), drawn(handwriting, body))


def test_the_program_that_is_copied_draws_this_ink(
    handwriting: str, opened: Open, tmp_path: Path
) -> None:
    with opened(handwriting, "write", permissions=_CLIPBOARD) as visit:
        visit.write('"quoted" \\ and\nbroken \u00fcber', seed=12)
        program = _copied(visit, "python")
        environment = os.environ | {"NO_PROXY": "*"}
        subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True, timeout=60
        )
        (file,) = tmp_path.iterdir()
        assert file.name == "evenkeel-12.svg"
        same_ink(download(visit, "svg").decode(), file.read_text())


def test_a_link_writes_the_same_ink_elsewhere(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write", permissions=_CLIPBOARD) as visit:
        visit.wait("#write-hands input[value=cleo]", "attached")
        visit["#write-hands input[value=cleo]"].check()
        visit.open_sizes()
        for name, value in _ASKED.items():
            visit[f"#write-{name}"].fill(value)
        visit.write("100% & more #1, to its end?\nnext", seed=13)
        link = _copied(visit, "link")
        ink = visit.ink("#write-sheet")
    assert link.startswith(f"{handwriting}/#write?")
    with opened(handwriting, "proof", viewport={"width": 390, "height": 800}) as visit:
        visit.page.goto("about:blank")
        visit.page.goto(link)
        visit.until("(n) => document.querySelectorAll('#write-sheet path').length === n", len(ink))
        visit.wait_done("write")
        assert visit.ink("#write-sheet") == ink
        assert visit["#write-text"].input_value() == "100% & more #1, to its end?\nnext"
        for name, value in _ASKED.items():
            assert visit[f"#write-{name}"].input_value() == value
        assert visit["#write-hands input:checked"].get_attribute("value") == "cleo"
        assert visit["#write-stale"].is_hidden()


def test_a_link_to_the_sentence_of_the_page_writes_its_ink(handwriting: str, opened: Open) -> None:
    """Which is the first draw; of any other sheet the page asks for the best of several."""
    circumstances: dict[str, Any] = {"reduced_motion": "reduce", "permissions": _CLIPBOARD}
    with opened(handwriting, "write", **circumstances) as visit:
        link = _copied(visit, "link")
        ink = visit.ink("#write-sheet")
        visit.page.goto("about:blank")
        visit.page.goto(link)
        visit.wait("#write-link[aria-disabled=false]")
        assert visit.ink("#write-sheet") == ink
        visit.write("ho")
        assert "&draws=4" in _copied(visit, "link")


def test_a_link_to_what_is_not_here_is_not_written_by_another(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "proof") as visit:
        for asked in ("model=cursive", "model=reader", "hand=zeno"):
            visit.page.goto("about:blank")
            visit.page.goto(f"{handwriting}/#write?text=Hello&seed=2&{asked}")
            visit.wait("#write-error")
            name = asked.partition("=")[2]
            assert f"{name}, not to be had here" in visit["#write-error"].inner_text()
            assert visit["#write-text"].input_value() == "Hello"
            assert not visit.ink("#write-sheet")
            assert visit["#write-model"].input_value()
        visit.press("#write-start")
        visit.wait_done("write")
        assert visit["#write-sheet"].get_attribute("aria-label") == "Handwriting: Hello"


def _two_readers(route: Any, *, change: Callable[[dict[str, Any]], object] = id) -> None:
    data = route.fetch().json()["data"]
    others = [model | {"id": "other"} for model in data if model["kind"] == "reader"]
    for other in others:
        change(other)
    route.fulfill(json={"data": data + others})


def _asked_of_a_stub(visit: Visit) -> list[dict[str, Any]]:
    """What is asked to be written from here on, and answered with the same ink each time."""
    answer = stream(HEAD, ink(3), USAGE)
    visit.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
    return requests(visit)


def test_a_link_to_a_choice_of_draws_says_where_several_could_make_it(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "proof") as visit:
        visit.page.route("**/v1/models", _two_readers)
        visit.page.goto("about:blank")
        visit.page.goto(f"{handwriting}/#write?text=Hello&seed=2&draws=4")
        visit.wait("#write-error")
        assert "the only model that reads (there are 2)" in visit.text("#write-error")


def test_a_link_names_the_reader_that_chose_where_there_are_several(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "lab") as visit:
        visit.page.route("**/v1/models", _two_readers)
        asked = _asked_of_a_stub(visit)
        visit.go("write?text=Hello&seed=2&draws=4&judge=third")
        visit.wait("#write-error")
        assert "the model third, not to be had" in visit.text("#write-error")
        with visit.page.expect_request("**/v1/handwriting"):
            visit.go("write?text=Hello&seed=2&draws=4&judge=other")
        visit.wait_done("write")
        assert [request["judge"] for request in asked] == ["other"]
        told = """async (request) => (await import("/static/copies.js")).asLink(request)"""
        assert visit.page.evaluate(told, asked[0]).endswith("&draws=4&judge=other")
        visit.page.unroute("**/v1/models")
        visit.go("write")
        assert visit.page.evaluate(told, asked[0]).endswith("&draws=4")


def test_a_link_waits_for_the_reader_that_it_names(handwriting: str, opened: Open) -> None:
    attested: list[bool] = []

    def other(route: Any) -> None:
        model = route.fetch(url=f"{handwriting}/v1/models/reader").json() | {"id": "other"}
        if not attested:
            unready(model)
        route.fulfill(json=model)

    with opened(handwriting, "lab") as visit:
        visit.page.route("**/v1/models", partial(_two_readers, change=unready))
        visit.page.route("**/v1/models/other", other)
        asked = _asked_of_a_stub(visit)
        visit.go("write?text=Hello&seed=2&draws=4&judge=other")
        visit.until("() => document.querySelector('#write-count').textContent.endsWith('from')")
        for _ in range(2):  # by then all is there but this reader
            with visit.page.expect_response("**/v1/models/other"):
                pass
        assert not asked
        with visit.page.expect_request("**/v1/handwriting"):
            attested.append(True)
        visit.wait_done("write")
        assert [request["judge"] for request in asked] == ["other"]


def test_a_link_to_more_draws_than_are_made_is_not_written_by_fewer(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "lab") as visit:
        asked = requests(visit)
        visit.go("write?text=ho&seed=3&draws=99")
        visit.wait("#write-error")
        assert "best_of is 99" in visit.text("#write-error")
        assert [request["best_of"] for request in asked] == [99]
        visit.expect_error("400")


def test_a_link_is_taken_up_while_the_pen_writes(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.begin_writing("this is never written to its end " * 20, speed="1", seed=1)
        visit.wait("#write-sheet path", "attached")
        visit.page.evaluate("location.hash = 'write?text=Second&seed=2&hand=cleo'")
        visit.until(
            "() => document.querySelector('#write-progress').textContent.includes('seed 2')"
        )
        visit.wait_done("write")
        assert visit["#write-text"].input_value() == "Second"
        assert visit["#write-sheet"].get_attribute("aria-label") == "Handwriting: Second"


def test_what_is_downloaded_is_in_the_colour_of_the_ink(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "lab") as visit:
        answer = stream(HEAD, ink(3), USAGE)
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
        visit["#write-tab"].click()
        visit.write("ho")
        assert 'stroke="#123456"' in download(visit, "svg").decode()


def test_a_file_that_its_reader_is_gone_for_is_not_to_be_had(
    handwriting: str, opened: Open
) -> None:
    error = {"error": {"message": "This is a test.", "param": "best_of"}}
    with opened(handwriting, "write") as visit:
        visit.write("mine")
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(status=400, json=error))
        visit.press("#write-pdf")
        visit.wait("#write-error")
        assert "no reader any more" in visit.text("#write-error")
        visit.expect_error("400")


_FORBIDDEN = "{ writeText: () => Promise.reject(new DOMException('No.', 'NotAllowedError')) }"


@pytest.mark.parametrize("clipboard", ["undefined", _FORBIDDEN])
@pytest.mark.parametrize("kind", ["curl", "python", "link"])
def test_where_there_is_no_clipboard_what_is_copied_is_shown(
    handwriting: str, opened: Open, kind: str, clipboard: str
) -> None:
    with opened(handwriting, "write") as visit:
        visit.write("mine", seed=11)
        other = f"Object.defineProperty(navigator, 'clipboard', {{ value: {clipboard} }})"
        visit.page.evaluate(other)
        visit.press(f"#write-{kind}")
        visit.wait_done("write")
        shown = visit.text("#write-progress")
        assert "mine" in shown
        assert handwriting in shown


@pytest.mark.parametrize("key", [None, "ek-mine"])
def test_who_needs_a_key_copies_where_it_goes_and_not_the_key(
    site: str, opened: Open, key: str | None
) -> None:
    with opened(site, "lab") as visit:
        copied = visit.page.evaluate(
            """async (key) => {
              if (key) sessionStorage.setItem("evenkeel-key", key);
              const { asCurl, asPython } = await import("/static/copies.js");
              return [asCurl, asPython].map((as) => as({ text: "ho", seed: 1 }));
            }""",
            key,
        )
    for program in copied:
        assert ("EVENKEEL_API_KEY" in program) == ("authorization" in program) == bool(key)
        assert "ek-mine" not in program


def test_a_program_that_is_refused_leaves_no_drawing(
    site: str, opened: Open, tmp_path: Path
) -> None:
    with opened(site, "lab") as visit:
        program = visit.page.evaluate(
            """async () => {
              const { asPython } = await import("/static/copies.js");
              return asPython({ text: "ho", style: "nobody", seed: 1 });
            }"""
        )
    command, environment = [sys.executable, "-c", program], os.environ | {"NO_PROXY": "*"}
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=60)
    assert (told.returncode, list(tmp_path.iterdir())) == (1, [])


def test_a_link_says_each_field_by_the_name_it_has_had(site: str, opened: Open) -> None:
    """Links of before are to be followed as well."""
    request = {
        "text": "ho", "style": "ada", "seed": 3, "bias": 1, "model": "m", "line_height": 64,
        "stroke_width": 2, "thinning": 0.5, "color": "#123456", "width": 700, "best_of": 4,
    }  # fmt: skip
    with opened(site, "lab") as visit:
        told = "async (request) => (await import('/static/copies.js')).asLink(request)"
        link = visit.page.evaluate(told, request)
    assert link.partition("#")[2] == (
        "write?text=ho&hand=ada&seed=3&bias=1&model=m&line=64&nib=2&thinning=0.5"
        "&color=%23123456&width=700&draws=4"
    )


def test_a_hand_that_is_made_up_goes_along_in_a_link(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "lab", permissions=_CLIPBOARD) as visit:
        answer = stream(HEAD, ink(3), USAGE)
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
        visit["#write-tab"].click()
        visit["#write-hands input[value=made-up]"].check()
        visit.write("ho")
        assert "hand=made-up" in _copied(visit, "link")
        assert "stays here" not in visit.text("#write-progress")
