"""What a task of the laboratory is: a folder `lab/tasks/NAME/` with an `EXPERIMENT` of this kind.

`lab/README.md` says how to add one. Shapes: T steps, B rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from torch import Tensor

from models.generation import Step
from training.config import Recipe
from training.task import Task

TASKS = Path(__file__).with_name("tasks")
Figures = dict[str, float]
Named = dict[str, Tensor]
Data = TypeVar("Data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure of a task: its `name` in `figures`, its `label` with its unit, which way is better.

    `plotted`: whether it has a picture, which a task's first metrics have.
    """

    name: str
    label: str
    higher_is_better: bool = False
    plotted: bool = True

    def better(self, a: float, b: float) -> bool:
        """Whether `a` is better than `b`; nothing that is not a number is."""
        return a > b if self.higher_is_better else a < b

    def best(self, values: list[float]) -> float:
        """The best of some."""
        return max(values) if self.higher_is_better else min(values)


class LabTask(Task, Protocol):
    """A task of the training loop that tells more than a loss.

    `validate` gives what the best weights are chosen by, lower is better, and must not raise where
    training has diverged: infinity or NaN is a result like another. It leaves all `figures`, by
    metric, in `figures`.
    """

    figures: Figures

    def test(self) -> Figures:
        """The figures of the model as it stands, on data that decided nothing; where a task has
        none, on the validation data."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One graph of a trained model.

    `step` makes what is exported, of the model in float32 or float64; `trained` is what training
    computes in its place, in training mode and in one batch: inputs by port to outputs by port.
    Inputs of a step port are `(T, B, ...)`, others `(B, ...)`; a state that is not among them is
    initial. `scan` has the step run over time; without, no step ports may be.
    """

    name: str
    step: Callable[[Any], Step]
    trained: Callable[[Any, Named], Named]
    inputs: Named
    scan: bool = False


class Experiment(ABC, Generic[Data]):
    """One task of the paper, from data to what is exported.

    `norms`: those it can be trained with. `metrics`: the first is what norms are compared by.
    `config`: the class of the recipe's `[model]` table, which has a field `norm`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    claim: ClassVar[str]
    norms: ClassVar[tuple[str, ...]] = ("layer", "batch", "weight", "none")
    metrics: ClassVar[tuple[Metric, ...]]
    config: ClassVar[type]

    @abstractmethod
    def data(self, recipe: Recipe, source: Path | None) -> Data:
        """The data of a recipe, from the folder `source`; its stand-in where that is None."""

    @abstractmethod
    def facts(self, data: Data) -> dict[str, Any]:
        """What the results say of the data: `name`, `sha256` and how much there is."""

    @abstractmethod
    def task(self, recipe: Recipe, data: Data) -> LabTask:
        """What is trained, with the norm and the seed of the recipe. PyTorch's generator has been
        seeded; nothing else may be random."""

    @abstractmethod
    def parts(self, task: Any) -> tuple[Part, ...]:
        """What is exported of a task whose model is trained, with inputs of its data."""

    @property
    def draws(self) -> bool:
        """Whether it has a `picture`."""
        return type(self).picture is not Experiment.picture

    def picture(self, task: Any, folder: Path) -> None:
        """Draw what is worth a look besides the curves, of the first norm's first seed, as
        `NAME-*.png` in `folder`."""


def names() -> list[str]:
    """The tasks there are."""
    return sorted(path.parent.name for path in TASKS.glob("*/recipe.toml"))


def recipe_path(name: str) -> Path:
    """The recipe of a task."""
    return TASKS / name / "recipe.toml"


def load(name: str) -> Experiment[Any]:
    """A task by name."""
    experiment: Experiment[Any] = import_module(f"lab.tasks.{name}.experiment").EXPERIMENT
    return experiment
