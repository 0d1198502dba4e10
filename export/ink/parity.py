"""The parity report of a handwriting model: mixtures for logits, drawn points for drawn bytes.

Shapes: T points, B rows, R raw mixture outputs.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from contract.manifest import Finding
from export.golden import Sample
from export.ink.golden import drawn_from, sample, training_mixtures
from export.parity import bits, numbers, operators
from export.parity.report import SEED, Evidence, Report
from export.parity.served import Graph, differing_bytes, follow
from export.variant import GraphWriter
from models import mixture
from models.handwriting import HandwritingModel
from models.quantized import integer_matrices

# Densities have no upper limit: where a Gaussian is narrow, nats amplify the rounding of its mean.
MAX_LOG_DENSITY_ERROR = 1e-4
MAX_NATS_PER_POINT_ERROR = 1e-6
# Drawn points may lie this far apart, in units of the ink: half a hundredth of a pixel.
MAX_POINT_ERROR = 1e-3
# Two cases of the mixture are tied when the uniform lies this close to the border between them.
TIE = 1e-5


def report(writer: GraphWriter, evidence: Evidence) -> Report:
    """Every comparison."""
    model, served = _model(writer), evidence.served
    drawn = sample(model, evidence.sampled_steps, evidence.rows, SEED)
    outputs, points = follow(served.step, drawn)
    findings, curves = compare(model, drawn, outputs["mixture"], points)
    work = make_work(sample(model, evidence.extent.bit_steps, bits.LARGEST_BATCH, SEED + 1), SEED)
    return Report([
        _structure(writer, evidence),
        *findings,
        padding(served.scan, drawn),
        *bits.findings(
            served, work, evidence.extent, SEED, integers=bool(integer_matrices(model))
        ),
        *operators.operators(),
    ], curves)  # fmt: skip


def compare(
    model: HandwritingModel, drawn: Sample, raw: NDArray[Any], points: NDArray[Any]
) -> tuple[list[Finding], dict[str, Any]]:
    """Rounding, log-density, sampling and score: served mixtures `(T, B, R)` and points
    `(T, B, 3)` beside what training computes for the sample."""
    rounding, trained, curves = numbers.rounding(model, drawn, raw, training_mixtures)
    densities = [_log_density(r, drawn) for r in (trained, raw)]
    means = [-float(d.mean()) for d in densities]
    return [
        rounding,
        Finding(
            name="log-density", value=float(np.abs(densities[0] - densities[1]).max()),
            bound=MAX_LOG_DENSITY_ERROR,
            detail=f"max |difference| in nats, {densities[0].size:,} points, training at batch "
            f"{raw.shape[1]}, served at 1",
        ),
        sampling(drawn, raw, points),
        Finding(
            name="score, sampled ink", value=abs(means[0] - means[1]),
            bound=MAX_NATS_PER_POINT_ERROR,
            detail=f"|difference| in nats per point; {means[0]:.6f} trained, {means[1]:.6f} served",
        ),
    ], curves  # fmt: skip


def sampling(drawn: Sample, raw: NDArray[Any], points: NDArray[Any]) -> Finding:
    """The same noise must draw the same points, save where two cases are tied within rounding.

    Every step starts from the trainer's point, so one difference does not become many.
    """
    trained = drawn.symbols.numpy()
    error = np.abs(points - trained).max(-1)
    # Tied is where both are what one and the other side of a border gives, not where one is odd.
    found, expected = np.zeros((2, *error.shape), bool)
    for nudge in (-TIE, 0.0, TIE):
        nudged = drawn_from(torch.from_numpy(raw), drawn, nudge).numpy()
        found |= np.abs(nudged - points).max(-1) <= MAX_POINT_ERROR
        expected |= np.abs(nudged - trained).max(-1) <= MAX_POINT_ERROR
    tied = found & expected
    different = ~(error <= MAX_POINT_ERROR)
    same = float(error[~different].max(initial=0))
    ties = int((different & tied).sum())
    return Finding(
        name="sampling", value=int((different & ~tied).sum()), bound=0,
        detail=f"of {error.size:,} points drawn with the same noise differ ({ties} more are ties); "
        f"the others lie at most {same:.2g} units apart",
    )  # fmt: skip


def padding(graph: Graph, drawn: Sample) -> Finding:
    """What stands past the end of a text must not change a bit of anything."""
    rows = drawn.rows()
    beyond = np.arange(rows["text"].shape[1]) > rows["length"][:, None]
    letters = np.random.default_rng(0).integers(1, 96, rows["text"].shape)
    filled = rows | {"text": np.where(beyond, letters, rows["text"])}
    state = graph.initial_state(len(beyond))
    once, again = (graph.run(state, drawn.read(), options)[1] for options in (rows, filled))
    steps = drawn.noise["uniform"].numel()
    return Finding(
        name="padding", value=differing_bytes(once, again), bound=0,
        detail=f"bytes differ over {steps:,} row-steps when the text's padding is filled with "
        "letters",
    )  # fmt: skip


def make_work(drawn: Sample, seed: int) -> bits.Work:
    """Mixed work for all rows: ink that is read before ink that is written, texts of all lengths,
    every neatness."""
    total, rows = drawn.noise["uniform"].shape
    random = np.random.default_rng(seed)
    prompt = random.integers(0, total, (rows,))
    options = drawn.rows()
    length = np.minimum(random.integers(1, 45, (rows,)), options["length"])
    places = np.arange(options["text"].shape[1])
    return bits.Work(
        drawn.read() | {"force": np.arange(total)[:, None] < prompt[None, :]},
        {
            "bias": random.uniform(0, 2, (rows,)).astype(np.float32),
            "text": np.where(places < length[:, None], options["text"], 0),
            "length": length,
        },
        np.zeros(rows, bool),
    )


def _structure(writer: GraphWriter, evidence: Evidence) -> Finding:
    wide = writer.wide()
    drawn = sample(_model(wide), evidence.extent.structure_steps, 2, SEED)
    return numbers.structure(wide, drawn, training_mixtures, "mixture")


def _log_density(raw: NDArray[Any], drawn: Sample) -> NDArray[np.float64]:
    """Nats `(T, B)`, in float64 whatever comes in."""
    density = mixture.log_density(torch.from_numpy(raw).double(), drawn.symbols.double())
    result: NDArray[np.float64] = density.numpy()
    return result


def _model(writer: GraphWriter) -> HandwritingModel:
    assert isinstance(writer.model, HandwritingModel)
    return writer.model
