"""A report as a kind puts it together: what each line is of, and which one turns red when one graph
alone, the model, or what training computes is another.

Traced graphs, bits and operators are left out: they are tested piece by piece elsewhere.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contract.golden import Arrays
from contract.manifest import EXACT, Finding, Manifest, Variant
from export import verify
from export.artifact import load_model, read_artifact
from export.ink import parity as ink_parity
from export.kind import ExportKind
from export.kinds import KINDS
from export.parity import bits, numbers, operators
from export.parity.report import Evidence, Extent, Report, Served
from export.parity.served import ServedGraph, follow
from export.reader import parity as reader_parity
from export.text import parity as text_parity
from export.variant import GraphWriter
from models.language import LanguageConfig, LanguageModel
from models.quantized import integer_matrices, settle

_SMALL = Extent(sampled_steps=0, structure_steps=7, bit_steps=5, timed=False)
_ROWS, _SEGMENT, _STEPS = 3, 5, 8  # of training; and what is sampled of each row
_PARITY = {"language": text_parity, "handwriting": ink_parity, "reader": reader_parity}
_GREEN = Finding(name="left out", value=0.0, bound=0.0, detail="")
# What is compared with the graph of single steps, and with that of chunks.
_OF_STEPS = {
    "language": {"rounding", "log-probability", "sampling", "score, sampled text"},
    "handwriting": {"rounding", "log-density", "sampling", "score, sampled ink"},
    "reader": {"rounding", "log-probability", "reading", "score, invented ink"},
}
_OF_CHUNKS = {"language": {"score, validation text"}, "handwriting": {"padding"}}


class Spoilt:
    """A graph that puts out other numbers than it does, emits something else and sees padding."""

    def __init__(self, graph: ServedGraph) -> None:
        self._graph = graph
        self.initial_state = graph.initial_state

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        after, outputs = self._graph.run(state, steps, row)
        emitted = next(iter(after))
        after |= {emitted: after[emitted] + np.ones(1, after[emitted].dtype)}
        off = np.ones(1, np.float32)
        if "text" in row:
            off = 1 + row["text"].sum(-1)[:, None].astype(np.float32) / 1000
        name = "mixture" if "mixture" in outputs else "logits"
        wrong = np.zeros_like(outputs[name])
        wrong[..., ::2] = off
        return after, outputs | {name: outputs[name] + wrong}


@dataclass
class _Compared:
    """What the comparisons of a report were given, in their order."""

    structures: list[tuple[GraphWriter, Any]]
    bits: list[tuple[bits.Work, bool]]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> _Compared:
    """All that takes long is left out, and noted."""
    noted = _Compared([], [])

    def structure(writer: GraphWriter, sample: Any, *_: object) -> Finding:
        noted.structures.append((writer, sample))
        return _GREEN

    def findings(_: object, work: bits.Work, *__: object, integers: bool = False) -> list[Finding]:
        noted.bits.append((work, integers))
        return []

    monkeypatch.setattr(numbers, "structure", structure)
    monkeypatch.setattr(bits, "findings", findings)
    monkeypatch.setattr(bits, "LARGEST_BATCH", 4)
    monkeypatch.setattr(operators, "operators", list)
    monkeypatch.setattr(text_parity, "_MOST_BYTES", 160)
    return noted


@pytest.fixture(scope="module", params=list(_PARITY))
def artifact(request: pytest.FixtureRequest, made_once: Callable[..., Path], run: Path) -> Path:
    made = {"language": ("tiny", run), "handwriting": ("scrawl",), "reader": ("squint",)}
    return made_once(*made[request.param])


@pytest.fixture
def manifest(artifact: Path) -> Manifest:
    return read_artifact(artifact)


def _report(
    artifact: Path, data: Path, change: Callable[[Served], None] = lambda served: None
) -> Report:
    manifest = read_artifact(artifact)
    batch = {"batch": {"rows": _ROWS, "steps": _SEGMENT}}
    manifest = manifest.model_copy(update={"provenance": manifest.provenance | batch})
    served = Served(artifact, manifest)
    change(served)
    extent = replace(_SMALL, sampled_steps=_STEPS * _ROWS)
    kind = KINDS[manifest.kind]
    writer = GraphWriter(kind, load_model(artifact, manifest))
    return kind.parity(writer, Evidence(manifest, served, extent, data))


def _red(report: Report) -> set[str]:
    return {finding.name for finding in report.findings if not finding.holds}


@pytest.mark.usefixtures("compared")
def test_each_line_is_of_the_graph_that_it_is_said_to_be_of(
    artifact: Path, manifest: Manifest, corpus: Path
) -> None:
    def steps(served: Served) -> None:
        served.step = Spoilt(served.graph("step", "plain"))  # type: ignore[assignment]

    def chunks(served: Served) -> None:
        served.scan = Spoilt(served.graph("scan", "plain"))  # type: ignore[assignment]

    assert _red(_report(artifact, corpus, steps)) == _OF_STEPS[manifest.kind]
    if others := _OF_CHUNKS.get(manifest.kind):  # the rounding of so few rows is luck
        assert _red(_report(artifact, corpus, chunks)) - {"rounding"} == others


@pytest.mark.parametrize("by", [1, np.nan])
def test_what_any_runner_puts_out_is_compared_to_its_last_step_and_row(
    artifact: Path, manifest: Manifest, by: float
) -> None:
    kind, model = KINDS[manifest.kind], load_model(artifact, manifest)
    drawn = kind.sample(model, 4, 2, 1)
    outputs, emitted = follow(Served(artifact, manifest).step, drawn)
    name = "mixture" if "mixture" in outputs else "logits"
    outputs[name][-1, -1, ::2] += by
    red = {
        finding.name
        for finding in kind.compare(model, drawn, outputs, emitted)
        if not finding.holds
    }
    assert red - {"sampling", "reading"} == _OF_STEPS[manifest.kind] - {"sampling", "reading"}


def test_the_sample_has_the_rows_of_training_and_the_steps_that_were_asked_for(
    artifact: Path, manifest: Manifest, corpus: Path, compared: _Compared
) -> None:
    report = _report(artifact, corpus)
    details = {finding.name: finding.detail for finding in report.findings}
    assert f"training, batch {_ROWS}" in details["rounding"]
    assert f" {_ROWS * _STEPS} " in details.get("sampling", details.get("reading"))
    if manifest.kind == "language":  # the rest of the steps is no segment of training
        assert f" {_ROWS * _SEGMENT} bytes" in details["log-probability"]
    ((writer, sample),) = compared.structures
    assert {tensor.dtype for tensor in writer.model.state_dict().values()} == {torch.float64}
    assert sample.symbols.shape[:2] == (_SMALL.structure_steps, 2)
    ((work, integers),) = compared.bits
    assert work.steps["force"].shape == (_SMALL.bit_steps, bits.LARGEST_BATCH)
    assert not integers


@pytest.mark.parametrize("kind", ["language", "handwriting"])
def test_bits_are_said_to_be_of_integers_where_there_are_some(
    made_once: Callable[..., Path], run: Path, corpus: Path, kind: str, compared: _Compared,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(_PARITY[kind], "integer_matrices", lambda _: {"a matrix": "its integers"})
    _report(made_once(*(("tiny", run) if kind == "language" else ("scrawl",))), corpus)
    assert [integers for _, integers in compared.bits] == [True]


def test_what_is_compared_without_rounding_is_the_variant_and_precision_that_is_served() -> None:
    torch.manual_seed(0)
    model = settle(LanguageModel(LanguageConfig(units=4, embedding=4, precision="int8")))
    writer = GraphWriter(KINDS["language"], model, Variant(folded=True))
    wide = writer.wide()
    assert wide.variant == writer.variant
    assert integer_matrices(wide.model) == integer_matrices(model)
    floats = [t for t in wide.model.state_dict().values() if t.is_floating_point()]
    assert {tensor.dtype for tensor in floats} == {torch.float64}
    assert {tensor.dtype for tensor in model.state_dict().values()} == {torch.float32, torch.int8}


@pytest.mark.parametrize("variant", [EXACT, Variant(folded=True)])
def test_a_report_is_of_the_variant_of_the_artifact(
    made_once: Callable[..., Path], run: Path, monkeypatch: pytest.MonkeyPatch, variant: Variant
) -> None:
    made = made_once("tiny", run)
    manifest = read_artifact(made).model_copy(update={"variant": variant})
    writers: list[GraphWriter] = []

    def parity(kind: ExportKind[Any], writer: GraphWriter, evidence: Evidence) -> Report:
        writers.append(writer)
        assert evidence.manifest == manifest
        return Report([], {})

    monkeypatch.setattr(verify, "read_artifact", lambda _: manifest)
    monkeypatch.setattr(verify, "replay", lambda *_: _GREEN)
    monkeypatch.setattr(type(KINDS["language"]), "parity", parity)
    assert verify.verify(made, None).findings == [_GREEN]
    assert [writer.variant for writer in writers] == [variant]
