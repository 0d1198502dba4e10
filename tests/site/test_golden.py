"""Golden vectors judged on the site: every verdict is the service's."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.forcing import forcing_runs
from contract.golden import Golden
from tests.service.altered import copy_of, pass_on
from tests.site.conftest import Ask


def _judged(golden: Golden, name: str, place: int | None, by: float | None) -> dict[str, Any]:
    rows = golden.plain_rows
    outputs = {n: a[:, rows].copy() for n, a in (golden.truth | golden.exact).items()}
    if place is not None:
        flat = outputs[name].reshape(-1)
        flat[place] += np.nan if by is None else by
    return golden.judge(outputs, rows).describe()


@pytest.mark.parametrize("model", ["shakespeare", "handwriting"])
def test_verdicts_are_those_of_the_service(
    ask: Ask, artifact: Callable[[str], Path], model: str
) -> None:
    folder = artifact(model)
    golden = Golden.load(folder / "golden.safetensors")
    truth, exact = next(iter(golden.truth)), next(iter(golden.exact))
    bound = golden.bounds[truth]
    changes = [
        (truth, 77, 0.99 * bound),
        (truth, 2021, 1.01 * bound),
        (truth, 2022, -1.01 * bound),
        (truth, 5, None),
        (exact, 9, 1),
        (exact, 10, -1),
    ]
    cases = [{"folder": str(folder), "name": n, "place": p, "by": b} for n, p, b in changes]
    for change, verdict in zip(changes, ask("golden", cases), strict=True):
        expected = _judged(golden, *change)
        assert verdict["ok"] == expected["ok"] == (change == changes[0])
        assert verdict["max_error"] == pytest.approx(expected["max_error"], abs=1e-15)
        assert verdict | {"max_error": 0, "detail": ""} == expected | {"max_error": 0, "detail": ""}
        place = expected["detail"].partition(" at step ")[2].partition(":")[0]
        assert f"step {place}" in verdict["detail"] or expected["ok"]
        about = expected["detail"] if expected["ok"] else change[0]
        assert verdict["detail"].startswith(about)


@pytest.mark.parametrize("model", ["shakespeare", "handwriting", "reader"])
def test_a_graph_that_forgets_its_state_from_run_to_run_is_not_attested(
    ask: Ask, artifact: Callable[[str], Path], model: str
) -> None:
    folder = artifact(model)
    cases = [{"folder": str(folder), "forgets": forgets} for forgets in (False, True)]
    remembers, forgets = ask("replayed", cases)
    steps, *_ = next(iter(Golden.load(folder / "golden.safetensors").steps.values())).shape
    assert remembers["ok"]
    assert not forgets["ok"]
    assert f"at step {-(-steps // 2)}" in forgets["detail"]


def test_golden_vectors_of_one_step_are_run_once_and_of_two_faults_the_first_is_told(
    ask: Ask,
) -> None:
    right, wrong = ask("single", [{"off": 0.5}, {"off": 3}])
    assert (right["runs"], wrong["runs"]) == (1, 1)
    told = {"ok": True, "max_error": 0.5, "bound": 1, "training_error": 0.5, "steps": 1}
    assert right["verdict"] | {"detail": ""} == told | {"detail": ""}
    assert wrong["verdict"]["detail"] == "a: outside the bound at step 0: 3.00 > 1.00"
    assert right["rows"] == [[0, 1, 2, 3, 4, 5], [2, 3, 8, 9]]


def test_a_state_that_is_nothing_may_be_off_by_rounding(ask: Ask) -> None:
    told = "h depends on what a step was given that was to draw"
    assert ask("almost", [{"off": 9e-4}, {"off": 1.1e-3}]) == [None, told]


def test_outputs_may_not_depend_on_what_was_given_and_not_forced(ask: Ask) -> None:
    right, wrong = ask("leaking", [{"leaks": False}, {"leaks": True}])
    assert right["ok"]
    told = "said depends on what a step was given that was to draw"
    assert wrong | {"detail": ""} == right | {"ok": False, "detail": ""}
    assert wrong["detail"] == told


@pytest.mark.parametrize("model", ["shakespeare", "handwriting", "reader"])
def test_a_graph_is_forced_as_the_service_does_it(
    ask: Ask, artifact: Callable[[str], Path], model: str
) -> None:
    folder = artifact(model)
    wanted = [
        {name: base64.b64encode(array.tobytes()).decode() for name, array in run.items()}
        for run in forcing_runs(Golden.load(folder / "golden.safetensors").steps)
    ]
    faults = {
        None: None,
        "deaf": "emitted is not what a step was forced to emit",
        "never": "total depends on what a step was given that was to draw",
        "leaks": "total depends on what a step was given that was to draw",
        "late": "emitted depends on what a step was given that was to draw",
    }
    told = ask("forcing", [{"folder": str(folder), "fault": fault} for fault in faults])
    assert [found["broken"] for found in told] == list(faults.values())
    assert told[0]["runs"] == wanted


# What is judged of every model is above, without its graph; that of handwriting takes long.
@pytest.mark.parametrize(("model", "emitted"), [("shakespeare", "drawn"), ("reader", "forced")])
def test_a_graph_that_is_deaf_or_does_not_draw_is_not_attested(
    ask: Ask, artifact: Callable[[str], Path], onnxruntime_web: str, model: str, emitted: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    copy = copy_of(artifact(model), tmp_path)
    pass_on(copy, "model.onnx", emitted)
    with pytest.raises(AssertionError, match="Not attested here"):
        ask("requests", ["describe"], str(copy), onnxruntime_web)
