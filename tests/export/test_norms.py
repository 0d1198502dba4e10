"""Batch and weight norm through training, conversion and serving, beside what layer norm keeps."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
import torch
from safetensors.torch import load_file, save_file

from contract.golden import Golden
from export.artifact import load_model, read_artifact
from export.convert import convert
from export.golden import Sample
from export.graph import ConversionError, check_graph, export_graph
from export.text.golden import golden_logits, training_logits
from models.cells import CELLS
from models.generation import LanguageStep
from models.language import LanguageConfig, LanguageModel
from models.norms import fold
from service.artifact import load_artifact
from service.attestation import attest
from service.engine.runners import make_runner
from service.engine.runtime import Runtime
from tests.export.least import LogitsStep
from tests.training.tiny import Interrupted, stop_after, tiny_recipe, undrawn
from training import checkpoint
from training.config import Recipe, TrainConfig
from training.loop import CHECKPOINT, _adamw
from training.run import carry_out
from training.text.task import LanguageTask

# Shorter than a segment, so that training and the golden vectors both pass it.
LONGEST = 7


def recipe(corpus: Path, norm: str) -> Recipe:
    """A layer without dropout, which learns what there is in half the time."""
    tiny = tiny_recipe(corpus, epochs={"batch": 1.75, "weight": 3.0}[norm])
    without = {"input_dropout": 0.0, "recurrent_dropout": 0.0, "output_dropout": 0.0}
    model = replace(tiny.model, norm=norm, longest_step=LONGEST, layers=1, **without)
    return replace(tiny, model=model)


@pytest.fixture(scope="module", params=["batch", pytest.param("weight", marks=pytest.mark.long)])
def norm(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def run(norm: str, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("norms") / norm
    with undrawn():
        carry_out(recipe(corpus, norm), folder, "cpu", Path())
    return folder


@pytest.fixture(scope="module")
def artifact(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("artifacts") / run.name
    convert(run, folder)
    return folder


def untrained(cell: str, norm: str, layers: int = 2) -> LanguageModel:
    """Running statistics and gains that differ from feature to feature and from step to step."""
    torch.manual_seed(0)
    config = LanguageConfig(
        cell=cell, norm=norm, units=12, embedding=4, layers=layers, longest_step=LONGEST
    )
    model = LanguageModel(config)
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data += 0.2 * torch.rand_like(tensor)
    return model


def test_it_learns(run: Path) -> None:
    _, facts = checkpoint.load(run / CHECKPOINT)
    assert facts["progress"]["best_loss"] < 1.5


@pytest.mark.long
def test_a_resumed_run_equals_an_uninterrupted_one_statistics_too(
    norm: str, corpus: Path, run: Path, tmp_path: Path
) -> None:
    for updates in (37, 100):  # before the first validation, and after it
        with pytest.MonkeyPatch.context() as patch:
            stop_after(patch, updates)
            with pytest.raises(Interrupted):
                carry_out(recipe(corpus, norm), tmp_path / "run", "cpu", Path())
    carry_out(recipe(corpus, norm), tmp_path / "run", "cpu", Path())
    whole, _ = checkpoint.load(run / CHECKPOINT)
    resumed, _ = checkpoint.load(tmp_path / "run" / CHECKPOINT)
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    kept = {f"{group}.stack.cells.0.norm_c.running_variance" for group in ("model", "best")}
    assert (kept <= whole.keys()) is (norm == "batch")


@pytest.mark.parametrize(
    "cell",
    [pytest.param(cell, marks=pytest.mark.long if cell == "rnn" else ()) for cell in CELLS],
)
def test_every_cell_is_served_as_pytorch_evaluates_it_past_the_longest_step_too(
    cell: str, norm: str, tmp_path: Path
) -> None:
    layers = 1 if cell == "gru" else 2  # more of what takes longest to trace tells the same
    model = fold(untrained(cell, norm, layers)).eval()
    weights = tmp_path / "model.safetensors"
    save_file(model.state_dict(), weights)
    step = LogitsStep(model)
    graph = export_graph(step, weights, scan=False)
    assert not [n for n in graph.graph.all_nodes() if n.op_type == "LayerNormalization"]
    external = {
        v.name for v in graph.graph.initializers.values()
        if isinstance(v.const_value, ir.ExternalTensor)
    }  # fmt: skip
    assert external == load_file(weights).keys()
    ir.save(graph, tmp_path / "step.onnx")
    session = ort.InferenceSession(tmp_path / "step.onnx", providers=["CPUExecutionProvider"])
    names = [p.name for p in (*step.state_ports, *step.step_ports)]
    state = step.initial_state(2)
    for t in range(LONGEST + 3):
        inputs = (*state, torch.tensor([t, 255 - t]))
        feeds = {n: i.numpy() for n, i in zip(names, inputs, strict=True)}
        with torch.no_grad():
            expected = step(*inputs)
        for ours, served in zip(expected, session.run(None, feeds), strict=True):
            assert np.abs(ours.numpy() - served).max() < 1e-5
        state = expected[: len(step.state_ports)]


def test_a_running_statistic_that_is_inline_is_refused(artifact: Path, norm: str) -> None:
    if norm != "batch":
        pytest.skip("it has none")
    manifest = read_artifact(artifact)
    model = load_model(artifact, manifest)
    step = LanguageStep(model, filtered=False)
    graph = ir.load(artifact / manifest.graphs.step.plain)
    check_graph(graph, step)
    value = graph.graph.initializers["stack.cells.0.norm_x.running_mean"]
    value.const_value = ir.tensor(model.stack.cells[0].norm_x.running_mean.numpy())
    with pytest.raises(ConversionError, match=r"running_mean .* is inline"):
        check_graph(graph, step)


def test_the_artifact_attests_on_both_runners(artifact: Path) -> None:
    served = load_artifact(artifact)
    for kind in ("scan", "slots"):
        verdict = attest(served, make_runner(served, Runtime("cpu", kind, 1, 4)))
        assert verdict.ok, verdict


def test_the_manifest_says_what_is_served(artifact: Path, norm: str) -> None:
    manifest = read_artifact(artifact)
    provenance = manifest.provenance
    counts = {p.name: (p.dtype, p.shape, p.initial) for p in manifest.ports.state}
    assert manifest.hyperparameters["norm"] == norm
    assert manifest.layer_normalizations == 0
    if norm == "batch":
        assert provenance["golden_mode"] == "evaluation"
        assert (
            provenance["past_longest_step"] == "after 7 steps, the statistics of the last of them"
        )
        assert manifest.hyperparameters["longest_step"] == LONGEST
        assert counts["step"] == ("int64", (), 0)
    else:
        assert provenance["golden_mode"] == "training"
        assert "past_longest_step" not in provenance
        assert "step" not in counts


def golden_bytes(artifact: Path) -> Sample:
    """The bytes `(T, R)` of the golden vectors, as something to read."""
    golden = Golden.load(artifact / "golden.safetensors")
    return Sample(torch.from_numpy(golden.exact["next"]), {}, {})


def test_the_golden_truth_is_the_served_mode_of_the_very_file(artifact: Path) -> None:
    model = load_model(artifact, read_artifact(artifact))
    file = load_file(artifact / "model.safetensors")
    assert model.state_dict().keys() == file.keys()
    assert all(torch.equal(tensor, file[name]) for name, tensor in model.state_dict().items())
    truth = torch.from_numpy(Golden.load(artifact / "golden.safetensors").truth["logits"])
    logits = golden_logits(model.double(), golden_bytes(artifact))
    assert torch.allclose(logits, truth, rtol=0, atol=1e-12)


def test_training_mode_is_served_bit_for_bit_unless_the_batch_is_in_it(
    artifact: Path, norm: str
) -> None:
    model = load_model(artifact, read_artifact(artifact))
    served = golden_logits(model, golden_bytes(artifact))
    trained = training_logits(model, golden_bytes(artifact))
    assert torch.equal(trained, served) is (norm == "weight")
    if norm == "batch":
        assert (trained - served).abs().max() > 0.1
        before = load_file(artifact / "model.safetensors")
        assert all(torch.equal(t, before[n]) for n, t in model.state_dict().items())


def test_weight_decay_leaves_the_gains_of_weight_norm_alone() -> None:
    parameters = dict(untrained("lstm", "weight").named_parameters())
    decayed, free = _adamw(parameters, TrainConfig()).param_groups
    gains = {id(p) for name, p in parameters.items() if name.endswith("original0")}
    assert len(gains) == 4
    assert free["weight_decay"] == 0 < decayed["weight_decay"]
    assert gains <= {id(p) for p in free["params"]}


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_under_batch_norm_every_segment_starts_where_the_statistics_are_counted_from(
    norm: str,
) -> None:
    tokens = torch.zeros(2000, dtype=torch.uint8)
    task = LanguageTask(untrained("rnn", norm), tokens, tokens, 4, 20, 0)
    anew = [task.batch(update)[1] for update in range(3)]
    assert anew == ([True] * 3 if norm == "batch" else [True, False, False])


@pytest.mark.parametrize(
    ("rows", "steps", "message"),
    [
        (4, LONGEST - 1, r"longest_step is 7; .* 1 to batch\.steps, which is 6"),
        (1, LONGEST, r"batch\.rows is 1; batch norm needs 2"),
    ],
)
def test_a_batch_that_cannot_give_the_statistics_is_refused(
    rows: int, steps: int, message: str
) -> None:
    tokens = torch.zeros(2000, dtype=torch.uint8)
    with pytest.raises(ValueError, match=message):
        LanguageTask(untrained("rnn", "batch"), tokens, tokens, rows, steps, 0)
    LanguageTask(untrained("rnn", "layer"), tokens, tokens, rows, steps, 0)
