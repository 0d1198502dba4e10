"""One look for all pictures of figures: no wider than the docs are shown, so that letters keep
their size, and in small files.

    figure, panels = subplots(1, 2, height_in=3.4)
    save(figure, image)
"""

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as pyplot
from matplotlib.figure import Figure
from PIL import Image

from training.pictures import kind_of, save_figure, save_picture

DPI = 100
WIDTH_IN = 8.3  # GitHub shows a picture of more than some 830 px smaller than it is
HALF_IN = 5.0  # of a single panel with a legend
SMALL_PT = 8.0  # the least that letters have: 11 px
GREY = "0.35"  # of what is said beside the figures
DASHED = (0, (4, 2))
_COLORS = 64

matplotlib.rcParams.update(
    {
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 9.0,
        "axes.titleweight": "bold",
        "figure.titlesize": 10.0,
        "font.size": 9.0,
        "legend.frameon": False,
        "xtick.labelsize": SMALL_PT,
        "ytick.labelsize": SMALL_PT,
    }
)


def subplots(
    rows: int, columns: int, height_in: float, width_in: float = WIDTH_IN, **more: Any
) -> tuple[Figure, Any]:
    """A figure and its panels, as `pyplot.subplots` has them."""
    figure = empty(height_in, width_in)
    return figure, figure.subplots(rows, columns, **more)


def empty(height_in: float, width_in: float = WIDTH_IN) -> Figure:
    """A figure without panels yet."""
    return pyplot.figure(figsize=(width_in, height_in), dpi=DPI, layout="constrained")


def save(figure: Figure, image: Path) -> None:
    """A PNG of 64 colours, or what else the name of the file asks for; the figure is no more."""
    if kind_of(image) == "png":
        drawn = BytesIO()
        figure.savefig(drawn, format="png")
        picture = Image.open(drawn).convert("RGB")
        save_picture(picture.quantize(_COLORS, dither=Image.Dither.NONE), image)
    else:
        save_figure(figure, image)
    pyplot.close(figure)
