"""Which operators are compared one by one, and that a single row of one that differs is told."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from contract.manifest import Finding
from export.graph import INTEGER, ROW_INDEPENDENT
from export.parity import operators
from export.parity.operators import BATCHES, COMPUTING, EXCLUDED, WIDTHS, compare_operator

# They move, compare, select or convert; QuantizeLinear and the way back are part of MatMulInteger.
_EXACT = frozenset(
    """
    And ArgMax Cast Concat Constant DequantizeLinear Equal Expand Gather GatherElements Greater
    GreaterOrEqual Identity Less LessOrEqual Max Min Neg Not QuantizeLinear ReduceMin Reshape Scan
    Slice Split Squeeze TopK Transpose Unsqueeze Where
    """.split()  # noqa: SIM905
)


def test_every_operator_that_may_be_exported_is_compared_or_exact_by_nature() -> None:
    assert frozenset(COMPUTING) | _EXACT == ROW_INDEPENDENT | INTEGER
    assert not _EXACT & {*COMPUTING, *EXCLUDED}


@pytest.mark.parametrize("at_once", [2, 4, 8, 16, 32])
def test_rows_and_widths_leave_a_rest_of_whatever_a_kernel_takes_at_once(at_once: int) -> None:
    for sizes in (WIDTHS, BATCHES):
        assert any(size > at_once and size % at_once for size in sizes)


def _found(monkeypatch: pytest.MonkeyPatch, *differing: str) -> dict[str, Finding]:
    """The findings if one row of each of these differed."""
    monkeypatch.setattr(
        operators,
        "compare_operator",
        lambda name: operators.OperatorBits(name, int(name in differing), 100),
    )
    everything = operators.operators.__wrapped__  # type: ignore[attr-defined]  # it is kept
    return {finding.name: finding for finding in everything()}


@pytest.mark.parametrize("operator", COMPUTING)
def test_one_row_of_an_operator_of_the_list_is_too_many(
    monkeypatch: pytest.MonkeyPatch, operator: str
) -> None:
    held = {name: f.holds for name, f in _found(monkeypatch, operator, EXCLUDED[0]).items()}
    assert held == {"operators": False, "operators, control": True}


@pytest.mark.parametrize("operator", EXCLUDED)
def test_one_of_the_others_has_to_differ(monkeypatch: pytest.MonkeyPatch, operator: str) -> None:
    found = _found(monkeypatch, operator)
    assert all(finding.holds for finding in found.values())
    assert found["operators, control"].detail.endswith(f"differ: {operator}")
    assert found["operators"].detail.startswith(f"of {100 * len(COMPUTING):,} rows")
    none = _found(monkeypatch)
    assert none["operators"].holds
    assert not none["operators, control"].holds


def test_a_product_differs_without_prepacking_alone_and_every_row_counts() -> None:
    kept, lost = (compare_operator("Gemm", prepacking=p) for p in (True, False))
    assert (kept.differing_rows, kept.rows) == (0, sum(BATCHES) * len(WIDTHS))
    # More than one of every batch at every width.
    assert lost.differing_rows > len(BATCHES) * len(WIDTHS)


@pytest.mark.parametrize("operator", COMPUTING)
def test_what_an_operator_is_given_beside_its_rows_varies(
    monkeypatch: pytest.MonkeyPatch, operator: str
) -> None:
    """A product by ones has no product that is rounded, a sum of zeros no order."""
    made: list[onnx.ModelProto] = []

    def keep(content: bytes, *_: Any, **__: Any) -> None:
        made.append(onnx.load_from_string(content))

    monkeypatch.setattr(operators.ort, "InferenceSession", keep)
    operators._session(operator, 33, np.random.default_rng(0), prepacking=True)
    (model,) = made
    assert operator in {node.op_type for node in model.graph.node}
    for tensor in model.graph.initializer:
        content = numpy_helper.to_array(tensor)
        if content.size >= 33:
            assert np.unique(content).size > 16, tensor.name


def test_batches_have_the_sizes_they_are_said_to_have_and_no_row_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[np.ndarray] = []

    def same(x: np.ndarray) -> np.ndarray:
        seen.append(x)
        return x

    monkeypatch.setattr(operators, "_session", lambda *_: same)
    assert compare_operator("Add").differing_rows == 0
    sizes = [len(x) for x in seen if len(x) > 1]
    assert sizes == [*BATCHES] * len(WIDTHS)
    assert all(len(np.unique(x, axis=0)) == len(x) for x in seen)
