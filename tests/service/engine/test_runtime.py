"""Both runners compute the same bits for the same work, whoever else runs beside it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from contract.golden import Arrays
from contract.noise import UniformStream
from service.artifact import Artifact, ArtifactError, load_artifact
from service.engine import runtime
from service.engine.bundle import Bundle
from service.engine.runners import Runner, make_runner, stack_rows
from service.engine.runtime import Runtime, _simd, choose_runtime
from service.text.sampling import Sampling
from tests.service.interleaved import WatchedLock
from tests.service.serving import settings

_STEPS = 40
_SAMPLINGS = [
    Sampling(),
    Sampling(temperature=0.7),
    Sampling(temperature=1.8, logit_bias={32: -100, 65: 3.5}),
    Sampling(temperature=0),
]
_FILTERED = [
    Sampling(top_p=0.8),
    Sampling(top_k=3),
    Sampling(temperature=0.7, min_p=0.05),
    Sampling(temperature=1.5, top_p=0.5, top_k=9),
]


Make = Callable[..., Runner]


@pytest.fixture(scope="module")
def make(artifact: Artifact) -> Make:
    def make(kind: str, slots: int = 8, threads: int = 1) -> Runner:
        sizes = {"runner": kind, "slots": slots, "threads": threads}
        chosen = settings(artifact.folder.parent, provider="cpu", **sizes)
        return make_runner(artifact, choose_runtime(chosen))

    return make


def _steps(rows: Sequence[int], steps: int = _STEPS) -> Arrays:
    """Per-step inputs of some rows: each reads a few bytes of its own, then writes."""
    forced = np.array([[97 + (row + t) % 26 for row in rows] for t in range(steps)], np.int64)
    force = np.array([[t < row for row in rows] for t in range(steps)])
    uniform = np.stack([UniformStream(row).take(0, steps) for row in rows], axis=1)
    return {"forced": forced, "force": force, "uniform": uniform}


def _row(samplings: Sequence[Sampling]) -> Arrays:
    rows = [sampling.row() for sampling in samplings]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def _run(
    runner: Runner,
    artifact: Artifact,
    samplings: Sequence[Sampling],
    rows: Sequence[int],
    slots: Sequence[int],
    *,
    filtered: bool = False,
    chunks: Sequence[int] = (_STEPS,),
) -> Arrays:
    """Outputs, and after them the state, of rows that start anew in the given slots."""
    for slot in slots:
        runner.load(slot, artifact.initial_state())
    steps, done, outputs = _steps(rows), 0, []
    for chunk in chunks:
        part = {name: array[done : done + chunk] for name, array in steps.items()}
        outputs.append(runner.run(slots, part, _row(samplings), filtered=filtered))
        done += chunk
    assert done == _STEPS
    joined = {name: np.concatenate([o[name] for o in outputs]) for name in outputs[0]}
    state = [runner.read(slot) for slot in slots]
    return joined | {f"{n}_after": np.stack([s[n] for s in state])[None] for n in state[0]}


def _equal(one: Arrays, other: Arrays) -> bool:
    assert one.keys() == other.keys()
    return all((array == other[name]).all() for name, array in one.items())


@pytest.mark.parametrize("filtered", [False, True])
def test_both_runners_give_the_same_bits(artifact: Artifact, make: Make, filtered: bool) -> None:
    samplings = _SAMPLINGS + _FILTERED if filtered else _SAMPLINGS
    rows = range(len(samplings))
    results = [
        _run(make(kind), artifact, samplings, rows, rows, filtered=filtered)
        for kind in ("scan", "slots")
    ]
    assert _equal(*results)
    assert results[0]["logits"].shape == (_STEPS, len(samplings), 256)
    assert len(np.unique(results[0]["next"])) > 10  # it wrote something


@pytest.mark.parametrize("kind", ["scan", "slots"])
def test_neutral_options_of_the_sort_change_no_bit(
    artifact: Artifact, make: Make, kind: str
) -> None:
    rows = range(len(_SAMPLINGS))
    plain, filtered = (
        _run(make(kind), artifact, _SAMPLINGS, rows, rows, filtered=f) for f in (False, True)
    )
    assert _equal(plain, filtered)


@pytest.mark.parametrize("kind", ["scan", "slots"])
def test_a_row_keeps_its_bits_whatever_runs_beside_it(
    artifact: Artifact, make: Make, kind: str
) -> None:
    runner = make(kind)
    samplings = _SAMPLINGS + _FILTERED
    rows = range(len(samplings))
    together = _run(runner, artifact, samplings, rows, rows, filtered=True)
    for row in rows:
        alone = _run(runner, artifact, [samplings[row]], [row], [7], filtered=True)
        assert _equal(alone, {name: array[:, row : row + 1] for name, array in together.items()})


@pytest.mark.parametrize("kind", ["scan", "slots"])
@pytest.mark.parametrize("chunks", [(1,) * _STEPS, (7, 33), (39, 1), (8, 16, 16), (3, 32, 5)])
def test_any_chunking_gives_the_same_bits(
    artifact: Artifact, make: Make, kind: str, chunks: tuple[int, ...]
) -> None:
    rows = range(len(_SAMPLINGS))
    runner = make(kind)
    whole = _run(runner, artifact, _SAMPLINGS, rows, rows)
    assert _equal(whole, _run(runner, artifact, _SAMPLINGS, rows, rows, chunks=chunks))


@pytest.mark.parametrize("kind", ["scan", "slots"])
def test_slots_and_threads_change_no_bit(artifact: Artifact, make: Make, kind: str) -> None:
    rows = range(4)
    usual = _run(make(kind), artifact, _SAMPLINGS, rows, rows)
    wide = _run(make(kind, slots=33, threads=2), artifact, _SAMPLINGS, rows, [32, 0, 9, 17])
    assert _equal(usual, wide)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_session_has_as_many_threads_as_are_chosen(artifact: Artifact, threads: int) -> None:
    """Left to itself it has one for every core, beside those of all other models."""
    chosen = Runtime("cpu", "scan", threads, slots=1)
    session = chosen.session(artifact, artifact.manifest.graphs.scan.plain)
    assert session.get_session_options().intra_op_num_threads == threads


@pytest.mark.parametrize("kind", ["scan", "slots"])
def test_what_is_loaded_is_read_back_and_is_a_copy(
    artifact: Artifact, make: Make, kind: str
) -> None:
    runner = make(kind)
    ports = artifact.manifest.ports.state
    given = {p.name: np.full(p.shape, 3, p.dtype) for p in ports}
    runner.load(5, given)
    for p in ports:
        given[p.name][...] = 9
        if p.shape:
            runner.read(5)[p.name][...] = 9
        assert (runner.read(5)[p.name] == 3).all()
        assert (runner.read(4)[p.name] == p.initial).all()


def test_every_port_of_a_bundle_lies_where_kernels_look_for_it(artifacts: Path) -> None:
    """CUDA aligns what it allocates to 256 bytes: a kernel may read as many at once."""
    ports = load_artifact(artifacts / "letters").manifest.ports.state
    bundle = Bundle([(port, 2) for port in ports], 3, "cpu")
    places = [bundle.place(port.name, time)[-1] for port in ports for time in (0, 1)]
    assert len({*places}) == 2 * len(ports) > 2
    assert {(place - places[0]) % 256 for place in places} == {0}


def test_a_fingerprint_depends_on_nothing_that_keeps_the_bits(artifacts: Path) -> None:
    runtimes = [
        choose_runtime(settings(artifacts, provider="cpu", runner=kind, slots=slots, threads=slots))
        for kind, slots in (("scan", 1), ("slots", 8))
    ]
    assert runtimes[0].fingerprint == runtimes[1].fingerprint
    assert runtimes[0].fingerprint.startswith(f"cpu-ort{ort.__version__}-")


@pytest.mark.parametrize(
    ("flags", "units"),
    [
        ("sse2 fma avx2 avx512f sme", "avx512f"), ("sse2 fma avx2 sme", "avx2"),
        ("sse2 avx avx2", "generic"), ("sse2 sme", "generic"),
        ("asimd", "asimd"), ("asimd sve sve2", "asimd-sve"), ("asimd sme sme2", "asimd-sme-sme2"),
        ("sme asimd sve2 sve", "asimd-sve-sme"),
    ],
)  # fmt: skip
def test_on_the_cpu_it_names_the_vector_units_that_kernels_are_picked_by(
    monkeypatch: pytest.MonkeyPatch, flags: str, units: str
) -> None:
    """On ARM the pens' bits differ with SVE, and those of other models with SME."""
    monkeypatch.setattr(Path, "read_text", lambda *_: f"flags : fpu {flags}")
    assert _simd.__wrapped__() == units


def test_on_cuda_a_fingerprint_names_the_slots() -> None:
    """Its kernels are chosen by the number of rows."""
    prints = [Runtime("cuda", "slots", threads=1, slots=n).fingerprint for n in (8, 24)]
    assert [found.rpartition("-")[2] for found in prints] == ["8", "24"]


def test_cuda_without_a_device_is_refused(artifacts: Path) -> None:
    if choose_runtime(settings(artifacts, provider="auto")).provider == "cuda":
        pytest.skip("this machine has CUDA")
    with pytest.raises(ArtifactError, match="EVENKEEL_PROVIDER is cuda"):
        choose_runtime(settings(artifacts, provider="cuda"))


def test_the_cpu_scans_unless_told_otherwise(artifacts: Path) -> None:
    assert choose_runtime(settings(artifacts, provider="cpu")).runner == "scan"


@pytest.mark.parametrize(
    ("provider", "chosen"),
    [("auto", ("cuda", "slots")), ("cuda", ("cuda", "slots")), ("cpu", ("cpu", "scan"))],
)
def test_a_device_is_used_unless_told_otherwise(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch, provider: str, chosen: tuple[str, str]
) -> None:
    monkeypatch.setattr("service.engine.runtime._cuda_works", lambda: True)
    runtime = choose_runtime(settings(artifacts, provider=provider))
    assert (runtime.provider, runtime.runner) == chosen
    counted = choose_runtime(settings(artifacts, provider=provider, threads=0))
    assert counted.threads == (0 if counted.provider == "cpu" else 1)  # a GPU has no use for more
    if provider != "cpu":
        with pytest.raises(ArtifactError, match="EVENKEEL_RUNNER is scan"):
            choose_runtime(settings(artifacts, provider=provider, runner="scan"))


def test_where_onnxruntime_has_no_cuda_a_start_warns_of_nothing(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CPUExecutionProvider"])
    assert choose_runtime(settings(artifacts, provider="auto")).provider == "cpu"
    assert not caplog.records


def test_why_a_gpu_cannot_be_used_is_logged_and_what_is_used_in_its_place(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no driver")

    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(ort, "preload_dlls", lambda: None, raising=False)
    monkeypatch.setattr(ort.OrtValue, "ortvalue_from_numpy", fail)
    caplog.set_level("INFO", "service.engine.runtime")
    chosen = choose_runtime(settings(artifacts, provider="auto", slots=7))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "CUDA is not usable, serving on the CPU: no driver"),
        ("INFO", f"runtime: {chosen.fingerprint}, runner scan, 7 slots"),
    ]


@pytest.mark.parametrize("version", ["1.30.2", "1.9.0"])
def test_cuda_wants_an_onnxruntime_whose_argmax_takes_the_first(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(ort, "__version__", version)
    artifact = load_artifact(artifacts / "letters")
    with pytest.raises(ArtifactError, match=f"onnxruntime {version} on CUDA .* 1.31 or later"):
        Runtime("cuda", "slots", threads=1, slots=2).session(artifact, "step.onnx")
    Runtime("cpu", "slots", threads=1, slots=2).session(artifact, "step.onnx")


@pytest.mark.parametrize("version", ["1.31.0", "2.0.1"])
def test_later_ones_are_tried(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(ort, "__version__", version)
    tried = []
    monkeypatch.setattr(ort, "InferenceSession", lambda *a, **k: tried.append(k["providers"]))
    artifact = load_artifact(artifacts / "letters")
    Runtime("cuda", "slots", threads=1, slots=2).session(artifact, "step.onnx")
    (((provider, options),),) = tried
    assert provider == "CUDAExecutionProvider"
    assert (options["use_tf32"], options["enable_cuda_graph"]) == ("0", "1")
    weights = (artifacts / "letters" / "model.safetensors").stat().st_size
    assert int(options["gpu_mem_limit"]) == 2 * weights + (1 << 30)


def test_of_sessions_made_at_once_each_has_an_arena_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One made while another's is offered has that; one made just after it, none."""
    lock, offered = WatchedLock(), list[int]()
    monkeypatch.setattr(runtime, "_REGISTERING", lock)
    monkeypatch.setattr(runtime, "_offer", offered.append)

    def make(most_bytes: int, meanwhile: Callable[[], object] = lambda: None) -> None:
        with runtime._in_an_arena(ort.SessionOptions(), most_bytes):
            meanwhile()

    make(1, lambda: lock.beside(lambda: make(2)))
    lock.join()
    assert offered == [1, 0, 2, 0]


@pytest.mark.parametrize("kind", ["scan", "slots"])
def test_a_runner_that_is_given_up_runs_neither_of_its_graphs(
    make: Make, artifact: Artifact, kind: str
) -> None:
    runner = make(kind, slots=1)
    steps = stack_rows([artifact.golden.step_inputs(0)], axis=1)
    row = stack_rows([artifact.golden.row_inputs(0)], axis=0)
    runner.give_up()
    for filtered in (False, True):
        with pytest.raises(Exception, match="terminate flag"):
            runner.run([0], steps, row, filtered=filtered)
