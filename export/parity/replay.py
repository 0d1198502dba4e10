"""The golden vectors on every graph of an artifact: what each service will ask of it at its start.

The other comparisons draw with neutral options, on one graph of each runner. Golden rows have every
option, so this is where a graph that forgets one is seen.
"""

from pathlib import Path

import numpy as np

from contract.forcing import broken_forcing
from contract.golden import Arrays, Golden, Verdict, halves
from contract.manifest import GOLDEN, Finding, Manifest
from export.parity.report import Served
from export.parity.served import ServedGraph


def replay(artifact: Path, manifest: Manifest, served: Served) -> Finding:
    """How many graphs do not replay them or are forced to no avail, those for CUDA included, which
    run on the CPU here."""
    golden = Golden.load(artifact / GOLDEN)
    broken: dict[str, str] = {}
    steps = 0
    for runner, options, file in manifest.graphs.each():
        rows = golden.all_rows if options == "filtered" else golden.plain_rows
        graph = served.graph(runner, options)
        verdict = _replayed(golden, rows, graph)
        steps += verdict.steps
        if not verdict.ok:
            broken[file] = verdict.detail
        elif why := _broken_forcing(golden, rows, graph):
            broken[file] = why
    told = "; ".join(f"{file}: {detail}" for file, detail in broken.items())
    return Finding(
        name="golden", value=len(broken), bound=0,
        detail=f"graphs do not replay the golden vectors, {steps:,} row-steps with every option"
        + (f": {told}" if told else ""),
    )  # fmt: skip


def _replayed(golden: Golden, rows: list[int], graph: ServedGraph) -> Verdict:
    state, runs = graph.initial_state(len(rows)), []
    for half in halves(_steps(golden, rows)):
        state, outputs = graph.run(state, half, _options(golden, rows))
        runs.append(outputs)
    joined = {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
    return golden.judge(joined, rows)


def _broken_forcing(golden: Golden, rows: list[int], graph: ServedGraph) -> str | None:
    begun = graph.initial_state(len(rows))

    def run(steps: Arrays) -> Arrays:
        state, outputs = graph.run(begun, steps, _options(golden, rows))
        return state | outputs

    return broken_forcing(_steps(golden, rows), next(iter(begun)), run)


def _steps(golden: Golden, rows: list[int]) -> Arrays:
    return {name: array[:, rows] for name, array in golden.steps.items()}


def _options(golden: Golden, rows: list[int]) -> Arrays:
    return {name: array[rows] for name, array in golden.rows.items()}
