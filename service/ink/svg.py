"""Strokes as an SVG drawing. Shapes: `k` points of one stroke, x and y."""

import re
from collections.abc import Sequence

import drawsvg  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from service.ink import paper
from service.ink.curve import DECIMALS, pair, path
from service.ink.layout import Layout
from service.ink.nib import runs
from service.ink.paper import rules

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_svg(
    strokes: Sequence[NDArray[np.float64]], layout: Layout, lines: int, title: str = ""
) -> str:
    """A standalone drawing of strokes `(k, 2)` in px on a page of `lines` lines.

    The background is transparent. `title` is what a screen reader says. The same ink gives the
    same bytes: nothing in the drawing carries an id.
    """
    drawing = drawsvg.Drawing(layout.width_px, layout.height_px(lines), role="img")
    drawing.append_title(xml_text(title))
    ruled = np.concatenate(rules(layout, lines))
    if len(ruled):
        data = " ".join(f"M{pair(rule[:2])} L{pair(rule[2:])}" for rule in ruled)
        drawing.append(drawsvg.Path(data, stroke=paper.COLOR, stroke_width=paper.WIDTH_PX))
    ink = drawsvg.Group(
        fill="none",
        stroke=layout.color,
        stroke_width=layout.stroke_width_px,
        stroke_linecap="round",
        stroke_linejoin="round",
    )
    for stroke in strokes:
        for width_px, start, segments in runs(stroke, layout):
            thinner = {"stroke_width": round(width_px, DECIMALS)} if layout.thinning else {}
            ink.append(drawsvg.Path(path(start, segments), **thinner))
    drawing.append(ink)
    return str(drawing.as_svg())


def xml_text(text: str) -> str:
    """A text with what XML has no way to write, control characters above all, as U+FFFD."""
    return _NOT_XML.sub("\ufffd", text)
