"""Training-time numbers against served numbers: `python -m export verify ARTIFACT`.

Training mode is PyTorch with `train()` on, batched as the loss was, every dropout rate 0. Served is
onnxruntime at batch 1, step by step. Bounds are fixed here; a broken one fails the report.
"""

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from export import convert
from export.golden import draw, training_logits
from export.parity import (
    Arrays,
    ServedGraph,
    bits_per_byte,
    differing_bytes,
    drawn,
    forced,
    log_softmax,
)
from export.text_data import PYTHON_REFERENCE, read_corpus, streams
from models.language import LanguageModel

MAX_LOG_PROBABILITY_ERROR = 1e-4
MAX_BITS_PER_BYTE_ERROR = 1e-6
# Two symbols are tied when the uniform lies this close to the border between them.
TIE = 1e-5
_SEED = 2016
_SAMPLE_STEPS = 50  # of a training batch; 64 rows of them are 3,200 drawn bytes
_MIN_SAMPLED_BYTES = 2000


@dataclass(frozen=True, slots=True)
class Finding:
    """One measured figure, the bound it must keep, and how it was got."""

    name: str
    value: float
    bound: float
    detail: str

    @property
    def holds(self) -> bool:
        return self.value <= self.bound  # False for NaN


def verify(artifact: Path, data_folder: Path | None) -> list[Finding]:
    """Compare PyTorch in training mode with onnxruntime, for one artifact."""
    manifest = convert.read_manifest(artifact)
    model = convert.load_model(artifact, manifest)
    step = ServedGraph(artifact, manifest, "step")
    scan = ServedGraph(artifact, manifest, "scan")
    rows = manifest["provenance"]["batch"]["rows"]
    steps = max(_SAMPLE_STEPS, -(-_MIN_SAMPLED_BYTES // rows))
    sample = draw(model, steps, rows, _SEED)
    tokens, uniforms = sample.tokens.numpy(), sample.uniforms.numpy()
    trained = log_softmax(training_logits(model, sample.tokens).numpy())
    served, draws = serve_one_by_one(step, tokens, uniforms)
    findings = [
        Finding(
            "log-probability",
            float(np.abs(trained - served).max()),
            MAX_LOG_PROBABILITY_ERROR,
            f"max |difference|, {tokens.size:,} sampled bytes, batch {rows} against 1",
        ),
        *_sampling(draws, tokens, uniforms, served),
        Finding(
            "bits",
            differing_bits(scan, step, tokens[:, :4], uniforms[:, :4]),
            0,
            "bytes that differ: scan, single steps, random chunks, alone and in a batch",
        ),
        _score("sampled text", bits_per_byte(trained, tokens), bits_per_byte(served, tokens)),
    ]
    text = validation_tokens(manifest, data_folder)
    if text is not None:
        findings.append(_score("validation text", *_scores(model, scan, text, rows)))
    return findings


def serve_one_by_one(
    graph: ServedGraph, tokens: NDArray[np.int64], uniforms: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Every row alone, step by step: log-probabilities `(T, B, V)` and what was drawn `(T, B)`.

    Each draw starts from the trainer's bytes, so one difference does not become many.
    """
    options = graph.options(1)
    log_probabilities, draws = [], []
    for row in range(tokens.shape[1]):
        state = graph.initial_state(1)
        logits, column = [], []
        for t in range(len(tokens)):
            state, outputs = graph.run(state, drawn(uniforms[t : t + 1, row : row + 1]), options)
            column.append(outputs["next"][0, 0])
            logits.append(outputs["logits"][0, 0])
            state["token"] = tokens[t, row : row + 1]
        log_probabilities.append(log_softmax(np.stack(logits)))
        draws.append(np.array(column))
    return np.stack(log_probabilities, 1), np.stack(draws, 1)


def differing_bits(
    scan: ServedGraph,
    step: ServedGraph,
    tokens: NDArray[np.int64],
    uniforms: NDArray[np.float32],
) -> int:
    """Bytes of state and output that depend on how the same work was cut up: 0 if exact."""
    rows = tokens.shape[1]
    steps = drawn(uniforms)
    steps["force"] = np.arange(rows)[None, :] % 2 == np.zeros_like(tokens)  # prompts beside draws
    steps["forced"] = tokens
    whole = _chunked(scan, steps, [len(tokens)])
    random = np.random.default_rng(_SEED)
    cuts = list(random.integers(1, 9, size=len(tokens)))
    differences = differing_bytes(whole, _chunked(step, steps, [len(tokens)]))
    differences += differing_bytes(whole, _chunked(scan, steps, cuts))
    for row in range(rows):
        alone = {name: array[:, row : row + 1] for name, array in steps.items()}
        mine = {
            name: array[..., row : row + 1, :] if array.ndim == 3 else array[:, row : row + 1]
            for name, array in whole.items()
        }
        differences += differing_bytes(mine, _chunked(step, alone, cuts))
    return differences


def validation_tokens(manifest: dict[str, Any], folder: Path | None) -> torch.Tensor | None:
    """The validation part of the training corpus, if it is on this machine; found by its hash."""
    data = manifest["provenance"]["data"]
    candidates = itertools.chain([PYTHON_REFERENCE], _files_of_size(folder, data["bytes"]))
    for source in candidates:
        corpus = read_corpus(source)
        if corpus.sha256 == data["sha256"]:
            return corpus.split(data["validation_fraction"])[1]
    return None


def _files_of_size(folder: Path | None, size: int) -> Iterator[str]:
    if folder is not None and folder.is_dir():
        for path, _, names in os.walk(folder):
            for name in sorted(names):
                file = Path(path, name)
                if file.stat().st_size == size:
                    yield str(file)


def _chunked(graph: ServedGraph, steps: Arrays, lengths: list[int]) -> Arrays:
    total, batch = steps["force"].shape
    state, options = graph.initial_state(batch), graph.options(batch)
    parts, start = [], 0
    for length in lengths:
        if start >= total:
            break
        chunk = {name: array[start : start + length] for name, array in steps.items()}
        state, outputs = graph.run(state, chunk, options)
        parts.append(outputs)
        start += length
    outputs = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    return outputs | {name: value[None] for name, value in state.items()}


def _sampling(
    draws: NDArray[np.int64],
    tokens: NDArray[np.int64],
    uniforms: NDArray[np.float32],
    served: NDArray[np.float64],
) -> list[Finding]:
    cumulative = np.exp(served).cumsum(-1)
    border = np.abs(cumulative - uniforms[..., None]).min(-1)
    different = draws != tokens
    ties = int((different & (border <= TIE)).sum())
    unexplained = int(different.sum()) - ties
    return [
        Finding(
            "sampling",
            unexplained,
            0,
            f"of {tokens.size:,} bytes drawn with the same uniforms differ ({ties} more are ties)",
        )
    ]


def _scores(
    model: LanguageModel, scan: ServedGraph, text: torch.Tensor, rows: int
) -> tuple[float, float]:
    tokens = streams(text, rows)
    trained = bits_per_byte(log_softmax(training_logits(model, tokens).numpy()), tokens.numpy())
    columns = []
    for row in range(rows):
        column = tokens[:, row : row + 1].numpy()
        _, outputs = scan.run(scan.initial_state(1), forced(column), scan.options(1))
        columns.append(bits_per_byte(log_softmax(outputs["logits"]), column))
    return trained, float(np.mean(columns))


def _score(text: str, trained: float, served: float) -> Finding:
    return Finding(
        f"score, {text}",
        abs(trained - served),
        MAX_BITS_PER_BYTE_ERROR,
        f"|difference| in bits per byte; {trained:.6f} trained, {served:.6f} served",
    )
