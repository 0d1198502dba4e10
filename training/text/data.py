"""Text corpora as bytes: read, split, laid out as parallel streams for truncated back-propagation.

Shapes: N steps of a whole stream, T of one segment, B streams side by side.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from contract.files import printable
from training.files import MissingData, files_below

# The corpus every Python carries: its own language reference.
PYTHON_REFERENCE = "pydoc"


@dataclass(frozen=True, slots=True)
class Corpus:
    """The bytes of a text and where they came from."""

    name: str
    content: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def split(self, validation_fraction: float) -> tuple[Tensor, Tensor]:
        """The first part to train on and the last to validate, as uint8 tensors `(N,)`."""
        cut = round(len(self.content) * (1 - validation_fraction))
        tokens = torch.frombuffer(bytearray(self.content), dtype=torch.uint8)
        return tokens[:cut], tokens[cut:]


def read_corpus(source: str) -> Corpus:
    """A file, a folder (its files in order of name), or `pydoc`, Python's language reference.

    Raises `ValueError` for a path that is missing or holds no bytes.
    """
    if source == PYTHON_REFERENCE:
        from pydoc_data import topics

        text = "\n\n".join(topics.topics[key] for key in sorted(topics.topics))
        return Corpus("python-language-reference", text.encode())
    path = Path(source)
    if not path.exists():
        raise MissingData(f"the data is {source!r}: no such file or folder")
    files = files_below(path) if path.is_dir() else [path]
    content = b"".join(p.read_bytes() for p in files)
    if not content:
        raise ValueError(f"the data is {source!r}: it holds no bytes")
    return Corpus(printable(path.resolve().name), content)


def streams(tokens: Tensor, batch: int) -> Tensor:
    """Cut `(N,)` into `batch` equal parts side by side: `(N // batch, batch)` int64."""
    steps = len(tokens) // batch
    return tokens[: steps * batch].view(batch, steps).t().contiguous().long()


def require_segments(tokens: Tensor, batch: int, steps: int, what: str) -> None:
    """Raise `ValueError` unless `tokens` fill at least one segment of `steps` for `batch` rows."""
    needed = batch * (steps + 1)
    if len(tokens) < needed:
        raise ValueError(
            f"the {what} text has {len(tokens)} bytes; batch {batch} of {steps} steps "
            f"needs at least {needed}"
        )
