"""Binary messages of `/v1/online`: numbers alone, where JSON would take longer than a step."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Frame:
    """What a binary message to a kind of model says: one field of its JSON message, whose numbers
    are of numpy's type `dtype`."""

    field: str
    dtype: np.dtype[Any]

    def said(self, data: bytes) -> dict[str, list[float]]:
        """The message it stands for. Raises `InvalidRequest` where it ends within a number."""
        if len(data) % self.dtype.itemsize:
            raise InvalidRequest(
                f"a binary message has {len(data)} bytes; {self.field} are {self.dtype.name}, "
                f"{self.dtype.itemsize} bytes each"
            )
        return {self.field: np.frombuffer(data, self.dtype).tolist()}


def packed(answer: dict[str, Any]) -> bytes:
    """The numbers of an answer in the order they have as JSON: float32, little-endian."""
    return np.concatenate([*map(np.atleast_1d, _numbers(answer))], dtype="<f4").tobytes()


def _numbers(part: Any) -> Iterator[Any]:
    """Numbers, and arrays `(n,)` of them."""
    if isinstance(part, dict | list):
        for value in part.values() if isinstance(part, dict) else part:
            yield from _numbers(value)
    else:
        yield part
