"""MNIST from its four IDX files, and a stand-in that is drawn.

Shapes: N pictures of S x S pixels.
"""

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab.classify import Divided, Examples
from lab.source import require_parts, required
from training.files import unpacking

FILES = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
_PICTURES, _LABELS = 2051, 2049  # how the files begin
_STAND_IN = 1200
_CLASSES = 10


class Digits(Divided):
    """Pictures `(N, S, S)` in 0 to 1 with their classes; the last of training are to validate."""

    def flat(self) -> "Digits":
        """The same without geometry: `(N, S * S)`."""
        return self._each(lambda pictures: pictures.flatten(1))

    def colored(self) -> "Digits":
        """The same with one colour: `(N, S, S, 1)`."""
        return self._each(lambda pictures: pictures.unsqueeze(-1))

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Digits":
        changed = (Examples(change(part.inputs), part.classes) for part in self.parts)
        return Digits(self.name, self.sha256, *changed)


def read_digits(folder: Path | None, validation_fraction: float) -> Digits:
    """The digits of a folder; drawn ones where it is None. Raises `ValueError` for a file that is
    missing or no IDX file."""
    if folder is None:
        return _drawn(validation_fraction)
    contents = [_unpacked(required(folder / f"{name}-ubyte.gz")) for name in FILES]
    pictures, labels, test_pictures, test_labels = contents
    train = Examples(parse_pictures(pictures), parse_labels(labels))
    test = Examples(parse_pictures(test_pictures), parse_labels(test_labels))
    digest = hashlib.sha256(b"".join(contents)).hexdigest()
    return _split("mnist", digest, train, test, validation_fraction)


def _unpacked(path: Path) -> bytes:
    with unpacking(path):
        return gzip.decompress(path.read_bytes())


def parse_pictures(content: bytes) -> Tensor:
    """An IDX file of pictures, `(N, S, S)` in 0 to 1."""
    magic, count, height, width = np.frombuffer(content[:16], ">i4")
    if magic != _PICTURES:
        raise ValueError(f"a file of pictures begins with {magic}; it must be {_PICTURES}")
    pixels: NDArray[np.uint8] = np.frombuffer(content, np.uint8, offset=16)
    return torch.from_numpy(pixels.reshape(count, height, width).astype(np.float32) / 255)


def parse_labels(content: bytes) -> Tensor:
    """An IDX file of classes, `(N,)` int64."""
    magic, count = np.frombuffer(content[:8], ">i4")
    if magic != _LABELS:
        raise ValueError(f"a file of classes begins with {magic}; it must be {_LABELS}")
    classes: NDArray[np.uint8] = np.frombuffer(content, np.uint8, offset=8)
    return torch.from_numpy(classes[:count].astype(np.int64))


def _split(name: str, digest: str, train: Examples, test: Examples, fraction: float) -> Digits:
    cut = round(len(train.classes) * (1 - fraction))
    parts = (Examples(*(t[:cut] for t in train)), Examples(*(t[cut:] for t in train)))
    require_parts(fraction, *(part.classes for part in parts))
    return Digits(name, digest, *parts, test)


def _drawn(fraction: float, seed: int = 0) -> Digits:
    """Ten fixed patterns of smooth blobs on 28 x 28 pixels, each moved a little, with noise."""
    random = np.random.default_rng(seed)
    coarse = random.random((_CLASSES, 7, 7)) > 0.6
    patterns = coarse.repeat(4, axis=1).repeat(4, axis=2).astype(np.float32)
    classes = random.integers(0, _CLASSES, _STAND_IN)
    moves = random.integers(-2, 3, (_STAND_IN, 2))
    moved = [np.roll(patterns[c], move, (0, 1)) for c, move in zip(classes, moves, strict=True)]
    noisy = np.clip(np.stack(moved) + random.normal(0, 0.4, (_STAND_IN, 28, 28)), 0, 1)
    pictures = torch.from_numpy(noisy.astype(np.float32))
    everything = Examples(pictures, torch.from_numpy(classes))
    cut = _STAND_IN * 3 // 4
    train, test = (Examples(*(t[s] for t in everything)) for s in (slice(cut), slice(cut, None)))
    digest = hashlib.sha256(pictures.numpy().tobytes()).hexdigest()
    return _split("drawn patterns", digest, train, test, fraction)
