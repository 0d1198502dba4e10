"""A person at the page: what they press, type and draw, and what they see."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from tests.service.serving import eventually

HANDWRITING = "handwriting"
# A machine that trains beside the tests is slow, and the pen takes its time by design.
PATIENCE_MS = 60_000
_WIDE = {"width": 1280, "height": 860}

Strokes = list[list[tuple[float, float]]]


class Visit:
    """A page of the site, with everything that went wrong on it."""

    def __init__(self, page: Any, site: str) -> None:
        self.page = page
        self.site = site
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))
        page.on("websocket", lambda socket: self._asked(socket.url))

    @classmethod
    @contextmanager
    def begun(cls, browser: Any, site: str, tab: str, **context: Any) -> Iterator[Self]:
        """A visit to a tab; when left, nothing must have erred and nothing else been asked."""
        circumstances = browser.new_context(**{"viewport": _WIDE} | context)
        visit = cls(circumstances.new_page(), site)
        visit.go(tab)
        yield visit
        circumstances.close()
        assert visit.errors == [], visit.errors
        assert visit.elsewhere == [], visit.elsewhere

    def _asked(self, url: str) -> None:
        ours = re.escape(self.site.partition("://")[2])
        host = ours.partition("/")[0]  # whose all blobs are, whatever the page's path
        if not re.match(rf"(https?|ws)://{ours}/|blob:http://{host}/|data:", url):
            self.elsewhere.append(url)

    def go(self, tab: str) -> None:
        """Open the page at a tab and wait until it knows the models."""
        self.page.goto("about:blank")  # another fragment alone would not load the page again
        self.page.goto(f"{self.site}/{f'#{tab}' if tab else ''}")
        self.until("() => document.querySelector('#proof-models').children.length > 0")

    def until(self, condition: str, argument: Any = None) -> None:
        """Wait for a JavaScript function to be true; asked again and again from outside, because
        the page's policy forbids what playwright's own waiting does inside."""
        assert eventually(lambda: bool(self.page.evaluate(condition, argument))), condition

    def expect_error(self, part: str) -> None:
        """Take one error that was provoked off the list."""
        self.errors.remove(next(error for error in self.errors if part in error))

    def __getitem__(self, selector: str) -> Any:
        return self.page.locator(selector)

    def text(self, selector: str) -> str:
        """What an element says."""
        content: str = self[selector].text_content()
        return content

    def press(self, selector: str) -> None:
        """Press a button once it may be pressed."""
        self[f"{selector}:not([aria-disabled=true])"].click()

    def wait(self, selector: str, state: str = "visible") -> None:
        """Wait for an element."""
        self[selector].first.wait_for(state=state)

    def wait_done(self, tab: str) -> None:
        """Wait until a task of a tab has ended, and has not failed."""
        self.wait(f"#{tab}-start[aria-disabled=false]")
        assert self[f"#{tab}-error"].is_hidden(), self.text(f"#{tab}-error")

    def write(self, text: str, *, speed: str = "Infinity", seed: int | None = 7) -> None:
        """Let the pen write a text, to its end."""
        self.begin_writing(text, speed=speed, seed=seed)
        self.wait_done("write")

    def begin_writing(self, text: str, *, speed: str, seed: int | None) -> None:
        """Press Write; the tab is at work when this returns."""
        self["#write-text"].fill(text)
        self["#write-speed"].select_option(speed)
        self["#write-seed"].fill("" if seed is None else str(seed))
        self.press("#write-start")

    def open_sizes(self) -> None:
        """Fold out what is under Ink and size."""
        self["#write-panel details:not([open]) summary"].click()

    def shown_seed(self, tab: str) -> int:
        """The seed that the progress line of a tab names."""
        found = re.search(r"seed (\d+)", self.text(f"#{tab}-progress"))
        assert found
        return int(found[1])

    def ink(self, sheet: str) -> list[str]:
        """The path data of every stroke on a sheet."""
        data: list[str] = self[f"{sheet} path"].evaluate_all(
            "paths => paths.map((path) => path.getAttribute('d'))"
        )
        return data

    def scribble(self, strokes: Strokes) -> None:
        """Draw strokes, in px of the pad, with the mouse."""
        pad = self["#draw-pad"]
        pad.scroll_into_view_if_needed()
        box = pad.bounding_box()
        mouse = self.page.mouse
        for (x, y), *rest in strokes:
            mouse.move(box["x"] + x, box["y"] + y)
            mouse.down()
            for x, y in rest:
                mouse.move(box["x"] + x, box["y"] + y)
            mouse.up()

    def go_on_from(self, strokes: Strokes, words: str, text: str) -> None:
        """Draw words, let the model continue with a text, and wait for its end."""
        self["#draw-text"].fill(words)
        self["#draw-next"].fill(text)
        self.scribble(strokes)
        self.press("#draw-start")
        self.wait_done("draw")

    def too_wide_by(self) -> int:
        """The px that the page can be scrolled sideways."""
        root = "document.documentElement"
        excess: int = self.page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
        return excess
