"""A goal of legibility and what came of it."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Goal:
    """What was to be reached, what was, and which way is better."""

    name: str
    value: float
    bound: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def line(self) -> str:
        """One line for people."""
        sign = ">=" if self.at_least else "<="
        verdict = "met" if self.met else "MISSED"
        return f"{self.name:40}{self.value:8.3f}  {verdict} (goal {sign} {self.bound})"

    def described(self) -> dict[str, Any]:
        """As results have it."""
        return asdict(self) | {"value": round(self.value, 4), "met": self.met}
