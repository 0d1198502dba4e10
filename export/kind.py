"""What export has to know of a kind of model. Shapes: T steps, B rows."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from torch import Tensor, nn

from contract.golden import Arrays, Golden
from contract.manifest import EXACT, Finding, Variant
from export.golden import Sample
from export.parity.report import Evidence, Report
from models.generation import Step
from training.kinds import KINDS as TRAINED

if TYPE_CHECKING:
    from export.variant import GraphWriter

M = TypeVar("M", bound=nn.Module)


class ExportKind(ABC, Generic[M]):
    """One kind of model, from its trained weights to an artifact and its proof.

    `filters` says whether its row options can leave symbols out, which takes a graph of its own;
    `variants` whether it can be folded.
    """

    name: str
    filters: bool = False
    variants: bool = False

    def model(self, hyperparameters: dict[str, Any]) -> M:
        """The model with fresh weights, every dropout rate 0."""
        model: Any = TRAINED[self.name].model(hyperparameters)
        return model  # type: ignore[no-any-return]

    def add_commands(self, commands: Any) -> None:
        """Add verbs for this kind alone to the command line, an argparse group of commands; each
        sets `command`, a function of the options."""

    def unfit(self, model: M) -> str | None:
        """Why a model of this kind cannot be served, if it cannot."""
        return None

    def served_as(self, model: M) -> dict[str, Any]:
        """In which of PyTorch's modes a model is served, and whatever else that means."""
        return {"golden_mode": "training"}

    def contract(self, facts: dict[str, Any]) -> dict[str, Any]:
        """What the manifests of this kind alone say, by the facts of the training."""
        return {}

    def derived(self, model: M, variant: Variant) -> dict[str, Tensor]:
        """The tensors a variant adds to the weights."""
        return {}

    @abstractmethod
    def step(self, model: M, *, filtered: bool, variant: Variant = EXACT) -> Step:
        """What is exported of a model; `filtered` adds the options that leave symbols out."""

    @abstractmethod
    def sample(self, model: M, steps: int, batch: int, seed: int) -> Sample:
        """What the model draws from itself, with row options that suit a parity report."""

    @abstractmethod
    def golden(self, model: M, facts: dict[str, Any]) -> Golden:
        """Golden vectors of a training with such `facts`, in rows of every option."""

    def compare(self, model: M, sample: Sample, outputs: Arrays, emitted: Any) -> list[Finding]:
        """The comparisons with training of what any runner put out for a sample and emitted, both
        `(T, B, ...)`; none, unless a kind has some."""
        return []

    @abstractmethod
    def parity(self, writer: "GraphWriter", evidence: Evidence) -> Report:
        """The comparisons of the parity report, each with its bound."""
