"""Whether what is written in a picture can be read where it is shown."""

from matplotlib.figure import Figure
from matplotlib.text import Text

SHOWN_PX = 830  # GitHub shows a wider picture as wide as this
LEAST_PX = 11


def smallest_letters_px(figure: Figure) -> float:
    """The size of the smallest letters of a figure, as GitHub shows it."""
    figure.canvas.draw()  # ticks have no names before
    told = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    shrunk = min(1.0, SHOWN_PX / (figure.get_figwidth() * figure.dpi))
    return min(text.get_fontsize() for text in told) * figure.dpi / 72 * shrunk
