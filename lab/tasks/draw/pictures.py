"""What a trained decoder draws: a sheet of samples, the film of some drawings, and its weights for
the page, which draws by itself.

Shapes: T steps, B drawings, S pixels a side.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from safetensors.torch import save_file

from contract.files import replacing
from lab.epochs import evaluating
from lab.tasks.draw.task import DrawTask
from training.pictures import save_picture

_SAMPLES_A_SIDE = 10
_FILMS = 6
_SAMPLES_GAP_PX = 2
_FILM_PX = 76  # of a drawing of a film, a side
_FILM_GAP_PX, _HEAD_PX, _LETTERS_PX = 6, 20, 13
_PAPER, _FRAME = (255, 255, 255), (230, 90, 0)
Pictures = NDArray[np.float32]


def draw_samples(task: DrawTask, image: Path) -> None:
    """A sheet of what is drawn out of noise, as probabilities."""
    pictures, _ = _drawn(task, _SAMPLES_A_SIDE**2)
    side = pictures.shape[-1]
    grid = pictures[-1].reshape(_SAMPLES_A_SIDE, _SAMPLES_A_SIDE, side, side)
    sheet = _sheet(grid, side, _SAMPLES_GAP_PX)
    save_picture(sheet.convert("L"), image)


def draw_film(task: DrawTask, image: Path) -> None:
    """A row for each drawing, a column for each step by its number, and where the decoder wrote
    framed."""
    pictures, frames = _drawn(task, _FILMS)
    sheet = _sheet(pictures.swapaxes(0, 1), _FILM_PX, _FILM_GAP_PX, _HEAD_PX)
    pen = ImageDraw.Draw(sheet)
    zoom, size = _FILM_PX / pictures.shape[2], _FILM_PX + _FILM_GAP_PX
    for column, row in np.ndindex(*frames.shape[:2]):
        x, y, width = frames[column, row]
        corners = [(c + side * width / 2 - 0.5) * zoom for side in (-1, 1) for c in (x, y)]
        inside = np.clip(corners, 0, _FILM_PX - 1) + np.tile((column, row), 2) * size
        pen.rectangle([float(c) for c in inside + (0, _HEAD_PX) * 2], outline=_FRAME, width=2)
    for column in range(len(frames)):
        told = f"stroke {column + 1}" if column == 0 else f"{column + 1}"
        place = (column * size + _FILM_PX / 2, _HEAD_PX / 2)
        pen.text(place, told, "black", ImageFont.load_default(_LETTERS_PX), "mm")
    save_picture(sheet.quantize(64, dither=Image.Dither.NONE), image)


def save_decoder(task: DrawTask, file: Path) -> None:
    """The weights of what draws, float32; the page reads them by their names."""
    with replacing(file) as whole:
        save_file(task.model.decoder.state_dict(), whole)


def _drawn(task: DrawTask, count: int) -> tuple[Pictures, Pictures]:
    """Pictures `(T, B, S, S)` and frames `(T, B, 3)`, in evaluation mode."""
    side = task.model.config.side
    noise = task.noise(count, torch.Generator().manual_seed(1))
    with evaluating(task.model):
        pictures, frames, _ = task.model.draw(noise)
    return pictures.unflatten(-1, (side, side)).numpy(), frames.numpy()


def _sheet(grid: Pictures, side_px: int, gap_px: int, head_px: int = 0) -> Image.Image:
    """Pictures `(rows, columns, S, S)` of 0 to 1 side by side, dark on white, below a margin."""
    rows, columns = grid.shape[:2]
    size = side_px + gap_px
    sheet = Image.new("RGB", (columns * size - gap_px, head_px + rows * size - gap_px), _PAPER)
    for row, column in np.ndindex(rows, columns):
        grey = np.rint(255 * (1 - grid[row, column])).astype(np.uint8)
        picture = Image.fromarray(grey).resize((side_px, side_px), Image.Resampling.NEAREST)
        sheet.paste(picture, (column * size, head_px + row * size))
    return sheet
