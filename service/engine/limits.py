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
