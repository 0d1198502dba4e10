"""Structure, rounding and score: how far served numbers lie from the trained ones, and from truth.

Truth is PyTorch in float64, in training mode. Shapes: T steps, B rows, V symbols.
"""

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from export.golden import draw, training_logits
from export.parity.finding import Finding
from export.parity.served import ServedGraph, bits_per_byte, drawn, forced, log_softmax
from export.text_data import streams
from export.variant import GraphWriter, variant_of
from models.language import LanguageModel

MAX_STRUCTURE_ERROR = 1e-9
MAX_LOG_PROBABILITY_ERROR = 1e-4
MAX_ROUNDING_RATIO = 1.5
MAX_BITS_PER_BYTE_ERROR = 1e-6


def structure(model: LanguageModel, manifest: dict[str, Any], steps: int, seed: int) -> Finding:
    """The float64 graph against float64 PyTorch: no rounding is left for a difference to hide in.

    PyTorch runs two rows at once as training does, onnxruntime each row alone.
    """
    wide = copy.deepcopy(model).double()
    sample = draw(wide, steps, 2, seed)
    truth = training_logits(wide, sample.tokens).numpy()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        GraphWriter(path.parent, wide, variant_of(manifest)).write(path, scan=True, filtered=False)
        graph = ServedGraph(path, in_float64(manifest), scan=True)
        served = served_logits(graph, sample.tokens.numpy())
    error = float(np.abs(served - truth).max())
    return Finding(
        "structure", error, MAX_STRUCTURE_ERROR,
        f"max |logit difference|, float64 graph and float64 training mode, {steps:,} steps",
    )  # fmt: skip


def rounding(
    model: LanguageModel, tokens: NDArray[np.int64], served: NDArray[np.float32]
) -> tuple[list[Finding], dict[str, NDArray[np.float64]]]:
    """Distance to float64 truth: of what is served, and of float32 training itself.

    `served` are the logits `(T, B, V)` onnxruntime gave for `tokens (T, B)`, each row alone. Also
    returns the largest error at each step, by curve, for the plot.
    """
    chosen = torch.from_numpy(tokens)
    truth = training_logits(copy.deepcopy(model).double(), chosen).numpy()
    trained = training_logits(model, chosen).numpy()
    alone = np.concatenate(
        [training_logits(model, chosen[:, r : r + 1]).numpy() for r in range(tokens.shape[1])],
        axis=1,
    )
    batch = tokens.shape[1]
    errors = {
        "served, batch 1": np.abs(served - truth),
        f"training, batch {batch}": np.abs(trained - truth),
        "training, batch 1": np.abs(alone - truth),
    }
    mine, *others = (np.sqrt((e**2).mean()) for e in errors.values())
    worst = [float(e.max()) for e in errors.values()]
    findings = [
        Finding(
            "rounding", float(mine / min(others)), MAX_ROUNDING_RATIO,
            f"rms error of served float32 over training's own; max errors {worst[0]:.2g} served, "
            f"{worst[1]:.2g} training at batch {batch}, {worst[2]:.2g} at batch 1",
        ),
        Finding(
            "log-probability",
            float(np.abs(log_softmax(trained) - log_softmax(served)).max()),
            MAX_LOG_PROBABILITY_ERROR,
            f"max |difference|, {tokens.size:,} bytes, training at batch {batch}, served at 1",
        ),
    ]  # fmt: skip
    return findings, {name: e.max(axis=(1, 2)) for name, e in errors.items()}


def score(
    name: str, model: LanguageModel, graph: ServedGraph, text: torch.Tensor, rows: int
) -> Finding:
    """Bits per byte of a text `(N,)` cut into `rows` streams from zero states, on both sides."""
    tokens = streams(text, rows)
    trained = bits_per_byte(log_softmax(training_logits(model, tokens).numpy()), tokens.numpy())
    served = np.mean([
        bits_per_byte(log_softmax(served_logits(graph, column)), column)
        for column in (tokens[:, r : r + 1].numpy() for r in range(rows))
    ])  # fmt: skip
    return Finding(
        f"score, {name}", float(abs(trained - served)), MAX_BITS_PER_BYTE_ERROR,
        f"|difference| in bits per byte over {tokens.numel():,} bytes; {trained:.6f} trained, "
        f"{served:.6f} served",
    )  # fmt: skip


def served_logits(graph: ServedGraph, tokens: NDArray[np.int64]) -> NDArray[Any]:
    """Logits `(T, B, V)` onnxruntime gives for `tokens (T, B)`, each row run alone."""
    columns = []
    for row in range(tokens.shape[1]):
        state, options = graph.initial_state(1), graph.options(1)
        _, outputs = graph.run(state, forced(tokens[:, row : row + 1], graph.real), options)
        columns.append(outputs["logits"])
    return np.concatenate(columns, axis=1)


def serve_one_by_one(
    graph: ServedGraph, tokens: NDArray[np.int64], uniforms: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Every row alone, one step a call: logits `(T, B, V)` and what was drawn `(T, B)`.

    Each draw starts from the trainer's bytes, so one difference does not become many.
    """
    options = graph.options(1)
    logits, draws = [], []
    for row in range(tokens.shape[1]):
        state = graph.initial_state(1)
        for t in range(len(tokens)):
            state, outputs = graph.run(state, drawn(uniforms[t : t + 1, row : row + 1]), options)
            draws.append(outputs["next"][0, 0])
            logits.append(outputs["logits"][0, 0])
            state["token"] = tokens[t, row : row + 1]
    shape = (tokens.shape[1], len(tokens))
    return (
        np.stack(logits).reshape(*shape, -1).swapaxes(0, 1),
        np.array(draws).reshape(shape).swapaxes(0, 1),
    )


def in_float64(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with every float32 port a float64."""
    ports = copy.deepcopy(manifest["ports"])
    for port in (p for group in ports.values() for p in group):
        port["dtype"] = port["dtype"].replace("float32", "float64")
    return manifest | {"ports": ports}
