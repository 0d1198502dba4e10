"""The page at `/` and the files it loads; and the static site, where one has been built."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from hashlib import sha256
from os import stat_result
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers
from starlette.staticfiles import NotModifiedResponse
from starlette.types import Scope

from service.http.guard import POLICY

_WEB = Path(__file__).parents[1] / "web"
_ON_DEVICE = "/static/device"
_CHOICE = '<nav class="place" id="place" aria-label="Where models compute"'
_ASK_AGAIN = {"Cache-Control": "no-cache"}  # an old script must not meet a new page
# What WebAssembly and a worker that has the policy of its page want beyond that of the service.
_SITE_POLICY = POLICY["Content-Security-Policy"] + (
    "; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:"
)

Route = Callable[[Request], Awaitable[Response]]


def add_page(app: FastAPI, site: Path) -> None:
    """Serve the page. Where the folder `site` holds what `make site` built, that is served as well,
    and the page offers to compute on the device it is seen on."""
    page: Route = _page
    if (site / "index.html").exists():
        app.mount(_ON_DEVICE, _Site(directory=site, html=True), name="site")
        page = _page_with_choice
    app.mount("/static", _FILES, name="static")
    app.add_api_route("/", page, methods=["GET", "HEAD"], include_in_schema=False)


class _Own(StaticFiles):
    """Those of the page itself, whose tags are of what is in them, and which tell no time: all may
    have the same."""

    def file_response(
        self, full_path: Any, stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        found = stat_result.st_ino, stat_result.st_ctime_ns, stat_result.st_size
        headers = _ASK_AGAIN | {"ETag": _tag_of(full_path, *found)}
        response = FileResponse(full_path, status_code, headers, stat_result=stat_result)
        del response.headers["last-modified"]
        had = self.is_not_modified(response.headers, Headers(scope=scope))
        return NotModifiedResponse(response.headers) if had else response


@lru_cache(maxsize=256)
def _tag_of(path: str, *_: int) -> str:
    return _tag(Path(path).read_bytes())


def _tag(content: bytes) -> str:
    return f'"{sha256(content).hexdigest()}"'


class _Site(StaticFiles):
    """What `make site` built: the page with models that run in the browser."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(_ASK_AGAIN | {"Content-Security-Policy": _SITE_POLICY})
        return response


_FILES = _Own(directory=_WEB)


async def _page(request: Request) -> Response:
    return await _FILES.get_response("index.html", request.scope)


async def _page_with_choice(request: Request) -> Response:
    """The page, which offers to compute on the device it is seen on."""
    page = (_WEB / "index.html").read_text("utf-8").replace(f"{_CHOICE} hidden>", f"{_CHOICE}>")
    response = HTMLResponse(page, headers=_ASK_AGAIN | {"ETag": _tag(page.encode())})
    had = _FILES.is_not_modified(response.headers, request.headers)
    return NotModifiedResponse(response.headers) if had else response
