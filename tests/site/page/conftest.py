"""A plain file server, what it is asked, and pages that may neither err nor reach out."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.page.conftest import browser
from tests.page.visit import Visit

__all__ = ["browser"]

BUILD = Path(__file__).parents[3] / "build"
SITE = "site"
_PROVED = "() => document.querySelector('#verdict').textContent.startsWith('Ready')"
_KEPT = "async () => Boolean((await navigator.serviceWorker.ready).active)"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", type=Path, help="folder to save pictures of the site in")
    parser.addoption("--record", action="store_true", help="write what is measured to the results")


class Shelf:
    """A file server that knows nothing of the site, which lies in a folder of it: no header, no
    compression. `sent` is what it was asked for, in bytes by path. Some hosts have `one_name` for a
    page: that of its folder."""

    def __init__(self, folder: Path = BUILD, *, one_name: bool = False) -> None:
        sent: dict[str, int] = {}

        class Handler(SimpleHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                file = Path(self.translate_path(self.path))
                sent[path] = sent.get(path, 0) + (file.stat().st_size if file.is_file() else 0)
                if one_name and path.endswith("/index.html"):
                    self.send_response(301)
                    self.send_header("Location", "./")
                    self.end_headers()
                    return
                super().do_GET()

        self.sent = sent
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """The network is gone."""
        self._server.shutdown()
        self._server.server_close()


class SiteVisit(Visit):
    """A visit to the site at its sub-path."""

    def go(self, tab: str, folder: str = SITE) -> None:
        self.page.goto("about:blank")
        self.page.goto(f"{self.site}/{folder}/{f'#{tab}' if tab else ''}")
        self.until("() => document.querySelector('#proof-models').children.length > 0")

    def proved(self) -> None:
        """Wait until the model of the tab has proved itself."""
        self.until(_PROVED)

    def kept(self) -> None:
        """Wait until the page would open without a network."""
        self.until(_KEPT)


OpenSite = Callable[..., AbstractContextManager[SiteVisit]]


@pytest.fixture
def shelf(browser: Any) -> Iterator[Shelf]:
    """The server, if the site has been built."""
    if not (BUILD / SITE / "index.html").exists():
        pytest.skip("the site is not built; `make site` does that")
    shelf = Shelf()
    yield shelf
    shelf.close()


@pytest.fixture
def opened(browser: Any, shelf: Shelf) -> OpenSite:
    """Opens a tab of the site."""

    def visit(tab: str = "", **context: Any) -> AbstractContextManager[SiteVisit]:
        return SiteVisit.begun(browser, shelf.origin, tab, **context)

    return visit


@pytest.fixture
def pictures(request: pytest.FixtureRequest) -> Path | None:
    """Where pictures go, if anywhere."""
    folder: Path | None = request.config.getoption("--pictures")
    return folder
