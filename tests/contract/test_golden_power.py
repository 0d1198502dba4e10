"""The power of a replay's judge: whatever is left out or off at an edge is not accepted; and of a
parity report: whatever finding is red, there is doubt.
"""

import numpy as np
import pytest

from contract.golden import Arrays, Golden
from contract.manifest import Finding, Graphs, Ports, Runners
from contract.text import TextManifest

_STEPS, _ROWS, _WIDTH = 6, 24, 4  # more rows than the eight of a shipped artifact

Cut = tuple[slice, ...]
_CUTS: dict[str, Cut] = {
    "the last step": (slice(None, -1),),
    "the first step": (slice(1, None),),
    "all but one step": (slice(0, 1),),
    "every step": (slice(0, 0),),
    "the last row": (slice(None), slice(None, -1)),
    "all but one row": (slice(None), slice(0, 1)),
}


def _golden(*, exact: bool = True) -> Golden:
    random = np.random.default_rng(9)
    return Golden(
        steps={"forced": random.integers(256, size=(_STEPS, _ROWS))},
        rows={"bias": np.zeros(_ROWS, np.float32)},
        filtered=np.arange(_ROWS) % 2 == 1,
        truth={"logits": random.normal(size=(_STEPS, _ROWS, _WIDTH))},
        bounds={"logits": 0.5},
        exact={"next": random.integers(256, size=(_STEPS, _ROWS))} if exact else {},
        training_error=0.1,
    )


def _accepted(golden: Golden, outputs: Arrays) -> bool:
    """Whether a replay of all rows is judged ok; one of another shape may raise."""
    try:
        return golden.judge(outputs, golden.all_rows).ok
    except ValueError:
        return False


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("cut", _CUTS)
def test_a_replay_that_leaves_something_out_is_not_accepted(cut: str, exact: bool) -> None:
    golden = _golden(exact=exact)
    whole = golden.truth | golden.exact
    assert _accepted(golden, whole)
    assert not _accepted(golden, {name: a[_CUTS[cut]] for name, a in whole.items()})
    for name in whole:
        assert not _accepted(golden, whole | {name: whole[name][_CUTS[cut]]})


@pytest.mark.parametrize("row", range(_ROWS))
@pytest.mark.parametrize("step", range(_STEPS))
def test_every_single_place_counts(step: int, row: int) -> None:
    golden = _golden()
    for name, by in (("logits", 0.6), ("next", 1)):
        outputs = {n: a.copy() for n, a in (golden.truth | golden.exact).items()}
        outputs[name][(step, row, -1)[: outputs[name].ndim]] += by
        verdict = golden.judge(outputs, golden.all_rows)
        assert not verdict.ok
        assert f"at step {step}" in verdict.detail


def test_two_rows_in_each_others_place_are_noticed_wherever_they_are() -> None:
    golden = _golden()
    for one in range(_ROWS - 1):
        order = golden.all_rows
        order[one], order[one + 1] = order[one + 1], order[one]
        swapped = {n: a[:, order] for n, a in (golden.truth | golden.exact).items()}
        assert not _accepted(golden, swapped)


def _manifest(*values: float) -> TextManifest:
    graphs = Graphs(plain="a.onnx")
    findings = tuple(
        Finding(name=f"f{i}", value=value, bound=1.0, detail="") for i, value in enumerate(values)
    )
    return TextManifest(
        name="m",
        hyperparameters={},
        graphs=Runners(scan=graphs, step=graphs),
        ports=Ports(state=(), step=(), row=(), output=()),
        filters=(),
        layer_normalizations=0,
        parameters=0,
        provenance={},
        files={},
        parity=findings,
    )


def test_any_red_finding_is_a_doubt_that_names_it() -> None:
    assert _manifest(0.0, 1.0, 0.5).doubt is None
    for place in range(5):
        values = [0.0] * 5
        values[place] = 1.5
        assert _manifest(*values).doubt == f"the parity report is red: f{place}"
    assert _manifest(2.0, 0.0, np.nan).doubt == "the parity report is red: f0, f2"


def test_a_report_that_is_missing_or_empty_is_a_doubt() -> None:
    whole = _manifest(0.0)
    for parity in (None, ()):
        doubt = whole.model_copy(update={"parity": parity}).doubt
        assert doubt is not None
        assert "there is no parity report" in doubt
