"""What decides a training run, as typed values; `training.recipe` reads them from TOML."""

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal

_MOST_EPOCHS = 1_000_000
# More than anybody trains at once; golden vectors are drawn and compared in batches as large.
_MOST_STEPS = 2**20
_HIGHEST_RATE = 1_000_000  # far above any that learns; beyond, AdamW's steps are no float32


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """`source`: a file or folder, absolute, in the data folder or here; or data that needs no file,
    `pydoc` for text and `synthetic` for ink. `marked` and `figured`: of ink, how often an
    isolated mark, or an isolated figure or letter, is set where a word could stand. `varied`: of a
    pen's rows, how much each is slanted, widened and heightened, as a standard deviation.
    `reordered`: of a reader's rows, how many have delayed strokes where they stand. `own`: how many
    rows of ink are lines that a pen wrote, where the data has such.
    Which of these a kind has, it says itself."""

    source: str
    validation_fraction: float = 0.1
    marked: float = 0.0
    figured: float = 0.0
    varied: float = 0.0
    reordered: float = 0.0
    own: float = 0.0

    def __post_init__(self) -> None:
        if not (isinstance(self.source, str) and self.source):
            raise ValueError(f"data.source is {self.source!r}; it must be a file or folder")
        if not (min(self.marked, self.figured) >= 0 and self.marked + self.figured < 1):
            raise ValueError(
                f"data.marked is {self.marked} and figured {self.figured}; they must be from 0 "
                "and, together, below 1"
            )
        if not 0 <= self.varied < 0.5:
            raise ValueError(f"data.varied is {self.varied}; it must be from 0 and below 0.5")
        if not 0 <= self.reordered <= 1:
            raise ValueError(f"data.reordered is {self.reordered}; it must be from 0 to 1")
        if not 0 <= self.own <= 1:
            raise ValueError(f"data.own is {self.own}; it must be from 0 to 1")
        if not 0 < self.validation_fraction < 1:
            told = f"data.validation_fraction is {self.validation_fraction}"
            raise ValueError(f"{told}; it must be between 0 and 1")

    def options(self) -> dict[str, Any]:
        """All that not every kind has, by name, where it is not as usual."""
        return _unusual(self, "source", "validation_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig:
    """`rows` side by side in an update, `steps` of each; kinds with whole rows have no steps, and
    short rows at first if they are `growing`, which a model that is trained on need not go through.
    Which of these a kind has, it says itself."""

    rows: int = 64
    steps: int = 100
    growing: bool = True

    def __post_init__(self) -> None:
        _require_positive("batch", rows=self.rows, steps=self.steps)
        if self.rows * self.steps > _MOST_STEPS:
            raise ValueError(
                f"batch.rows is {self.rows} and batch.steps {self.steps}; an update has at most "
                f"{_MOST_STEPS} steps of all rows together"
            )

    def options(self) -> dict[str, Any]:
        """All that not every kind has, by name, where it is not as usual."""
        return _unusual(self, "rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """How a task is optimised. `time_limit_s` shortens the schedule, so the rate still ends at 0
    when it is reached; a run that reaches it is not reproducible, and says so in its facts.
    `keep` is which weights are kept: those of the best validation, or the last, where the loss on
    what was held out does not say what a model is wanted for, and does not end the run either.
    `blend` is how much of them is of the weights the run began from, which a network that is
    trained on forgets something of (Wortsman et al. 2022).
    `calibrated` divides the logits of what is kept by the temperature at which what was held out is
    likeliest (Guo et al. 2017): a network that has learned its text too well is too sure of itself,
    and one number mends that."""

    epochs: float = 16.0
    learning_rate: float = 3e-3
    warmup_updates: int = 200
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    average_decay: float = 0.999
    patience_epochs: int = 8
    validate_every_epochs: float = 1.0
    time_limit_s: float | None = None
    save_every_s: float = 45.0
    keep: Literal["best", "last"] = "best"
    blend: float = 0.0
    calibrated: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        _require_positive(
            "training", epochs=self.epochs, learning_rate=self.learning_rate,
            clip_norm=self.clip_norm, validate_every_epochs=self.validate_every_epochs,
        )  # fmt: skip
        if self.time_limit_s is not None:
            _require_positive("training", time_limit_s=self.time_limit_s)
        limits = {name: _MOST_EPOCHS for name in ("epochs", "validate_every_epochs")}
        for name, most in (limits | {"learning_rate": _HIGHEST_RATE}).items():
            if (value := getattr(self, name)) > most:
                raise ValueError(f"training.{name} is {value}; it must be at most {most}")
        if not 0 <= self.average_decay < 1:
            raise ValueError(
                f"training.average_decay is {self.average_decay}; it must be from 0 and below 1"
            )
        if not 0 <= self.blend < 1:
            raise ValueError(f"training.blend is {self.blend}; it must be from 0 and below 1")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"training.seed is {self.seed}; it must be from 0 to 2**63 - 1")
        for name in ("warmup_updates", "weight_decay", "patience_epochs", "save_every_s"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise ValueError(f"training.{name} is {value!r}; it must be a number from 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The kind of a recipe file and its four tables; `model` is the configuration of that kind."""

    kind: str
    data: DataConfig
    model: Any
    batch: BatchConfig = field(default_factory=BatchConfig)
    training: TrainConfig = field(default_factory=TrainConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run is carried out: its device, and which of how many processes this is."""

    device: str = "cpu"
    rank: int = 0
    world: int = 1


def _unusual(table: "DataConfig | BatchConfig", *of_all: str) -> dict[str, Any]:
    """The values that are not the defaults, but for those of all kinds."""
    usual = {f.name: f.default for f in fields(table) if f.name not in of_all}
    return {name: v for name in usual if (v := getattr(table, name)) != usual[name]}


def _require_positive(table: str, **values: float) -> None:
    for name, value in values.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (number and 0 < value < math.inf):
            raise ValueError(f"{table}.{name} is {value!r}; it must be a number above 0")
