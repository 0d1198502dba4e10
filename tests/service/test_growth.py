"""Of harmless operators that follow one another values can grow without end, and so can the time
that they take: a run ends first."""

import resource
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import GraphProto, helper
from onnxruntime import OrtValue

from service.artifact import load_artifact
from service.engine import runtime
from service.engine.runtime import choose_runtime
from tests.service.altered import copy_of, rehash
from tests.service.serving import attested, eventually, running, settings

_MB = 1 << 20


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a service whose runs may take no more than this: a test is not to take a GB."""
    monkeypatch.setattr(runtime, "_MOST_BYTES", 32 * _MB, raising=False)


def _doubled(artifact: Path, times: int, *, tanh: int = 0) -> Path:
    """The same answers, but a value is put beside itself so many times on the way, and goes through
    so many more operators; of a chunk and of a step."""
    for name in ("model.onnx", "step.onnx"):
        model = onnx.load(artifact / name, load_external_data=False)
        scans = [node for node in model.graph.node if node.op_type == "Scan"]
        body, now = (scans[0].attribute[0].g, "_now") if scans else (model.graph, "")
        _double(body, times, tanh, now)
        (artifact / name).write_bytes(model.SerializeToString())
    rehash(artifact)
    return artifact


def _double(body: GraphProto, times: int, tanh: int, now: str) -> None:
    """`now` ends the names of what there is in a step."""
    (last,) = (t for n in body.node if n.op_type == "ReduceMax" for t in n.input[1:])
    large = f"h0{now}"
    for index in range(times):
        body.node.append(helper.make_node("Concat", [large, large], [f"x{index}"], axis=1))
        large = f"x{index}"
    for index in range(tanh):
        body.node.append(helper.make_node("Tanh", [large], [f"y{index}"]))
        large = f"y{index}"
    logits = next(node for node in body.node if f"logits{now}" in node.output)
    logits.output[0] = "logits_before"
    for node in body.node:
        node.input[:] = ["logits_before" if n == f"logits{now}" else n for n in node.input]
    body.node.append(helper.make_node("ReduceMax", [large, last], ["most"], keepdims=1))
    body.node.append(helper.make_node("Sub", ["most", "most"], ["nothing"]))
    body.node.append(helper.make_node("Add", ["logits_before", "nothing"], [f"logits{now}"]))


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


@pytest.mark.parametrize(("runner", "threads"), [("scan", 1), ("scan", 0), ("slots", 1)])
def test_a_graph_that_takes_too_long_keeps_no_other_from_serving(
    artifacts: Path, tmp_path: Path, runner: str, threads: int
) -> None:
    """Whether it shows when it is to prove itself, or before, when its threads are counted."""
    copy_of(artifacts / "noise", tmp_path)
    _doubled(copy_of(artifacts / "letters", tmp_path), 14, tanh=1000)
    chosen = settings(tmp_path, runner=runner, threads=threads, slots=4, stall_timeout_s=0.12)
    others = threading.enumerate()
    with running(chosen) as service:
        assert service.client.get("/readyz").text == "ok; failed: letters"
        assert service.post(model="noise", max_tokens=4).status_code == 200
        assert eventually(lambda: service.client.get("/livez").text == "ok")
        since = [t.name for t in threading.enumerate() if t not in others]
        assert "engine-letters" not in since


def test_what_a_session_holds_is_not_taken_from_another(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has an arena of its own, which goes with it: in one for all, the last would starve, or
    have no limit any more."""
    monkeypatch.setattr(runtime, "_MOST_BYTES", 8 * _MB)
    artifact = load_artifact(artifacts / "letters")
    chosen = choose_runtime(settings(artifacts, provider="cpu"))
    golden = artifact.golden
    once = {n: a[None] for n, a in (golden.row_inputs(0) | artifact.initial_state()).items()}

    def run(megabytes: int) -> object:
        steps = megabytes * _MB // (256 * np.dtype(np.float32).itemsize)  # of logits
        each = {n: a[:1].repeat(steps, 0)[:, None] for n, a in golden.step_inputs(0).items()}
        session = chosen.session(artifact, "model.onnx")
        names = {port.name for port in session.get_inputs()}
        given = {n: OrtValue.ortvalue_from_numpy(a) for n, a in (each | once).items() if n in names}
        return session, session.run_with_ort_values(["logits"], given)

    held = [run(5) for _ in range(3)]  # more than half each
    assert len(held) == 3
    with pytest.raises(Exception, match="Available memory"):  # of no type of its own
        run(10)
