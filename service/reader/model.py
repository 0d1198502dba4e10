"""A served reader, and what lies at the edge of its states."""

from typing import Any

from contract.reader import BLANK, ReaderManifest
from service.models import ServedModel
from service.reader.tracer import Point
from service.state import Edge, Moment


class ReaderEdge(Edge):
    """The line that is read, `px_per_unit` and the left end of its baseline in px if that is known
    yet; where the pen is on it in units and what of a stroke has not been read; and the likeliest
    symbol of the last step."""

    px_per_unit: float = 1.0
    origin: Point | None = None
    at: Point | None = None
    path: tuple[Point, ...] = ()
    last: int = BLANK


class ServedReader(ServedModel):
    """A reader."""

    @property
    def manifest(self) -> ReaderManifest:
        """The manifest, which has more to say than that of any model."""
        assert isinstance(self.artifact.manifest, ReaderManifest)
        return self.artifact.manifest

    def on_line(self, line_height: float | None, origin: list[float] | None) -> Moment[ReaderEdge]:
        """A line of which nothing is written: a ruled one of so many px, or none that is known."""
        px_per_unit = 1.0
        if line_height is not None:
            px_per_unit = line_height / self.manifest.pieces.units_per_line
        left = None if origin is None else (origin[0], origin[1])
        edge = ReaderEdge(px_per_unit=px_per_unit, origin=left)
        return Moment(self.artifact.initial_state(), 0, 0, 0, edge)

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"pieces": self.manifest.pieces.model_dump()}
