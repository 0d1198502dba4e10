"""The power of what export compares, piece by piece: each is given something wrong to find.

Graphs are stood in for by small classes; of artifacts the shipped ones alone are read.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from contract.golden import Arrays, Golden
from contract.logits import log_probabilities
from contract.manifest import Finding
from contract.text import FILTERS, NEUTRAL
from export.artifact import read_artifact
from export.golden import MARGIN, Sample
from export.graph import ROW_INDEPENDENT
from export.ink import parity as ink_parity
from export.parity import bits, numbers, operators
from export.parity.report import QUICK, Report, Served
from export.text.golden import golden as text_golden
from export.text.numbers import sampling, score
from models.language import LanguageConfig, LanguageModel
from tests.export.sampler import draw

_SHIPPED = Path(__file__).parents[2] / "artifacts"
_ROWS, _STEPS = bits.LARGEST_BATCH, 6


class FakeGraph:
    """Adds up what every row reads; `wrong` says what comes out instead, by place and batch."""

    row_names = ("bias", "top_k")
    single = False

    def __init__(self, wrong: Any = None, *, takes: Any = None) -> None:
        self._wrong, self._takes = wrong, takes

    def initial_state(self, batch: int) -> Arrays:
        return {"emitted": np.zeros(batch, np.int64), "sum": np.zeros(batch, np.int64)}

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        if self._takes is not None:
            self._takes(len(row["bias"]))
        sums = state["sum"] + steps["forced"].cumsum(0)
        wrong = 0 if self._wrong is None else self._wrong(steps["forced"], row["bias"])
        emitted = np.where(steps["force"][-1], steps["forced"][-1], 0)
        return {"emitted": emitted, "sum": sums[-1]}, {"next": sums + row["bias"] + wrong}


class PlainGraph(FakeGraph):
    """One without the options that leave symbols out."""

    row_names = ("bias",)


def _work() -> bits.Work:
    random = np.random.default_rng(2)
    return bits.Work(
        {
            "forced": random.integers(1, 99, (_STEPS, _ROWS)),
            "force": np.ones((_STEPS, _ROWS), bool),
        },
        {"bias": np.arange(_ROWS) * 1000},
        np.arange(_ROWS) % 3 == 2,
    )


def _of_row(row: int) -> Any:
    return lambda forced, bias: (bias == 1000 * row).astype(np.int64)


def _away(forced: Any, bias: Any) -> Any:
    """Row 33 where it does not stand beside row 32."""
    return (bias == 33_000) & ~np.isin(np.roll(bias, 1), (32_000, 33_000))


def test_graphs_that_agree_differ_in_nothing() -> None:
    comparison = bits.compare_everything(FakeGraph(), [FakeGraph(), PlainGraph()], _work(), 1)  # type: ignore[arg-type, list-item]
    assert bits.bits(comparison).holds
    assert comparison.row_steps > 10_000


@pytest.mark.parametrize("row", [0, 1, 20, 33, _ROWS - 1])
def test_one_row_that_differs_on_one_graph_is_found_wherever_it_is(row: int) -> None:
    work, wrong = _work(), FakeGraph(_of_row(row))
    comparison = bits.BitComparison(FakeGraph(), work)  # type: ignore[arg-type]
    comparison.compare(wrong, range(_ROWS), [_STEPS])  # type: ignore[arg-type]
    found = comparison.differing
    assert found > 0
    assert comparison.row_steps == _ROWS * _STEPS
    comparison.compare(FakeGraph(), range(_ROWS), [_STEPS])  # type: ignore[arg-type]
    assert comparison.differing == found  # nothing that agrees takes it back
    assert not bits.bits(comparison).holds


@pytest.mark.parametrize(
    "wrong",
    [
        lambda forced, bias: int(len(bias) > 1),  # alone, a row is another
        lambda forced, bias: int(len(bias) == _ROWS),
        lambda forced, bias: (np.arange(len(bias)) == 24).astype(int),  # one place in the batch
        lambda forced, bias: int(len(forced) == 1),  # chunks of one step
        _away,
    ],
    ids=["in company", "in the largest batch", "at a place", "in a short chunk", "beside others"],
)
def test_a_row_that_depends_on_anything_else_is_found(wrong: Any) -> None:
    comparison = bits.compare_everything(FakeGraph(wrong), [], _work(), 1)  # type: ignore[arg-type]
    assert not bits.bits(comparison).holds


@pytest.mark.parametrize("size", [2, 3, 40, 64])
def test_a_batch_of_any_size_is_compared(size: int) -> None:
    wrong = FakeGraph(lambda forced, bias: int(len(bias) == size))
    assert bits.compare_everything(wrong, [], _work(), 1).differing  # type: ignore[arg-type]


def test_a_row_is_compared_at_many_places_of_the_largest_batch() -> None:
    def wrong(forced: Any, bias: Any) -> Any:
        return (bias == 0) & (np.arange(len(bias)) == 40) & (len(bias) == _ROWS)

    assert bits.compare_everything(FakeGraph(wrong), [], _work(), 1).differing  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("other", "found"),
    [
        *((FakeGraph(lambda f, b, n=n: int(len(b) == n)), True) for n in (1, 2, 3, 7, 16, _ROWS)),
        (FakeGraph(lambda forced, bias: int(len(forced) == 1)), True),
        (FakeGraph(lambda forced, bias: int(1 < len(forced) < _STEPS)), True),
        (FakeGraph(_of_row(2)), True),
        (FakeGraph(_away), True),
        (PlainGraph(_of_row(0)), True),
        (PlainGraph(_of_row(2)), False),  # a row with options that it has not
    ],
)  # fmt: skip
def test_every_other_graph_is_compared_with_all_that_it_can_serve(
    other: FakeGraph, found: bool
) -> None:
    comparison = bits.compare_everything(FakeGraph(), [other], _work(), 1)  # type: ignore[arg-type, list-item]
    assert (comparison.differing > 0) is found


def test_the_state_in_which_a_row_ends_is_compared_too() -> None:
    class Forgetful(FakeGraph):
        def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
            after, outputs = super().run(state, steps, row)
            return after | {"sum": after["sum"] + (len(row["bias"]) > 1)}, outputs

    comparison = bits.BitComparison(FakeGraph(), _work())  # type: ignore[arg-type]
    comparison.compare(Forgetful(), range(_ROWS), [_STEPS])  # type: ignore[arg-type]
    assert comparison.differing


def test_steps_are_run_in_chunks_of_the_lengths_that_are_told_over_and_over() -> None:
    chunks = list[int]()

    class Noted(FakeGraph):
        def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
            chunks.append(len(steps["force"]))
            return super().run(state, steps, row)

    bits.run(Noted(), _work(), [1, 2])  # type: ignore[arg-type]
    assert chunks == [1, 2, 1, 2]


def test_some_of_the_rows_keep_what_they_ask_for() -> None:
    part = _work().of([4, 2, 5])
    assert part.filtered.tolist() == [False, True, True]
    assert part.options["bias"].tolist() == [4000, 2000, 5000]


@pytest.mark.parametrize(
    ("alone", "many", "holds"), [(1.0, 1.0, True), (1.1, 1.0, False), (1.0, 1.1, False)]
)
def test_the_cost_of_keeping_the_bits_is_the_worse_of_two_batches(
    monkeypatch: pytest.MonkeyPatch, alone: float, many: float, holds: bool
) -> None:
    now = [0.0]
    runs = Counter[int]()

    def kept(rows: int) -> None:  # very slow to begin with, then quick once and slow seven times
        odd = {0: 1000, 1: -1}.get(runs[rows], runs[rows] in range(2, 9))
        now[0] += 2 * (alone if rows == 1 else many) + odd
        runs[rows] += 1

    def free(rows: int) -> None:
        now[0] += 2

    monkeypatch.setattr(bits, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    found = bits.cost(FakeGraph(takes=kept), FakeGraph(takes=free), _work())  # type: ignore[arg-type]
    assert (found.value, found.holds) == (pytest.approx(max(alone, many)), holds)
    assert found.detail.endswith(f"batch 1: {alone:.2f}, 16: {many:.2f}")


@pytest.mark.parametrize("timed", [False, True])
def test_what_keeping_the_bits_costs_is_told_where_it_is_timed(
    monkeypatch: pytest.MonkeyPatch, timed: bool
) -> None:
    now = [0.0]

    class Graphs:
        variants = ("plain", "filtered")

        def graph(self, runner: str, options: str, *, prepacking: bool = True, **_: Any) -> Any:
            wrong = None if prepacking else lambda forced, bias: len(bias)
            return FakeGraph(wrong, takes=lambda _: now.append(now[-1] + 2 + prepacking))

    monkeypatch.setattr(bits, "time", SimpleNamespace(perf_counter=lambda: now[-1]))
    monkeypatch.setattr(bits, "os", SimpleNamespace(cpu_count=lambda: 1))
    found = bits.findings(Graphs(), _work(), replace(QUICK, timed=timed), 1)  # type: ignore[arg-type]
    names = ["forcing", "bits", "bits, control", *["bits, cost"] * timed]
    assert [f.name for f in found] == names
    assert all(f.holds for f in found[:3])
    assert [f.value for f in found[3:]] == [1.5] * timed


class _Asked:
    """An artifact's graphs by what they are, in the order they are asked for."""

    def __init__(self, variants: list[str]) -> None:
        self.variants = variants
        self.graphs: list[tuple[str, str, Any]] = []

    def graph(self, runner: str, options: str, **settings: Any) -> tuple[str, str, Any]:
        self.graphs.append((runner, options, settings.get("threads")))
        return self.graphs[-1]


def test_the_bits_of_every_graph_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []

    def everything(alone: Any, others: list[Any], work: Any, seed: int) -> Any:
        compared.extend([alone, *others])
        return bits.BitComparison(FakeGraph(), _work())  # type: ignore[arg-type]

    monkeypatch.setattr(bits, "compare_everything", everything)
    green = Finding(name="control", value=0, bound=0, detail="")
    for other in ("control", "forcing"):
        monkeypatch.setattr(bits, other, lambda *_, **__: green)
    bits.findings(_Asked(["plain", "filtered"]), _work(), QUICK, 1)  # type: ignore[arg-type]
    assert compared[0][:2] == ("scan", "filtered")
    assert {(runner, options) for runner, options, _ in compared} == {
        ("scan", "filtered"), ("step", "plain"), ("step", "filtered"), ("scan", "plain"),
    }  # fmt: skip
    assert {threads for runner, _, threads in compared if runner == "scan"} >= {None, 1}


def test_a_report_knows_of_every_graph_of_an_artifact() -> None:
    class Named(Served):
        def graph(self, runner: str, options: str, **settings: Any) -> Any:
            return runner, options

    folder = _SHIPPED / "shakespeare"
    served: Any = Named(folder, read_artifact(folder))
    assert served.variants == ["plain", "filtered"]
    assert (served.scan, served.step) == (("scan", "plain"), ("step", "plain"))


def test_one_red_finding_turns_a_report_red() -> None:
    green, red = (Finding(name="f", value=v, bound=1.0, detail="") for v in (0.5, 1.5))
    assert Report([green, green], {}).holds
    assert not Report([green, red, green], {}).holds


def _logits(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 2, (9, 4, 256)).astype(np.float32)


@pytest.mark.parametrize("by", [1e-3, -1e-3])
def test_a_score_that_is_better_or_worse_breaks_its_bound(by: float) -> None:
    tokens = np.random.default_rng(1).integers(0, 256, (9, 4))
    served = _logits().astype(np.float64)
    np.put_along_axis(
        served, tokens[..., None], np.take_along_axis(served, tokens[..., None], -1) + by, -1
    )
    assert score("it", tokens, _logits(), _logits()).holds
    assert not score("it", tokens, _logits(), served).holds


def _sample(symbols: np.ndarray, uniforms: np.ndarray) -> Sample:
    noise = {"uniform": torch.from_numpy(uniforms.astype(np.float32))}
    return Sample(torch.from_numpy(symbols), noise, {})


def test_a_byte_drawn_differently_is_a_tie_at_a_border_alone() -> None:
    probabilities = np.exp(log_probabilities(_logits()))[5, 2]
    byte = int(probabilities.argmax())
    symbols = np.full((9, 4), byte)
    draws = symbols.copy()
    draws[5, 2] -= 1
    for part, expected in ((0.0, 0), (0.5, 1)):
        uniforms = np.full((9, 4), 0.5)
        uniforms[5, 2] = probabilities[:byte].sum() + part * probabilities[byte]
        assert sampling(_sample(symbols, uniforms), _logits(), draws).value == expected


@pytest.mark.parametrize(("uniform", "wrong"), [(None, 201), (1 - 2e-7, 0)])
def test_a_byte_from_elsewhere_is_no_tie_however_near_a_border(
    uniform: float | None, wrong: int
) -> None:
    """Nor at the end of the last byte, where a sampler that finds none may take the first."""
    probabilities = np.exp(log_probabilities(_logits()))[5, 2]
    if uniform is None:
        uniform = float(probabilities[:100].sum())
    byte = int(np.searchsorted(probabilities.cumsum(), uniform))
    symbols = np.full((9, 4), byte)
    draws = symbols.copy()
    draws[5, 2] = wrong
    found = sampling(_sample(symbols, np.full((9, 4), uniform)), _logits(), draws)
    assert (found.value, found.holds) == (1, False)


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (2.0, False), (8.0, False)])
def test_served_rounding_beyond_trainings_own_breaks_its_bound(factor: float, holds: bool) -> None:
    random = np.random.default_rng(0)
    truth = torch.from_numpy(random.normal(size=(20, 3, 7)))
    error = torch.from_numpy(random.normal(size=truth.shape)) * 1e-6

    def trained(model: nn.Module, of: Sample) -> Tensor:
        wide = next(model.parameters()).dtype == torch.float64
        if wide:
            return truth
        rows = of.symbols[0].tolist()
        # A worse one beside it: the better is what counts.
        return (truth + error * (1 if len(rows) == 3 else 30))[:, rows]

    sample = _sample(np.tile(np.arange(3), (20, 1)), np.full((20, 3), 0.5))
    served = (truth + factor * error.flip(0)).numpy()
    finding, _, curves = numbers.rounding(nn.Linear(1, 1), sample, served, trained)
    assert finding.holds is holds
    assert finding.value == pytest.approx(factor, rel=0.1)
    assert len(curves) == 3


def test_no_operator_known_to_depend_on_the_batch_is_allowed() -> None:
    assert not ROW_INDEPENDENT & set(operators.EXCLUDED)


class _Window:
    """A graph that sees every symbol of its text, or those up to the end alone."""

    def __init__(self, *, padding: bool) -> None:
        self._padding = padding

    def initial_state(self, batch: int) -> Arrays:
        return {"point": np.zeros((batch, 3), np.float32)}

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        seen = np.arange(row["text"].shape[1]) <= row["length"][:, None]
        text = row["text"] if self._padding else np.where(seen, row["text"], 0)
        return state, {"mixture": np.tile(text.sum(1), (len(steps["force"]), 1))}


@pytest.mark.parametrize("padding", [True, False])
def test_a_graph_that_sees_the_padding_is_found(padding: bool) -> None:
    text = torch.zeros(2, 12, dtype=torch.int64)
    text[0, :4], text[1, :7] = 5, 9
    drawn = Sample(
        torch.zeros(3, 2, 3),
        {"uniform": torch.full((3, 2), 0.5)},
        {"text": text, "length": torch.tensor([4, 7])},
    )
    assert ink_parity.padding(_Window(padding=padding), drawn).holds is not padding


@pytest.fixture(scope="module")
def golden() -> Golden:
    torch.manual_seed(4)
    model = LanguageModel(LanguageConfig(units=16, embedding=4))
    return text_golden(model, {"batch": {"rows": 8, "steps": 24}})


def test_golden_vectors_allow_little_more_than_trainings_own_error(golden: Golden) -> None:
    assert 2 * golden.training_error < golden.bounds["logits"] < 10 * golden.training_error


def test_golden_rows_with_any_filter_say_so(golden: Golden) -> None:
    for row in golden.all_rows:
        given = golden.row_inputs(row)
        asked = any(given[n] != np.float32(NEUTRAL[n]) for n in FILTERS)
        assert golden.filtered[row] == asked


def test_golden_draws_are_clear_of_borders_on_both_sides(golden: Golden) -> None:
    for row in golden.plain_rows:
        given = golden.row_inputs(row)
        temperature = 1 / float(given["inverse_temperature"])
        for t, byte in enumerate(golden.exact["next"][:, row]):
            for by in (-0.9 * MARGIN, 0.9 * MARGIN):
                uniform = float(np.clip(golden.steps["uniform"][t, row] + by, 1e-7, 1 - 1e-7))
                logits = golden.truth["logits"][t, row]
                assert draw(logits, uniform, temperature, given["logit_bias"]) == byte
