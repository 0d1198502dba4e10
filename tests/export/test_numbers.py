"""Numbers beside those of training: one that is off is not lost among very many."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from contract.golden import Arrays
from export.artifact import read_artifact
from export.golden import Sample
from export.parity import bits, numbers
from export.parity.report import QUICK, Evidence, Served
from export.parity.served import differing_bytes, follow, session_options
from export.text.golden import sample, training_logits
from export.text.numbers import bits_per_byte, log_probability, score
from export.text.parity import compare, make_work
from models.language import LanguageConfig, LanguageModel

_SHIPPED = Path(__file__).parents[2] / "artifacts" / "shakespeare"


def test_one_large_error_counts_for_more_than_many_small_ones() -> None:
    """And the curve of a step is its largest error."""
    truth = np.zeros((20, 2, 7))
    small = np.full(truth.shape, 1e-6)
    served = small.copy()
    served[3, 1, 5] = 1e-4

    def trained(model: nn.Module, of: Sample) -> Tensor:
        wide = next(model.parameters()).dtype == torch.float64
        return torch.from_numpy(truth if wide else small)[:, of.symbols[0]]

    symbols = torch.arange(2).repeat(20, 1)
    of = Sample(symbols, {}, {})
    finding, together, curves = numbers.rounding(nn.Linear(1, 1), of, served, trained)
    assert finding.value == pytest.approx(np.sqrt((served**2).mean()) / 1e-6)
    assert not finding.holds
    assert np.array_equal(together, small)
    assert curves["served, batch 1"][3] == 1e-4
    assert curves["training, batch 2"][3] == 1e-6
    told = "0.0001 served, batch 1, 1e-06 training, batch 2, 1e-06 training, batch 1"
    assert finding.detail.endswith(f"max errors {told}")


@pytest.mark.parametrize("better", [1, 2])
def test_rounding_is_compared_with_the_better_of_training_alone_and_in_a_batch(
    better: int,
) -> None:
    def trained(model: nn.Module, of: Sample) -> Tensor:
        wide = next(model.parameters()).dtype == torch.float64
        error = 1e-6 if of.symbols.shape[1] == better else 1e-5
        truth = of.symbols[..., None].expand(-1, -1, 7)  # each row has its own
        return truth if wide else truth + error

    of = Sample(torch.arange(2.0, dtype=torch.float64).repeat(20, 1), {}, {})
    served = trained(nn.Linear(1, 1).double(), of).numpy() + 2e-6
    finding, _, curves = numbers.rounding(nn.Linear(1, 1), of, served, trained)
    assert finding.value == pytest.approx(2)
    assert not finding.holds
    assert curves[f"training, batch {better}"] == pytest.approx(1e-6)


@pytest.mark.parametrize(("off", "holds"), [(0.0, True), (1e-7, False)])
def test_beside_training_without_any_rounding_what_is_served_may_have_none(
    off: float, holds: bool
) -> None:
    """As of a network that gives nothing but its bias, whatever it reads."""
    model = LanguageModel(LanguageConfig(cell="rnn", units=1, embedding=2))
    of = sample(model, 6, 2, 1)
    served = training_logits(model, of).numpy() + np.float32(off)
    finding, _, _ = numbers.rounding(model, of, served, training_logits)
    assert finding.holds is holds, finding


def _logits() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 2, (9, 4, 256)).astype(np.float32)


@pytest.mark.parametrize(("by", "holds"), [(5e-5, True), (-5e-5, True), (2e-4, False)])
def test_a_log_probability_may_be_off_by_a_ten_thousandth(by: float, holds: bool) -> None:
    served = _logits().astype(np.float64)
    served[7, 3, 201] += by
    assert log_probability(_logits(), served).holds is holds


def test_a_score_is_in_bits_and_may_be_off_by_a_millionth_of_one() -> None:
    tokens = np.random.default_rng(1).integers(0, 256, (9, 4))
    assert bits_per_byte(np.zeros((9, 4, 256)), tokens) == pytest.approx(8)
    served = _logits().astype(np.float64)
    chosen = np.take_along_axis(served, tokens[..., None], -1)
    for by, holds in ((2e-7, True), (1e-5, False)):
        np.put_along_axis(served, tokens[..., None], chosen + by, -1)
        assert score("it", tokens, _logits(), served).holds is holds


def test_the_last_step_of_a_training_segment_is_compared_as_the_first() -> None:
    torch.manual_seed(0)
    model = LanguageModel(LanguageConfig(cell="rnn", units=6, embedding=3))
    drawn = sample(model, 12, 2, seed=1)
    logits, draws = training_logits(model, drawn).numpy(), drawn.symbols.numpy()
    for step, off in ((0, True), (7, True), (8, False)):
        served = logits.copy()
        served[step, 1, 9] += 1e-2
        held = {f.name: f.holds for f in compare(model, drawn, served, draws, 8)[0]}
        assert held["log-probability"] is not off
        assert not held["score, sampled text"]


def test_bytes_are_compared_not_what_they_mean() -> None:
    one = {"a": np.zeros(3, np.float32), "b": np.full(2, np.nan, np.float32)}
    assert differing_bytes(one, {n: a.copy() for n, a in one.items()}) == 0
    assert differing_bytes(one, one | {"a": -one["a"]}) == 3
    assert differing_bytes(one, one | {"b": np.zeros(2, np.float32)}) == 4


class Crowded:
    """A graph that adds one to what it puts out for a row that is not alone."""

    single = False

    def initial_state(self, batch: int) -> Arrays:
        return {}

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        shape = steps["force"].shape
        return {}, {"y": np.full(shape, shape[1] > 1, np.float32)}


def test_the_control_tells_how_many_bytes_differ_over_how_much_work() -> None:
    steps, rows = 5, bits.LARGEST_BATCH
    work = bits.Work({"force": np.ones((steps, rows), bool)}, {}, np.zeros(rows, bool))
    found = bits.control(Crowded(), work)  # type: ignore[arg-type]
    row_steps = steps * (2 + 9 + rows)  # and of each the two bytes in which 1 is not 0
    assert f" {2 * row_steps} bytes differ over {row_steps} row-steps" in found.detail
    assert found.holds


class Recording:
    """A graph that puts out what it is given and draws byte 7."""

    def initial_state(self, batch: int) -> Arrays:
        return {"token": np.full(batch, 10), "h": np.zeros(batch)}

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        given = {"before": state["token"][None], "h": state["h"][None]}
        after = {"token": np.full(len(state["token"]), 7), "h": state["h"] + 1}
        return after, given | {name: steps[name] for name in ("uniform", "force")}


def test_the_threads_of_a_session_share_each_operator() -> None:
    for threads in (0, 3):
        assert session_options(threads=threads).intra_op_num_threads == threads


def test_in_mixed_work_every_filter_is_asked_for_and_only_by_rows_that_say_so() -> None:
    model = LanguageModel(LanguageConfig(cell="rnn", units=6, embedding=3))
    work = make_work(sample(model, 2, 33, seed=1), seed=1)
    for name, neutral in (("log_min_p", -np.inf), ("top_k", 256), ("top_p", 1.0)):
        asked = work.options[name] != neutral
        assert asked.any(), name
        assert not (asked & ~work.filtered).any(), name


def test_in_mixed_work_rows_read_for_a_while_of_their_own_and_then_draw() -> None:
    model = LanguageModel(LanguageConfig(cell="rnn", units=6, embedding=3))
    work = make_work(sample(model, 24, 33, seed=1), seed=1)
    read = work.steps["force"].sum(0)
    assert np.array_equal(work.steps["force"], np.arange(24)[:, None] < read)
    assert len(set(read.tolist())) > 10
    assert (read < 24).all()  # and then draws
    for name in ("inverse_temperature", "logit_bias"):
        assert len(np.unique(work.options[name], axis=0)) == 33, name
    some = work.filtered & (work.options["log_min_p"] == -np.inf)
    assert 0 < some.sum() < work.filtered.sum() < 33


def test_every_draw_follows_what_training_drew() -> None:
    symbols = torch.tensor([[1, 4], [2, 5], [3, 6]])
    uniforms = torch.arange(6.0).reshape(3, 2)
    both = Sample(symbols, {"uniform": uniforms}, {})
    outputs, draws = follow(Recording(), both)
    assert outputs["before"].tolist() == [[10, 10], [1, 4], [2, 5]]
    assert outputs["h"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert outputs["uniform"].tolist() == uniforms.tolist()
    assert not outputs["force"].any()
    assert draws.tolist() == [[7, 7]] * 3
    one, _ = follow(Recording(), both.of(slice(1)))  # a training may have no more rows
    assert one["before"].tolist() == [[10], [1], [2]]


def test_a_sample_is_no_shorter_than_was_asked_for() -> None:
    manifest = read_artifact(_SHIPPED)
    served, rows = Served(_SHIPPED, manifest), manifest.provenance["batch"]["rows"]
    for asked, steps in ((1, 1), (rows, 1), (rows + 1, 2), (3 * rows - 1, 3)):
        extent = replace(QUICK, sampled_steps=asked)
        assert Evidence(manifest, served, extent, None).sampled_steps == steps
