"""The paper's analysis, both ways: what normalisation leaves alone, and what it does not."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from lab.__main__ import main
from lab.analyse import _shown, print_growth
from lab.analysis import fisher, growth, invariance, padding, plots
from lab.analysis.invariance import CHANGES, KINDS, LEAST_IF_NOT, MOST_IF_INVARIANT
from models.attention import SelfAttention
from models.cells import LSTMCell

# Table 1 of the paper, written down a second time: batch, weight, layer.
PAPER = """
weight matrix re-scaling    yes yes yes
weight matrix re-centring   no  no  yes
weight vector re-scaling    yes yes no
data set re-scaling         yes no  yes
data set re-centring        yes no  no
single case re-scaling      no  no  yes
"""


@pytest.fixture(scope="module")
def entries() -> dict[tuple[str, str], invariance.Entry]:
    return {(e.change, e.norm): e for e in invariance.table()}


@pytest.mark.parametrize("line", PAPER.strip().splitlines())
def test_table_1_is_the_papers(line: str, entries: dict[tuple[str, str], invariance.Entry]) -> None:
    *words, batch, weight, layer = line.split()
    for norm, answer in zip(KINDS, (batch, weight, layer), strict=True):
        entry = entries[" ".join(words), norm]
        if answer == "yes":
            assert entry.most <= MOST_IF_INVARIANT
            assert entry.invariant is entry.invariant_in_paper is True
        else:
            assert entry.least >= LEAST_IF_NOT
            assert entry.invariant is entry.invariant_in_paper is False


def test_five_networks_speak_for_each_entry(
    entries: dict[tuple[str, str], invariance.Entry],
) -> None:
    changed = [entry for entry in entries.values() if not entry.invariant]
    assert all(entry.least < entry.most for entry in changed)
    # What leaves some networks alone and not others is neither.
    torn = replace(changed[0], least=MOST_IF_INVARIANT / 10)
    assert torn.invariant is None


def test_a_change_is_of_what_it_is_called_and_told_over_the_output_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = invariance.random_network(0)
    for name, part in (("weight vector re-scaling", "weight"), ("single case re-scaling", "data")):
        before, after = (getattr(n, part) for n in (network, CHANGES[name][0](network)))
        assert torch.equal(after[0], 3 * before[0])
        assert torch.equal(after[1:], before[1:])
    for name, part in (("weight matrix re-centring", "weight"), ("data set re-centring", "data")):
        before, after = (getattr(n, part) for n in (network, CHANGES[name][0](network)))
        moved = after - before  # every row by the same vector, about as large as they are
        torch.testing.assert_close(moved, moved[:1].expand_as(moved))
        assert 0.5 < moved[0].std() / before.std() < 2
    for kind in KINDS:
        unmoved = replace(network, bias=torch.zeros_like(network.bias))
        summed = [invariance.summed_inputs(kind, n.weight, n.gain, n.bias, n.data)
                  for n in (network, unmoved)]  # fmt: skip
        torch.testing.assert_close(summed[0] - summed[1], network.bias.expand_as(summed[0]))
        assert torch.equal(invariance.output(kind, network), torch.tanh(summed[0]))
    outputs = iter((torch.tensor([1.0, -4.0]), torch.tensor([2.0, -8.0])))
    monkeypatch.setattr(invariance, "output", lambda *_: next(outputs))
    assert invariance.relative_change("layer", network, lambda n: n) == 1


def test_the_bound_is_tight_enough_to_see_epsilon_and_the_weights_large_enough_to_hide_it() -> None:
    change, _ = CHANGES["data set re-scaling"]
    for seed in range(5):
        network = invariance.random_network(seed)
        a = network.data @ network.weight.T
        assert min(a.var(0, correction=0).min(), a.var(1, correction=0).min()) > 1e6
        small = replace(network, weight=network.weight / invariance.WEIGHT_SCALE)
        for kind in ("batch", "layer"):
            assert invariance.relative_change(kind, small, change) > 100 * MOST_IF_INVARIANT
            assert invariance.relative_change(kind, network, change) < MOST_IF_INVARIANT / 100


class WithoutCentring(nn.Module):
    """What a layer norm would be that divides by the size of a and forgets its mean."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(torch.ones(features)) for _ in range(2))

    def forward(self, a: Tensor, at: Tensor) -> Tensor:
        return a / a.square().mean(-1, keepdim=True).sqrt() * self.weight + self.bias


def test_the_table_sees_a_layer_norm_that_does_not_centre(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invariance, "make_norm", lambda _, n, **__: WithoutCentring(n))
    found = {e.change: e.invariant for e in invariance.table() if e.norm == "layer"}
    assert found["weight matrix re-centring"] is False
    assert found["weight matrix re-scaling"] is True


def test_the_worked_table_is_normalised_per_row_and_per_column() -> None:
    worked = padding.worked_table()
    z = np.array([[7, 5, 4], [2, 3, 4], [1, 2, 3], [7, 5, 6], [3, 3, 4]], float)
    for found, axis in ((worked.per_row, 1), (worked.per_column, 0)):
        mean, deviation = z.mean(axis, keepdims=True), z.std(axis, keepdims=True)
        assert np.abs(found.numpy() - (z - mean) / deviation).max() < 1e-4
    assert worked.per_row[2].tolist() == pytest.approx([-(1.5**0.5), 0, 1.5**0.5], abs=1e-5)


def test_zero_rows_leave_a_rows_layer_norm_alone_and_become_the_bias() -> None:
    worked = padding.worked_table()
    assert worked.row_moved_by_padding == 0
    z = np.array(padding.Z, float)
    columns = [(rows - rows.mean(0)) / rows.std(0) for rows in (z, np.pad(z, ((0, 2), (0, 0))))]
    moved = np.abs(columns[1][:5] - columns[0]).max()
    assert worked.column_moved_by_padding == pytest.approx(moved, abs=1e-4)
    assert torch.equal(worked.padded_row_per_row, worked.bias)
    assert (worked.padded_row_per_column - worked.bias).abs().min() > 0.5


def test_layer_norm_of_a_row_does_not_see_its_neighbours_and_batch_norm_does() -> None:
    z = torch.tensor(padding.Z, dtype=torch.float64)
    other = copy.deepcopy(z)
    other[1:] = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)) * 50
    assert torch.equal(padding.per_row(z)[0], padding.per_row(other)[0])
    assert torch.equal(padding.per_row(z)[0], padding.per_row(z[:1])[0])
    assert (padding.per_column(z)[0] - padding.per_column(other)[0]).abs().max() > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_a_padded_sentence_attends_and_normalises_as_it_does_alone(seed: int) -> None:
    sentences = padding.padded_sentences(seed)
    assert sentences.layer_moved < 1e-14
    assert sentences.batch_moved > 0.1
    assert sentences.layer_padding_off_bias == 0
    assert sentences.finite
    assert padding.padded_sentences(seed) == sentences  # whatever was drawn in between


def test_what_padding_moves_is_held_against_the_same_norm_of_the_sentence_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of norms that make one vector of everything, which are not the bias by 1, nothing moves."""
    monkeypatch.setattr(padding, "per_row", lambda z, bias: torch.zeros_like(z) + bias + 1)
    monkeypatch.setattr(padding, "per_column", lambda z, bias: torch.zeros_like(z) + bias - 2)
    found = padding.padded_sentences()
    assert (found.layer_moved, found.batch_moved) == (0, 0)
    assert found.layer_padding_off_bias == pytest.approx(1)


def test_the_attention_of_the_padded_sentences_is_that_of_the_models() -> None:
    attention = SelfAttention(6).double()
    x, lengths = torch.randn(2, 4, 6, dtype=torch.float64), torch.tensor([4, 2])
    x[1, 2:] = 0
    weight = torch.stack([m.weight.data for m in (attention.query, attention.key, attention.value)])
    expected = x + attention(x, torch.arange(4) < lengths.unsqueeze(1))
    found = padding.self_attention(x, lengths, weight)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", fisher.GLM_KINDS)
def test_the_fisher_information_is_the_curvature_of_the_divergence(kind: fisher.GLMKind) -> None:
    network = invariance.random_network(1)
    # Of unit scale, where second differences of a divergence have digits left.
    network = replace(network, weight=network.weight / invariance.WEIGHT_SCALE)
    found, f = fisher.fisher(kind, network), fisher.natural_parameters(kind, network)
    units, inputs = network.weight.shape
    generator = torch.Generator().manual_seed(2)
    d = torch.randn(len(found), generator=generator, dtype=torch.float64)
    weight, gain, bias = d.split([units * inputs, units, units])

    def divergence(size: float) -> float:
        moved = replace(
            network,
            weight=network.weight + size * weight.view(units, inputs),
            gain=network.gain + size * gain,
            bias=network.bias + size * bias,
        )
        difference = fisher.natural_parameters(kind, moved) - f
        return ((difference @ fisher.covariance(units)) * difference).sum(-1).mean().item() / 2

    size = 1e-4
    curvature = (divergence(size) + divergence(-size)) / size**2  # the divergence at 0 is 0
    assert curvature == pytest.approx((d @ found @ d).item(), rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_doubling_a_weight_vector_quarters_its_curvature_and_halves_a_steps_length(
    kind: fisher.GLMKind,
) -> None:
    doubling = fisher.doubling(kind)
    assert doubling.output_change < MOST_IF_INVARIANT
    assert doubling.squared_length == pytest.approx(1 / 4, abs=1e-9)
    assert doubling.length == pytest.approx(1 / 2, abs=1e-9)
    assert doubling.vector_gain == pytest.approx(1 / 2, abs=1e-9)
    # With another unit's vector: under layer norm that one doubled too.
    expected = 1 / 4 if kind == "layer" else 1 / 2
    assert doubling.vector_vector == pytest.approx(expected, abs=1e-9)
    assert doubling.gain == pytest.approx(1, abs=1e-9)
    assert doubling.gradient == pytest.approx(1 / 2, abs=1e-9)
    assert doubling.turn == pytest.approx(1 / 4, abs=1e-4)


def test_without_a_norm_doubling_a_weight_vector_lowers_no_curvature() -> None:
    doubling = fisher.doubling("none")
    assert doubling.output_change > LEAST_IF_NOT
    assert doubling.squared_length == pytest.approx(1, abs=1e-9)
    assert doubling.gradient > 1
    network = invariance.random_network(0)  # whose first output alone is moved, by its product
    moved = (network.data @ network.weight[0]).abs().max()
    before = fisher.natural_parameters("none", network).abs().max()
    assert doubling.output_change == pytest.approx((moved / before).item())


def test_a_turn_is_the_angle_between_a_vector_and_what_descent_makes_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fisher, "_LEARNING_RATE", 0.3)  # far enough to see the angle
    network = invariance.random_network(0)
    seen: list[Tensor] = []
    jacobian = fisher.jacobian_of
    monkeypatch.setattr(fisher, "jacobian_of", lambda *a: seen.append(jacobian(*a)) or seen[-1])
    length, turn = fisher.descent("none", network)
    gradient = seen[0][0]
    assert length == gradient.norm().item()
    old = network.weight[0]
    new = old - 0.3 * invariance.WEIGHT_SCALE**2 * gradient
    cosine = torch.nn.functional.cosine_similarity(old, new, 0)
    assert 0.1 < turn == pytest.approx(cosine.arccos().item(), abs=1e-6)
    # Of the mean negative log-likelihood: what is expected less what was drawn, times the inputs.
    f = fisher.natural_parameters("none", network)
    generator = torch.Generator().manual_seed(1)
    targets = torch.randn(f.shape, generator=generator, dtype=torch.float64)
    wrong = (f @ fisher.covariance(f.shape[1]) - targets)[:, :1]
    torch.testing.assert_close(gradient, (wrong * network.data).mean(0))


def test_one_vector_alone_is_not_free_to_grow_under_layer_norm() -> None:
    network = invariance.random_network(0)
    one = fisher.weights_scaled("batch", network, 2.0)
    before, after = (fisher.natural_parameters("layer", n) for n in (network, one))
    assert (after - before).abs().max() > 0.1


def test_along_itself_a_weight_vector_has_no_curvature_where_its_scale_is_free() -> None:
    network = invariance.random_network(0)
    for kind in ("batch", "weight"):
        found = fisher.blocks(kind, network)
        assert abs(found.along) < 1e-12 * found.vector
    assert fisher.blocks("none", network).along > 0.1


def test_the_gain_learns_alike_at_any_scale_of_the_inputs_under_layer_and_batch_norm() -> None:
    ratios = {s.norm: s.curvature for s in fisher.input_scales()}
    assert ratios["layer"] == pytest.approx(1, abs=1e-9)
    assert ratios["batch"] == pytest.approx(1, abs=1e-9)
    assert ratios["weight"] == pytest.approx(100, rel=1e-9)
    assert ratios["none"] == pytest.approx(100, rel=1e-9)


def test_normalised_hidden_states_keep_their_size_and_gradients_depend_on_the_gain() -> None:
    steps = 200
    curves = {(norm, gain): growth.growth(norm, gain, steps) for norm, gain in growth.RUNS}
    for curve in curves.values():
        assert len(curve.hidden) == len(curve.gradient) == steps
        late = curve.hidden[steps // 2 :]
        assert late.max() / late.min() < 1.5
    weight, none = curves["weight", None], curves["none", None]
    assert torch.allclose(weight.gradient, none.gradient, rtol=1e-4)
    assert none.gradient[0] < 1e-5
    for norm in ("layer", "batch"):
        assert curves[norm, 0.1].gradient[0] > 1e-3
        assert curves[norm, 1.0].gradient[0] > 10 * curves[norm, 0.1].gradient[0]


def test_what_is_shown_of_a_step_is_of_that_step(capsys: pytest.CaptureFixture[str]) -> None:
    steps = torch.arange(1.0, 2001.0)
    result = growth.Growth("layer", 1.0, steps, 3 * steps)
    shown = _shown(result)
    assert shown["hidden"]["10"] == 10
    assert shown["gradient"]["2000"] == 6000
    print_growth([result])
    *_, hidden, gradient = capsys.readouterr().out.splitlines()
    assert hidden.split()[-7:-4] == ["1", "10", "100"]
    assert gradient.split()[-7:-4] == ["3", "30", "300"]


def test_the_gradient_plotted_is_how_the_end_moves_with_the_state() -> None:
    steps = 3
    torch.manual_seed(growth._SEED)
    cell = LSTMCell(growth._INPUTS, growth._UNITS, "none").double()
    generator = torch.Generator().manual_seed(growth._SEED)
    shape = (steps, growth._ROWS, growth._INPUTS)
    projected = cell.project(torch.randn(shape, generator=generator, dtype=torch.float64))
    direction = torch.randn(growth._UNITS, generator=generator, dtype=torch.float64)

    @torch.no_grad()
    def losses(h: Tensor, c: Tensor) -> Tensor:
        for p in projected[1:]:
            h, c = cell.step(p, (h, c))
        return h @ direction / direction.norm()  # (B,)

    size, squares = 1e-6, torch.zeros(growth._ROWS, dtype=torch.float64)
    h, c = cell.step(projected[0], cell.initial_state(growth._ROWS))
    for nudge in size * torch.eye(growth._UNITS, dtype=torch.float64):
        for moved in (losses(h + nudge, c), losses(h, c + nudge)):
            squares += ((moved - losses(h, c)) / size) ** 2
    curve = growth.growth("none", None, steps)
    assert curve.gradient[0].item() == pytest.approx(squares.mean().sqrt().item(), rel=1e-4)


def test_the_picture_of_the_table_tells_the_most_where_nothing_changes_and_the_least_elsewhere(
    saved: list[Figure],
) -> None:
    same = invariance.Entry("one", "batch", 1e-16, 2e-15, True)
    other = invariance.Entry("two", "layer", 0.3, 0.9, False)
    plots.plot_table([same, other], Path("none.png"))
    (axes,) = saved[0].axes
    told = {text.get_text(): text.get_position() for text in axes.texts}
    places = [{label.get_text(): place for label, place in zip(
        axis.get_ticklabels(), axis.get_ticklocs(), strict=True)}
              for axis in (axes.xaxis, axes.yaxis)]  # fmt: skip
    assert told == {
        "invariant\n2e-15": (places[0]["batch norm"], places[1]["one"]),
        "changes\n3e-01": (places[0]["layer norm"], places[1]["two"]),
    }
    bottom, top = axes.get_ylim()
    assert bottom > top  # the first row is the upper one
    green, red = (patch.get_facecolor() for patch in axes.patches)
    assert green[1] > green[0]
    assert red[0] > red[1]


@pytest.mark.long
def test_the_command_prints_the_tables_and_writes_figures_and_plots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analysis", "--out", str(tmp_path / "analysis")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("invariant") == 10
    assert printed.count("changes") == 8
    for name in ("table1.png", "curvature.png", "growth.png"):
        assert 10_000 < (tmp_path / "analysis" / name).stat().st_size <= 100_000
    content = json.loads((tmp_path / "analysis" / "analysis.json").read_text())
    assert len(content["table_1"]) == 18
    assert len(content["growth"]) == len(growth.RUNS)


def test_the_command_fails_when_the_table_is_not_the_papers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(invariance, "make_norm", lambda _, n, **__: WithoutCentring(n))
    grown = torch.ones(growth.STEPS)
    monkeypatch.setattr(growth, "growth", lambda *run: growth.Growth(*run, grown, grown))
    monkeypatch.setattr("lab.analyse.plots.plot_curvature", lambda _: None)
    assert main(["analysis", "--out", str(tmp_path)]) == 1
    assert "NOT AS PAPER" in capsys.readouterr().out
    content = json.loads((tmp_path / "analysis.json").read_text())
    assert [(one["norm"], one["gain"]) for one in content["growth"]] == list(growth.RUNS)
    kept = {"doubled_weight_vector": "turn", "inputs_ten_times_larger": "curvature"}
    for name, figure in kept.items():
        assert [one["norm"] for one in content[name]] == list(fisher.GLM_KINDS)
        assert all(figure in one for one in content[name])
