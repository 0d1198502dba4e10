"""The parity report of an artifact: `python -m export verify ARTIFACT [--full]`.

Training mode is PyTorch with `train()` on, batched as the loss was, every dropout rate 0. Served is
onnxruntime on the CPU at batch 1. Bounds stand beside each check; a broken one fails the report.
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
from export.golden import draw
from export.ink_golden import draw_ink
from export.parity import bits, ink, numbers, operators, quantized
from export.parity.finding import Finding
from export.parity.sampling import sampling
from export.parity.served import ServedGraph
from export.text_data import PYTHON_REFERENCE, read_corpus, streams
from export.variant import variant_of
from models.handwriting import HandwritingModel
from models.language import LanguageModel
from models.quantized import QuantizedLanguageModel

_SEED = 2016


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is compared; the bounds are the same."""

    sampled_bytes: int
    structure_steps: int
    bit_steps: int
    timed: bool  # timings need a quiet machine, so a build does not hang on them


QUICK = Extent(sampled_bytes=3_200, structure_steps=1_000, bit_steps=24, timed=False)
FULL = Extent(sampled_bytes=100_000, structure_steps=1_000, bit_steps=480, timed=True)


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, and the largest error at each step for the plot."""

    findings: list[Finding]
    error_curves: dict[str, NDArray[np.float64]]

    @property
    def holds(self) -> bool:
        return all(f.holds for f in self.findings)


class Served:
    """The graphs of an artifact on the CPU provider."""

    def __init__(self, artifact: Path, manifest: dict[str, Any]) -> None:
        self._artifact, self._manifest = artifact, manifest
        self.variants = list(manifest["graphs"]["scan"])
        self.scan = self.graph("scan", "plain")
        self.step = self.graph("step", "plain")

    def graph(self, runner: str, variant: str, **options: Any) -> ServedGraph:
        """One graph, with session options if any."""
        path = self._artifact / self._manifest["graphs"][runner][variant]
        return ServedGraph(path, self._manifest, scan=runner == "scan", **options)


def verify(artifact: Path, data_folder: Path | None, extent: Extent = QUICK) -> Report:
    """Compare what training computes with what onnxruntime serves, for one artifact."""
    manifest = convert.read_manifest(artifact)
    model = convert.load_model(artifact, manifest)
    served = Served(artifact, manifest)
    rows = manifest["provenance"]["batch"]["rows"]
    if isinstance(model, HandwritingModel):
        return verify_ink(model, manifest, served, extent)
    if variant_of(manifest).quantized:
        return verify_quantized(model, manifest, served, extent, data_folder)
    sample = draw(model, -(-extent.sampled_bytes // rows), rows, _SEED)
    tokens, uniforms = sample.tokens.numpy(), sample.uniforms.numpy()
    logits, draws = numbers.serve_one_by_one(served.step, tokens, uniforms)
    # The error of a trained model does not grow with the steps: a training segment shows it.
    part = slice(manifest["provenance"]["batch"]["steps"])
    rounding, curves = numbers.rounding(model, tokens[part], logits[part])
    findings = [
        numbers.structure(model, manifest, extent.structure_steps, _SEED),
        *rounding,
        sampling(draws, tokens, uniforms, logits),
        numbers.score("sampled text", model, served.scan, sample.tokens.T.flatten(), rows),
    ]
    text = validation_tokens(manifest, data_folder)
    if text is not None:
        findings.append(numbers.score("validation text", model, served.scan, text, rows))
    findings += text_bits(model, served, extent)
    return Report(findings, curves)


def verify_quantized(
    model: LanguageModel,
    manifest: dict[str, Any],
    served: Served,
    extent: Extent,
    data_folder: Path | None,
) -> Report:
    """8-bit products against the same in PyTorch, what they cost in bits per byte, and the bits."""
    rows = manifest["provenance"]["batch"]["rows"]
    sample = draw(model, -(-extent.sampled_bytes // rows), rows, _SEED)
    part = sample.tokens[: manifest["provenance"]["batch"]["steps"]]
    rounded = QuantizedLanguageModel(model, folded=variant_of(manifest).folded)
    findings, curves = quantized.emulation(model, rounded, served.scan, part)
    findings.append(quantized.loss("sampled text", model, served.scan, sample.tokens))
    text = validation_tokens(manifest, data_folder)
    if text is not None:
        findings.append(quantized.loss("validation text", model, served.scan, streams(text, rows)))
    return Report([*findings, *text_bits(model, served, extent, integers=True)], curves)


def text_bits(
    model: LanguageModel, served: Served, extent: Extent, *, integers: bool = False
) -> list[Finding]:
    """The bits of mixed work on text, and those of single operators."""
    sample = draw(model, extent.bit_steps, bits.LARGEST_BATCH, _SEED + 1)
    work = bits.make_work(sample.tokens.numpy(), sample.uniforms.numpy(), _SEED)
    return [*compare_bits(served, work, extent, integers=integers), *operators.operators()[0]]


def verify_ink(
    model: HandwritingModel, manifest: dict[str, Any], served: Served, extent: Extent
) -> Report:
    """The same comparisons for ink: mixtures for logits, drawn points for drawn bytes."""
    rows = manifest["provenance"]["batch"]["rows"]
    sample = draw_ink(model, -(-extent.sampled_bytes // rows), rows, _SEED)
    outputs = ink.serve_one_by_one(served.scan, sample)
    rounding, curves = ink.rounding(model, sample, outputs)
    bit_sample = draw_ink(model, extent.bit_steps, bits.LARGEST_BATCH, _SEED + 1)
    findings = [
        ink.structure(model, manifest, extent.structure_steps, _SEED),
        *rounding,
        ink.sampling(sample, outputs),
        ink.score(model, sample, outputs),
        ink.padding(served.scan, sample),
        *compare_bits(served, ink.make_work(bit_sample, _SEED), extent),
        *operators.operators()[0],
    ]
    return Report(findings, curves)


def compare_bits(
    served: Served, work: bits.Work, extent: Extent, *, integers: bool = False
) -> list[Finding]:
    """The same rows on every graph, every thread count and every kind of batch; `integers` says
    that all matrix products are of such."""
    most = "filtered" if "filtered" in served.variants else "plain"
    filtered = served.graph("scan", most)
    others = [served.graph("step", variant) for variant in served.variants]
    others += [
        served.graph("scan", "plain", threads=n) for n in range(1, (os.cpu_count() or 1) + 1)
    ]
    comparison = bits.compare_everything(filtered, others, work, _SEED)
    unpacked = served.graph("scan", most, prepacking=False)
    findings = [bits.bits(comparison)]
    if not integers:  # their sums have no order to lose, with prepacking or without
        findings.append(bits.control(unpacked, work))
    return [*findings, bits.cost(filtered, unpacked, work)] if extent.timed else findings


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
