"""MNIST with its geometry: one colour, a picture at a time, as `digits` reads it."""

from pathlib import Path

from lab.classify import Examples
from lab.tasks.digits.data import Digits, read_digits


def read_pictures(folder: Path | None, validation_fraction: float) -> Digits:
    """Pictures `(N, S, S, 1)`; drawn ones where the folder is None."""
    digits = read_digits(folder, validation_fraction)
    parts = (digits.train, digits.validation, digits.test)
    with_color = (Examples(part.inputs.unsqueeze(-1), part.classes) for part in parts)
    return Digits(digits.name, digits.sha256, *with_color)
