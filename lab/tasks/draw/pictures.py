"""What a trained decoder draws: a sheet of samples, the film of some drawings, and its weights for
the page, which draws by itself.

Shapes: T steps, B drawings, S pixels a side.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from safetensors.torch import save_file

from lab.epochs import evaluating
from lab.tasks.draw.task import DrawTask

_SAMPLES_A_SIDE = 10
_FILMS = 6
_ZOOM = 2  # of a film; its frames are lines between the pixels
_GAP_PX = 2
_PAPER, _FRAME = (255, 255, 255), (200, 30, 30)
Pictures = NDArray[np.float32]


def draw_samples(task: DrawTask, image: Path, seed: int = 1) -> None:
    """A sheet of what is drawn out of noise, as probabilities."""
    pictures, _ = _drawn(task, _SAMPLES_A_SIDE**2, seed)
    sheet = _sheet(pictures[-1].reshape(_SAMPLES_A_SIDE, _SAMPLES_A_SIDE, *pictures.shape[2:]), 1)
    sheet.convert("L").save(image, optimize=True)


def draw_film(task: DrawTask, image: Path, seed: int = 1) -> None:
    """A row for each drawing, a column for each step, and where the decoder wrote in red."""
    pictures, frames = _drawn(task, _FILMS, seed)
    sheet = _sheet(pictures.swapaxes(0, 1), _ZOOM)
    pen = ImageDraw.Draw(sheet)
    size = _ZOOM * pictures.shape[2] + _GAP_PX
    for column, row in np.ndindex(*frames.shape[:2]):
        x, y, width = frames[column, row]
        corners = [(c + side * width / 2 - 0.5) * _ZOOM for side in (-1, 1) for c in (x, y)]
        inside = np.clip(corners, 0, size - _GAP_PX - 1) + np.tile((column, row), 2) * size
        pen.rectangle([float(c) for c in inside], outline=_FRAME)
    sheet.quantize(64, dither=Image.Dither.NONE).save(image, optimize=True)


def save_decoder(task: DrawTask, file: Path) -> None:
    """The weights of what draws, float32; the page reads them by their names."""
    save_file(task.model.decoder.state_dict(), file)


def _drawn(task: DrawTask, count: int, seed: int) -> tuple[Pictures, Pictures]:
    """Pictures `(T, B, S, S)` and frames `(T, B, 3)`, in evaluation mode."""
    side = task.model.config.side
    noise = task.noise(count, torch.Generator().manual_seed(seed))
    with evaluating(task.model):
        pictures, frames, _ = task.model.draw(noise)
    return pictures.unflatten(-1, (side, side)).numpy(), frames.numpy()


def _sheet(grid: Pictures, zoom: int) -> Image.Image:
    """Pictures `(rows, columns, S, S)` of 0 to 1 side by side, dark on white."""
    rows, columns, side, _ = grid.shape
    size = zoom * side + _GAP_PX
    sheet = Image.new("RGB", (columns * size - _GAP_PX, rows * size - _GAP_PX), _PAPER)
    for row, column in np.ndindex(rows, columns):
        grey = np.rint(255 * (1 - grid[row, column])).astype(np.uint8)
        picture = Image.fromarray(grey).resize((zoom * side, zoom * side), Image.Resampling.NEAREST)
        sheet.paste(picture, (column * size, row * size))
    return sheet
