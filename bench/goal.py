"""A goal of speed and what came of it; each section of `python -m bench` judges its own."""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["at least", "at most"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What was measured and its bound; None where it was not. `ratio` is the value over what it is
    compared with, and None where that is 0."""

    name: str
    compared: str
    direction: Direction
    unit: str
    met: bool | None = None
    value: float | None = None
    bound: float | None = None
    ratio: float | None = None

    def line(self) -> str:
        """One line for people."""
        if self.value is None or self.bound is None:
            return f"{'-':7}{self.name}: not measured in this run"
        verdict = "met" if self.met else "MISSED"
        ratio = "" if self.ratio in (None, self.value) else f"; ratio {self.ratio:.3g}"
        value, bound = (f"{n:,.0f}" if n >= 1000 else f"{n:.4g}" for n in (self.value, self.bound))
        return (
            f"{verdict:7}{self.name}: {value} {self.unit}, {self.direction} {bound}{ratio} "
            f"({self.compared})"
        )


def judge(
    name: str, compared: str, direction: Direction, factor: float,
    value: float | None, reference: float | None = 1.0, *, plus: float = 0.0, unit: str = "times",
) -> Goal:  # fmt: skip
    """Whether `value` is at least, or at most, `factor` times its reference `plus` so much. Where
    it is a ratio already, or has a bound of its own, the reference is 1."""
    if value is None or reference is None:
        return Goal(name, compared, direction, unit)
    bound = factor * reference + plus
    # Twice nothing is nothing, and nothing does not do.
    met = value >= bound and value > 0 if direction == "at least" else value <= bound
    ratio = round(value / reference, 4) if reference else None
    return Goal(name, compared, direction, unit, met, round(value, 4), round(bound, 4), ratio)
