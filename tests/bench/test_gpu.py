"""The GPU report, rehearsed on the CPU: it holds for a good runner and tells a bad one."""

import json
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench import gpu, gpu_http, gpu_step, gpu_training, http
from bench.step import random_artifact
from contract.golden import Arrays
from contract.manifest import Finding
from export.artifact import read_artifact
from service.artifact import load_artifact
from service.engine.runners import SlotRunner
from service.engine.runtime import Runtime

_RUNTIME = Runtime("cpu", "slots", threads=1, slots=3)


def broken(findings: Iterable[Finding]) -> set[str]:
    """How rms errors of such small models compare is luck."""
    return {finding.name for finding in findings if not finding.holds} - {"rounding"}


@pytest.mark.parametrize(
    ("name", "compared"), [("letters", "log-probability"), ("scrawl", "log-density")]
)
def test_every_kind_is_compared_over_a_runner(inks: Path, name: str, compared: str) -> None:
    artifact = load_artifact(inks / name)
    findings = gpu.check(artifact, SlotRunner(artifact, _RUNTIME), steps=40)
    assert {"rounding", compared, "sampling", "neighbours", "kernels"} <= {f.name for f in findings}
    assert broken(findings) == set()


def test_of_equal_numbers_the_first_counts() -> None:
    found = gpu.ties("cpu")
    assert found.holds
    assert "of 6,003 rows" in found.detail  # of each width one is of zeros alone


def test_ties_that_go_to_the_last_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def last(provider: str, rows: np.ndarray) -> np.ndarray:
        return rows.shape[1] - 1 - rows[:, ::-1].argmax(1)

    monkeypatch.setattr(gpu, "_argmax", last)
    assert gpu.ties("cpu").value > 3000


def test_products_of_bytes_hold_at_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU, which has one kernel for all heights: of the least and the most."""
    assert len(gpu._HEIGHTS) * len(gpu._WIDTHS) * len(gpu._INPUTS) == 832
    monkeypatch.setattr(gpu, "_HEIGHTS", (min(gpu._HEIGHTS), max(gpu._HEIGHTS)))
    found = gpu.products("cpu")
    assert found.holds
    assert "of 208 products" in found.detail


def test_products_that_are_refused_or_wrong_are_counted_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Odd:
        def run(self, outputs: None, given: Arrays) -> list[np.ndarray]:
            rows, matrix = given["rows"], given["matrix"]
            if (len(rows), *matrix.shape) == (17, 132, 28):
                raise RuntimeError("CUBLAS failure 15")
            sums = rows.astype(np.int32) @ matrix
            if (len(rows), *matrix.shape) == (3, 128, 4):
                sums[2, 3] += 1
            return [sums[:16]] if matrix.shape == (128, 28) else [sums]

    monkeypatch.setattr(gpu, "_session", lambda *_: Odd())
    monkeypatch.setattr(gpu, "_HEIGHTS", (128, 132))
    monkeypatch.setattr(gpu, "_WIDTHS", (4, 28))
    found = gpu.products("cpu")
    many = [count for count in gpu._INPUTS if count > 16]  # of which the last rows are missing
    assert (found.value, found.holds) == (2 + len(many), False)
    assert found.detail.endswith(", 3 x 128 x 4, 17 x 128 x 28, 18 x 128 x 28")


def test_a_cuda_graph_is_of_the_graphs_for_cuda() -> None:
    """A model in eight bits has some of their own, of signed bytes."""
    folder = Path(__file__).parents[2] / "artifacts" / "shakespeare-int8"
    artifact: Any = SimpleNamespace(folder=folder, manifest=read_artifact(folder))
    assert gpu.kernels(artifact).holds


def test_a_node_that_cuda_has_no_kernel_for_is_named(
    inks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_kernel(graph: Path) -> list[str]:
        assert graph.is_file()
        return [f"Odd in {graph.name}"]

    monkeypatch.setattr(gpu, "without_kernel", without_kernel)
    artifact = load_artifact(inks / "letters")
    files = sorted(artifact.manifest.graphs.step_on("cuda").files().values())
    found = gpu.kernels(artifact)
    assert (found.value, found.holds) == (len(files), False)
    assert sorted(found.detail.split("; ")) == [f"Odd in {file}" for file in files]


@pytest.mark.parametrize(
    ("attested", "bound", "good"), [(True, 1.0, True), (False, 1.0, False), (True, 0.0, False)]
)
def test_a_model_is_good_that_is_attested_and_keeps_every_bound(
    attested: bool, bound: float, good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = SimpleNamespace(ok=attested, max_error=0.0, describe=dict)
    finding = Finding(name="bits", value=1.0, bound=bound, detail="as told")
    monkeypatch.setattr(gpu, "make_runner", lambda *_: None)
    monkeypatch.setattr(gpu, "attest", lambda *_: verdict)
    monkeypatch.setattr(gpu, "check", lambda *_: [finding])
    one: Any = SimpleNamespace(name="one")
    assert gpu.judge(one, _RUNTIME)[0] is good


def test_a_model_that_a_library_cannot_compute_is_told(
    inks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("CUBLAS failure 15")

    monkeypatch.setattr(gpu, "check", refused)
    holds, described = gpu.judge(load_artifact(inks / "letters"), _RUNTIME)
    assert (holds, described) == (False, {"error": "CUBLAS failure 15"})


class Nosy(SlotRunner):
    """Rows see how many others run."""

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        outputs = super().run(slots, steps, row, filtered=filtered)
        return outputs | {"logits": outputs["logits"] + np.float32(1e-6) * (len(slots) - 1)}


class Wrong(SlotRunner):
    """What it computes is off, however many rows run."""

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        outputs = super().run(slots, steps, row, filtered=filtered)
        return outputs | {"logits": outputs["logits"] * np.float32(1.001)}


class Mistaken(SlotRunner):
    """It draws another byte than what it computes says."""

    def read(self, slot: int) -> Arrays:
        state = super().read(slot)
        return state | {"token": state["token"] ^ 1}


@pytest.mark.parametrize(
    ("runner", "found"),
    [
        (Nosy, {"neighbours"}),
        (Wrong, {"log-probability", "score, sampled text"}),
        (Mistaken, {"sampling"}),
    ],
)
def test_a_runner_that_does_something_else_is_found(
    inks: Path, runner: type[SlotRunner], found: set[str]
) -> None:
    artifact = load_artifact(inks / "letters")
    assert broken(gpu.check(artifact, runner(artifact, _RUNTIME), steps=40)) == found


@pytest.mark.parametrize("red", [None, "bits", "products"])
def test_the_report_says_what_was_found(
    inks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, red: str | None
) -> None:
    bits, products = (
        Finding(name=name, value=name == red, bound=0.0, detail="as told")
        for name in ("bits", "products")
    )
    monkeypatch.setattr(gpu, "products", lambda provider: products)
    monkeypatch.setattr(gpu, "check", lambda artifact, runner, steps: [bits])
    monkeypatch.setenv("EVENKEEL_ARTIFACTS", str(inks))
    monkeypatch.setenv("EVENKEEL_SLOTS", "2")
    out = tmp_path / "new"
    assert gpu.main(["--provider", "cpu", "--out", str(out)]) == (red is not None)
    report = json.loads((out / "rehearsal-cpu.json").read_text())
    assert report["ties"]["holds"]
    assert report["products"]["holds"] is (red != "products")
    assert [model["model"] for model in report["models"]] == ["letters", "scrawl", "squint"]
    for model in report["models"]:
        assert model["attestation"]["ok"]
        assert [f["holds"] for f in model["parity"]] == [red != "bits"]


def test_without_a_gpu_it_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("service.engine.runtime._cuda_works", lambda: False)
    assert gpu.main([]) == 1
    assert "no CUDA device" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (gpu_step, "--device is 'cuda', which PyTorch has not: "),
        (gpu_training, "--device is 'cuda', which PyTorch has not: "),
        (gpu_http, "EVENKEEL_PROVIDER is cuda, but onnxruntime finds no CUDA device"),
    ],
)
def test_what_is_timed_on_a_gpu_alone_says_that_there_is_none(
    command: Any, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_gpu(*_: object, **options: Any) -> None:
        assert options["device"] == "cuda"
        raise AssertionError("Torch not compiled with CUDA enabled")

    monkeypatch.setattr("training.command.torch.zeros", no_gpu)
    monkeypatch.setattr("service.engine.runtime._cuda_works", lambda: False)
    with pytest.raises(SystemExit) as end:
        command.main([])
    assert end.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.long
def test_requests_are_timed_without_a_gpu_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "load", partial(http.load, warm_up_s=0.2))
    asked = ["--providers", "cpu", "--rounds", "1", "--seconds", "2", "--out", str(tmp_path)]
    gpu_http.main(asked)
    report = json.loads((tmp_path / "gpu-http.json").read_text())
    assert report["command"].endswith(" ".join(asked))
    rows = report["rows"]
    assert [(r["clients"], r["streamed"]) for r in rows] == [
        (1, False), (1, True), (32, False), (32, True),
    ]  # fmt: skip
    assert all(row["runtime"].startswith("cpu-ort") and not row["errors"] for row in rows)
    assert all(row["bytes_per_s"] > 0 for row in rows)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "chunk", "sides"),
    [
        ("1x16", 1, ["served", "eager", "nn.LSTM"]),
        ("1x16", 4, ["served", "eager"]),
        ("tiny", 1, ["served", "eager"]),
    ],
)
def test_steps_are_timed_without_a_gpu_too(
    tmp_path: Path, name: str, chunk: int, sides: list[str]
) -> None:
    artifact = random_artifact(tmp_path / name, 16)
    rows = list(gpu_step.measure(artifact, 2, chunk, 5, "cpu"))
    assert [row.side for row in rows] == sides
    assert all(row.p50_us > 0 and row.kernels is None for row in rows)
    assert {(row.chunk, row.steps) for row in rows} == {(chunk, {1: 5, 4: 8}[chunk])}


@pytest.mark.long
def test_updates_are_timed_without_a_gpu_too() -> None:
    rows = list(gpu_training.measure("quickstart", "pydoc", 2, "cpu", rows=4))
    assert [(row.side, row.rows, row.updates) for row in rows] == [
        ("launched", 4, 2), ("graph", 4, 2),
    ]  # fmt: skip
    assert all(0 < row.p50_ms <= row.p90_ms for row in rows)
