"""An SVG drawing as a PNG image."""

import resvg_py


def to_png(svg: str, ground: str | None = "white") -> bytes:
    """The drawing on a ground of some colour, or on none, as large as it says it is."""
    # Ink has no text, and the image the service runs in no fonts to look for.
    return resvg_py.svg_to_bytes(svg_string=svg, background=ground, skip_system_fonts=True)
