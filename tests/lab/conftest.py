"""What tests of the laboratory share."""

from collections.abc import Iterator

import pytest
import torch
from matplotlib.figure import Figure

from training.figures import pyplot

# Two threads that wait for each other at every small operation are slower than one.
torch.set_num_threads(1)

_SAVE = ("lab.curves", "lab.analysis.plots", "lab.tasks.ranking.sheet", "lab.tasks.reader.picture")


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Figure]]:
    """Figures that would be written to files, as they were drawn; none is left open."""
    figures: list[Figure] = []
    for module in _SAVE:
        monkeypatch.setattr(f"{module}.save", lambda figure, _: figures.append(figure))
    yield figures
    for figure in figures:
        pyplot.close(figure)
