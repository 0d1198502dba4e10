"""Of harmless operators that follow one another values can grow without end: a run ends first."""

import resource
from pathlib import Path

import onnx
import pytest
from onnx import GraphProto, helper

from service.engine import runtime
from tests.service.altered import copy_of, rehash
from tests.service.serving import attested, running, settings

_MB = 1 << 20


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a service whose runs may take no more than this: a test is not to take a GB."""
    monkeypatch.setattr(runtime, "_MOST_BYTES", 32 * _MB, raising=False)


def _doubled(artifact: Path, times: int) -> Path:
    """The same answers, but a value is put beside itself so many times on the way."""
    for name in ("model.onnx", "step.onnx"):
        model = onnx.load(artifact / name, load_external_data=False)
        scans = [node.attribute[0].g for node in model.graph.node if node.op_type == "Scan"]
        if scans:
            _double(*scans, "h0_now", "logits_now", times)
        else:
            _double(model.graph, "h0_after", "logits", times)
        (artifact / name).write_bytes(model.SerializeToString())
    rehash(artifact)
    return artifact


def _double(body: GraphProto, large: str, logits: str, times: int) -> None:
    (last,) = (t for n in body.node if n.op_type == "ReduceMax" for t in n.input[1:])
    for index in range(times):
        body.node.append(helper.make_node("Concat", [large, large], [f"x{index}"], axis=1))
        large = f"x{index}"
    made = next(node for node in body.node if logits in node.output)
    made.output[0] = "logits_before"
    for node in body.node:
        node.input[:] = ["logits_before" if n == logits else n for n in node.input]
    body.node.append(helper.make_node("ReduceMax", [large, last], ["most"], keepdims=1))
    body.node.append(helper.make_node("Sub", ["most", "most"], ["nothing"]))
    body.node.append(helper.make_node("Add", ["logits_before", "nothing"], [logits]))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("runner", ["scan", "slots"])
def test_a_run_that_wants_too_much_memory_ends_with_an_error(
    artifacts: Path, tmp_path: Path, runner: str
) -> None:
    assert attested(_doubled(copy_of(artifacts / "letters", tmp_path / "few"), 8), runner).ok
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Exception, match="smaller than requested bytes"):
        attested(_doubled(copy_of(artifacts / "letters", tmp_path / "many"), 17), runner)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 64 << 10


@pytest.mark.usefixtures("small")
def test_a_graph_that_grows_keeps_no_other_from_serving(artifacts: Path, tmp_path: Path) -> None:
    copy_of(artifacts / "noise", tmp_path)
    _doubled(copy_of(artifacts / "letters", tmp_path), 17)
    with running(settings(tmp_path)) as service:
        assert service.client.get("/readyz").text == "ok; failed: letters"
        assert service.post(model="noise", max_tokens=4).status_code == 200
