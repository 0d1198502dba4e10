"""The page of a service that a proxy has put under a path of its host, as `/evenkeel/`: all that
the page loads, asks for and tells is below that path, which the service itself never hears of."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from tests.page.conftest import DRAWN, Open
from tests.page.test_docs import try_out
from tests.page.visit import Strokes, Visit
from tests.service.serving import listening, settings

_ARTIFACTS = Path(__file__).parents[2] / "artifacts"
_BUILT = Path(__file__).parents[2] / "build" / "site" / "index.html"
_PATH = "/evenkeel"
_PICTURE = """() => [...document.querySelectorAll("#write-hands img")]
  .some((image) => image.complete && image.naturalWidth > 0)"""


@pytest.fixture(scope="module")
def below(browser: Any, handwriting: str) -> Iterator[str]:
    """The URL of a service that is to be had below a path alone, which is taken off as a proxy
    takes it off."""
    with listening(settings(_ARTIFACTS, max_wait_s=60.0)) as (url, app):
        service = app.middleware_stack
        assert service is not None

        async def stripped(scope: Scope, receive: Receive, send: Send) -> None:
            path: str = scope.get("path", "")
            if path.startswith(f"{_PATH}/"):
                await service({**scope, "path": path.removeprefix(_PATH)}, receive, send)
            else:
                await PlainTextResponse("nobody's", 404)(scope, receive, send)

        app.middleware_stack = stripped
        yield url + _PATH


def test_the_page_works_below_a_path(below: str, opened: Open, strokes: Strokes) -> None:
    """Its files, requests, pictures of hands and WebSocket; nothing is asked beside the path."""
    with opened(below, "write") as visit:
        visit.write("ho")
        assert visit.ink("#write-sheet")
        visit.until(_PICTURE)
        visit.go("draw")
        visit["#draw-text"].fill(DRAWN)
        visit.scribble(strokes[:2])
        visit.wait("#draw-pad .shade ellipse", "attached")


def test_what_is_copied_below_a_path_asks_there(below: str, opened: Open) -> None:
    allowed = {"permissions": ["clipboard-read", "clipboard-write"]}
    with opened(below, "write", **allowed) as visit:
        visit.write("ho", seed=11)
        for kind in ("curl", "python", "link"):
            visit.press(f"#write-{kind}")
            visit.wait_done("write")
            copied: str = visit.page.evaluate("navigator.clipboard.readText()")
            assert f"{below}/{'#write?' if kind == 'link' else 'v1/handwriting'}" in copied


def test_a_request_can_be_tried_out_below_a_path(browser: Any, below: str) -> None:
    visit = Visit(browser.new_page(), below)
    visit.page.goto(f"{below}/#write")
    visit["a[data-served]"].click()
    visit.wait(".opblock")
    assert '"owned_by"' in try_out(visit)
    assert (visit.errors, visit.elsewhere) == ([], [])
    visit.page.close()


@pytest.mark.skipif(not _BUILT.exists(), reason="the static site is not built; make site does that")
def test_the_device_can_be_chosen_below_a_path(below: str, opened: Open) -> None:
    with opened(below, "write") as visit:
        for there in ("static/device/?server#write", "#write"):
            visit["#place a[href]"].click()
            visit.page.wait_for_url(f"{below}/{there}")
