"""Attestation: replay the golden vectors on the provider in use before serving from it.

Every graph that can serve replays every golden row it can run, in two runs. What it draws must be
the same, and its outputs within the bound of what float64 training mode computed.
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
    """Replay on a runner that nothing else uses yet."""
    golden, verdicts = artifact.golden, []
    for filtered, rows in _replays(artifact):
        for first in range(0, len(rows), runner.width):
            some = rows[first : first + runner.width]
            for slot in range(len(some)):
                runner.load(slot, artifact.initial_state())
            steps = stack_rows([golden.step_inputs(r) for r in some], axis=1)
            row = stack_rows([golden.row_inputs(r) for r in some], axis=0)
            slots = range(len(some))
            runs = [runner.run(slots, half, row, filtered=filtered) for half in halves(steps)]
            outputs = {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
            verdict = golden.judge(outputs, some)
            why = _broken_forcing(artifact, runner, some, row, filtered=filtered)
            verdicts.append(
                replace(verdict, ok=False, detail=why) if verdict.ok and why else verdict
            )
    return worst(verdicts)


def _broken_forcing(
    artifact: Artifact, runner: Runner, rows: Sequence[int], row: Arrays, *, filtered: bool
) -> str | None:
    slots = range(len(rows))

    def run(steps: Arrays) -> Arrays:
        for slot in slots:
            runner.load(slot, artifact.initial_state())
        outputs = runner.run(slots, steps, row, filtered=filtered)
        return outputs | stack_rows([runner.read(slot) for slot in slots], axis=0)

    first = stack_rows([artifact.golden.step_inputs(r) for r in rows], axis=1)
    emitted = artifact.manifest.ports.state[0].name
    return broken_forcing({name: array[:1] for name, array in first.items()}, emitted, run)


async def attest_in_queue(
    artifact: Artifact, engine: Engine, pay: Callable[[int], None] = lambda steps: None
) -> Verdict:
    """The same as jobs of the engine, beside whatever else it does. Raises what `submit` raises.

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
