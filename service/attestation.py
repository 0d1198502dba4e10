"""Attestation: replay the golden vectors on the provider in use before serving from it.

Every graph that can serve replays every golden row it can run, in two runs. What it draws must be
the same, and its outputs within the bound of what float64 training mode computed; it must emit what
it is forced to, and be deaf to that where it draws; and no row may move a bit of another.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from contract.forcing import broken_forcing, forcing_runs
from contract.golden import Arrays, Verdict, halves, worst
from service.artifact import Artifact
from service.engine.engine import Engine
from service.engine.given import GivenSteps, run_steps
from service.engine.runners import Runner, stack_rows

# Of the runs that look for what rows do to each other: the first begins with states of zeros, whose
# products are the same whatever the kernel.
_SOME_STEPS = 2
# onnxruntime picks kernels by the number of rows: up to here every number is tried.
_EVERY_NUMBER = 16


def attest(artifact: Artifact, runner: Runner) -> Verdict:
    """Replay on a runner that nothing else uses yet, force it to emit other symbols, and have its
    rows run alone and in company."""
    verdicts = []
    for filtered, rows in _replays(artifact):
        for first in range(0, len(rows), runner.width):
            some = rows[first : first + runner.width]
            verdict = _attested(artifact, runner, some, filtered=filtered, company=first == 0)
            verdicts.append(verdict)
    return worst(verdicts)


def _attested(
    artifact: Artifact, runner: Runner, rows: Sequence[int], *, filtered: bool, company: bool
) -> Verdict:
    golden = artifact.golden

    def begin(rows: Sequence[int]) -> Arrays:
        for slot in range(len(rows)):
            runner.load(slot, artifact.initial_state())
        return stack_rows([golden.row_inputs(r) for r in rows], axis=0)

    def run(rows: Sequence[int], steps: Arrays) -> Arrays:
        slots, row = range(len(rows)), begin(rows)
        outputs = runner.run(slots, steps, row, filtered=filtered)
        return outputs | stack_rows([runner.read(slot) for slot in slots], axis=0)

    row, steps = begin(rows), _steps(artifact, rows)
    parts = [runner.run(range(len(rows)), p, row, filtered=filtered) for p in halves(steps)]
    verdict = golden.judge({n: np.concatenate([part[n] for part in parts]) for n in parts[0]}, rows)
    if not verdict.ok:
        return verdict
    runs = forcing_runs(steps)
    verdict = _forced(artifact, verdict, runs, [run(rows, steps) for steps in runs])
    together = _companies(rows, runner.width) if company else ()
    found = ((some, run(some, _steps(artifact, some, _SOME_STEPS))) for some in together)
    return _apart(artifact, verdict, found) if verdict.ok else verdict


def _steps(artifact: Artifact, rows: Sequence[int], most: int | None = None) -> Arrays:
    """The golden steps `(T, len(rows), ...)`, or the first of them."""
    inputs = [artifact.golden.step_inputs(row) for row in rows]
    return stack_rows([{n: a[:most] for n, a in steps.items()} for steps in inputs], axis=1)


def _companies(rows: Sequence[int], width: int) -> Iterator[list[int]]:
    """Golden rows that run together: each alone, then in numbers up to `width`."""
    yield from ([row] for row in rows)
    for number in sorted({*range(2, min(width, _EVERY_NUMBER) + 1), width} - {1}):
        yield [rows[place % len(rows)] for place in range(number)]


def _forced(
    artifact: Artifact, verdict: Verdict, runs: Sequence[Arrays], found: Sequence[Arrays]
) -> Verdict:
    """A good verdict, unless the runs show that forcing is broken."""
    why = broken_forcing(runs, found, artifact.manifest.ports.state[0].name)
    return verdict if why is None else replace(verdict, ok=False, detail=why)


def _apart(
    artifact: Artifact, verdict: Verdict, found: Iterable[tuple[Sequence[int], Arrays]]
) -> Verdict:
    """A good verdict, unless a row has other bits in one of these runs than in the first that it
    was in. Each is of some golden rows: outputs `(T, B, ...)` and states `(B, ...)` by name."""
    states = {port.name for port in artifact.manifest.ports.state}
    first: dict[tuple[int, str], bytes] = {}
    for rows, after in found:
        for name, array in after.items():
            for place, row in enumerate(rows):
                bits = (array[place] if name in states else array[:, place]).tobytes()
                if first.setdefault((row, name), bits) != bits:
                    why = f"{name} of a row has other bits among {len(rows)} than alone"
                    return replace(verdict, ok=False, detail=why)
    return verdict


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
        steps = _steps(artifact, rows)
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
