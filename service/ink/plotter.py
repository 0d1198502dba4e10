"""Strokes for machines that hold a pen, in mm: a drawing in the order of writing, commands in one
that has the pen travel less.

A px is that of CSS, 1/96 of an inch. Ink that would leave the page stays at its edge, for there
may be nothing for a pen to stand on, and coordinates below 0 stop some machines.
Several sheets are plotted one after the other, and the machine waits between two. Lines are lists
of their strokes. Shapes: `k` points of one stroke, x and y.
"""

from collections.abc import Iterator, Sequence

import drawsvg  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from service.ink.layout import MM_PER_PX, Layout

# HP-GL counts in fortieths of a mm.
HPGL_UNITS_PER_MM = 40
_LARGEST_HPGL = 32_767  # of its numbers
HPGL_LONGEST_MM = _LARGEST_HPGL / HPGL_UNITS_PER_MM
# Where a pen is off the paper and on it, and how fast it writes; G-code is meant to be edited.
UP_MM, DOWN_MM = 5, 0
FEED_MM_PER_MINUTE = 1500
_MM_DECIMALS = 3  # finer than any axis moves
_LEAST_MM = 10**-_MM_DECIMALS
_LINE_MM = 0.4  # in the drawing alone: a pen is as wide as it is
_LONGEST_PART = 500  # some four in five sheets of writing have fewer strokes
_MOST_LOOKS = 10

Strokes = Sequence[NDArray[np.float64]]


def to_hpgl(lines: Sequence[Strokes], layout: Layout) -> str:
    """HP-GL, from the lower left corner of each sheet, y up, with pen 1."""
    commands = ["IN", "SP1"]
    for sheet, strokes in enumerate(_from_below(lines, layout)):
        commands += ["PU0,0", "PG"] if sheet else []
        for stroke in strokes:
            places = np.rint(stroke * HPGL_UNITS_PER_MM).astype(int)
            first, *rest = (f"{x},{y}" for x, y in places.tolist())
            commands += [f"PU{first}", "PD" + ",".join(rest or [first])]
    return ";\n".join([*commands, "PU0,0", "SP0", ""])


def to_gcode(lines: Sequence[Strokes], layout: Layout) -> str:
    """G-code in absolute mm, from the lower left corner of each sheet, y up; Z is the pen."""
    up, down = f"G0 Z{UP_MM}", f"G1 Z{DOWN_MM} F{FEED_MM_PER_MINUTE}"
    commands = ["G21", "G90", "G94", up]
    for sheet, strokes in enumerate(_from_below(lines, layout)):
        commands += ["G0 X0 Y0", "M0"] if sheet else []
        for stroke in strokes:
            first, *rest = (
                f"X{x:.{_MM_DECIMALS}f} Y{y:.{_MM_DECIMALS}f}" for x, y in stroke.tolist()
            )
            commands += [f"G0 {first}", down, *(f"G1 {place}" for place in rest), up]
    return "\n".join([*commands, "G0 X0 Y0", "M2", ""])


def to_plotter_svg(lines: Sequence[Strokes], layout: Layout) -> str:
    """SVG in mm of all sheets below each other: an open path of straight lines for each stroke,
    alone.

    What reads it, as vpype does, leaves out paths of no length, and what its own rounding puts
    beyond an edge: so a dot has the least length there is, and ink at an edge is as far from it.
    """
    size_px = np.array([layout.width_px, layout.height_px(len(lines))])
    size_mm = (size_px * MM_PER_PX).round(_MM_DECIMALS)
    width_mm, height_mm = size_mm.tolist()
    drawing = drawsvg.Drawing(width_mm, height_mm)
    drawing.width, drawing.height = f"{width_mm}mm", f"{height_mm}mm"
    ink = drawsvg.Group(fill="none", stroke=layout.color, stroke_width=_LINE_MM)
    written = [stroke for line in lines for stroke in line]
    for stroke in _within(size_mm - _LEAST_MM, written):
        places = stroke.round(_MM_DECIMALS)
        if (places == places[0]).all():
            places = np.array([places[0], places[0] + (_LEAST_MM, 0)])
        first, *rest = (f"{x:.{_MM_DECIMALS}f},{y:.{_MM_DECIMALS}f}" for x, y in places.tolist())
        ink.append(drawsvg.Path(f"M{first} L" + " ".join(rest)))
    drawing.append(ink)
    return str(drawing.as_svg())


def _from_below(lines: Sequence[Strokes], layout: Layout) -> Iterator[Strokes]:
    """The strokes `(k, 2)` of each sheet that has any, in mm, y up."""
    sheets = layout.sheets(len(lines))
    height_px = layout.sheet_px(len(lines))
    size_mm = np.array([layout.width_px, height_px]) * MM_PER_PX
    for number, sheet in enumerate(sheets):
        top = 0, number * height_px
        strokes = [stroke - top for line in sheet for stroke in lines[line]]
        if strokes:
            within = _within(size_mm, strokes)
            yield _sorted([stroke * (1, -1) + (0, size_mm[1]) for stroke in within])


def _sorted(strokes: Strokes) -> Strokes:
    """The strokes `(k, 2)` in an order, and each from the end, that has the pen go less through the
    air, from the corner and back to it."""
    return _untangled(min(strokes, _nearest_first(strokes), key=_in_the_air_mm))


def _nearest_first(strokes: Strokes) -> Strokes:
    """From the corner on always the stroke that begins or ends nearest, from there."""
    x, y = np.array([end for stroke in strokes for end in (stroke[0], stroke[-1])]).T.copy()
    nearest, place = list[NDArray[np.float64]](), np.zeros(2)
    for _ in strokes:
        number, from_its_end = divmod(int(((x - place[0]) ** 2 + (y - place[1]) ** 2).argmin()), 2)
        nearest.append(strokes[number][::-1] if from_its_end else strokes[number])
        place, x[2 * number : 2 * number + 2] = nearest[-1][-1], np.inf
    return nearest


def _untangled(strokes: Strokes) -> Strokes:
    """As they come, but for the parts which, gone through backwards, have the pen go less through
    the air, until there are none (2-opt, Croes 1958). Parts are no longer than `_LONGEST_PART`, and
    looks at all of them no more than `_MOST_LOOKS`, so that time grows as the ink does."""
    way = list(strokes)
    # Before stroke k the pen goes from ends[k] to begins[k], in the complex plane; at last home.
    begins = np.array([*(complex(*stroke[0]) for stroke in strokes), 0])
    ends = np.array([0, *(complex(*stroke[-1]) for stroke in strokes)])
    for _ in range(_MOST_LOOKS):
        tangled = False
        for first in range(len(way)):
            after = slice(first + 1, min(first + _LONGEST_PART, len(way)) + 1)
            saved = (
                abs(ends[first] - begins[first]) + abs(ends[after] - begins[after])
                - abs(ends[first] - ends[after]) - abs(begins[first] - begins[after])
            )  # fmt: skip
            best = int(saved.argmax())
            if saved[best] > _LEAST_MM:
                part, moved = (slice(first + k, first + best + 1 + k) for k in (0, 1))
                begins[part], ends[moved] = ends[moved][::-1].copy(), begins[part][::-1].copy()
                way[part] = [stroke[::-1] for stroke in reversed(way[part])]
                tangled = True
        if not tangled:
            break
    return way


def _in_the_air_mm(strokes: Strokes) -> float:
    """How far a pen goes without ink, from the corner to the corner."""
    begins = np.array([*(stroke[0] for stroke in strokes), (0, 0)])
    ends = np.array([(0, 0), *(stroke[-1] for stroke in strokes)])
    return float(np.hypot(*(begins - ends).T).sum())


def _within(size_mm: NDArray[np.float64], strokes: Strokes) -> Strokes:
    """The strokes `(k, 2)` in mm, none of them beyond the paper's size `(2,)`."""
    return [np.clip(stroke * MM_PER_PX, 0, size_mm) for stroke in strokes]
