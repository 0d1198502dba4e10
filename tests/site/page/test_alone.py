"""The site needs nobody: no network at the second visit, no other origin at any, and no headers."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.site.page.conftest import BUILD, SITE, OpenSite, Shelf, SiteVisit

# Chromium asks its maker which fields of a form are of a name or an address.
_BROWSERS_OWN = b"content-autofill.googleapis.com"
_REACH_OUT = """async (url) => {
  try { await fetch(url, { mode: "no-cors" }); return "answered"; }
  catch (error) { return error.name; }
}"""


_SAYS = "words => document.querySelector('#verdict.bad')?.textContent.includes(words)"


class _Proxy:
    """Stands for the rest of the world: counts who connects, and answers nobody."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.asked: list[bytes] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.asked.append(connection.recv(4096))

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def world() -> Iterator[_Proxy]:
    proxy = _Proxy()
    yield proxy
    proxy.close()


def _everything(visit: SiteVisit) -> list[str]:
    """Use every tab; the ink that was written."""
    visit.write("Steady as she goes", seed=7)
    ink = visit.ink("#write-sheet")
    visit["#proof-tab"].click()
    visit.wait("#proof-models .verdict:has-text('drawn by the server')")
    visit["#text-tab"].click()
    visit["#text-length"].fill("30")
    visit.press("#text-start")
    visit.wait_done("text")
    return ink


def test_a_second_visit_needs_no_network(opened: OpenSite, shelf: Shelf) -> None:
    with opened("write") as visit:
        ink = _everything(visit)
        visit.kept()
        shelf.close()
        visit.go("write")
        assert _everything(visit) == ink


@pytest.mark.parametrize("one_name", [False, True])
def test_the_page_opens_by_its_other_name_too(browser: Any, shelf: Shelf, one_name: bool) -> None:
    """What a host sends on to the folder's name may not be what is kept."""
    host = Shelf(one_name=one_name)
    with SiteVisit.begun(browser, host.origin, "lab") as visit:
        visit.kept()
        host.close()
        visit.page.goto("about:blank")
        visit.page.goto(f"{host.origin}/{SITE}/index.html?server#lab")
        visit.until("() => document.querySelector('#lab-numbers').children.length > 0")


def test_another_build_on_the_same_origin_takes_nothing_away(
    shelf: Shelf, browser: Any, tmp_path: Path
) -> None:
    """It keeps files and the page under names of its own, and forgets its own alone, also where one
    stands within the other."""
    other = f"{SITE}/other"
    for folder in (SITE, other):
        copytree(BUILD / SITE, tmp_path / folder)
    worker = tmp_path / other / "sw.js"
    worker.write_text(re.sub(r"(const SHELL = .*)`;", r"\1of another build`;", worker.read_text()))
    both = Shelf(tmp_path)
    with closing(both), SiteVisit.begun(browser, both.origin, "write") as visit:
        ink = _everything(visit)
        visit.kept()
        for folder in (other, SITE):
            visit.go("write", folder)
            assert _everything(visit) == ink
            visit.kept()
        both.close()
        for folder in (SITE, other):
            visit.go("write", folder)
            assert _everything(visit) == ink


def test_nothing_leaves_the_origin(opened: OpenSite, shelf: Shelf, world: _Proxy) -> None:
    # Chromium itself sends all else through the proxy, what workers ask for included.
    proxy = {"server": world.address, "bypass": shelf.origin.partition("://")[2]}
    with opened("write", proxy=proxy) as visit:
        _everything(visit)
        visit.kept()
        assert [asked for asked in world.asked if _BROWSERS_OWN not in asked] == []
        assert not [path for path in shelf.sent if not path.startswith("/site/")]
        # The proxy would have noticed.
        with pytest.raises(Exception, match="ERR_"):
            visit.page.goto("http://elsewhere.example/")
        assert any(b"elsewhere.example" in asked for asked in world.asked)
        visit.elsewhere.clear()


def test_neither_page_nor_worker_may_ask_elsewhere(opened: OpenSite, shelf: Shelf) -> None:
    other = Shelf()
    with opened("write") as visit:
        visit.proved()
        (worker,) = visit.page.workers
        for place in (visit.page, worker):
            assert place.evaluate(_REACH_OUT, f"{other.origin}/site/index.html") == "TypeError"
            assert place.evaluate(_REACH_OUT, f"{shelf.origin}/site/index.html") == "answered"
        visit.elsewhere.clear()
        visit.errors.clear()  # the refusals
    assert other.sent == {}
    other.close()


def test_an_altered_file_is_refused(opened: OpenSite, shelf: Shelf, browser: Any) -> None:
    def alter(route: Any) -> None:
        body = bytearray(route.fetch().body())
        body[len(body) // 2] ^= 1
        route.fulfill(status=200, body=bytes(body))

    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.route("**/model.onnx.gz*", alter)
    visit = SiteVisit(page, shelf.origin)
    visit.go("write")
    visit["#write-text"].fill("no")
    visit.press("#write-start")
    visit.wait("#write-error")
    assert "model.onnx.gz was cut short or altered" in visit.text("#write-error")
    assert visit.ink("#write-sheet") == []
    context.close()


@pytest.mark.parametrize(
    "lost", ["device/start.js", "device/device.js", "static/page.js", "static/tabs.js"]
)
def test_without_one_of_its_scripts_the_page_says_that_it_cannot_be_started(
    shelf: Shelf, browser: Any, lost: str
) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.route(f"**/{lost}", lambda route: route.fulfill(body="", content_type="text/plain"))
    page.goto(f"{shelf.origin}/{SITE}/#write")
    page.wait_for_function(_SAYS, arg="one of its scripts cannot be loaded")
    context.close()


def test_opened_as_a_file_the_page_says_what_it_wants(shelf: Shelf, browser: Any) -> None:
    page = browser.new_page()
    page.goto((BUILD / SITE / "index.html").as_uri())
    page.wait_for_function(_SAYS, arg="A file server has to serve them")
    page.close()


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        ("models/index.json", "The list of models cannot be fetched; load the page again."),
        ("worker.js", "What computes here cannot be started"),
    ],
)
def test_where_nothing_can_be_computed_the_page_says_that_and_nothing_else(
    shelf: Shelf, browser: Any, lost: str, reason: str
) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    unhandled: list[Any] = []
    page.on("pageerror", lambda error: unhandled.append(error))
    page.route(f"**/{lost}*", lambda route: route.fulfill(status=404, body=""))
    page.goto(f"{shelf.origin}/{SITE}/#write")
    visit = SiteVisit(page, shelf.origin)
    told = "([id, text]) => document.querySelector(id).textContent.startsWith(text)"
    for place in (".fetching", "#verdict"):
        visit.until(told, [place, reason])
    assert visit["#verdict"].get_attribute("class") == "verdict bad"
    assert visit["#write-missing"].is_hidden()
    assert unhandled == []
    context.close()


# What the page says of bytes that are on their way, as long as it is open.
_WATCH = """() => {
  window.told = [];
  const look = () => told.push(document.querySelector(".fetching")?.textContent ?? "");
  const all = { subtree: true, childList: true, characterData: true };
  new MutationObserver(look).observe(document, all);
}"""


def test_a_screen_reader_hears_once_that_a_model_is_fetched(opened: OpenSite) -> None:
    """Of each megabyte that has come it would not let a person hear anything else."""
    watch = """() => {
      window.said = [];
      const status = document.querySelector(".fetching [role=status]");
      const look = () => said.push(status.textContent);
      new MutationObserver(look).observe(status, { childList: true, characterData: true });
    }"""
    with opened("lab") as visit:
        visit.page.evaluate(watch)
        visit["#text-tab"].click()
        visit.proved()
        said = [text for text in visit.page.evaluate("said") if text]
    assert said == ["Fetching the model, kept for the next visit:"]


def test_a_model_that_cannot_be_had_is_told_until_it_is(shelf: Shelf, browser: Any) -> None:
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.add_init_script(f"({_WATCH})()")
    page.route("**/model.onnx.gz*", lambda route: route.fulfill(status=404, body=""))
    visit = SiteVisit(page, shelf.origin)
    visit.go("write")
    shown = "document.querySelector('.fetching:not([hidden])')"
    told = f"() => {shown}?.innerText.includes('handwriting: ')"
    visit.until(told)
    page.wait_for_timeout(1000)  # what else was on its way has arrived
    assert page.evaluate(told)
    assert visit[".fetching progress"].is_hidden()  # nothing is on its way
    page.unroute("**/model.onnx.gz*")
    visit.write("no")
    visit.until("() => document.querySelector('.fetching').hidden")
    found = [re.search(r"([\d.]+) of ([\d.]+) MB", said) for said in page.evaluate("told")]
    loaded, total = max((float(one[1]), float(one[2])) for one in found if one)
    assert 5 < loaded <= total < loaded + 0.2  # all files together, but the one that did not come
    context.close()
