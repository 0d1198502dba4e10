"""An SVG drawing as a PNG image, made by a process of its own: the library holds the interpreter
while it draws, a second for the largest page, and nobody else would be served meanwhile.
"""

import os
import struct
import subprocess
import sys
import zlib

import resvg_py

_NICENESS = 10  # a picture waits for streams
_LONGEST_S = 60.0
_HEAD_BYTES = 33  # the signature of a PNG, and its first chunk
_PX_PER_M = round(96 / 0.0254)  # of CSS, in whole numbers


def to_png(svg: str, ground: str | None = "white") -> bytes:
    """The drawing on a ground of some colour, or on none, as large as it says it is, on paper too.

    Raises `RuntimeError` for what cannot be drawn, and `DeadlineExceeded`.
    """
    # Nothing of this folder may stand in the place of a module of Python's own.
    command = [sys.executable, "-P", __file__, *([] if ground is None else [ground])]
    try:
        drawn = subprocess.run(command, input=svg.encode(), capture_output=True, timeout=_LONGEST_S)
    except subprocess.TimeoutExpired:
        from service.errors import DeadlineExceeded  # which the process that draws may not find

        raise DeadlineExceeded(f"the picture took over {_LONGEST_S:g} s to draw") from None
    if drawn.returncode:
        said = drawn.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise RuntimeError(f"no image came of the drawing ({drawn.returncode}): {said}")
    return _sized(drawn.stdout)


def to_png_here(svg: str, ground: str | None = "white") -> bytes:
    """The same by this process, for whoever serves nobody: a small picture takes a tenth of the
    time."""
    # Ink has no text, and the image the service runs in no fonts to look for.
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, background=ground, skip_system_fonts=True))


def _sized(png: bytes) -> bytes:
    """The image with how large its px are, which whoever places it has to guess otherwise."""
    told = b"pHYs" + struct.pack(">IIB", _PX_PER_M, _PX_PER_M, 1)
    chunk = struct.pack(">I", len(told) - 4) + told + struct.pack(">I", zlib.crc32(told))
    return png[:_HEAD_BYTES] + chunk + png[_HEAD_BYTES:]


def _draw(ground: str | None) -> None:
    os.nice(_NICENESS)
    sys.stdout.buffer.write(to_png_here(sys.stdin.buffer.read().decode(), ground))


if __name__ == "__main__":
    _draw(sys.argv[1] if len(sys.argv) > 1 else None)
