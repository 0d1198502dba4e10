"""The golden vectors on every graph of an artifact: what each service will ask of it at its start.

The other comparisons draw with neutral options, on one graph of each runner. Golden rows have every
option, so this is where a graph that forgets one is seen.
"""

from pathlib import Path

import numpy as np

from contract.golden import Golden, halves
from contract.manifest import GOLDEN, Finding, Manifest
from export.parity.report import Served


def replay(artifact: Path, manifest: Manifest, served: Served) -> Finding:
    """How many graphs do not replay them, those for CUDA included, which run on the CPU here."""
    golden = Golden.load(artifact / GOLDEN)
    broken: dict[str, str] = {}
    steps = 0
    for runner, options, file in manifest.graphs.each():
        rows = golden.all_rows if options == "filtered" else golden.plain_rows
        graph = served.graph(runner, options)
        state, runs = graph.initial_state(len(rows)), []
        row = {name: array[rows] for name, array in golden.rows.items()}
        for half in halves({name: array[:, rows] for name, array in golden.steps.items()}):
            state, outputs = graph.run(state, half, row)
            runs.append(outputs)
        joined = {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
        verdict = golden.judge(joined, rows)
        steps += verdict.steps

        def run(steps: Arrays, graph: ServedGraph = graph, row: Arrays = row) -> Arrays:
            after, outputs = graph.run(graph.initial_state(len(steps["force"][0])), steps, row)
            return after | outputs

        first = {name: array[:1, rows] for name, array in golden.steps.items()}
        why = broken_forcing(first, manifest.ports.state[0].name, run)
        if not verdict.ok or why:
            broken[file] = why if verdict.ok and why else verdict.detail
    told = "; ".join(f"{file}: {detail}" for file, detail in broken.items())
    return Finding(
        name="golden", value=len(broken), bound=0,
        detail=f"graphs do not replay the golden vectors, {steps:,} row-steps with every option"
        + (f": {told}" if told else ""),
    )  # fmt: skip
