"""Facts that hold for every kind of model: text, ink, a reader, and one only the tests know."""

import asyncio
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from safetensors.numpy import load_file, save_file

from contract.golden import Golden
from contract.manifest import GOLDEN, WEIGHTS
from export.artifact import load_model, read_artifact
from export.convert import convert
from export.golden import Sample
from export.kinds import KINDS as EXPORTED
from service.artifact import load_artifact
from service.attestation import attest
from service.engine.given import GivenSteps, run_steps
from service.engine.runners import make_runner, stack_rows
from service.engine.runtime import Runtime
from service.errors import InvalidRequest, StateMismatch
from service.kinds import KINDS as SERVED
from service.state import Moment
from tests.service.altered import copy_of, lose_state, pass_on, rehash
from tests.service.serving import Service, running, settings

_NAMES = ("letters", "scrawl", "squint", "sines")
_WIDTH = 40
_LAST = 33  # a row beyond one register, and not the last of its batch


@pytest.fixture(scope="module")
def folder(inks: Path, sines: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifacts of the project's kinds, and one of the kind that only the tests know."""
    made = tmp_path_factory.mktemp("kinds")
    for artifact in (*(inks / name for name in _NAMES[:-1]), sines):
        copy_of(artifact, made)
    return made


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Service]:
    with running(settings(folder, slots=_WIDTH)) as started:
        yield started


@pytest.fixture(params=_NAMES)
def artifact(request: pytest.FixtureRequest, folder: Path) -> Path:
    return folder / request.param


@pytest.fixture(params=["scan", "slots"])
def runtime(request: pytest.FixtureRequest) -> Runtime:
    return Runtime("cpu", request.param, 1, slots=_WIDTH)


def test_there_is_one_artifact_of_each_kind(folder: Path) -> None:
    kinds = [read_artifact(folder / name).kind for name in _NAMES]
    assert sorted(kinds) == sorted(EXPORTED) == sorted(SERVED)


def test_it_is_attested_on_either_runner(artifact: Path, runtime: Runtime) -> None:
    loaded = load_artifact(artifact)
    assert attest(loaded, make_runner(loaded, runtime)).ok


@pytest.mark.parametrize("width", [1, 3])
def test_golden_rows_that_do_not_fit_are_replayed_by_turns(artifact: Path, width: int) -> None:
    loaded = load_artifact(artifact)
    verdict = attest(loaded, make_runner(loaded, Runtime("cpu", "scan", 1, slots=width)))
    golden = loaded.golden
    replays = len(golden.plain_rows) + len(golden.all_rows) * bool(loaded.manifest.filters)
    assert verdict.ok
    assert verdict.steps == replays * len(golden.steps["force"])


def test_one_altered_weight_is_not_attested(
    artifact: Path, runtime: Runtime, tmp_path: Path
) -> None:
    copy = copy_of(artifact, tmp_path)
    tensors = load_file(copy / WEIGHTS)
    largest = max(tensors, key=lambda name: tensors[name].size)
    # Not the same for all: a layer norm takes out what is added to every weight of a row.
    noise = np.random.default_rng(0).normal(0, 0.01, tensors[largest].shape)
    tensors[largest] = tensors[largest] + noise.astype(np.float32)
    save_file(tensors, copy / WEIGHTS)
    rehash(copy)
    loaded = load_artifact(copy)
    assert not attest(loaded, make_runner(loaded, runtime)).ok


def test_a_graph_that_loses_any_of_its_state_is_not_attested(
    artifact: Path, runtime: Runtime, tmp_path: Path
) -> None:
    manifest = read_artifact(artifact)
    graphs = manifest.graphs.scan if runtime.runner == "scan" else manifest.graphs.step
    for options, file in graphs.files().items():
        for port in manifest.ports.state:
            copy = copy_of(artifact, tmp_path / options / port.name)
            lose_state(copy, file, port.name)
            loaded = load_artifact(copy)
            assert not attest(loaded, make_runner(loaded, runtime)).ok, (options, port.name)


@pytest.mark.parametrize("emitted", ["drawn", "forced"])
def test_a_graph_that_is_deaf_or_does_not_draw_is_not_attested(
    artifact: Path, runtime: Runtime, emitted: str, tmp_path: Path
) -> None:
    manifest = read_artifact(artifact)
    graphs = manifest.graphs.scan if runtime.runner == "scan" else manifest.graphs.step
    for options, file in graphs.files().items():
        copy = copy_of(artifact, tmp_path / options)
        pass_on(copy, file, emitted)
        loaded = load_artifact(copy)
        assert not attest(loaded, make_runner(loaded, runtime)).ok, options


def test_golden_vectors_are_read_as_they_were_written(artifact: Path, tmp_path: Path) -> None:
    golden = Golden.load(artifact / GOLDEN)
    golden.save(tmp_path / GOLDEN)
    assert (tmp_path / GOLDEN).read_bytes() == (artifact / GOLDEN).read_bytes()


def test_the_manifest_says_in_which_mode_the_golden_vectors_were_made(artifact: Path) -> None:
    assert read_artifact(artifact).provenance["golden_mode"] == "training"


def test_the_graph_has_one_native_node_for_every_layer_norm(artifact: Path) -> None:
    manifest = read_artifact(artifact)
    model = onnx.load(artifact / manifest.graphs.step.plain, load_external_data=False)
    found = sum(node.op_type == "LayerNormalization" for node in model.graph.node)
    assert found == manifest.layer_normalizations > 0


@pytest.mark.parametrize("name", _NAMES[1:])  # text has four graphs, which take long
@pytest.mark.long
def test_converted_again_it_is_the_same(folder: Path, name: str, tmp_path: Path) -> None:
    artifact = folder / name
    convert(artifact, tmp_path / artifact.name)
    for file in artifact.glob("*.onnx"):
        assert (tmp_path / artifact.name / file.name).read_bytes() == file.read_bytes()
    again, before = read_artifact(tmp_path / artifact.name), read_artifact(artifact)
    assert again.files == before.files


@cache
def _sample(artifact: Path) -> Sample:
    """Ten steps of many rows, which a reader takes long to draw."""
    manifest = read_artifact(artifact)
    return EXPORTED[manifest.kind].sample(load_model(artifact, manifest), 10, _WIDTH, 7)


def test_row_33_of_40_is_the_row_alone(artifact: Path, runtime: Runtime) -> None:
    loaded = load_artifact(artifact)
    sample = _sample(artifact)
    runner = make_runner(loaded, runtime)

    def run(rows: list[int]) -> dict[str, bytes]:
        for slot in rows:
            runner.load(slot, loaded.initial_state())
        steps = {name: np.ascontiguousarray(a[:, rows]) for name, a in sample.drawn().items()}
        options = {name: array[rows] for name, array in sample.rows().items()}
        outputs = runner.run(rows, steps, options, filtered=bool(loaded.manifest.filters))
        place = rows.index(_LAST)
        outputs = {name: array[:, place] for name, array in outputs.items()}
        return {name: a.tobytes() for name, a in (outputs | runner.read(_LAST)).items()}

    everyone = list(range(_WIDTH))
    alone = run([_LAST])
    assert run(everyone) == alone
    assert run(everyone[::-1]) == alone


def test_steps_cut_in_two_are_the_whole(artifact: Path, service: Service) -> None:
    model = service.app.state.models[artifact.name]
    golden = model.artifact.golden
    inputs, row = golden.step_inputs(0), golden.row_inputs(0)

    def part(state: dict[str, np.ndarray], steps: slice) -> GivenSteps:
        chosen = {name: array[steps] for name, array in inputs.items()}
        return GivenSteps(state, row, chosen, wants_state=True)

    async def run() -> tuple[GivenSteps, GivenSteps, GivenSteps]:
        whole = part(model.artifact.initial_state(), slice(None))
        first = part(model.artifact.initial_state(), slice(13))
        await run_steps(model.engine, [whole, first])
        second = part(first.state, slice(13, None))
        await run_steps(model.engine, [second])
        return whole, first, second

    whole, first, second = asyncio.run(run())
    for name, array in whole.outputs.items():
        joined = np.concatenate([first.outputs[name], second.outputs[name]])
        assert joined.tobytes() == array.tobytes()
    assert all(second.state[n].tobytes() == s.tobytes() for n, s in whole.state.items())


def test_a_token_is_the_moment_it_was_made_of(artifact: Path, service: Service) -> None:
    model = service.app.state.models[artifact.name]
    random = np.random.default_rng(0)
    state = {
        name: random.normal(size=array.shape).astype(array.dtype)
        for name, array in model.artifact.initial_state().items()
    }
    edge = SERVED[model.artifact.manifest.kind].edge()
    token = model.codec.encode(Moment(state, -5, 3, 2**40, edge))
    again = model.codec.decode(token)
    assert (again.seed, again.choice, again.drawn, again.edge) == (-5, 3, 2**40, edge)
    assert all(again.state[n].tobytes() == s.tobytes() for n, s in state.items())


def test_a_token_of_another_model_or_a_forged_one_is_refused(
    artifact: Path, service: Service
) -> None:
    models = service.app.state.models
    model = models[artifact.name]
    other = next(m for m in models if m.name != artifact.name)
    state, edge = other.artifact.initial_state(), SERVED[other.artifact.manifest.kind].edge()
    token = other.codec.encode(Moment(state, 0, 0, 0, edge))
    with pytest.raises(StateMismatch):
        model.codec.decode(token)
    with pytest.raises(InvalidRequest):
        model.codec.decode(token[:-1] + ("A" if token[-1] != "A" else "B"))


def test_it_says_what_it_is_and_how_it_was_attested(artifact: Path, service: Service) -> None:
    entry = service.client.get(f"/v1/models/{artifact.name}").json()
    manifest = read_artifact(artifact)
    assert entry["kind"] == manifest.kind
    told = entry["parameters"], entry["layer_normalizations"]
    assert told == (manifest.parameters, manifest.layer_normalizations)
    assert entry["attestation"]["ok"]
    assert service.client.post(f"/v1/models/{artifact.name}/attest").json()["ok"]


def test_an_opening_with_a_field_it_does_not_know_is_refused(
    artifact: Path, service: Service
) -> None:
    with service.client.websocket_connect("/v1/online") as socket:
        socket.send_json({"model": artifact.name, "surprise": 1})
        assert "surprise" in socket.receive_json()["error"]["message"]


def test_random_numbers_of_pytorch_change_nothing(artifact: Path) -> None:
    """Randomness is an argument: a sample is a function of its seed."""
    manifest = read_artifact(artifact)
    kind, model = EXPORTED[manifest.kind], load_model(artifact, manifest)
    torch.manual_seed(1)
    first = kind.sample(model, 12, 3, 7)
    torch.manual_seed(2)
    assert torch.equal(first.symbols, kind.sample(model, 12, 3, 7).symbols)
    assert not torch.equal(first.symbols, kind.sample(model, 12, 3, 8).symbols)


def test_rows_are_stacked_as_the_engine_stacks_them(artifact: Path) -> None:
    golden = load_artifact(artifact).golden
    rows = golden.all_rows
    stacked = stack_rows([golden.step_inputs(r) for r in rows], axis=1)
    assert all(np.array_equal(stacked[name], golden.steps[name]) for name in golden.steps)
