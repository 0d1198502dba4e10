"""The parity report of a reader: its logits, and the characters on its best path.

Shapes: T steps, B rows, V symbols.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contract.logits import log_probabilities
from contract.manifest import Finding
from export.golden import Sample
from export.parity import bits, numbers, operators
from export.parity.report import SEED, Evidence, Report
from export.parity.served import follow
from export.reader.golden import sample, training_logits
from export.variant import GraphWriter
from models.reader import ReaderModel

MAX_LOG_PROBABILITY_ERROR = 1e-4
MAX_NATS_ERROR = 1e-6
# Two symbols are tied for the best path when their logits lie this close.
TIE = 1e-5


def report(writer: GraphWriter, evidence: Evidence) -> Report:
    """Every comparison."""
    model, served = _model(writer), evidence.served
    read = sample(model, evidence.sampled_steps, evidence.rows, SEED)
    outputs, _ = follow(served.step, read)
    findings, curves = compare(model, read, outputs["logits"])
    work = make_work(sample(model, evidence.extent.bit_steps, bits.LARGEST_BATCH, SEED + 1), SEED)
    return Report([
        _structure(writer, evidence),
        *findings,
        *bits.findings(served, work, evidence.extent, SEED),
        *operators.operators(),
    ], curves)  # fmt: skip


def compare(
    model: ReaderModel, read: Sample, logits: NDArray[Any]
) -> tuple[list[Finding], dict[str, Any]]:
    """Rounding, log-probability, reading and score: served logits `(T, B, V)` beside those that
    training computes for the sample."""
    rounding, trained, curves = numbers.rounding(model, read, logits, training_logits)
    pair = [log_probabilities(values) for values in (trained, logits)]
    # How sure either is of the symbol that training finds the likeliest.
    likeliest = trained.argmax(-1)[..., None]
    sure = [-float(np.take_along_axis(p, likeliest, -1).mean()) for p in pair]
    return [
        rounding,
        Finding(
            name="log-probability", value=float(np.abs(pair[0] - pair[1]).max()),
            bound=MAX_LOG_PROBABILITY_ERROR,
            detail=f"max |difference| in nats of any symbol, {likeliest.size:,} steps, training at "
            f"batch {logits.shape[1]}, served at 1",
        ),
        reading(trained, logits),
        Finding(
            name="score, invented ink", value=abs(sure[0] - sure[1]), bound=MAX_NATS_ERROR,
            detail=f"|difference| in nats per step on the best path; {sure[0]:.6f} trained, "
            f"{sure[1]:.6f} served",
        ),
    ], curves  # fmt: skip


def reading(trained: NDArray[Any], logits: NDArray[Any]) -> Finding:
    """The likeliest symbol of every step must be the same, save where two are tied within
    rounding."""
    likeliest = trained.argmax(-1)
    of_training = np.take_along_axis(logits, likeliest[..., None], -1)[..., 0]
    tied = logits.max(-1) - of_training < TIE
    different = likeliest != logits.argmax(-1)
    return Finding(
        name="reading", value=int((different & ~tied).sum()), bound=0,
        detail=f"of {tied.size:,} steps have another likeliest symbol "
        f"({int((different & tied).sum())} more are ties)",
    )  # fmt: skip


def _structure(writer: GraphWriter, evidence: Evidence) -> Finding:
    wide = writer.wide()
    read = sample(_model(wide), evidence.extent.structure_steps, 2, SEED)
    return numbers.structure(wide, read, training_logits, "logits")


def make_work(read: Sample, seed: int) -> bits.Work:
    """Mixed work for all rows: each with rests at other places of its ink."""
    steps = read.read()
    random = np.random.default_rng(seed)
    shape = steps["force"].shape
    return bits.Work(steps | {"force": random.random(shape) < 0.8}, {}, np.zeros(shape[1], bool))


def _model(writer: GraphWriter) -> ReaderModel:
    assert isinstance(writer.model, ReaderModel)
    return writer.model
