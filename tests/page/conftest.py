"""A browser, a service with the shipped models, and pages that may neither err nor reach out."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.page.visit import HANDWRITING, Strokes, Visit
from tests.service.serving import listening, settings

_ARTIFACTS = Path(__file__).parents[2] / "artifacts"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRAWN = "even keel"
_DRAWN_LINE_PX = 80
_PAD_BASELINE_PX = 130

Open = Callable[..., AbstractContextManager[Visit]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screens", type=Path, help="folder to save a picture of every tab in")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium of this machine; without it, or without playwright, the tests are skipped."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(_BROWSERS)} is on the PATH")
    with sync_api.sync_playwright() as playwright:
        # Without a user namespace, as in a container, Chromium's sandbox cannot start.
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def site(browser: Any) -> Iterator[str]:
    """The URL of a service with all shipped models."""
    # A machine that trains beside the tests keeps a page waiting, which is no reason to refuse it.
    with listening(settings(_ARTIFACTS, max_wait_s=60.0)) as (url, _):
        yield url


@pytest.fixture
def site_with(browser: Any, tmp_path: Path) -> Callable[[str], AbstractContextManager[str]]:
    """The URL of a service with one of the shipped models only."""

    @contextmanager
    def only(name: str) -> Iterator[str]:
        if not (_ARTIFACTS / name).exists():
            pytest.skip(f"artifacts/{name} is not there")
        shutil.copytree(_ARTIFACTS / name, tmp_path / name)
        with listening(settings(tmp_path)) as (url, _):
            yield url

    return only


@pytest.fixture
def opened(browser: Any) -> Open:
    """Opens a tab of a site."""

    def visit(site: str, tab: str = "", **context: Any) -> AbstractContextManager[Visit]:
        return Visit.begun(browser, site, tab, **context)

    return visit


@pytest.fixture(scope="session")
def handwriting(site: str) -> str:
    """The same service, if it has a handwriting model."""
    if not (_ARTIFACTS / HANDWRITING).exists():
        pytest.skip(f"artifacts/{HANDWRITING} is not there")
    return site


@pytest.fixture(scope="session")
def strokes(handwriting: str) -> Strokes:
    """`DRAWN` as some hand writes it, on the line of the pad, narrow enough for a phone."""
    body = {"text": DRAWN, "seed": 3, "bias": 2, "format": "json", "line_height": _DRAWN_LINE_PX}
    data = json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    with urlopen(Request(f"{handwriting}/v1/handwriting", data, headers)) as answer:
        line = json.load(answer)["lines"][0]
    # The service's baseline lies 0.5 + 0.7 line heights below the top of the page.
    down = _PAD_BASELINE_PX - 1.2 * _DRAWN_LINE_PX
    return [[(x, y + down) for x, y in stroke] for stroke in line["strokes"]]


@pytest.fixture(scope="session")
def screens(request: pytest.FixtureRequest) -> Path | None:
    """Where pictures go, if anywhere."""
    folder: Path | None = request.config.getoption("--screens")
    return folder
