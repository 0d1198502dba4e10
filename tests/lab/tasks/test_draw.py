"""DRAW: its bound against PyTorch's distributions, its export against training, its script."""

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor
from torch.distributions import Bernoulli, Independent, Normal, kl_divergence

from export.graph import layer_normalizations
from lab.experiment import Part, load
from lab.export import compare, count_layer_norms, structure, trained
from lab.graphs import PartGraph
from lab.plan import read_plans
from lab.plots import DECODER
from lab.tasks.draw import draw, pictures
from lab.tasks.draw.data import read_ink
from lab.tasks.draw.model import Draw, DrawConfig, kl_from_normal
from lab.tasks.draw.pictures import draw_film, draw_samples
from lab.tasks.draw.step import DecoderStep, drawn, step
from lab.tasks.draw.task import Binary, DrawTask
from models.cells import Cell
from models.generation import Step

_CELL_PX = pictures._FILM_PX + pictures._FILM_GAP_PX
_STEPS, _ROWS, _LATENT, _SIDE = 3, 4, 2, 6
_KINDS = ("layer", "weight", "none", "batch")


def _network(norm: Any = "layer") -> Draw:
    torch.manual_seed(0)
    config = DrawConfig(norm=norm, units=5, latent=_LATENT, steps=_STEPS, side=_SIDE, write=3)
    network = Draw(config)
    with torch.no_grad():
        for parameter in network.parameters():  # no bias is left at zero
            parameter.add_(0.2 * torch.randn_like(parameter))
    return network


def _noise(rows: int = _ROWS) -> Tensor:
    return torch.randn(_STEPS, rows, _LATENT, generator=torch.Generator().manual_seed(1))


def _pictures(rows: int = _ROWS) -> Tensor:
    return torch.bernoulli(
        torch.full((rows, _SIDE**2), 0.3), generator=torch.Generator().manual_seed(2)
    )


@pytest.mark.parametrize("name", ["read", "write"])
def test_a_grid_of_one_filter_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"^model.{name} is 1; it must be 2 or more$"):
        DrawConfig(**{name: 1})
    Draw(DrawConfig(**{name: 2}))


def test_the_divergence_is_that_of_the_distributions() -> None:
    mean, log_deviation = torch.randn(
        2, 7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    normal = Independent(Normal(mean, log_deviation.exp()), 1)
    prior = Independent(Normal(torch.zeros_like(mean), torch.ones_like(mean)), 1)
    torch.testing.assert_close(kl_from_normal(mean, log_deviation), kl_divergence(normal, prior))


def test_the_bound_is_put_together_as_in_the_paper() -> None:
    """Equations 3 to 12 once more, a step at a time, with PyTorch's distributions."""
    network, x, noise = _network().double(), _pictures().double(), _noise().double()
    decoder, side = network.decoder, (_SIDE, _SIDE)
    seen, state = network.encoder.initial_state(_ROWS), decoder.stack.initial_state(_ROWS)
    canvas = decoder.background.expand(_ROWS, -1)
    divergence = torch.zeros(_ROWS, dtype=torch.float64)
    for drawn_noise in noise:
        place = network.grid.place(state[0])
        across, down = network.grid.filters_at(place)
        looks = [
            (place.intensity[:, :, None] * (down @ image.view(-1, *side) @ across.mT)).flatten(1)
            for image in (x, x - canvas.sigmoid())
        ]
        h, seen = network.encoder.step(torch.cat([*looks, state[0]], -1), seen)
        mean, log_deviation = network.posterior_of(h).chunk(2, -1)
        posterior = Normal(mean, log_deviation.exp())
        divergence = divergence + kl_divergence(posterior, Normal(0.0, 1.0)).sum(-1)
        h, state = decoder.stack.step(mean + posterior.stddev * drawn_noise, state)
        place = decoder.grid.place(h)
        across, down = decoder.grid.filters_at(place)
        patch = decoder.patch_of(h).view(-1, 3, 3)
        canvas = canvas + (down.mT @ patch @ across / place.intensity[:, :, None]).flatten(1)
    found = network(x, noise)
    torch.testing.assert_close(found.divergence, divergence)
    expected = -Independent(Bernoulli(logits=canvas), 1).log_prob(x)
    torch.testing.assert_close(found.reconstruction, expected)


@pytest.mark.parametrize("norm", _KINDS)
def test_gradients_of_the_bound_are_those_of_finite_differences(norm: str) -> None:
    network, x, noise = _network(norm).double(), _pictures().double(), _noise().double()
    along = {n: torch.randn_like(p) for n, p in network.named_parameters()}

    def bound() -> Tensor:
        found = network(x, noise)
        return (found.reconstruction + found.divergence).mean()

    bound().backward()
    slope = sum(float((p.grad * along[n]).sum()) for n, p in network.named_parameters())  # type: ignore[operator]
    moved = []
    for sign in (1, -1, -1, 1):  # there, and back again
        with torch.no_grad():
            for name, parameter in network.named_parameters():
                parameter.add_(sign * 1e-6 * along[name])
            moved.append(bound().item())
    assert slope == pytest.approx((moved[0] - moved[2]) / 2e-6, rel=1e-6)


def test_a_state_of_zeros_puts_as_much_ink_on_the_picture_as_its_patch_has() -> None:
    decoder = Draw(DrawConfig()).decoder
    patch = torch.arange(25.0)
    with torch.no_grad():
        decoder.patch_of.weight.zero_()
        decoder.patch_of.bias.copy_(patch)
        decoder.grid.place_of.weight.zero_()
        *_, canvas = decoder.step(torch.zeros(1, 24), decoder.initial_state(1))
    assert canvas.mean().item() == pytest.approx(patch.mean().item(), rel=1e-4)


def test_a_frame_goes_from_the_first_filter_to_the_last() -> None:
    decoder = _network().decoder
    state = tuple(torch.randn_like(s) for s in decoder.initial_state(2))
    with torch.no_grad():
        place = decoder.grid.place(state[0])
        x, y, width = decoder.frame(state).unbind(-1)
    means = place.centre[:, :1] + decoder.grid.offsets * place.stride  # across
    torch.testing.assert_close(x, means.mean(1))
    torch.testing.assert_close(width, means[:, -1] - means[:, 0])
    torch.testing.assert_close(y, place.centre[:, 1])


def _task(seed: int = 0) -> DrawTask:
    pictures = _pictures(20)
    return DrawTask(_network(), Binary(pictures, pictures[:7], pictures[7:]), _ROWS, seed)


def test_a_batch_is_a_function_of_seed_and_update() -> None:
    task, other = _task(), _task()
    later = [task.batch(update)[0] for update in range(8)][7]
    assert all(torch.equal(a, b) for a, b in zip(later, other.batch(7)[0], strict=True))
    assert not torch.equal(later[1], _task(seed=1).batch(7)[0][1])
    assert not torch.equal(later[1], task.batch(6)[0][1])
    assert not torch.equal(later[1], task.batch(7 - task.updates_per_epoch)[0][1])


def test_figures_are_means_over_pictures_and_the_same_each_time() -> None:
    task = _task()
    nats = task.validate()
    assert task.validate() == nats
    assert task.figures["reconstruction"] + task.figures["divergence"] == nats
    noise = task.noise(7, torch.Generator().manual_seed(2015))
    for name, value in task.model(task.data.validation, noise)._asdict().items():
        assert task.figures[name] == pytest.approx(value.mean().item(), rel=1e-5)
    task.model.decoder.background.data.fill_(torch.nan)
    assert np.isnan(task.validate())


def test_binarisation_is_fixed_and_follows_the_grey() -> None:
    one, two = read_ink(None, 0.25), read_ink(None, 0.25)
    assert one.sha256 == two.sha256
    assert set(one.pictures.train.unique().tolist()) == {0.0, 1.0}
    grey = one.digits.train.inputs
    for low, high in ((0.2, 0.4), (0.6, 0.8)):
        among = (grey > low) & (grey < high)
        assert one.pictures.train[among].mean().item() == pytest.approx(
            grey[among].mean().item(), abs=0.01
        )
    assert one.pictures.train[grey == 0].max() == 0


def test_black_and_white_pictures_are_of_their_own_part_and_their_hash_is_of_all() -> None:
    recipe = read_plans(load("draw"), quick=True)[0].full("layer", 1e-2, 0)
    ink = load("draw").data(recipe, None)
    digest = hashlib.sha256()
    for name in ("train", "validation", "test"):
        pictures, grey = getattr(ink.pictures, name), getattr(ink.digits, name).inputs
        assert pictures.shape == grey.shape
        assert not pictures[grey == 0].any(), name
        assert pictures[grey == 1].all(), name
        digest.update(pictures.bool().numpy().tobytes())
    assert load("draw").facts(ink)["sha256"] == ink.sha256 == digest.hexdigest()


def test_what_is_learned_is_both_terms_of_the_bound_a_picture() -> None:
    task = _task()
    batch, _ = task.batch(0)
    bound = task.model(*batch)
    found, _ = task.loss(batch, ())
    expected = bound.reconstruction.mean() + bound.divergence.mean()
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_figures_are_of_all_pictures_and_those_of_the_test_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lab.tasks.draw.task._ROWS_AT_ONCE", 5)
    task, generator = _task(), torch.Generator().manual_seed(2015)
    parts = task.data.test.split(5)
    assert len(parts) == 3
    nats = [sum(task.model(part, task.noise(len(part), generator))).sum().item() for part in parts]
    assert task.test()["nats"] == pytest.approx(sum(nats) / 13, rel=1e-5)


def test_batch_norm_has_statistics_of_every_step() -> None:
    cells = [module for module in _network("batch").modules() if isinstance(module, Cell)]
    assert [cell.longest_step for cell in cells] == [_STEPS] * 2


def _part(planted: Callable[[Draw], Step] = step) -> Part:
    noise = {"noise": _noise(5)}
    return Part(name="decoder", step=planted, trained=drawn, inputs=noise, scan=True)


def _structure_holds(part: Part, network: Draw, folder: Path) -> bool:
    return structure(part, network, trained(part, network, torch.float64), folder).holds


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> PartGraph:
    """The decoder of `_network()`."""
    return PartGraph(_part(), _network(), tmp_path_factory.mktemp("exported"))


@pytest.mark.long
def test_the_decoder_is_exported_as_it_was_trained(exported: PartGraph) -> None:
    report = compare(exported, _network())
    assert [finding.name for finding in report if not finding.holds] == []
    assert len(report) == 4


class _Fading(DecoderStep):
    """Draws each stroke on a canvas that fades a little."""

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        *recurrent, canvas, noise = inputs
        return super().forward(*recurrent, canvas * 0.9999, noise)


@pytest.mark.long
def test_a_canvas_that_fades_turns_the_report_red(tmp_path: Path) -> None:
    planted = _part(lambda network: _Fading(network.decoder))
    assert not _structure_holds(planted, _network(), tmp_path)


def test_a_graph_over_time_has_its_rows_behind_its_steps_and_its_norms_within(
    exported: PartGraph,
) -> None:
    inputs = exported.part.inputs
    assert exported.batch(inputs) == 5
    whole, alone = exported.run(inputs), exported.alone(inputs)
    some = exported.taken(whole, [3, 1])
    assert {name: array.shape for name, array in alone.items()} == {
        name: array.shape for name, array in whole.items()
    }
    for name, array in exported.rows(inputs, [3, 1]).items():
        np.testing.assert_array_equal(array, some[name])
        np.testing.assert_array_equal(array, exported.taken(alone, [3, 1])[name])
    assert count_layer_norms(exported.path) == layer_normalizations(exported.step) > 0


def test_the_script_draws_what_the_network_draws(
    exported: PartGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, noise = exported.path.parent, _noise(1)
    pictures, frames, _ = _network().draw(noise)
    strokes = list(draw.strokes(folder, noise[:, 0].numpy()))
    assert len(strokes) == _STEPS
    for (picture, frame), truth, placed in zip(strokes, pictures, frames, strict=True):
        np.testing.assert_allclose(picture, truth[0].detach(), rtol=0, atol=1e-5)
        np.testing.assert_allclose(frame, placed[0].detach(), rtol=1e-4)
    assert draw.main(["--model", str(folder), "--steps", "2"]) == 0
    assert "stroke 2" in capsys.readouterr().out
    assert draw.main(["--model", str(tmp_path)]) == 1


def test_the_script_looks_where_the_command_exports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert draw.main([]) == 1
    assert "runs/lab-exported/draw/layer-seed-0 has no decoder.onnx" in capsys.readouterr().err


@pytest.mark.parametrize("said", [["--steps", "0"], ["--seed", "-1"]])
def test_the_script_draws_no_digit_of_fewer_strokes_than_one(
    exported: PartGraph, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        draw.main(["--model", str(exported.path.parent), *said])
    assert left.value.code == 2
    assert "--steps is 1 or more, and --seed 0 or more" in capsys.readouterr().err


def test_the_script_draws_by_its_seed_and_says_where_each_stroke_was(
    exported: PartGraph, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, said = exported.path.parent, []
    for seed in ("3", "3", "4"):
        assert draw.main(["--model", str(folder), "--steps", "2", "--seed", seed]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != said[2]
    noise = np.random.default_rng(3).standard_normal((2, _LATENT)).astype(np.float32)
    told = [line for line in said[0].splitlines() if line.startswith("stroke")]
    assert told == [
        f"stroke {number}, {width:.1f} pixels wide around ({x:.1f}, {y:.1f})"
        for number, (_, (x, y, width)) in enumerate(draw.strokes(folder, noise), 1)
    ]


def test_who_has_seen_enough_of_the_script_ends_it_without_a_word(exported: PartGraph) -> None:
    read, written = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", draw.__name__, "--model", str(exported.path.parent)]
    ended = subprocess.run(command, stdout=written, stderr=subprocess.PIPE)
    os.close(written)
    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, b"")


def test_the_page_is_given_the_weights_of_what_draws_alone(tmp_path: Path) -> None:
    task = _task()
    load("draw").picture(task, tmp_path)
    found, decoder = load_file(tmp_path / DECODER), task.model.decoder.state_dict()
    assert found.keys() == decoder.keys()
    assert all(torch.equal(tensor, decoder[name]) for name, tensor in found.items())


def test_pictures_show_every_step_and_the_frame(tmp_path: Path) -> None:
    load("draw").picture(_task(), tmp_path)
    with Image.open(tmp_path / "draw-samples.png") as samples:
        assert samples.size == (10 * (_SIDE + 2) - 2,) * 2
    with Image.open(tmp_path / "draw-film.png") as film:
        gap = pictures._FILM_GAP_PX
        assert film.size == (_STEPS * _CELL_PX - gap, pictures._HEAD_PX + 6 * _CELL_PX - gap)
        colors = np.asarray(film.convert("RGB")).reshape(-1, 3)
        assert (colors[:, 0] > colors[:, 1] + 100).any()


def test_a_sheet_of_samples_shows_what_is_on_the_canvas_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = np.linspace(0, 1, _STEPS, dtype=np.float32)[:, None, None, None]
    drawn = np.broadcast_to(steps, (_STEPS, 100, _SIDE, _SIDE))
    monkeypatch.setattr(pictures, "_drawn", lambda *_: (drawn, None))
    draw_samples(_task(), tmp_path / "samples.png")
    with Image.open(tmp_path / "samples.png") as samples:
        assert samples.getpixel((1, 1)) == 0  # as dark as can be


def test_a_film_has_a_column_a_stroke_and_its_frame_around_the_pixels_it_is_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = np.zeros((_STEPS, 6, _SIDE, _SIDE), np.float32)
    drawn[0, 3] = 1.0
    frames = np.zeros((_STEPS, 6, 3), np.float32)
    frames[:] = 3.5, 3.5, 100.0
    frames[2, 4] = 2.0, 5.0, 2.0  # pixels 1 to 3 across and 4 to 6 down, by their middles
    monkeypatch.setattr(pictures, "_drawn", lambda *_: (drawn, frames))
    draw_film(_task(), tmp_path / "film.png")
    with Image.open(tmp_path / "film.png") as film:
        colors = np.asarray(film.convert("RGB")).astype(int)
    head, colors = np.split(colors, [pictures._HEAD_PX])
    numbered = {int(place) // _CELL_PX for place in np.nonzero(head.max(2) < 128)[1]}
    assert numbered == set(range(_STEPS))
    corner = colors[4 * _CELL_PX : 5 * _CELL_PX, 2 * _CELL_PX : 3 * _CELL_PX]
    down, across = np.nonzero(corner[..., 0] > corner[..., 1] + 100)
    pixel = pictures._FILM_PX / _SIDE
    assert np.abs(np.array([across.min(), across.max()]) - pixel * np.array([0.5, 2.5])).max() <= 1
    assert np.abs(np.array([down.min(), down.max()]) - pixel * np.array([3.5, 5.5])).max() <= 1
    dark = np.argwhere((colors.max(2) < 40) & (colors.min(2) < 40))
    assert (dark.min(0) // _CELL_PX).tolist() == (dark.max(0) // _CELL_PX).tolist() == [3, 0]


def test_a_picture_in_characters_has_every_second_line_from_the_first() -> None:
    lines = np.repeat(np.array([0, 1, 1 / 3, 1, 1, 0], np.float32), 6)
    assert draw.as_text(lines).split("\n") == [" " * 6, "-" * 6, "@" * 6]


def test_the_recipe_is_one_of_the_papers() -> None:
    (plan,) = read_plans(load("draw"))
    assert (plan.recipe.model.read, plan.recipe.model.write) == (2, 5)
    assert plan.budget.seeds == 3
