"""Golden vectors come back as they were saved, and a replay is judged by every one of them."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contract.golden import Arrays, Golden, Verdict, halves, worst

_STEPS, _ROWS = 5, 3


def _golden() -> Golden:
    """Three rows, the last of which asks for symbols to be left out; names not in order."""
    random = np.random.default_rng(4)
    return Golden(
        steps={"forced": np.arange(15).reshape(5, 3), "force": np.ones((5, 3), bool)},
        rows={"bias": np.array([0.0, 0.5, 1.0], np.float32)},
        filtered=np.array([False, False, True]),
        truth={"mixture": random.normal(size=(5, 3, 7)), "drawn": random.normal(size=(5, 3, 2))},
        bounds={"mixture": 0.5, "drawn": 0.25},
        exact={"next": random.integers(256, size=(5, 3))},
        training_error=0.125,
    )


def _outputs(golden: Golden, rows: list[int]) -> Arrays:
    """What a replay without any error puts out."""
    named = golden.truth | golden.exact
    return {name: array[:, rows].copy() for name, array in named.items()}


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    saved = _golden()
    saved.save(tmp_path / "golden.safetensors")
    loaded = Golden.load(tmp_path / "golden.safetensors")
    for group in ("steps", "rows", "truth", "exact"):
        mine, theirs = getattr(loaded, group), getattr(saved, group)
        assert mine.keys() == theirs.keys()
        for name, array in theirs.items():
            assert mine[name].dtype == array.dtype
            assert (mine[name] == array).all()
    assert loaded.filtered.tolist() == saved.filtered.tolist()
    assert (loaded.bounds, loaded.training_error) == (saved.bounds, saved.training_error)


def test_the_output_that_training_computes_stays_the_first(tmp_path: Path) -> None:
    whole = replace(_golden(), bounds={"mixture": 0.5, "drawn": 0.75})
    whole.save(tmp_path / "golden.safetensors")
    for _ in range(20):  # safetensors has them in another order each time
        loaded = Golden.load(tmp_path / "golden.safetensors")
        assert list(loaded.truth) == ["mixture", "drawn"]
    outputs = _outputs(loaded, [0])
    outputs["mixture"] += 0.25
    verdict = loaded.judge(outputs, [0])
    assert (verdict.max_error, verdict.bound) == (pytest.approx(0.25), 0.5)


def test_the_same_vectors_are_the_same_bytes(tmp_path: Path) -> None:
    names = ("one", "other")
    for name in names:
        _golden().save(tmp_path / name)
    one, other = ((tmp_path / name).read_bytes() for name in names)
    assert one == other


@pytest.mark.parametrize("bound", [0.0, -1.0, math.inf, math.nan])
def test_a_bound_that_is_none_is_refused(tmp_path: Path, bound: float) -> None:
    wrong = replace(_golden(), bounds={"mixture": 0.5, "drawn": bound})
    wrong.save(tmp_path / "golden.safetensors")
    with pytest.raises(ValueError, match=r"golden\.safetensors: the bound of drawn is"):
        Golden.load(tmp_path / "golden.safetensors")


@pytest.mark.parametrize("error", [-0.1, math.inf, math.nan])
def test_an_error_of_training_that_is_none_is_refused(tmp_path: Path, error: float) -> None:
    replace(_golden(), training_error=error).save(tmp_path / "golden.safetensors")
    with pytest.raises(ValueError, match="the error of training is"):
        Golden.load(tmp_path / "golden.safetensors")


@pytest.mark.parametrize("number", [-3.5e38, math.inf, math.nan])
def test_an_output_that_is_no_float32_is_refused(tmp_path: Path, number: float) -> None:
    whole = _golden()
    whole.truth["drawn"][4, 2, 1] = number
    whole.save(tmp_path / "golden.safetensors")
    with pytest.raises(ValueError, match="drawn is not what training could have computed"):
        Golden.load(tmp_path / "golden.safetensors")


def test_an_output_of_whole_numbers_is_refused(tmp_path: Path) -> None:
    whole = _golden()
    whole.truth["drawn"] = whole.truth["drawn"].astype(np.int64)
    whole.save(tmp_path / "golden.safetensors")
    with pytest.raises(ValueError, match="drawn is not what training could have computed"):
        Golden.load(tmp_path / "golden.safetensors")


@pytest.mark.parametrize("filtered", [np.zeros((3, 1), bool), np.zeros(3, np.int64)])
def test_vectors_that_do_not_say_which_rows_are_filtered_are_refused(
    tmp_path: Path, filtered: np.ndarray
) -> None:
    replace(_golden(), filtered=filtered).save(tmp_path / "golden.safetensors")
    with pytest.raises(ValueError, match="do not say which rows"):
        Golden.load(tmp_path / "golden.safetensors")


def test_vectors_of_no_steps_are_refused(tmp_path: Path) -> None:
    whole = _golden()
    groups = {
        group: {name: array[:0] for name, array in getattr(whole, group).items()}
        for group in ("steps", "truth", "exact")
    }
    replace(whole, **groups).save(tmp_path / "golden.safetensors")
    with pytest.raises(ValueError, match="not all of 0 steps"):
        Golden.load(tmp_path / "golden.safetensors")


@pytest.mark.parametrize("change", [{"steps": {}}, {"truth": {}, "bounds": {}}])
def test_vectors_of_nothing_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    replace(_golden(), **change).save(tmp_path / "golden.safetensors")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no steps or no outputs"):
        Golden.load(tmp_path / "golden.safetensors")


def test_a_tensor_of_a_type_that_numpy_has_not_is_told(tmp_path: Path) -> None:
    header = b'{"filtered": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}'
    content = len(header).to_bytes(8, "little") + header + bytes(2)
    (tmp_path / "golden.safetensors").write_bytes(content)
    told = r"^golden\.safetensors: it has tensors of type BF16$"
    with pytest.raises(ValueError, match=told):
        Golden.load(tmp_path / "golden.safetensors")


@pytest.mark.parametrize("content", [None, b"", b"no tensors"])
def test_a_file_that_holds_no_vectors_is_named(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "golden.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"^golden\.safetensors: "):
        Golden.load(tmp_path / "golden.safetensors")


@pytest.mark.parametrize("name", ["mixture", "drawn"])
def test_an_output_without_a_bound_is_refused(tmp_path: Path, name: str) -> None:
    golden = _golden()
    del golden.bounds[name]
    golden.save(tmp_path / "golden.safetensors")
    with pytest.raises(
        ValueError, match=rf"^golden\.safetensors says nothing of 'the bound of {name}'"
    ):
        Golden.load(tmp_path / "golden.safetensors")


@pytest.mark.parametrize(
    "change",
    [
        {"filtered": np.array([False, True])},
        {"filtered": np.ones(3, bool)},  # no row the plain graph could run
        {"rows": {"bias": np.zeros(2, np.float32)}},
        {"rows": {"bias": np.array(0.0, np.float32)}},
        {"exact": {"next": np.zeros((4, 3), int)}},
        {"steps": {"forced": np.zeros((5, 2), int)}},
        {"steps": {"forced": np.zeros(5, int)}},
    ],
)
def test_vectors_that_do_not_fit_each_other_are_refused(
    tmp_path: Path, change: dict[str, object]
) -> None:
    replace(_golden(), **change).save(tmp_path / "golden.safetensors")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not all of 5 steps of 3 rows"):
        Golden.load(tmp_path / "golden.safetensors")


def test_a_row_is_its_share_of_the_inputs() -> None:
    golden = _golden()
    assert (golden.plain_rows, golden.all_rows) == ([0, 1], [0, 1, 2])
    assert golden.step_inputs(1)["forced"].tolist() == [1, 4, 7, 10, 13]
    assert golden.row_inputs(2)["bias"] == 1


@pytest.mark.parametrize("rows", [[0, 1], [2], [0, 1, 2]])
def test_a_replay_without_an_error_holds(rows: list[int]) -> None:
    golden = _golden()
    verdict = golden.judge(_outputs(golden, rows), rows)
    assert verdict.ok
    assert (verdict.max_error, verdict.bound, verdict.training_error) == (0, 0.5, 0.125)
    assert verdict.steps == 5 * len(rows)


@pytest.mark.parametrize("row", [0, 1, 2])
@pytest.mark.parametrize("step", [0, 4])
@pytest.mark.parametrize(
    ("name", "by", "detail"),
    [
        ("mixture", 0.51, "mixture: outside the bound at step {}: 0.51 > 0.5"),
        ("drawn", -0.3, "drawn: outside the bound at step {}: 0.3 > 0.25"),
        ("drawn", math.nan, "drawn: outside the bound at step {}: nan > 0.25"),
        ("mixture", math.inf, "mixture: outside the bound at step {}: inf > 0.5"),
        ("next", 1, "next differs from the golden one at step {}"),
    ],
)
def test_one_value_off_at_any_place_fails(
    name: str, by: float, detail: str, step: int, row: int
) -> None:
    golden = _golden()
    outputs = _outputs(golden, [0, 1, 2])
    outputs[name][step, row] += by
    verdict = golden.judge(outputs, [0, 1, 2])
    assert not verdict.ok
    assert verdict.detail == detail.format(step)


def test_of_all_that_is_off_the_first_output_is_told() -> None:
    golden = _golden()
    outputs = _outputs(golden, [0, 1, 2])
    outputs["mixture"][3] += 1
    outputs["mixture"][4] += 2
    outputs["drawn"][1] += 1
    outputs["next"][0] += 1
    assert golden.judge(outputs, [0, 1, 2]).detail.startswith(
        "mixture: outside the bound at step 3"
    )


def test_errors_within_the_bounds_hold() -> None:
    golden = _golden()
    outputs = _outputs(golden, [1, 2])
    outputs["mixture"] -= 0.49
    outputs["drawn"] += 0.24
    verdict = golden.judge(outputs, [1, 2])
    assert verdict.ok
    assert verdict.max_error == pytest.approx(0.49)


def test_an_error_may_be_as_large_as_its_bound() -> None:
    golden = _golden()
    golden = replace(golden, truth={n: np.zeros_like(a) for n, a in golden.truth.items()})
    outputs = _outputs(golden, [0, 1])
    outputs["mixture"][2, 1, 3], outputs["drawn"][4, 0, 1] = 0.5, -0.25
    assert golden.judge(outputs, [0, 1]).ok


def test_other_rows_are_another_replay() -> None:
    golden = _golden()
    assert not golden.judge(_outputs(golden, [0]), [1]).ok


def _verdict(ok: bool, max_error: float, detail: str) -> Verdict:
    return Verdict(ok, max_error, 1.0, 0.5, 10, detail)


def test_of_several_replays_the_first_that_failed_speaks() -> None:
    verdicts = [_verdict(True, 0.9, "a"), _verdict(False, 0.2, "b"), _verdict(False, 3.0, "c")]
    assert worst(verdicts) == Verdict(False, 3.0, 1.0, 0.5, 30, "b")
    assert worst(verdicts[:1]) == verdicts[0]


@pytest.mark.parametrize("order", [1, -1])
def test_an_error_that_is_no_number_is_the_largest(order: int) -> None:
    verdict = worst([_verdict(True, 0.9, "a"), _verdict(False, math.nan, "b")][::order])
    assert math.isnan(verdict.max_error)
    assert verdict.describe()["max_error"] is None
    assert verdict.describe()["ok"] is False


@pytest.mark.parametrize(("steps", "lengths"), [(1, [1]), (2, [1, 1]), (7, [4, 3])])
def test_a_replay_is_of_two_runs_that_are_all_of_it(steps: int, lengths: list[int]) -> None:
    given = {"force": np.arange(steps), "point": np.arange(2 * steps).reshape(steps, 2)}
    parts = halves(given)
    assert [len(part["force"]) for part in parts] == lengths
    for name, whole in given.items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), whole)
