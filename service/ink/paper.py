"""The lines that paper comes with: under each line of writing, or squares of half its height."""

import numpy as np
from numpy.typing import NDArray

from service.ink.layout import Layout

COLOR = "#b8c5d6"
WIDTH_PX = 0.75
_SQUARES_PER_LINE = 2


def rules(layout: Layout, lines: int) -> list[NDArray[np.float64]]:
    """The rules of each sheet that `lines` lines take, as segments in px: x, y and x, y of the
    other end, `(n, 4)`. Lines of writing stand on them."""
    sheets = layout.sheets(lines)
    if layout.paper == "plain":
        return [np.zeros((0, 4))] * len(sheets)
    width_px, sheet_px = layout.width_px, layout.sheet_px(lines)
    found = []
    for page, numbers in enumerate(sheets):
        top_px, (left_px, base_px) = page * sheet_px, layout.origin_px(numbers.start)
        apart_px = layout.line_height_px
        columns: list[float] = []
        if layout.paper == "squared":
            apart_px /= _SQUARES_PER_LINE
            columns = np.arange(left_px % apart_px, width_px, apart_px).tolist()
            base_px = top_px + (base_px - top_px) % apart_px
        end_px = top_px + sheet_px - (layout.margin_px if layout.paper == "ruled" else 0)
        rows: list[float] = np.arange(base_px, end_px, apart_px).tolist()
        found.append(np.array([
            *((0.0, y, width_px, y) for y in rows),
            *((x, top_px, x, top_px + sheet_px) for x in columns),
        ]))  # fmt: skip
    return found
