"""Two pages of ink side by side: lines that go on from one another, and lines of one hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from contract.files import replacing
from lab.legibility.reading import PAGE, Offsets
from service.ink.pen import LinePen, strokes
from service.ink.png import to_png_here
from service.ink.svg import to_svg

_WIDTH_PX = 470  # of one page
_LINE_PX = 30.0


def plot_pages(pages: Sequence[Sequence[Offsets]], image: Path) -> None:
    """Write a PNG of pages `[(N, 3), ...]`, a column each."""
    page = replace(PAGE, width_px=_WIDTH_PX * len(pages), line_height_px=_LINE_PX)
    ink = []
    for column, lines in enumerate(pages):
        for number, offsets in enumerate(lines):
            points = LinePen(page, number).move(offsets)
            ink += [stroke + np.array([column * _WIDTH_PX, 0]) for stroke in strokes(points)]
    with replacing(image) as whole:
        whole.write_bytes(to_png_here(to_svg(ink, page, max(map(len, pages)))))
