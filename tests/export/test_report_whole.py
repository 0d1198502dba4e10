"""A report as a kind puts it together: what each line is of, and which one turns red when one graph
alone, the model, or what training computes is another.

In the place of graphs stand the steps of PyTorch that they are made of. Structure, bits and
operators are left out: they are tested piece by piece elsewhere.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from contract.golden import Arrays
from contract.manifest import EXACT, Finding, Variant
from export import verify
from export.artifact import read_artifact
from export.golden import Sample
from export.ink import parity as ink_parity
from export.kind import ExportKind
from export.kinds import KINDS
from export.parity import bits, numbers, operators
from export.parity.report import Evidence, Extent, Report
from export.parity.served import follow
from export.text import parity as text_parity
from export.text.golden import options
from export.variant import GraphWriter
from models import mixture
from models.generation import Port, Step
from models.handwriting import HandwritingConfig, HandwritingModel
from models.language import LanguageConfig, LanguageModel
from models.quantized import integer_matrices, settle
from models.reader import ReaderConfig, ReaderModel

_SHIPPED = Path(__file__).parents[2] / "artifacts"
_SMALL = Extent(sampled_steps=0, structure_steps=7, bit_steps=5, timed=False)
_ROWS, _SEGMENT, _STEPS = 3, 5, 8  # of training; and what is sampled of each row
_GREEN = Finding(name="left out", value=0.0, bound=0.0, detail="")
# What is compared with the graph of single steps, and with that of chunks.
_OF_STEPS = {
    "language": {"rounding", "log-probability", "sampling", "score, sampled text"},
    "handwriting": {"rounding", "log-density", "sampling", "score, sampled ink"},
    "reader": {"rounding", "log-probability", "reading", "score, invented ink"},
}
_OF_CHUNKS: dict[str, set[str]] = {
    "language": {"score, validation text"}, "handwriting": {"padding"}, "reader": set()
}  # fmt: skip
_DRAWS = {"sampling", "reading"}


class Steps:
    """A graph that is a step of PyTorch, over and over."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def initial_state(self, batch: int) -> Arrays:
        return self._named(self._step.state_ports, self._step.initial_state(batch))

    @torch.no_grad()
    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        options = [torch.from_numpy(row[port.name]) for port in self._step.row_ports]
        columns = list[Arrays]()
        for t in range(len(steps["force"])):
            given = [torch.from_numpy(steps[port.name][t]) for port in self._step.step_ports]
            results = self._step(*map(torch.from_numpy, state.values()), *given, *options)
            state = self._named(self._step.state_ports, results[: len(state)])
            columns.append(self._named(self._step.output_ports, results[len(state) :]))
        return state, {name: np.stack([c[name] for c in columns]) for name in columns[0]}

    def _named(self, ports: tuple[Port, ...], values: Sequence[Tensor]) -> Arrays:
        return {port.name: value.numpy() for port, value in zip(ports, values, strict=True)}


class Spoilt:
    """A graph that puts out other numbers than it does, emits something else and sees padding."""

    def __init__(self, graph: Steps) -> None:
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


def _invented(evidence: Evidence) -> tuple[Sample, list[str]]:
    """In the place of a validation text, which need not be on this machine."""
    tokens = torch.arange(4 * _ROWS).reshape(4, _ROWS)
    return Sample(tokens, {"uniform": torch.full((4, _ROWS), 0.5)}, options(({},) * _ROWS)), []


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
    monkeypatch.setattr(text_parity, "validation_text", _invented)
    return noted


_MODELS: dict[str, Callable[[], nn.Module]] = {
    "language": lambda: LanguageModel(LanguageConfig(units=4, embedding=4)),
    "handwriting": lambda: HandwritingModel(HandwritingConfig(units=4, mixtures=2, embedding=2)),
    "reader": lambda: ReaderModel(ReaderConfig(units=4)),
}
_EACH = pytest.mark.parametrize("name", list(_MODELS))


def _report(name: str, **spoilt: bool) -> Report:
    """Of a model that has learned nothing, with the graphs that are named spoilt."""
    torch.manual_seed(0)
    kind, model = KINDS[name], _MODELS[name]()
    graph = Steps(kind.step(model, filtered=False))
    graphs = {"scan": graph, "step": graph} | {form: Spoilt(graph) for form in spoilt}
    manifest: Any = SimpleNamespace(provenance={"batch": {"rows": _ROWS, "steps": _SEGMENT}})
    served: Any = SimpleNamespace(**graphs)
    extent = replace(_SMALL, sampled_steps=_STEPS * _ROWS)
    return kind.parity(GraphWriter(kind, model), Evidence(manifest, served, extent, None))


def _red(report: Report) -> set[str]:
    return {finding.name for finding in report.findings if not finding.holds}


@_EACH
@pytest.mark.usefixtures("compared")
def test_each_line_is_of_the_graph_that_it_is_said_to_be_of(name: str) -> None:
    assert _red(_report(name, step=True)) == _OF_STEPS[name]
    # The rounding of so few rows is luck.
    assert _red(_report(name, scan=True)) - {"rounding"} == _OF_CHUNKS[name]


@_EACH
@pytest.mark.parametrize("by", [1, np.nan])
def test_what_any_runner_puts_out_is_compared_to_its_last_step_and_row(
    name: str, by: float
) -> None:
    torch.manual_seed(0)
    kind, model = KINDS[name], _MODELS[name]()
    drawn = kind.sample(model, 4, 2, 1)
    outputs, emitted = follow(Steps(kind.step(model, filtered=False)), drawn)
    (numbers_of,) = outputs.keys() & {"mixture", "logits"}
    outputs[numbers_of][-1, -1, ::2] += by
    red = {f.name for f in kind.compare(model, drawn, outputs, emitted) if not f.holds}
    assert red - _DRAWS == _OF_STEPS[name] - _DRAWS


@_EACH
def test_the_sample_has_the_rows_of_training_and_the_steps_that_were_asked_for(
    name: str, compared: _Compared
) -> None:
    details = {finding.name: finding.detail for finding in _report(name).findings}
    assert f"training, batch {_ROWS}" in details["rounding"]
    assert f" {_ROWS * _STEPS} " in details.get("sampling", details.get("reading"))
    both = f"training at batch {_ROWS}, served at 1"
    if name == "language":  # the rest of the steps is no segment of training
        assert f" {_ROWS * _SEGMENT} bytes, {both}" in details["log-probability"]
        assert f" {_ROWS * _STEPS} bytes" in details["score, sampled text"]
        assert f" {_ROWS * 4} bytes" in details["score, validation text"]
    if name == "handwriting":
        assert f" {_ROWS * _STEPS} points, {both}" in details["log-density"]
        assert f" {_ROWS * _STEPS} row-steps" in details["padding"]
    if name == "reader":
        assert f" {_ROWS * _STEPS} steps, {both}" in details["log-probability"]
    ((writer, sample),) = compared.structures
    assert {tensor.dtype for tensor in writer.model.state_dict().values()} == {torch.float64}
    assert sample.symbols.shape[:2] == (_SMALL.structure_steps, 2)
    ((work, integers),) = compared.bits
    assert work.steps["force"].shape == (_SMALL.bit_steps, bits.LARGEST_BATCH)
    assert not integers


def _bits_a_byte(logits: Tensor, trained: Tensor, drawn: Sample) -> Tensor:
    nats = functional.cross_entropy(logits.flatten(0, 1), drawn.symbols.flatten())
    return nats / math.log(2)


def _nats_a_point(raw: Tensor, trained: Tensor, drawn: Sample) -> Tensor:
    return -mixture.log_density(raw, drawn.symbols.double()).mean()


def _nats_a_step(logits: Tensor, trained: Tensor, read: Sample) -> Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), trained.argmax(-1).flatten())


_SCORES: dict[str, tuple[str, Callable[[Tensor, Tensor, Sample], Tensor], str]] = {
    "language": ("sampled text", _bits_a_byte, "bits per byte"),
    "handwriting": ("sampled ink", _nats_a_point, "nats per point"),
    "reader": ("invented ink", _nats_a_step, "nats per step"),
}


@_EACH
def test_a_score_is_told_of_both_sides_with_its_unit_and_sign(name: str) -> None:
    torch.manual_seed(0)
    kind, model = KINDS[name], _MODELS[name]()
    drawn = kind.sample(model, 4, 2, 1)
    outputs, emitted = follow(Steps(kind.step(model, filtered=False)), drawn)
    (numbers_of,) = outputs.keys() & {"mixture", "logits"}
    trained = torch.from_numpy(outputs[numbers_of].copy()).double()
    outputs[numbers_of] *= 3  # surer than in training
    of, score, unit = _SCORES[name]
    found = {f.name: f for f in kind.compare(model, drawn, outputs, emitted)}[f"score, {of}"]
    sides = [score(numbers, trained, drawn).item() for numbers in (trained, 3 * trained)]
    assert found.value == pytest.approx(abs(sides[0] - sides[1]))
    assert f"in {unit}" in found.detail
    told = re.search(r"; (\S+) trained, (\S+) served$", found.detail)
    assert told is not None
    assert [float(side) for side in told.groups()] == pytest.approx(sides, abs=2e-6)


@pytest.mark.parametrize("name", ["language", "handwriting"])
def test_bits_are_said_to_be_of_integers_where_there_are_some(
    name: str, compared: _Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    for parity in (text_parity, ink_parity):
        monkeypatch.setattr(parity, "integer_matrices", lambda _: {"a matrix": "its integers"})
    _report(name)
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
    monkeypatch: pytest.MonkeyPatch, variant: Variant
) -> None:
    made = _SHIPPED / "shakespeare"
    manifest = read_artifact(made).model_copy(update={"variant": variant})
    writers: list[GraphWriter] = []

    def parity(kind: ExportKind[Any], writer: GraphWriter, evidence: Evidence) -> Report:
        writers.append(writer)
        assert evidence.manifest == manifest
        return Report([], {})

    monkeypatch.setattr(verify, "read_artifact", lambda _: manifest)
    for name in ("load_model", "Served", "replay"):
        monkeypatch.setattr(verify, name, lambda *_: _GREEN)
    monkeypatch.setattr(type(KINDS["language"]), "parity", parity)
    assert verify.verify(made, None).findings == [_GREEN]
    assert [writer.variant for writer in writers] == [variant]
