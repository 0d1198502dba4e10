"""The golden vectors on every graph of an artifact: what each service will ask of it at its start.

The other comparisons draw with neutral options, on one graph of each runner. Golden rows have every
option, so this is where a graph that forgets one is seen.
"""

from pathlib import Path

from contract.forcing import broken_forcing, forcing_runs
from contract.golden import Golden, halves
from contract.manifest import GOLDEN, Finding, Manifest
from export.parity.bits import Work, run
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
        work = Work(golden.steps, golden.rows, golden.filtered).of(rows)
        lengths = [len(half["force"]) for half in halves(work.steps)]
        verdict = golden.judge(run(graph, work, lengths), rows)
        steps += verdict.steps
        if not verdict.ok:
            broken[file] = verdict.detail
        elif why := _broken_forcing(work, graph):
            broken[file] = why
    told = "; ".join(f"{file}: {detail}" for file, detail in broken.items())
    return Finding(
        name="golden", value=len(broken), bound=0,
        detail=f"graphs do not replay the golden vectors, {steps:,} row-steps with every option"
        + (f": {told}" if told else ""),
    )  # fmt: skip


def _broken_forcing(work: Work, graph: ServedGraph) -> str | None:
    begun, runs = graph.initial_state(len(work.filtered)), forcing_runs(work.steps)
    ended = [graph.run(begun, steps, work.options) for steps in runs]
    return broken_forcing(runs, [state | outputs for state, outputs in ended], next(iter(begun)))
