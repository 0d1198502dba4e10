"""The kinds of model that can be trained."""

from contract.kinds import Kinds
from training.ink.kind import InkTraining
from training.kind import TrainingKind
from training.reader.kind import ReaderTraining
from training.text.kind import TextTraining

KINDS: Kinds[TrainingKind] = Kinds(
    {kind.name: kind for kind in (TextTraining(), InkTraining(), ReaderTraining())}
)
