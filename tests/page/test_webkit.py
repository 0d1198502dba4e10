"""The page in Safari's engine: what Chromium cannot tell, and that every tab works.

`apt install webkit2gtk-driver xvfb` brings WebKitGTK, its driver and a screen that nobody sees.
"""

import os
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.page.visit import PATIENCE_MS
from tests.service.serving import eventually

_PROGRAMS = ("WebKitWebDriver", "Xvfb")
# Processes in a container may have no namespaces of their own, and a screen of memory no GPU.
_WITHOUT = ("WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS", "WEBKIT_DISABLE_COMPOSITING_MODE")
# What was thrown, forbidden or complained of from here on.
_LISTEN = """
  window.wrong = [];
  addEventListener("error", (event) => wrong.push(event.message));
  addEventListener("unhandledrejection", (event) => wrong.push(String(event.reason)));
  addEventListener("securitypolicyviolation", (event) => wrong.push(event.blockedURI));
  console.error = (...said) => wrong.push(said.join(" "));
"""
_KNOWS_MODELS = "document.querySelector('#proof-models').children.length > 0"
_IDLE = "document.querySelector(`#${arguments[0]}-start`).getAttribute('aria-disabled') === 'false'"
_COUNT = "document.querySelectorAll(arguments[0]).length"
_PAD = "document.querySelector('#draw-pad').clientWidth"
_SHOWN = """[...document.querySelectorAll('[role=tabpanel]')]
  .filter((panel) => panel.getClientRects().length)
  .map((panel) => panel.getAttribute('aria-labelledby'))"""


@contextmanager
def _screen() -> Iterator[str]:
    """A display of memory alone, by its name."""
    command = ["Xvfb", "-displayfd", "1", "-screen", "0", "1600x1200x24", "-nolisten", "tcp"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as screen:
        assert screen.stdout is not None
        try:
            yield f":{screen.stdout.readline().strip()}"
        finally:
            screen.terminate()


@pytest.fixture(scope="module")
def webkit() -> Iterator[Any]:
    """WebKitGTK of this machine; without it, or without selenium, the tests are skipped."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if missing := [name for name in _PROGRAMS if not shutil.which(name)]:
        pytest.skip(f"no WebKit: {', '.join(missing)} not on the PATH")
    options = webdriver.WebKitGTKOptions()
    options.add_argument("--automation")
    with _screen() as display:
        env = {**os.environ, "DISPLAY": display, **dict.fromkeys(_WITHOUT, "1")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of selenium at itself
            driver = webdriver.WebKitGTK(options, webdriver.WebKitGTKService(env=env))
        driver.implicitly_wait(PATIENCE_MS / 1000)
        try:
            yield driver
        finally:
            driver.quit()


Look = Callable[..., Any]


@pytest.fixture
def look(webkit: Any, handwriting: str) -> Iterator[Look]:
    """Evaluates JavaScript on the page, opened at the first tab; nothing may have gone wrong on it
    in the end."""
    webkit.get("about:blank")
    webkit.get(handwriting)
    webkit.execute_script(_LISTEN)

    def value(expression: str, *arguments: Any) -> Any:
        return webkit.execute_script(f"return {expression}", *arguments)

    assert eventually(lambda: value(_KNOWS_MODELS))
    yield value
    assert value("wrong") == []


def _press(webkit: Any, selector: str) -> None:
    webkit.find_element("css selector", selector).click()


@pytest.mark.parametrize(
    ("tab", "asked", "made"),
    [("write", "#write-text", "#write-sheet path"), ("text", "#text-prompt", "#text-passage span")],
)
def test_it_writes_what_is_asked(webkit: Any, look: Look, tab: str, asked: str, made: str) -> None:
    _press(webkit, f"#{tab}-tab")
    field = webkit.find_element("css selector", asked)
    field.clear()
    field.send_keys("even keel")
    _press(webkit, f"#{tab}-start")
    assert eventually(lambda: look(_IDLE, tab) and look(_COUNT, made) > 0)
    assert look("document.querySelector(`#${arguments[0]}-error`).hidden", tab)


def test_every_tab_shows_its_panel(webkit: Any, look: Look) -> None:
    tabs = look("[...document.querySelectorAll('[role=tab]')].map(({ id }) => id)")
    assert len(tabs) > 1
    for tab in reversed(tabs):
        _press(webkit, f"#{tab}")
        assert look(_SHOWN) == [tab]


def test_the_paper_to_write_on_follows_the_window(webkit: Any, look: Look) -> None:
    """WebKit calls it an error if what is observed changes its size as it is told."""
    _press(webkit, "#draw-tab")
    before = look(_PAD)
    webkit.set_window_size(500, 800)
    assert eventually(lambda: look(_PAD) < min(before, 500))


def test_a_wrong_field_that_was_folded_away_has_the_focus(webkit: Any, look: Look) -> None:
    """WebKit gives it to nothing that has yet to be laid out, and then refuses in silence."""
    webkit.execute_script("document.querySelector('#write-size').value = 9")
    assert look("document.querySelector('#write-size').closest('details').open") is False
    _press(webkit, "#write-start")
    assert look("document.activeElement.id") == "write-size"


def test_the_next_tab_is_shown_after_more_changes_than_its_history_takes(
    webkit: Any, look: Look
) -> None:
    """A hundred in ten seconds, which an arrow key that is held down comes to."""
    webkit.execute_script(
        """const press = (key) =>
          document.activeElement.dispatchEvent(
            new KeyboardEvent("keydown", { key, bubbles: true }));
        document.querySelector("#write-tab").focus();
        for (let n = 0; n < 152; n += 1) press("ArrowRight");"""
    )
    assert look(_SHOWN) == ["draw-tab"]
