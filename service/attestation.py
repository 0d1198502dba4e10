"""Attestation: replay the golden vectors on the provider in use before serving from it.

Every graph that can serve replays every golden row it can run, in two runs. What it draws must be
the same, and its outputs within the bound of what float64 training mode computed; and it must emit
what it is forced to, and be deaf to that where it draws.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from contract.forcing import broken_forcing, forcing_runs
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
    parts = [runner.run(slots, half, row, filtered=filtered) for half in halves(steps)]
    verdict = golden.judge({n: np.concatenate([part[n] for part in parts]) for n in parts[0]}, rows)
    if not verdict.ok:
        return verdict
    runs = forcing_runs(steps)
    return _forced(artifact, verdict, runs, [forced(run) for run in runs])


def _forced(
    artifact: Artifact, verdict: Verdict, runs: Sequence[Arrays], found: Sequence[Arrays]
) -> Verdict:
    """A good verdict, unless the runs show that forcing is broken."""
    why = broken_forcing(runs, found, artifact.manifest.ports.state[0].name)
    return verdict if why is None else replace(verdict, ok=False, detail=why)


async def attest_in_queue(
    artifact: Artifact, engine: Engine, pay: Callable[[int], None] = lambda steps: None
) -> Verdict:
    """The same as jobs of the engine, beside whatever else it does. Raises what `submit` raises.

    `pay` is told the steps that were run, however it ends.
    """
    golden, verdicts = artifact.golden, list[Verdict]()

    async def run(
        rows: Sequence[int], runs: Sequence[Arrays], *, filtered: bool, admitted: bool
    ) -> list[Arrays]:
        jobs = [
            GivenSteps(
                artifact.initial_state(),
                golden.row_inputs(row),
                {name: array[:, place] for name, array in steps.items()},
                wants_state=True,
                filtered=filtered,
            )
            for steps in runs
            for place, row in enumerate(rows)
        ]
        wanted = sum(job.steps_wanted() for job in jobs)
        try:
            await run_steps(engine, jobs, admitted=admitted)
        finally:
            pay(wanted - sum(job.steps_wanted() for job in jobs))
        parts = [jobs[first : first + len(rows)] for first in range(0, len(jobs), len(rows))]
        return [
            stack_rows([job.outputs for job in part], axis=1)
            | stack_rows([job.state for job in part], axis=0)
            for part in parts
        ]

    for filtered, rows in _replays(artifact):
        steps = stack_rows([golden.step_inputs(r) for r in rows], axis=1)
        (replayed,) = await run(rows, [steps], filtered=filtered, admitted=bool(verdicts))
        verdict = golden.judge(replayed, rows)
        if verdict.ok:
            runs = forcing_runs(steps)
            found = await run(rows, runs, filtered=filtered, admitted=True)
            verdict = _forced(artifact, verdict, runs, found)
        verdicts.append(verdict)
    return worst(verdicts)


def _replays(artifact: Artifact) -> Iterator[tuple[bool, Sequence[int]]]:
    """Whether a graph is the one with the options that leave symbols out, and its golden rows."""
    yield False, artifact.golden.plain_rows
    if artifact.manifest.graphs.scan.filtered is not None:
        yield True, artifact.golden.all_rows
