"""MNIST in black and white: every pixel drawn once, white with the probability of its grey."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch

from lab.tasks.digits.data import Digits, read_digits
from lab.tasks.draw.task import Binary

_SEED = 2015


@dataclass(frozen=True, slots=True)
class Ink:
    """The binary pictures and what they were made of; `sha256` is of the binary ones."""

    pictures: Binary
    digits: Digits
    sha256: str


def read_ink(folder: Path | None, validation_fraction: float) -> Ink:
    """The digits of a folder, drawn ones where it is None, binarised by a fixed seed."""
    digits = read_digits(folder, validation_fraction).flat()
    generator = torch.Generator().manual_seed(_SEED)
    drawn = [torch.bernoulli(part.inputs, generator=generator) for part in digits.parts]
    digest = hashlib.sha256()
    for part in drawn:
        digest.update(part.bool().numpy().tobytes())
    return Ink(Binary(*drawn), digits, digest.hexdigest())
