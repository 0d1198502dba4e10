"""The GPU report's comparisons for a handwriting model; `bench.gpu` has those for text.

Shapes: T points, B slots at work.
"""

import numpy as np

from contract.manifest import Finding
from export.convert import load_model, read_artifact
from export.ink import parity as ink
from export.ink.golden import InkSample, draw_ink
from models.handwriting import HandwritingModel
from service.artifact import Arrays, Artifact
from service.engine.runtime import Runner

STEPS = 100
_SEED = 7


def parity(artifact: Artifact, runner: Runner) -> list[Finding]:
    """Rounding, log-density, sampling and score, all slots at once against training mode."""
    model, sample = _sample(artifact, runner.width)
    outputs = _run(artifact, runner, list(range(runner.width)), sample)
    findings, _ = ink.rounding(model, sample, outputs)
    return [*findings, ink.sampling(sample, outputs), ink.score(model, sample, outputs)]


def neighbours(artifact: Artifact, runner: Runner) -> tuple[int, int]:
    """Row-steps whose mixtures moved with the slot or the other slots' work, and all compared."""
    _, sample = _sample(artifact, runner.width)
    everyone = list(range(runner.width))
    among = _run(artifact, runner, everyone, sample)["mixture"]
    differing = 0
    for slot in everyone:
        alone = _run(artifact, runner, [slot], sample)["mixture"][:, 0]
        differing += int((alone != among[:, slot]).any(-1).sum())
    return differing, STEPS * runner.width


def _sample(artifact: Artifact, rows: int) -> tuple[HandwritingModel, InkSample]:
    model = load_model(artifact.folder, read_artifact(artifact.folder))
    assert isinstance(model, HandwritingModel)
    return model, draw_ink(model, STEPS, rows, _SEED)


def _run(artifact: Artifact, runner: Runner, slots: list[int], sample: InkSample) -> Arrays:
    """The sample's rows of these numbers in the slots of the same numbers, read step by step."""
    for slot in slots:
        runner.load(slot, artifact.initial_state())
    noise, text = sample.noise, sample.text
    steps = {
        "forced": sample.points.numpy(),
        "uniform": noise.uniforms.numpy(),
        "normal": noise.normals.numpy(),
    }
    row = {
        "bias": noise.bias.numpy(),
        "text": text.symbols.numpy(),
        "length": text.length.numpy(),
    }
    chosen = {name: np.ascontiguousarray(array[:, slots]) for name, array in steps.items()}
    chosen["force"] = np.ones((STEPS, len(slots)), bool)
    return runner.run(slots, chosen, {n: a[slots] for n, a in row.items()}, filtered=False)
