"""Forty rows at once, more than other comparisons run and than the default of 24 slots: each is
itself alone, on both runners, whatever it asks for and wherever it stands.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np
import pytest

from contract.golden import Arrays
from contract.noise import UniformStream
from service.artifact import Artifact
from service.engine.engine import Engine
from service.engine.given import GivenSteps, run_steps
from service.engine.runners import Runner, make_runner
from service.engine.runtime import choose_runtime
from service.text.sampling import Sampling
from tests.service.engine.scripted import engine as engine_of
from tests.service.serving import eventually, settings

_ROWS, _STEPS = 40, 24
_FILTERED = 19  # in the middle
_RUNNERS = pytest.mark.parametrize("kind", ["scan", "slots"])


def _runner(artifact: Artifact, kind: str, slots: int = _ROWS) -> Runner:
    chosen = settings(artifact.folder.parent, provider="cpu", runner=kind, slots=slots)
    return make_runner(artifact, choose_runtime(chosen))


def _sampling(row: int) -> Sampling:
    """No two rows ask for the same; `_FILTERED` alone leaves bytes out, and all but two of them."""
    temperature = 0.0 if row % 13 == 5 else 0.6 + 0.03 * row
    bias = {97 + row % 26: 2.0, 32: -0.1 * row}
    top_k = 2 if row == _FILTERED else 256
    return Sampling(temperature=temperature, logit_bias=bias, top_k=top_k)


def _steps(row: int, steps: int = _STEPS) -> Arrays:
    """Each reads some bytes of its own, then writes."""
    places = np.arange(steps)
    return {
        "forced": (97 + (row + places) % 26).astype(np.int64),
        "force": places < row % 7,
        "uniform": UniformStream(row).take(0, steps),
    }


def _job(artifact: Artifact, row: int, steps: int = _STEPS) -> GivenSteps:
    sampling = _sampling(row)
    return GivenSteps(
        artifact.initial_state(),
        sampling.row(),
        _steps(row, steps),
        wants_state=True,
        filtered=sampling.filtered,
    )


def _engine(runner: Runner) -> AbstractContextManager[Engine]:
    return engine_of(runner, chunk=7, queue=3 * _ROWS)


def _results(jobs: Sequence[GivenSteps]) -> list[Arrays]:
    """Outputs and last state of each."""
    return [job.outputs | {f"{n}_after": a for n, a in job.state.items()} for job in jobs]


def _equal(one: Arrays, other: Arrays) -> bool:
    assert one.keys() == other.keys()
    return all(a.tobytes() == other[name].tobytes() for name, a in one.items())


@pytest.fixture(scope="module")
def alone(artifact: Artifact) -> list[Arrays]:
    """Each row on a runner of one slot, on the graph that it asks for."""
    runner, results = _runner(artifact, "scan", slots=1), []
    for row in range(_ROWS):
        job = _job(artifact, row)
        runner.load(0, job.state)
        inputs = {name: a[:, None] for name, a in _steps(row).items()}
        options = {name: a[None] for name, a in job.row.items()}
        outputs = runner.run([0], inputs, options, filtered=job.filtered)
        after = {f"{name}_after": a for name, a in runner.read(0).items()}
        results.append({name: a[:, 0] for name, a in outputs.items()} | after)
    return results


def test_the_rows_are_such_that_a_mistake_would_show(alone: list[Arrays]) -> None:
    drawn = [result["next"].tobytes() for result in alone]
    assert len(set(drawn)) == _ROWS
    assert [_sampling(row).filtered for row in range(_ROWS)].index(True) == _FILTERED


def test_without_its_filter_the_filtered_row_would_draw_something_else(
    artifact: Artifact, alone: list[Arrays]
) -> None:
    runner, job = _runner(artifact, "scan", slots=1), _job(artifact, _FILTERED)
    inputs = {name: a[:, None] for name, a in _steps(_FILTERED).items()}
    options = {name: a[None] for name, a in job.row.items()}
    free = runner.run([0], inputs, options, filtered=False)
    assert (free["next"][:, 0] != alone[_FILTERED]["next"]).any()


@_RUNNERS
def test_each_of_forty_rows_at_once_is_itself_alone(
    artifact: Artifact, alone: list[Arrays], kind: str
) -> None:
    with _engine(_runner(artifact, kind)) as engine:
        jobs = [_job(artifact, row) for row in range(_ROWS)]
        asyncio.run(run_steps(engine, jobs))
    for row, result in enumerate(_results(jobs)):
        assert _equal(result, alone[row]), row


@_RUNNERS
@pytest.mark.parametrize("rows", [21, 33])
def test_in_any_order_and_number_they_are_themselves(
    artifact: Artifact, alone: list[Arrays], kind: str, rows: int
) -> None:
    order = np.random.default_rng(rows).permutation(_ROWS).tolist()[:rows]
    if _FILTERED in order:
        order.remove(_FILTERED)
    order.insert(len(order) // 2, _FILTERED)
    with _engine(_runner(artifact, kind)) as engine:
        jobs = [_job(artifact, row) for row in order]
        asyncio.run(run_steps(engine, jobs))
    for row, result in zip(order, _results(jobs), strict=True):
        assert _equal(result, alone[row]), row


@_RUNNERS
def test_rows_that_take_the_slots_of_others_keep_their_own_options(
    artifact: Artifact, alone: list[Arrays], kind: str
) -> None:
    """Twelve slots for forty rows, some of which end sooner: slots change hands all the time."""
    with _engine(_runner(artifact, kind, slots=12)) as engine:
        order = [(row, _STEPS - row % 5) for row in range(_ROWS)]
        jobs = [_job(artifact, row, steps) for row, steps in order]
        asyncio.run(run_steps(engine, jobs))
    for (row, steps), job in zip(order, jobs, strict=True):
        expected = {name: a[:steps] for name, a in alone[row].items() if name in job.outputs}
        assert _equal(job.outputs, expected), row


@_RUNNERS
def test_a_slot_that_changes_hands_at_once_has_the_options_of_the_new_row(
    artifact: Artifact, alone: list[Arrays], kind: str
) -> None:
    with _engine(_runner(artifact, kind, slots=1)) as engine:
        jobs = [_job(artifact, row) for row in (3, 4, _FILTERED, 5)]
        asyncio.run(run_steps(engine, jobs))
    for row, result in zip((3, 4, _FILTERED, 5), _results(jobs), strict=True):
        assert _equal(result, alone[row]), row


class _Bringing(GivenSteps):
    """Has another job queued when its own first outputs come."""

    bring: Callable[[], None] | None = None

    def accept(self, outputs: Arrays) -> bool:
        bring, self.bring = self.bring, None
        if bring is not None:
            bring()
        return super().accept(outputs)


@_RUNNERS
def test_a_row_that_joins_others_which_run_on_is_itself_and_so_are_they(
    artifact: Artifact, alone: list[Arrays], kind: str
) -> None:
    with _engine(_runner(artifact, kind)) as engine:
        late = _job(artifact, 8)
        ended: list[GivenSteps] = []
        late.done = ended.append
        first = _Bringing(artifact.initial_state(), _sampling(3).row(), _steps(3), wants_state=True)
        first.bring = lambda: engine.submit([late])
        others = [_job(artifact, row) for row in (4, 6)]
        asyncio.run(run_steps(engine, [first, *others]))
        assert eventually(lambda: bool(ended))
    assert late.error is None
    for row, result in zip((3, 4, 6, 8), _results([first, *others, late]), strict=True):
        assert _equal(result, alone[row]), row
