"""A graph emits what it is forced to, and where it is not, what is given does not matter."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from contract.golden import Arrays
from export.artifact import load_model, read_artifact
from export.parity import bits
from export.parity.report import Served
from export.parity.served import ServedGraph
from export.text.golden import sample
from export.text.parity import make_work


class Misled:
    """A graph of which a step reads other inputs than it is given."""

    def __init__(self, graph: ServedGraph, mislead: Callable[[Arrays], Arrays]) -> None:
        self._graph, self._mislead = graph, mislead
        self.initial_state = graph.initial_state

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        return self._graph.run(state, steps | self._mislead(steps), row)


@pytest.fixture(scope="module")
def graph(artifact: Path) -> ServedGraph:
    return Served(artifact, read_artifact(artifact)).graph("scan", "filtered")


@pytest.fixture(scope="module")
def work(artifact: Path) -> bits.Work:
    return make_work(sample(load_model(artifact, read_artifact(artifact)), 12, 6, seed=5), 1)


def test_a_graph_emits_what_it_is_forced_to_and_else_what_it_draws(
    graph: ServedGraph, work: bits.Work
) -> None:
    finding = bits.forcing(graph, work)
    assert (finding.value, finding.holds) == (0, True)
    assert "over 72 row-steps" in finding.detail


@pytest.mark.parametrize(
    "mislead",
    [
        lambda steps: {"forced": steps["forced"] * ~steps["force"]},
        lambda steps: {"force": np.zeros_like(steps["force"])},
        lambda steps: {"force": np.ones_like(steps["force"])},
        lambda steps: {"uniform": np.float32(0.5) + (steps["forced"] % 2 / 4).astype(np.float32)},
    ],
    ids=["deaf", "never forced", "always forced", "draws by what it is given"],
)
def test_one_that_is_deaf_or_listens_where_it_should_not_is_found(
    graph: ServedGraph, work: bits.Work, mislead: Callable[[Arrays], Arrays]
) -> None:
    finding = bits.forcing(Misled(graph, mislead), work)
    assert finding.value > 0
    assert not finding.holds


def test_one_that_keeps_what_it_is_given_where_it_should_not_is_found(
    graph: ServedGraph, work: bits.Work
) -> None:
    """Though the step itself puts out what it should."""

    class Keeps(Misled):
        def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
            after, outputs = self._graph.run(state, steps, row)
            last = list(after)[-1]
            given = (steps["forced"] * ~steps["force"])[0, :, None].astype(np.float32)
            return after | {last: after[last] + given / 1000}, outputs

    assert not bits.forcing(Keeps(graph, lambda steps: {}), work).holds


def test_one_that_is_deaf_once_it_has_begun_is_found(graph: ServedGraph, work: bits.Work) -> None:
    class Deafened(Misled):
        def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
            begun = self.initial_state(len(work.filtered))
            same = all(np.array_equal(state[name], begun[name]) for name in begun)
            return self._graph.run(state, steps if same else steps | self._mislead(steps), row)

    deaf = Deafened(graph, lambda steps: {"forced": steps["forced"] * ~steps["force"]})
    assert not bits.forcing(deaf, work).holds
