"""A page in the format it was asked for."""

import base64
import math
from collections.abc import Callable
from typing import Any

from service.http import record
from service.http.described import BINARY, TEXT
from service.ink import plotter
from service.ink.inkml import to_inkml
from service.ink.page import Page
from service.ink.pdf import to_pdf
from service.ink.png import to_png

_Draw = Callable[[Page], str | bytes]


def _for_plotters(write: Callable[..., str]) -> _Draw:
    return lambda page: write([line.strokes() for line in page.lines], page.layout)


def _image(page: Page) -> bytes:
    width_px, height_px = page.layout.width_px, page.layout.height_px(len(page.lines))
    record.current().pay(math.ceil(width_px * height_px / _PX_PER_STEP))
    return to_png(page.svg(), _GROUNDS[page.body.ground])


# An image of 14 million pixels takes a core as long as 3,500 points of the pen.
_PX_PER_STEP = 4000
_GROUNDS = {"white": "white", "transparent": None}
# Of each format but JSON: media type, what /openapi.json says of it, and how a page becomes it.
_FORMATS: dict[str, tuple[str, dict[str, Any], _Draw]] = {
    "svg": ("image/svg+xml", TEXT, Page.svg),
    "png": ("image/png", BINARY, _image),
    "pdf": (
        "application/pdf",
        BINARY,
        lambda page: to_pdf([line.strokes() for line in page.lines], page.layout, page.text),
    ),
    "inkml": ("application/inkml+xml", TEXT, lambda page: to_inkml(page.strokes(), page.text)),
    "hpgl": ("application/vnd.hp-hpgl", TEXT, _for_plotters(plotter.to_hpgl)),
    "gcode": ("text/x.gcode", TEXT, _for_plotters(plotter.to_gcode)),
    "plotter-svg": ("image/svg+xml", TEXT, _for_plotters(plotter.to_plotter_svg)),
}
CONTENT = {media_type: told for media_type, told, _ in _FORMATS.values()}


def draw(page: Page) -> tuple[str, str | bytes]:
    """Media type and content; SVG unless another format was asked for."""
    media_type, _, draw_page = _FORMATS[page.body.format or "svg"]
    return media_type, draw_page(page)


def in_event(page: Page) -> dict[str, Any]:
    """What the last event of a stream has of it."""
    _, content = draw(page)
    text = content if isinstance(content, str) else base64.b64encode(content).decode()
    return {"drawing": text}
