"""One measured figure of the parity report, and the bound it must keep."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """`value` must be at most `bound`; `detail` says how it was measured."""

    name: str
    value: float
    bound: float
    detail: str

    @property
    def holds(self) -> bool:
        """False for NaN too."""
        return self.value <= self.bound

    def line(self) -> str:
        """For the terminal."""
        mark = "ok  " if self.holds else "FAIL"
        return f"{mark} {self.name}: {self.value:.3g} (bound {self.bound:g}), {self.detail}"
