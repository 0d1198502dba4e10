"""Structure, rounding, sampling and score of a handwriting model, as `numbers` has them for text.

Truth is PyTorch in float64, in training mode. Shapes: T points, B rows, R raw mixture outputs.
"""

import copy
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from export.ink_golden import InkSample, draw_ink, drawn_from, training_mixtures
from export.parity.bits import Work
from export.parity.finding import Finding
from export.parity.numbers import MAX_ROUNDING_RATIO, MAX_STRUCTURE_ERROR, in_float64
from export.parity.served import Arrays, ServedGraph, differing_bytes
from export.variant import GraphWriter, variant_of
from models import mixture
from models.handwriting import HandwritingModel

# Densities have no upper limit: where a Gaussian is narrow, nats amplify the rounding of its mean.
MAX_LOG_DENSITY_ERROR = 1e-4
MAX_NATS_PER_POINT_ERROR = 1e-6
# Drawn points may lie this far apart, in units of the ink: half a hundredth of a pixel.
MAX_POINT_ERROR = 1e-3
# Two cases of the mixture are tied when the uniform lies this close to the border between them.
TIE = 1e-5


def structure(model: HandwritingModel, manifest: dict[str, Any], steps: int, seed: int) -> Finding:
    """The float64 graph against float64 PyTorch: no rounding is left for a difference to hide in.

    PyTorch runs two rows at once as training does, onnxruntime each row alone.
    """
    wide = copy.deepcopy(model).double()
    sample = draw_ink(wide, steps, 2, seed)
    truth = training_mixtures(wide, sample).numpy()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        GraphWriter(path.parent, wide, variant_of(manifest)).write(path, scan=True, filtered=False)
        graph = ServedGraph(path, in_float64(manifest), scan=True)
        served = serve_one_by_one(graph, sample)
    error = float(np.abs(served["mixture"] - truth).max())
    return Finding(
        "structure", error, MAX_STRUCTURE_ERROR,
        f"max |mixture difference|, float64 graph and float64 training mode, {steps:,} steps",
    )  # fmt: skip


def rounding(
    model: HandwritingModel, sample: InkSample, served: Arrays
) -> tuple[list[Finding], dict[str, NDArray[np.float64]]]:
    """Distance to float64 truth of the raw outputs: of what is served, and of training itself.

    Also returns the largest error at each step, by curve, for the plot.
    """
    wide = training_mixtures(copy.deepcopy(model).double(), sample)
    trained = training_mixtures(model, sample)
    batch = sample.points.shape[1]
    alone = torch.cat([training_mixtures(model, _row(sample, r)) for r in range(batch)], dim=1)
    truth = wide.numpy()
    errors = {
        "served, batch 1": np.abs(served["mixture"] - truth),
        f"training, batch {batch}": np.abs(trained.numpy() - truth),
        "training, batch 1": np.abs(alone.numpy() - truth),
    }
    mine, *others = (np.sqrt((e**2).mean()) for e in errors.values())
    worst = [float(e.max()) for e in errors.values()]
    densities = [_log_density(raw, sample) for raw in (trained.numpy(), served["mixture"])]
    own = float(np.abs(densities[0] - _log_density(truth, sample)).max())
    findings = [
        Finding(
            "rounding", float(mine / min(others)), MAX_ROUNDING_RATIO,
            f"rms error of served float32 over training's own; max errors {worst[0]:.2g} served, "
            f"{worst[1]:.2g} training at batch {batch}, {worst[2]:.2g} at batch 1",
        ),
        Finding(
            "log-density", float(np.abs(densities[0] - densities[1]).max()), MAX_LOG_DENSITY_ERROR,
            f"max |difference| in nats, {densities[0].size:,} points, training at batch {batch}, "
            f"served at 1; training's own distance to float64: {own:.2g}",
        ),
    ]  # fmt: skip
    return findings, {name: e.max(axis=(1, 2)) for name, e in errors.items()}


def sampling(sample: InkSample, served: Arrays) -> Finding:
    """The same noise must draw the same points, save where two cases are tied within rounding.

    Every step starts from the trainer's point, so one difference does not become many.
    """
    points = sample.points.numpy()
    error = np.abs(served["drawn"] - points).max(-1)
    raw = torch.from_numpy(served["mixture"])
    tied = np.zeros(error.shape, bool)
    for nudge in (-TIE, TIE):
        uniforms = (sample.noise.uniforms + nudge).clamp(2**-24, 1 - 2**-24)
        nudged = drawn_from(raw, replace(sample.noise, uniforms=uniforms)).numpy()
        tied |= np.abs(nudged - served["drawn"]).max(-1) > MAX_POINT_ERROR
    different = error > MAX_POINT_ERROR
    same = float(error[~different].max())
    ties = int((different & tied).sum())
    return Finding(
        "sampling", int((different & ~tied).sum()), 0,
        f"of {error.size:,} points drawn with the same noise differ ({ties} more are ties); the "
        f"others lie at most {same:.2g} units apart",
    )  # fmt: skip


def score(model: HandwritingModel, sample: InkSample, served: Arrays) -> Finding:
    """Mean nats per point of the sampled ink, on both sides."""
    trained = -_log_density(training_mixtures(model, sample).numpy(), sample).mean()
    mine = -_log_density(served["mixture"], sample).mean()
    return Finding(
        "score, sampled ink", float(abs(trained - mine)), MAX_NATS_PER_POINT_ERROR,
        f"|difference| in nats per point; {trained:.6f} trained, {mine:.6f} served",
    )  # fmt: skip


def padding(graph: ServedGraph, sample: InkSample) -> Finding:
    """What stands past the end of a text must not change a bit of anything."""
    inputs, options = _inputs(sample), _options(sample)
    filled = dict(options)
    places = np.arange(options["text"].shape[1])
    beyond = places > options["length"][:, None]
    noise = np.random.default_rng(0).integers(1, 96, options["text"].shape)
    filled["text"] = np.where(beyond, noise, options["text"])
    state = graph.initial_state(len(options["length"]))
    once, again = (graph.run(state, inputs, o)[1] for o in (options, filled))
    steps = inputs["uniform"].size
    return Finding(
        "padding", differing_bytes(once, again), 0,
        f"bytes differ over {steps:,} row-steps when the text's padding is filled with letters",
    )  # fmt: skip


def make_work(sample: InkSample, seed: int) -> Work:
    """Mixed work for all rows: ink that is read before ink that is written, texts of all lengths,
    every neatness."""
    total, rows = sample.noise.uniforms.shape
    random = np.random.default_rng(seed)
    prompt = random.integers(0, total, (rows,))
    options = _options(sample)
    length = np.minimum(random.integers(1, 45, (rows,)), options["length"])
    places = np.arange(options["text"].shape[1])
    return Work(
        _inputs(sample) | {"force": np.arange(total)[:, None] < prompt[None, :]},
        {
            "bias": random.uniform(0, 2, (rows,)).astype(np.float32),
            "text": np.where(places < length[:, None], options["text"], 0),
            "length": length,
        },
    )


def serve_one_by_one(graph: ServedGraph, sample: InkSample) -> Arrays:
    """Outputs `(T, B, ...)` onnxruntime gives for the sample's points, each row run alone."""
    rows = []
    for r in range(sample.points.shape[1]):
        one = _row(sample, r)
        inputs = {n: a.astype(graph.real) if n != "force" else a for n, a in _inputs(one).items()}
        options = _options(one)
        options["bias"] = options["bias"].astype(graph.real)
        rows.append(graph.run(graph.initial_state(1), inputs, options)[1])
    return {name: np.concatenate([row[name] for row in rows], axis=1) for name in rows[0]}


def _row(sample: InkSample, r: int) -> InkSample:
    one = slice(r, r + 1)
    noise = sample.noise
    return InkSample(
        sample.points[:, one],
        type(sample.text)(sample.text.symbols[one], sample.text.length[one]),
        type(noise)(noise.uniforms[:, one], noise.normals[:, one], noise.bias[one]),
    )


def _inputs(sample: InkSample) -> Arrays:
    return {
        "forced": sample.points.numpy(),
        "force": np.ones(sample.noise.uniforms.shape, bool),
        "uniform": sample.noise.uniforms.numpy(),
        "normal": sample.noise.normals.numpy(),
    }


def _options(sample: InkSample) -> Arrays:
    return {
        "bias": sample.noise.bias.numpy(),
        "text": sample.text.symbols.numpy(),
        "length": sample.text.length.numpy(),
    }


def _log_density(raw: NDArray[Any], sample: InkSample) -> NDArray[np.float64]:
    """Nats `(T, B)`, in float64 whatever comes in."""
    density = mixture.log_density(torch.from_numpy(raw).double(), sample.points.double())
    result: NDArray[np.float64] = density.numpy()
    return result
