"""The strokes of accents and the like, as service/ink/marks.py draws them."""

import math

import numpy as np

from service.ink import letters

Strokes = list[list[tuple[float, float]]]

_CIRCLE = [(0.17 * math.sin(a), 0.17 * math.cos(a)) for a in np.linspace(0, 2 * math.pi, 10)]
# Strokes about the place of a mark, x to the right and y up, in heights of a small letter. Over an
# i they go through its dot, which is at the place.
ABOVE: dict[str, Strokes] = {
    letters.GRAVE: [[(-0.22, 0.2), (0.0, 0.0), (0.16, -0.2)]],
    letters.ACUTE: [[(0.24, 0.22), (0.0, 0.0), (-0.16, -0.18)]],
    letters.CIRCUMFLEX: [[(-0.3, -0.24), (-0.02, 0.06), (0.28, -0.26)]],
    letters.CARON: [[(-0.28, 0.18), (0.0, -0.14), (0.3, 0.2)]],
    letters.TILDE: [[(-0.36, -0.1), (-0.2, 0.1), (0.0, 0.0), (0.18, -0.1), (0.36, 0.1)]],
    letters.MACRON: [[(-0.3, 0.0), (0.0, 0.01), (0.32, 0.03)]],
    letters.BREVE: [[(-0.26, 0.14), (-0.14, -0.08), (0.1, -0.1), (0.26, 0.16)]],
    letters.DOT: [[(0.0, 0.03), (0.02, -0.04)]],
    letters.DIAERESIS: [[(-0.22, 0.03), (-0.2, -0.05)], [(0.22, 0.04), (0.24, -0.04)]],
    letters.RING: [_CIRCLE],
    letters.DOUBLE_ACUTE: [[(-0.02, 0.2), (-0.2, -0.16)], [(0.3, 0.2), (0.12, -0.16)]],
}
# The same from the foot of the letter.
BELOW: dict[str, Strokes] = {
    letters.CEDILLA: [[(0.02, 0.06), (-0.03, -0.14), (0.14, -0.22), (0.1, -0.4), (-0.16, -0.4)]],
    letters.OGONEK: [[(0.16, 0.04), (0.02, -0.16), (0.06, -0.34), (0.26, -0.32)]],
    letters.DOT_BELOW: [[(0.0, -0.25), (0.02, -0.32)]],
    letters.COMMA_BELOW: [[(0.04, -0.18), (0.06, -0.3), (-0.08, -0.46)]],
}
# The same of what hangs from a dot, from the line on, in shares of how high it is.
HANGING: dict[str, Strokes] = {
    "¡": [[(0.0, 1.0), (0.02, 0.5), (0.0, 0.0)]],
    "¿": [[
        (0.0, 1.0), (-0.04, 0.76), (-0.24, 0.54), (-0.42, 0.34), (-0.42, 0.14), (-0.28, 0.0),
        (-0.06, 0.0), (0.08, 0.12), (0.12, 0.28),
    ]],
}  # fmt: skip
# Where strokes cross a capital, from its top in shares of its height, and how far they reach from
# its first ink there, in heights of a small letter.
CROSSED = {"€": ((0.42, 0.62), 0.8), "£": ((0.55,), 0.45), "¥": ((0.6, 0.78), 0.45)}
# The same strokes as above from the top of an L, which bends it over into a £.
HOOK: Strokes = [[(0.0, -0.1), (0.04, 0.1), (0.18, 0.26), (0.36, 0.26), (0.46, 0.06)]]
# From the top of an apostrophe round to its foot, in shares of how high the ring of a degree is.
CLOSING = [(0.75 * math.sin(a), (math.cos(a) - 1) / 2) for a in np.linspace(0, math.pi, 8)]
