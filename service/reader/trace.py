"""The points of an InkML trace, each channel told in any of the ways that the standard has
(https://www.w3.org/TR/InkML/#trace).
"""

import re
from math import isfinite, nan

from service.errors import InvalidRequest

# `!` stands before a value that is as it is, `'` before how far it is from the last one, and `"`
# before how much further that is than before. A mark holds until the next.
_MARKS = ("!", "'", '"')
# A value with its mark and sign, spaces behind either; what has the form of none is one by itself.
_VALUE = re.compile(
    r"""(?!\ )[!'"]?\ ?[-+]?\ ?(?:[\d.]+(?:[eE][-+]?\d+)?|\#[\dA-F]+|[^\s!'"*?TF\-]+)|[TF*?]|\S""",
    re.VERBOSE,
)
_LONGEST_POINT = 8192  # characters, which are parted in one go, for which all others wait


class _Channel:
    """Where a pen is on one axis, NaN where that is not known yet."""

    def __init__(self) -> None:
        self._mark = "!"
        self._told = self._place = self._step = nan

    def take(self, written: str) -> float:
        """The place that one more value tells. Raises `ValueError` for what tells none."""
        if written.startswith(_MARKS):
            self._mark, written = written[0], written[1:]
        told = self._told if written == "*" else _number(written)
        before = {"!": 0.0, "'": self._place, '"': self._place + self._step}
        place = before[self._mark] + told
        if not isfinite(place):
            raise ValueError(written)
        self._told, self._step, self._place = told, place - self._place, place
        return place


def points(trace: str, x: int, y: int, widths: range) -> list[list[float]]:
    """`[x, y]` of each point of a trace, channels number `x` and `y` of so many; what others say is
    passed over. Raises `InvalidRequest`."""
    across, along, found = _Channel(), _Channel(), []
    for written in trace.split(","):
        told = " ".join(written.split())
        if len(told) > _LONGEST_POINT:
            raise InvalidRequest(
                f"inkml has a point of {len(told):,} characters; at most {_LONGEST_POINT:,}",
                "inkml",
            )
        values = _VALUE.findall(told)
        if len(values) not in widths:
            raise InvalidRequest(
                f"inkml has a point of {len(values)} numbers in a format of {widths[0]}", "inkml"
            )
        try:
            found.append([across.take(values[x]), along.take(values[y])])
        except ValueError as error:
            raise InvalidRequest(
                f"inkml has a point {written.strip()[:20]!r}; its X and Y must be decimal numbers, "
                "or differences from the point before",
                "inkml",
            ) from error
    return found


def _number(written: str) -> float:
    """Raises `ValueError` for what is none, and for Python's own ways to write one."""
    number = float(written.replace(" ", ""))
    if "_" in written or not (written.isascii() and isfinite(number)):
        raise ValueError(written)
    return number
