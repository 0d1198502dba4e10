"""Bits: a row's results must not depend on anything but the row.

Not on its neighbours, its place among them, the chunks, the threads, or the graph that serves it.
"""

import itertools
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contract.golden import Arrays
from contract.manifest import Finding
from export.parity import operators
from export.parity.report import COST, Extent, Served
from export.parity.served import Graph, ServedGraph, differing_bytes

Rows = list[int] | range | NDArray[np.int64]

MAX_COST = 1.05
_TIMED_RUNS = 16
_FORCING_STEPS = 64
LARGEST_BATCH = 65  # one more than a power of two, so that every kernel has a remainder


@dataclass(frozen=True, slots=True)
class Work:
    """What every row has to do: per-step inputs `(T, R, ...)`, row options `(R, ...)`, and which
    rows `(R,)` ask for symbols to be left out.

    Rows read prompts of different lengths before they draw, and each has its own options.
    """

    steps: Arrays
    options: Arrays
    filtered: NDArray[np.bool_]

    @property
    def total(self) -> int:
        """T."""
        return len(self.steps["force"])

    def of(self, rows: Rows) -> "Work":
        """The same for some of the rows, in that order."""
        return Work(
            {name: array[:, rows] for name, array in self.steps.items()},
            {name: array[rows] for name, array in self.options.items()},
            self.filtered[rows],
        )


def run(graph: ServedGraph, work: Work, lengths: Rows) -> Arrays:
    """All steps in chunks of `lengths` (repeated); outputs `(T, B, ...)`, states `(1, B, ...)`."""
    batch = work.steps["force"].shape[1]
    state, parts, start, chunk = graph.initial_state(batch), [], 0, 0
    while start < work.total:
        end = min(work.total, start + int(lengths[chunk % len(lengths)]))
        inputs = {name: array[start:end] for name, array in work.steps.items()}
        state, outputs = graph.run(state, inputs, work.options)
        parts.append(outputs)
        start, chunk = end, chunk + 1
    joined = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    return joined | {name: value[None] for name, value in state.items()}


class BitComparison:
    """Counts row-steps compared and bytes that differ from each row run alone."""

    def __init__(self, alone: ServedGraph, work: Work) -> None:
        self.work = work
        rows = work.steps["force"].shape[1]
        each = [run(alone, work.of([r]), [work.total]) for r in range(rows)]
        self._truth = {name: np.concatenate([one[name] for one in each], 1) for name in each[0]}
        self.row_steps = 0
        self.differing = 0

    def compare(self, graph: ServedGraph, rows: Rows, lengths: Rows) -> None:
        """Run `rows` together on `graph` and compare each with itself alone."""
        together = run(graph, self.work.of(rows), lengths)
        expected = {name: array[:, rows] for name, array in self._truth.items()}
        self.differing += differing_bytes(expected, together)
        self.row_steps += len(rows) * self.work.total


def compare_everything(
    alone: ServedGraph, others: Iterable[ServedGraph], work: Work, seed: int
) -> BitComparison:
    """Truth is each row alone on the graph that has every option; then batches of 2 to 65, every
    place in the largest batch, random chunks, and every other graph and thread count."""
    random = np.random.default_rng(seed)
    rows = np.arange(work.steps["force"].shape[1])
    comparison = BitComparison(alone, work)

    def chunks() -> NDArray[np.int64]:
        return random.integers(1, 12, work.total)

    for batch in range(2, LARGEST_BATCH + 1):
        comparison.compare(alone, random.permutation(rows)[:batch], chunks())
    for shift in range(0, LARGEST_BATCH, 4):
        comparison.compare(alone, np.roll(rows, shift), [work.total])
    for graph in others:
        # A graph without the filters can only serve rows that do not ask for one.
        missing = set(alone.row_names) - set(graph.row_names)
        able = rows[~work.filtered] if missing else rows
        for batch in (1, 2, 3, 7, 16, len(able)):
            comparison.compare(graph, random.permutation(able)[:batch], chunks())
    return comparison


def cost(constrained: ServedGraph, free: ServedGraph, work: Work) -> Finding:
    """What keeping the bits costs in time: the settings that keep them over those that do not.

    Each at a batch of 1 and of 16, interleaved; the worse of the two median ratios.
    """
    ratios = []
    for batch in (1, 16):
        part = work.of(range(batch))
        pairs = [(_seconds(constrained, part), _seconds(free, part)) for _ in range(_TIMED_RUNS)]
        ratios.append(float(np.median([a / b for a, b in pairs[1:]])))  # the first warms up
    return Finding(
        name=COST, value=max(ratios), bound=MAX_COST,
        detail=f"time over that of onnxruntime without prepacking, batch 1: {ratios[0]:.2f}, "
        f"16: {ratios[1]:.2f}",
    )  # fmt: skip


def _seconds(graph: ServedGraph, work: Work) -> float:
    began = time.perf_counter()
    run(graph, work, [work.total])
    return time.perf_counter() - began


def bits(comparison: BitComparison) -> Finding:
    """That nothing differs."""
    return Finding(
        name="bits", value=comparison.differing, bound=0,
        detail=f"bytes differ over {comparison.row_steps:,} row-steps: alone, in batches of 2 to "
        f"{LARGEST_BATCH}, any place, any chunks, any threads, scan and steps, mixed options",
    )  # fmt: skip


def control(unpacked: ServedGraph, work: Work, *, integers: bool = False) -> Finding:
    """That the comparison can fail: without prepacking it must.

    A network of one unit has no sum whose order could matter: its products have one term each, or
    their result is lost in a layer norm of one feature. Products of `integers` have sums, but
    integer ones. There alone, single products of onnxruntime stand in, without prepacking as well;
    everywhere else the graph itself has to differ.
    """
    comparison = BitComparison(unpacked, work)
    for batch in (2, 9, LARGEST_BATCH):
        comparison.compare(unpacked, range(batch), [work.total])
    detail = (
        f"without prepacking {comparison.differing:,} bytes differ over "
        f"{comparison.row_steps:,} row-steps, so the comparison has power"
    )
    powerless = comparison.differing == 0
    if powerless:
        detail = "without prepacking nothing differs: it has no power"
    if powerless and (unpacked.single or integers):
        products = operators.compare_operator("Gemm", prepacking=False)
        powerless = products.differing_rows == 0
        detail = (
            f"{'integers have' if integers else 'one unit has'} no sums that could differ; of "
            f"{products.rows:,} rows of {'float' if integers else 'wider'} products "
            f"{products.differing_rows:,} differ without prepacking"
        )
    return Finding(name="bits, control", value=float(powerless), bound=0, detail=detail)


def forcing(graph: Graph, work: Work) -> Finding:
    """That a step emits what it is given where it is forced to, and that what it is given makes no
    difference where it is not. Golden vectors that a model drew hold for a graph that is deaf to
    prompts as well."""
    differing = 0
    state = graph.initial_state(len(work.filtered))
    pending = next(iter(state))
    steps = min(work.total, _FORCING_STEPS)
    for t in range(steps):
        inputs = {name: array[t : t + 1] for name, array in work.steps.items()}
        force, given = inputs["force"][0], inputs["forced"][0]
        another = np.roll(given, 1, axis=0)
        another[force] = given[force]
        after, outputs = graph.run(state, inputs, work.options)
        once = after | outputs
        other_after, other_outputs = graph.run(
            state, inputs | {"forced": another[None]}, work.options
        )
        again = other_after | other_outputs
        pairs = [(given[force], after[pending][force])]
        pairs += [(value, again[name]) for name, value in once.items()]
        # As numbers: a rest that is made of negative ones is a negative zero.
        differing += sum(int(np.count_nonzero(one != other)) for one, other in pairs)
        state = after
    return Finding(
        name="forcing", value=differing, bound=0,
        detail=f"numbers differ over {steps * len(work.filtered):,} row-steps between what is "
        "forced and what is emitted, or by what is given where nothing is forced",
    )  # fmt: skip


def findings(
    served: Served, work: Work, extent: Extent, seed: int, *, integers: bool = False
) -> list[Finding]:
    """The same rows on every graph, every thread count and every kind of batch; `integers` says
    that all matrix products are of such."""
    most = served.variants[-1]  # the graph with every option
    alone = served.graph("scan", most)
    counts = range(1, (os.cpu_count() or 1) + 1)
    others = itertools.chain(
        [served.graph("step", options) for options in served.variants],
        # Each is made when its turn comes: a machine of many cores has no memory for all.
        (served.graph("scan", "plain", threads=n) for n in counts),
    )
    comparison = compare_everything(alone, others, work, seed)
    unpacked = served.graph("scan", most, prepacking=False)
    found = [
        forcing(alone, work),
        bits(comparison),
        control(unpacked, work, integers=integers),
    ]
    return [*found, cost(alone, unpacked, work)] if extent.timed else found
