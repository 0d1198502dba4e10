"""Pictures in files that their readers have whole, or as they were before."""

from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from contract.files import replacing


def save_figure(figure: Figure, image: Path) -> None:
    """Of the kind that the file's ending names, a PNG where it has none."""
    with replacing(image) as whole:
        figure.savefig(whole, format=kind_of(image))


def save_picture(picture: Image.Image, image: Path) -> None:
    """A PNG."""
    with replacing(image) as whole:
        picture.save(whole, "png", optimize=True)


def kind_of(image: Path) -> str:
    """What the file's ending names."""
    return image.suffix[1:].lower() or "png"
