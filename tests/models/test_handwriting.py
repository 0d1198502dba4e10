"""The handwriting networks: one pass over all points equals single steps, and text ends."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from contract.alphabets import END, WINDOW_SYMBOLS, encode
from contract.mixture import outputs_of
from models.cells import CELLS
from models.generation import HandwritingStep
from models.handwriting import HandwritingConfig, HandwritingModel, Text
from models.mixture import log_density
from models.norms import NORMS, LayerNorm, WeightNorm
from models.quantized import EightBits

SYNTHESIS = HandwritingConfig(units=16, mixtures=3, window=2, embedding=5)
PREDICTION = replace(SYNTHESIS, window=0)
_NORMS = [norm for norm in NORMS if norm != "batch"]  # of which a pen has none
_STEPS, _ROWS = 30, 3


def make(config: HandwritingConfig, **changes: Any) -> HandwritingModel:
    """A model in float64 with noise on its weights, so that no term of it is zero."""
    torch.manual_seed(0)
    model = HandwritingModel(replace(config, **changes)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def points(steps: int = _STEPS, rows: int = _ROWS, seed: int = 1) -> Tensor:
    """Pen points `(T, B, 3)`."""
    generator = torch.Generator().manual_seed(seed)
    made = torch.randn(steps, rows, 3, generator=generator, dtype=torch.float64)
    made[..., 2] = (made[..., 2] > 1).double()
    return made


def texts(*lines: str, width: int = 12, padding: int = END) -> Text:
    """Texts as a batch, the symbols after their ends filled with `padding`."""
    symbols = torch.full((len(lines), width), padding)
    for row, line in zip(symbols, lines, strict=True):
        row[: len(line) + 1] = torch.tensor([*encode(line), END])
    return Text(symbols, torch.tensor([len(line) for line in lines]))


LINES = ("keel", "a", "even, even")


@pytest.mark.parametrize("cell", list(CELLS))
@pytest.mark.parametrize("norm", _NORMS)
@pytest.mark.parametrize(("config", "layers"), [(SYNTHESIS, 2), (SYNTHESIS, 3), (PREDICTION, 1)])
def test_all_points_at_once_equal_single_steps(
    config: HandwritingConfig, layers: int, cell: Any, norm: Any
) -> None:
    model = make(config, cell=cell, norm=norm, layers=layers)
    text = texts(*LINES) if config.window else None
    with torch.no_grad():
        whole, after = model(points(), text, model.initial_state(_ROWS))
        state, outputs = model.initial_state(_ROWS), []
        for point in points():
            raw, state, _ = model.step(point, text, state)
            outputs.append(raw)
        assert (torch.stack(outputs) - whole).abs().max() <= 1e-12
        assert len(after) == len(state) == len(model.state_names)
        for ours, theirs in zip(after, state, strict=True):
            assert (ours - theirs).abs().max() <= 1e-12
        model.readout.weight[0, 0] += 1e-6
        assert (model(points(), text, model.initial_state(_ROWS))[0] - whole).abs().max() > 1e-9


@pytest.mark.parametrize("config", [SYNTHESIS, PREDICTION])
def test_a_split_pass_equals_a_whole_one(config: HandwritingConfig) -> None:
    model = make(config)
    text = texts(*LINES) if config.window else None
    whole, after = model(points(), text, model.initial_state(_ROWS))
    first, state = model(points()[:11], text, model.initial_state(_ROWS))
    second, state = model(points()[11:], text, state)
    assert (torch.cat([first, second]) - whole).abs().max() <= 1e-12
    assert all((a - b).abs().max() <= 1e-12 for a, b in zip(state, after, strict=True))


def test_padding_changes_no_bit() -> None:
    model = make(SYNTHESIS).float()
    with torch.no_grad():
        runs = [
            model(points().float(), texts(*LINES, padding=p), model.initial_state(_ROWS))
            for p in (END, 1, 95)
        ]
    for raw, state in runs[1:]:
        assert torch.equal(raw, runs[0][0])
        assert all(torch.equal(a, b) for a, b in zip(state, runs[0][1], strict=True))


def test_more_padding_changes_nothing_but_rounding() -> None:
    model = make(SYNTHESIS)
    narrow, wide = (
        model(points(), texts(*LINES, width=w), model.initial_state(_ROWS))[0]
        for w in (11, WINDOW_SYMBOLS)
    )
    assert (narrow - wide).abs().max() <= 1e-12


def test_the_end_of_a_text_is_seen_and_matters() -> None:
    model = make(SYNTHESIS)
    with torch.no_grad():
        model.window.parameters_of.bias[-SYNTHESIS.window :] += 1.5  # gets there within the steps
    shorter, longer = texts("a", "a", "a"), texts("ab", "ab", "ab")
    same = Text(shorter.symbols, shorter.length + 1)  # the end twice, and one more place in sight
    runs = [model(points(), t, model.initial_state(_ROWS))[0] for t in (shorter, longer, same)]
    assert (runs[0] - runs[1]).abs().max() > 1e-3
    assert (runs[0] - runs[2]).abs().max() > 1e-6


def test_a_row_does_not_depend_on_the_others() -> None:
    model = make(SYNTHESIS)
    together, _ = model(points(), texts(*LINES), model.initial_state(_ROWS))
    for row in range(_ROWS):
        one = slice(row, row + 1)
        text = texts(LINES[row])
        alone, _ = model(points()[:, one], text, model.initial_state(1))
        assert (alone - together[:, one]).abs().max() <= 1e-12


@pytest.mark.parametrize("config", [SYNTHESIS, PREDICTION])
@pytest.mark.parametrize("norm", ["layer", "weight"])
def test_gradients_reach_every_parameter(config: HandwritingConfig, norm: Any) -> None:
    model = make(config, norm=norm)
    text = texts(*LINES) if config.window else None
    raw, _ = model(points(), text, model.initial_state(_ROWS))
    (-log_density(raw, points(seed=2))).mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, name


def test_the_prediction_network_takes_no_text() -> None:
    model = make(PREDICTION)
    step = HandwritingStep(model)
    assert [p.name for p in step.row_ports] == ["bias"]
    assert [p.name for p in step.output_ports] == ["drawn", "mixture"]
    assert "kappa" not in model.state_names
    raw, _, weights = model.step(points()[0], None, model.initial_state(_ROWS))
    assert raw.shape == (_ROWS, outputs_of(3))
    assert weights.shape == (_ROWS, 0)


def test_the_synthesis_network_needs_a_text() -> None:
    model = make(SYNTHESIS)
    with pytest.raises(AssertionError, match="needs a text"):
        model(points(), None, model.initial_state(_ROWS))


def test_a_forced_point_is_followed_and_a_drawn_one_shown_beside_it() -> None:
    model = make(SYNTHESIS)
    step = HandwritingStep(model)
    state = [torch.zeros(2, *p.shape, dtype=p.dtype) for p in step.state_ports]
    forced = torch.tensor([[1.0, 2, 0], [3, 4, 1]], dtype=torch.float64)
    force = torch.tensor([True, False])
    half = torch.full((2,), 0.5, dtype=torch.float64)
    noise = torch.ones(2, 2, dtype=torch.float64)
    point, *rest = step(*state, forced, force, half, noise, half * 0, *texts("a", "a"))
    drawn = rest[len(step.state_ports) - 1]
    assert point[0].tolist() == [1, 2, 0]
    assert torch.equal(point[1], drawn[1])
    assert (drawn[0] - drawn[1]).abs().max() <= 1e-12


@pytest.mark.parametrize(("layers", "count"), [(2, 6), (3, 9)])
def test_an_lstm_has_three_layer_norms_a_layer(layers: int, count: int) -> None:
    for config in (SYNTHESIS, PREDICTION):
        model = make(config, layers=layers)
        assert sum(isinstance(m, LayerNorm) for m in model.modules()) == count


def test_batch_norm_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"model\.norm is 'batch'; a pen has no batch"):
        HandwritingConfig(norm="batch")


@pytest.mark.parametrize(("window", "layers", "least"), [(10, 1, 2), (10, 0, 2), (0, 0, 1)])
def test_too_few_layers_are_refused(window: int, layers: int, least: int) -> None:
    with pytest.raises(ValueError, match=f"model.layers is {layers}; it must be {least} or more"):
        HandwritingConfig(window=window, layers=layers)
    HandwritingConfig(window=window, layers=least)


@pytest.mark.parametrize("name", ["units", "mixtures", "embedding"])
def test_a_pen_without_any_of_what_it_is_made_of_is_refused_by_its_name(name: str) -> None:
    sizes = {name: 0}
    with pytest.raises(ValueError, match=rf"^model\.{name} is 0; it must be 1 or more$"):
        HandwritingConfig(**sizes)


@pytest.mark.parametrize(
    ("centres", "pen_up", "character", "ended"),
    [
        ((1.5, 1.5), 1.0, 1, False),
        ((3.1, 3.1), 1.0, 3, True),  # rests on the end, not yet on its middle
        ((1.4, 3.0), 1.0, 1, False),  # one Gaussian is past the text, the window rests before
        ((2.95, 2.95), 1.0, 3, True),  # it has moved there at this step
        ((3.2, 2.85), 1.0, 3, True),  # one Gaussian stands before the end, the window rests on it
        ((3.5, 3.5), 1.0, 3, True),
        ((3.5, 3.5), 0.0, 3, False),
        ((50.0, 50.0), 1.0, 3, True),
        ((-50.0, -50.0), 1.0, 0, False),
    ],
)
def test_a_text_is_over_where_the_window_is_past_it_and_the_pen_is_up(
    centres: tuple[float, float], pen_up: float, character: int, ended: bool
) -> None:
    model = make(SYNTHESIS).float()
    step = HandwritingStep(model)
    state = dict(zip([p.name for p in step.state_ports], model_state(step), strict=True))
    state["kappa"] = torch.tensor([centres])
    state["point"] = torch.tensor([[0.0, 0.0, pen_up]])
    text = texts("abc", width=WINDOW_SYMBOLS)
    unused = torch.zeros(1, 3), torch.zeros(1, dtype=torch.bool), torch.full((1,), 0.5)
    results = step(*state.values(), *unused, torch.zeros(1, 2), torch.zeros(1), *text)
    named = dict(zip([p.name for p in step.output_ports], results[len(state) :], strict=True))
    assert (int(named["character"]), bool(named["ended"])) == (character, ended)


def model_state(step: HandwritingStep) -> list[Tensor]:
    """The state of one row before its first step."""
    return [torch.full((1, *p.shape), float(p.initial)) for p in step.state_ports]


@pytest.mark.parametrize("norm", _NORMS)
def test_every_layer_has_the_norm_of_the_configuration(norm: Any) -> None:
    model = HandwritingModel(HandwritingConfig(norm=norm, layers=3, units=4, mixtures=2))
    assert [cell.norm for cell in (model.first, *model.above.cells)] == 3 * [norm]


@pytest.mark.parametrize("cell", list(CELLS))
def test_every_layer_is_of_the_cell_of_the_configuration(cell: Any) -> None:
    model = HandwritingModel(HandwritingConfig(cell=cell, layers=3, units=4, mixtures=2))
    assert [type(layer) for layer in (model.first, *model.above.cells)] == 3 * [CELLS[cell]]


@pytest.mark.parametrize(("setting", "made"), [("norm", WeightNorm), ("precision", EightBits)])
def test_a_matrix_is_made_once_for_all_points(
    setting: str, made: type[nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once a point, which would take longer than the products it is in."""
    whole, times = made.forward, list[int]()

    def noted(self: nn.Module, *parts: Tensor) -> Tensor:
        times.append(1)
        return whole(self, *parts)  # type: ignore[no-any-return]

    values: dict[str, Any] = {"norm": "weight", "precision": "int8"}
    model = make(SYNTHESIS, **{setting: values[setting]})
    state = model.initial_state(_ROWS)
    monkeypatch.setattr(made, "forward", noted)
    model(points(), texts(*LINES), state)
    matrices = sum(len(m.parametrizations) for m in model.modules() if is_parametrized(m))
    assert len(times) == matrices >= 4


def test_layers_see_each_part_where_the_weights_of_an_older_artifact_have_it() -> None:
    """Training and serving may agree on another order, and every pen that is there is another."""
    model, seen = make(SYNTHESIS), list[Tensor]()
    for layer in (model.above, model.readout):
        layer.register_forward_pre_hook(lambda _, given: seen.append(given[0][-1]))
    _, after = model(points(), texts(*LINES), model.initial_state(_ROWS))
    state = dict(zip(model.state_names, after, strict=True))
    above, readout = seen
    parts = [points()[-1], torch.ones(_ROWS, 1), state["window"], state["first_h"]]
    assert torch.equal(above, torch.cat(parts, dim=-1))
    assert torch.equal(readout, torch.cat([state["first_h"], state["h0"]], dim=-1))
