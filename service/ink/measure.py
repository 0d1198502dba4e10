"""Measures of a line of ink by which one hand is told from another.

Shapes: `N` points of a line, `D` offsets with the pen down.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEEP_DEGREES = 60  # from the vertical: flatter strokes join letters, and lean by nobody's will
_BLUR_DEGREES = 5.0  # the jitter of one hand's down-strokes


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What a hand looks like; lengths are in model units.

    `slant_degrees` is the lean of the down-strokes, positive to the right; `size_units` the height
    of the ink without its outermost tenths; `units_per_point` the speed of the pen on paper;
    `units_per_character` the advance.
    """

    slant_degrees: float
    size_units: float
    units_per_point: float
    units_per_character: float


def measure(offsets: NDArray[np.floating], text_length: int) -> Measures:
    """Measure offsets `(N, 3)`, a line of `text_length` characters; what has no ink measures 0."""
    moves = offsets[:, :2].astype(np.float64)
    places = moves.cumsum(axis=0)
    drawn = moves[1:][offsets[:-1, 2] < 0.5]  # (D, 2)
    low, high = np.quantile(places[:, 1], [0.1, 0.9]) if len(places) else (0.0, 0.0)
    return Measures(
        slant_degrees=_slant_degrees(drawn),
        size_units=float(high - low),
        units_per_point=float(np.hypot(*drawn.T).mean()) if len(drawn) else 0.0,
        units_per_character=float(np.ptp(places[:, 0])) / max(text_length, 1) if len(places) else 0,
    )


def _slant_degrees(drawn: NDArray[np.float64]) -> float:
    """The lean that most of the length of the down-strokes of `(D, 2)` has, to a degree.

    The peak of the distribution, not its mean: curves and joins lean every way.
    """
    down = drawn[drawn[:, 1] < 0]
    leans = np.degrees(np.arctan2(-down[:, 0], -down[:, 1]))
    # Bins centred on whole degrees.
    edges = np.arange(-_STEEP_DEGREES, _STEEP_DEGREES + 2) - 0.5
    lengths, _ = np.histogram(leans, edges, weights=np.hypot(*down.T))
    if not lengths.any():
        return 0.0
    reach = np.arange(-3 * _BLUR_DEGREES, 3 * _BLUR_DEGREES + 1)
    blurred = np.convolve(lengths, np.exp(-0.5 * (reach / _BLUR_DEGREES) ** 2), "same")
    return float(blurred.argmax() - _STEEP_DEGREES)
