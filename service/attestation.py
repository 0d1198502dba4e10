"""Attestation: replay the golden vectors on the provider in use before serving from it.

Every graph that can serve replays every golden row it can run, in two runs. What it draws must be
the same, and its outputs within the bound of what float64 training mode computed; and it must emit
what it is forced to, and be deaf to that where it draws.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from contract.forcing import broken_forcing
from contract.golden import Arrays, Verdict, halves, worst
from service.artifact import Artifact
from service.engine.engine import Engine
from service.engine.given import GivenSteps, run_steps
from service.engine.runners import Runner, stack_rows


def attest(artifact: Artifact, runner: Runner) -> Verdict:
    """Replay on a runner that nothing else uses yet, and force it to emit other symbols."""
    verdicts = []
    for filtered, rows in _replays(artifact):
        for first in range(0, len(rows), runner.width):
            some = rows[first : first + runner.width]
            verdicts.append(_attested(artifact, runner, some, filtered=filtered))
    return worst(verdicts)


def _attested(
    artifact: Artifact, runner: Runner, rows: Sequence[int], *, filtered: bool
) -> Verdict:
    golden, slots = artifact.golden, range(len(rows))
    steps = stack_rows([golden.step_inputs(r) for r in rows], axis=1)
    row = stack_rows([golden.row_inputs(r) for r in rows], axis=0)

    def begin() -> None:
        for slot in slots:
            runner.load(slot, artifact.initial_state())

    def forced(steps: Arrays) -> Arrays:
        begin()
        outputs = runner.run(slots, steps, row, filtered=filtered)
        return outputs | stack_rows([runner.read(slot) for slot in slots], axis=0)

    begin()
    runs = [runner.run(slots, half, row, filtered=filtered) for half in halves(steps)]
    verdict = golden.judge({n: np.concatenate([run[n] for run in runs]) for n in runs[0]}, rows)
    emitted = artifact.manifest.ports.state[0].name
    if verdict.ok and (why := broken_forcing(steps, emitted, forced)):
        return replace(verdict, ok=False, detail=why)
    return verdict


async def attest_in_queue(
    artifact: Artifact, engine: Engine, pay: Callable[[int], None] = lambda steps: None
) -> Verdict:
    """The golden vectors as jobs of the engine, beside whatever else it does. Raises what `submit`
    raises.

    `pay` is told the steps that were run, however it ends.
    """
    verdicts = []
    for filtered, rows in _replays(artifact):
        jobs = [golden_job(artifact, row, filtered=filtered) for row in rows]
        wanted = sum(job.steps_wanted() for job in jobs)
        try:
            await run_steps(engine, jobs)
        finally:
            pay(wanted - sum(job.steps_wanted() for job in jobs))
        outputs = [job.outputs for job in jobs]
        joined = {n: np.stack([o[n] for o in outputs], axis=1) for n in outputs[0]}
        verdicts.append(artifact.golden.judge(joined, rows))
    return worst(verdicts)


def golden_job(artifact: Artifact, row: int, *, filtered: bool = False) -> GivenSteps:
    """One golden row as a job."""
    golden = artifact.golden
    return GivenSteps(
        artifact.initial_state(),
        golden.row_inputs(row),
        golden.step_inputs(row),
        filtered=filtered,
    )


def _replays(artifact: Artifact) -> Iterator[tuple[bool, Sequence[int]]]:
    """Whether a graph is the one with the options that leave symbols out, and its golden rows."""
    yield False, artifact.golden.plain_rows
    if artifact.manifest.graphs.scan.filtered is not None:
        yield True, artifact.golden.all_rows
