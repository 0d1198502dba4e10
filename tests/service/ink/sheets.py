"""A small page, and ink like that of a model."""

import numpy as np
from numpy.typing import NDArray

from service.ink.layout import Layout


def sheet(
    width_px: float = 400, line_height_px: float = 40.0, thinning: float = 0.0, wander: float = 0.0
) -> Layout:
    """A page of lines 40 px high, 3 units to a line."""
    return Layout(
        width_px=width_px,
        line_height_px=line_height_px,
        stroke_width_px=3.0,
        color="#1a2b3c",
        units_per_line=3.0,
        units_per_character=0.9,
        thinning=thinning,
        wander=wander,
    )


def some_offsets(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Offsets like those of a model, about one in ten with the pen up."""
    random = np.random.default_rng(seed)
    offsets = random.normal(0.05, 0.3, (count, 3)).astype(np.float32)
    offsets[:, 2] = random.random(count) < 0.1
    return offsets
