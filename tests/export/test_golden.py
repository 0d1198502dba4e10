"""Golden vectors: what is in them is what the options mean, and nothing less passes as a replay."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from contract.alphabets import VOCABULARY
from contract.golden import Arrays, Golden
from contract.noise import UniformStream
from contract.reader import SYMBOLS
from contract.text import GREEDY, NEUTRAL
from export.golden import MARGIN, Sample
from export.ink import golden as ink_golden
from export.kinds import KINDS
from export.reader import golden as reader_golden
from export.text import golden as text_golden
from export.text.golden import _SEED
from export.text.golden import golden as make_golden
from export.text.numbers import TIE
from models.generation import Step
from models.handwriting import HandwritingConfig, HandwritingModel
from models.language import LanguageConfig, LanguageModel
from models.norms import NormKind
from models.reader import ReaderConfig, ReaderModel
from tests.export.sampler import draw, drawn_again

OPTIONS = tuple(NEUTRAL)


@pytest.fixture(scope="module")
def golden(artifact: Path) -> Golden:
    return Golden.load(artifact / "golden.safetensors")


def asked(golden: Golden, row: int) -> set[str]:
    """The options of a row that are not neutral."""
    inputs = golden.row_inputs(row)
    return {name for name in OPTIONS if np.any(inputs[name] != np.float32(NEUTRAL[name]))}


def test_every_option_is_asked_for_by_some_row_and_some_rows_ask_for_none(golden: Golden) -> None:
    rows = [asked(golden, row) for row in golden.all_rows]
    assert set.union(*rows) == set(OPTIONS)
    assert set() in rows
    temperatures = golden.rows["inverse_temperature"]
    assert (temperatures == np.float32(GREEDY)).any()
    assert (temperatures > 1).any()
    assert (temperatures < 1).any()
    assert (golden.rows["logit_bias"] > 0).any()
    assert (golden.rows["logit_bias"] < 0).any()


def test_the_rows_that_leave_bytes_out_say_so(golden: Golden) -> None:
    filters = {"log_min_p", "top_k", "top_p"}
    assert golden.filtered.tolist() == [bool(asked(golden, r) & filters) for r in golden.all_rows]
    assert golden.plain_rows
    assert golden.filtered.any()


def test_every_row_holds_what_its_options_draw_from_its_logits(golden: Golden) -> None:
    for row in golden.all_rows:
        np.testing.assert_array_equal(golden.exact["next"][:, row], drawn_again(golden, row))


def test_every_option_decides_some_byte(golden: Golden) -> None:
    for option in OPTIONS:
        rows = [row for row in golden.all_rows if option in asked(golden, row)]
        drawn = golden.exact["next"]
        assert any((drawn[:, r] != drawn_again(golden, r, option)).any() for r in rows), option


def test_no_draw_lies_near_a_border(golden: Golden) -> None:
    assert MARGIN >= 100 * TIE  # where what a replay draws is certain, whatever it rounds
    for row in golden.plain_rows:
        inputs = golden.row_inputs(row)
        for t, byte in enumerate(golden.exact["next"][:, row]):
            uniform = golden.steps["uniform"][t, row]
            near = (uniform - 0.9 * MARGIN, uniform + 0.9 * MARGIN)
            for moved in np.clip(near, 1e-7, 1 - 1e-7):
                temperature = 1 / inputs["inverse_temperature"]
                logits = golden.truth["logits"][t, row]
                assert draw(logits, moved, temperature, inputs["logit_bias"]) == byte


def test_every_row_is_drawn_with_the_uniforms_of_a_choice_of_its_own(golden: Golden) -> None:
    """Save those near a border."""
    uniforms = golden.steps["uniform"]
    for row in golden.all_rows:
        own = UniformStream(_SEED, row).take(0, len(uniforms))
        assert (uniforms[:, row] == own).mean() > 0.8


def replayed(golden: Golden) -> Arrays:
    """What a perfect replay of every row puts out."""
    return {
        "logits": golden.truth["logits"].astype(np.float32),
        "next": golden.exact["next"].copy(),
    }


def accepted(golden: Golden, outputs: Arrays) -> bool:
    """Whether a replay is judged ok; one that has not the shape of the vectors may raise."""
    try:
        return golden.judge(outputs, golden.all_rows).ok
    except ValueError:
        return False


def test_a_perfect_replay_is_accepted(golden: Golden) -> None:
    assert accepted(golden, replayed(golden))


def test_a_replay_without_its_last_step_or_row_is_not_accepted(golden: Golden) -> None:
    assert not accepted(golden, {n: a[:-1] for n, a in replayed(golden).items()})
    assert not accepted(golden, {n: a[:, :-1] for n, a in replayed(golden).items()})
    for name in ("logits", "next"):
        whole = replayed(golden)
        assert not accepted(golden, whole | {name: whole[name][:-1]})


def test_a_replay_that_differs_in_the_last_byte_alone_is_not_accepted(golden: Golden) -> None:
    outputs = replayed(golden)
    outputs["next"][-1, -1] ^= 1
    verdict = golden.judge(outputs, golden.all_rows)
    assert not verdict.ok
    assert verdict.detail == f"next differs from the golden one at step {len(outputs['next']) - 1}"


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_a_replay_off_in_the_last_logit_of_the_last_row_alone_is_not_accepted(
    golden: Golden, value: float
) -> None:
    outputs = replayed(golden)
    outputs["logits"][-1, -1, -1] = value
    assert not accepted(golden, outputs)


def test_a_logit_is_accepted_up_to_its_bound_and_no_further(golden: Golden) -> None:
    for factor, expected in ((0.9, True), (1.1, False)):
        outputs = replayed(golden) | {"logits": golden.truth["logits"].copy()}
        outputs["logits"][-1, -1, -1] += factor * golden.bounds["logits"]
        assert accepted(golden, outputs) is expected


def test_a_bound_is_of_the_rounding_of_all_rows_that_training_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounding = torch.zeros(12, 24, VOCABULARY, dtype=torch.float64)
    rounding[2, 1, 5], rounding[3, 20, 7] = 1e-4, 1e-3  # the first in a row that is kept

    def computed(model: LanguageModel, of: Sample) -> Tensor:
        dtype = model.readout.weight.dtype
        return (1 + rounding).to(dtype) if dtype == torch.float32 else torch.ones_like(rounding)

    monkeypatch.setattr("export.text.golden.golden_logits", computed)
    model = LanguageModel(LanguageConfig(units=4, embedding=4))
    made = make_golden(model, {"batch": {"rows": 24, "steps": 12}})
    assert made.truth["logits"].shape == (12, 8, VOCABULARY)
    assert (made.truth["logits"] == 1).all()  # which is that of float64
    assert not made.steps["force"].any()  # a replay draws it again
    assert made.bounds["logits"] == pytest.approx(4e-3, rel=1e-3)
    assert made.training_error == pytest.approx(1e-4, rel=1e-3)


def test_vectors_of_long_rows_are_no_larger_than_a_service_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("export.text.golden._MOST_STEPS", 3)
    model = LanguageModel(LanguageConfig(units=4, embedding=4))
    made = make_golden(model, {"batch": {"rows": 2, "steps": 20}})
    assert {len(values) for values in made.steps.values()} == {3}


def test_a_sample_of_a_report_is_drawn_with_the_noise_of_requests_near_borders_too() -> None:
    text = LanguageModel(LanguageConfig(units=4, layers=1))
    ink = HandwritingModel(HandwritingConfig(units=4, mixtures=2, embedding=2))
    for name, model, golden in (("language", text, text_golden), ("handwriting", ink, ink_golden)):
        drawn, noise = KINDS[name].sample(model, 3, 2, 5).noise, golden.noise(5, 3, 2)
        assert drawn.keys() == noise.keys()
        for port, expected in noise.items():
            np.testing.assert_array_equal(drawn[port].numpy(), expected.astype(np.float32))


def test_every_golden_row_is_what_training_computes_of_it_whatever_its_batch_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three at a time: the rows of several batches, the last of which has others as well."""
    monkeypatch.setattr(ink_golden, "_POINTS", 6)
    torch.manual_seed(0)
    text = LanguageModel(LanguageConfig(units=4, embedding=4)).double()
    made = make_golden(copy.deepcopy(text).float(), {"batch": {"rows": 3, "steps": 6}})
    drawn = Sample(torch.from_numpy(made.exact["next"]), {}, {})
    logits = text_golden.golden_logits(text, drawn).numpy()
    np.testing.assert_allclose(made.truth["logits"], logits, rtol=0, atol=1e-12)
    pen = HandwritingModel(HandwritingConfig(units=4, mixtures=2, embedding=2)).double()
    made = ink_golden.golden(copy.deepcopy(pen).float(), {"batch": {"rows": 3}})
    row = {name: torch.from_numpy(array) for name, array in made.rows.items()}
    ink = Sample(torch.from_numpy(made.steps["forced"]), {}, row)
    mixtures = ink_golden.training_mixtures(pen, ink).numpy()
    np.testing.assert_allclose(made.truth["mixture"], mixtures, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("norm", "told"), [("layer", False), ("none", False), ("batch", True)])
def test_a_longest_step_is_told_of_batch_norm_alone(norm: NormKind, told: bool) -> None:
    model = LanguageModel(LanguageConfig(units=4, layers=1, norm=norm))
    assert ("past_longest_step" in KINDS["language"].served_as(model)) == told


def test_text_is_drawn_in_the_mode_it_is_served_in_whatever_mode_the_model_was_in() -> None:
    torch.manual_seed(0)
    model = LanguageModel(LanguageConfig(units=4, layers=1, norm="batch"))
    drawn = [text_golden.sample(model.train(mode), 24, 8, seed=1).symbols for mode in (True, False)]
    assert torch.equal(*drawn)


def test_bounds_of_a_reader_and_of_a_pen_are_of_all_rows_too_and_each_of_its_own_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def computed(model: Any, of: Sample) -> Tensor:
        outputs = (
            model.readout.bias if isinstance(model, HandwritingModel) else torch.zeros(SYMBOLS)
        )
        rounding = torch.zeros(5, 6, len(outputs), dtype=torch.float64)
        rounding[2, 1, 2], rounding[3, 5, 1] = 1e-4, 1e-3  # the first in a row that is kept
        dtype = next(model.parameters()).dtype
        return (1 + rounding).to(dtype) if dtype == torch.float32 else torch.ones_like(rounding)

    monkeypatch.setattr(reader_golden, "training_logits", computed)
    monkeypatch.setattr(reader_golden, "_STEPS", 5)
    monkeypatch.setattr(ink_golden, "training_mixtures", computed)
    monkeypatch.setattr(ink_golden, "drawn_from", lambda raw, _: 2 * raw[..., :3])
    monkeypatch.setattr(ink_golden, "_POINTS", 5)
    read, precisions = ink_golden.read, list[torch.dtype]()

    def noted(step: Step, sample: Sample) -> dict[str, Tensor]:
        precisions.append(next(step.parameters()).dtype)
        return read(step, sample)

    monkeypatch.setattr(ink_golden, "read", noted)
    pen = HandwritingModel(HandwritingConfig(units=4, mixtures=2, embedding=2))
    bounds: dict[str, Any] = {"reader": {"logits": 4e-3}}
    bounds["handwriting"] = {"mixture": 4e-3, "drawn": 8e-3}
    for name, model in (("reader", ReaderModel(ReaderConfig(units=4))), ("handwriting", pen)):
        made = KINDS[name].golden(model, {"batch": {"rows": 6}})
        assert made.bounds == pytest.approx(bounds[name], rel=1e-3)
        assert made.training_error == pytest.approx(1e-4, rel=1e-3)
        assert {array.shape[:2] for array in made.truth.values()} == {(5, 4)}
        for output, array in made.truth.items():
            assert (array == (2 if output == "drawn" else 1)).all()  # which is that of float64
    assert precisions == [torch.float64]
