"""How far something is, shown by a clock that nobody sets."""

from time import monotonic
from typing import Any

from tqdm import tqdm


def steady(bar: "tqdm[Any]") -> "tqdm[Any]":
    """A bar that was just made. By tqdm's clock, that of the calendar, it would stand still for an
    hour once the clock is set back by one, and then tell of negative times."""
    bar._time = monotonic
    bar.unpause()  # from now on, by that clock
    return bar
