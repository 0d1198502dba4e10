"""What the settings say about every engine."""

from dataclasses import dataclass

from service.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the settings of the same names say."""

    chunk_steps: int
    first_chunk_steps: int
    chunk_s: float
    piece_s: float
    slice_s: float
    queue_size: int
    max_wait_s: float

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """Those of the settings."""
        return cls(**{name: getattr(settings, name) for name in cls.__dataclass_fields__})

    def gap_s(self, occupied: float) -> float:
        """Between two pieces of a job, at least, where such a part of the slots beside its own is
        occupied: the more share the chunks, the shorter those are as others begin and end, and each
        piece costs the event loop a tenth of a millisecond."""
        return self.piece_s * occupied if occupied else 0.0  # of seconds without end too
