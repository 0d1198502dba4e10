"""The page at `/` and the files it loads; and the static site, where one has been built."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.staticfiles import NotModifiedResponse

from service.http.files import ASK_AGAIN, PAGE, WEB, Files, tag
from service.http.guard import POLICY

_ON_DEVICE = "/static/device"
_CHOICE = '<nav class="place" id="place" aria-label="Where models compute"'
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
        on_device = ASK_AGAIN | {"Content-Security-Policy": _SITE_POLICY}
        app.mount(_ON_DEVICE, Files(directory=site, html=True, headers=on_device), name="site")
        page = _page_with_choice
    app.mount("/static", PAGE, name="static")
    app.add_api_route("/", page, methods=["GET", "HEAD"], include_in_schema=False)


async def _page(request: Request) -> Response:
    return await PAGE.get_response("index.html", request.scope)


async def _page_with_choice(request: Request) -> Response:
    """The page, which offers to compute on the device it is seen on."""
    page = (WEB / "index.html").read_text("utf-8").replace(f"{_CHOICE} hidden>", f"{_CHOICE}>")
    response = HTMLResponse(page, headers=ASK_AGAIN | {"ETag": tag(page.encode())})
    had = PAGE.is_not_modified(response.headers, request.headers)
    return NotModifiedResponse(response.headers) if had else response
