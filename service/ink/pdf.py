"""Strokes as a PDF of vector curves, a page for each sheet, as large as the sheet is.

Shapes: `k` points of one stroke, x and y.
"""

import io
import math
from collections.abc import Sequence

import numpy as np
import pydyf  # type: ignore[import-untyped]
from numpy.typing import NDArray

from service.ink import paper
from service.ink.layout import Layout
from service.ink.nib import runs

PT_PER_PX = 72 / 96
_LONGEST_SIDE = 14_400  # units that a page may have by what readers take; larger ones have larger
_ROUND = 1  # caps and joins

Strokes = Sequence[NDArray[np.float64]]


def to_pdf(lines: Sequence[Strokes], layout: Layout, title: str = "") -> bytes:
    """A document of lines, each its strokes `(k, 2)` in px. The same ink gives the same bytes:
    nothing in it tells the time."""
    document = pydyf.PDF()
    document.info["Title"] = pydyf.String(title)
    sheets = layout.sheets(len(lines))
    sheet_px = layout.sheet_px(len(lines))
    unit = math.ceil(sheet_px * PT_PER_PX / _LONGEST_SIDE)  # no page is nearly as wide
    scale = PT_PER_PX / unit
    for page, rules in enumerate(paper.rules(layout, len(lines))):
        content = pydyf.Stream(compress=True)
        # Our px go downward from the top of the first sheet, points upward from the lower left.
        content.set_matrix(scale, 0, 0, -scale, 0, (page + 1) * sheet_px * scale)
        content.set_line_cap(_ROUND)
        content.set_line_join(_ROUND)
        _look(content, paper.COLOR, paper.WIDTH_PX)
        for x, y, to_x, to_y in rules.tolist():
            content.move_to(x, y)
            content.line_to(to_x, to_y)
            content.stroke()
        _look(content, layout.color, layout.stroke_width_px)
        for number in sheets[page]:
            for stroke in lines[number]:
                _draw(content, stroke, layout)
        document.add_object(content)
        size = [0, 0, layout.width_px * scale, sheet_px * scale]
        document.add_page(pydyf.Dictionary({
            "Type": "/Page",
            "Parent": document.pages.reference,
            "MediaBox": pydyf.Array([round(length, 3) for length in size]),
            "Resources": pydyf.Dictionary(),
            "Contents": content.reference,
            **({"UserUnit": unit} if unit > 1 else {}),
        }))  # fmt: skip
    written = io.BytesIO()
    document.write(written)
    return written.getvalue()


def _look(content: pydyf.Stream, color: str, width_px: float) -> None:
    """Draw in a colour, `#rgb` or `#rrggbb`, and a width from here on."""
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    content.set_color_rgb(*(byte / 255 for byte in bytes.fromhex(digits)), stroke=True)
    content.set_line_width(width_px)


def _draw(content: pydyf.Stream, stroke: NDArray[np.float64], layout: Layout) -> None:
    for width_px, start, segments in runs(stroke, layout):
        if layout.thinning:
            content.set_line_width(width_px)
        content.move_to(*start.tolist())
        for segment in segments.tolist():
            content.curve_to(*segment)
        if not len(segments):
            content.line_to(*start.tolist())  # round caps make it a dot
        content.stroke()
