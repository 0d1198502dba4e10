"""Digits: the IDX files, the figures, and a defect in what is exported."""

import gzip
import math
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from lab.classify import Classification, Examples
from lab.compare import Laboratory
from lab.epochs import evaluating
from lab.export import compare, golden, native
from lab.graphs import PartGraph
from lab.tasks.digits.data import FILES, parse_labels, parse_pictures, read_digits
from lab.tasks.digits.experiment import EXPERIMENT
from models.mlp import MLP, MLPConfig
from models.norms import LayerNorm


def test_pictures_and_labels_are_read_as_they_were_written() -> None:
    pixels = bytes(range(12))
    pictures = parse_pictures(struct.pack(">4i", 2051, 2, 2, 3) + pixels)
    assert pictures.shape == (2, 2, 3)
    assert (pictures * 255).round().int().flatten().tolist() == list(range(12))
    assert parse_pictures(struct.pack(">4i", 2051, 1, 1, 1) + b"\xff").item() == 1
    assert parse_labels(struct.pack(">2i", 2049, 3) + bytes([7, 0, 9])).tolist() == [7, 0, 9]
    with pytest.raises(ValueError, match="begins with 2049"):
        parse_pictures(struct.pack(">4i", 2049, 1, 1, 1) + b"\0")
    with pytest.raises(ValueError, match="begins with 2051"):
        parse_labels(struct.pack(">2i", 2051, 1) + b"\0")


def test_validation_and_test_pictures_are_none_of_training(tmp_path: Path) -> None:
    digits = read_digits(None, 0.25).flat()
    seen = {row.numpy().tobytes() for row in digits.train.inputs}
    for part in (digits.validation, digits.test):
        assert not seen & {row.numpy().tobytes() for row in part.inputs}
    with pytest.raises(ValueError, match="--quick needs no data"):
        read_digits(tmp_path, 0.1)


def test_the_last_of_training_are_to_validate_and_the_files_of_the_test_to_test(
    tmp_path: Path,
) -> None:
    for name, first, count in zip(FILES, (0, 0, 100, 100), (10, 10, 3, 3), strict=True):
        numbers = np.arange(first, first + count, dtype=np.uint8)
        head = struct.pack(">4i", 2051, count, 1, 1) if "images" in name else b""
        content = (head or struct.pack(">2i", 2049, count)) + numbers.tobytes()
        (tmp_path / f"{name}-ubyte.gz").write_bytes(gzip.compress(content))
    digits = read_digits(tmp_path, 0.2)
    expected = [list(range(8)), [8, 9], [100, 101, 102]]
    assert [part.classes.tolist() for part in digits.parts] == expected
    shades = [(part.inputs * 255).round().flatten().tolist() for part in digits.parts]
    assert shades == expected
    counts = {"train": 8, "validation": 2, "test": 3}
    assert digits.facts() == {"name": "mnist", "sha256": digits.sha256} | counts
    digests = set()
    # Whatever file is another, the data are.
    for name in FILES:
        digests.add(read_digits(tmp_path, 0.2).sha256)
        path = tmp_path / f"{name}-ubyte.gz"
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:-1] + b"\7"))
    assert len(digests) == len(FILES)


class Fixed(nn.Module):
    """Logits that are the inputs themselves."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_error_and_nats_are_those_of_the_definition() -> None:
    logits = torch.tensor([[0.0, math.log(3)], [math.log(3), 0.0], [0.0, 0.0], [9.0, 0.0]])
    examples = Examples(logits, torch.tensor([1, 1, 0, 0]))
    task = Classification(Fixed(), examples, examples, examples, 2, 0)
    found = task.measure(examples)
    nats = -(math.log(3 / 4) + math.log(1 / 4) + math.log(1 / 2) - math.log1p(math.exp(-9))) / 4
    assert found["error"] == 25.0
    assert found["nats"] == pytest.approx(nats, rel=1e-6)
    for diverged in (math.nan, -math.inf):
        none = Examples(torch.tensor([[diverged, 0.0]]), torch.tensor([0]))
        assert math.isnan(task.measure(none)["nats"])


def test_the_best_weights_are_chosen_by_nats_of_validation_and_judged_by_the_test() -> None:
    right, wrong = torch.tensor([[5.0, 0.0]]), torch.tensor([[1.0, 0.0]])
    learned, judged, held_out = (
        Examples(logits, torch.tensor([place]))
        for logits, place in ((right, 1), (right, 0), (wrong, 1))
    )
    task = Classification(Fixed(), learned, judged, held_out, 1, 0)
    nats = math.log1p(math.exp(-5))
    assert task.validate() == task.figures["nats"] == pytest.approx(nats, rel=1e-4)
    assert task.figures["error"] == 0
    assert task.test() == {"error": 100, "nats": pytest.approx(math.log1p(math.e))}


def test_a_graph_is_compared_on_examples_that_nothing_learned_from() -> None:
    digits = read_digits(None, 0.25).flat()
    task = Classification(MLP(MLPConfig(units=4)), *digits.parts, 2, 0)
    (part,) = EXPERIMENT.parts(task)
    given = part.inputs["pixels"]
    assert torch.equal(given, digits.test.inputs[: len(given)])


def test_golden_vectors_are_of_the_precision_they_are_called_by() -> None:
    digits = read_digits(None, 0.25).flat()
    task = Classification(MLP(MLPConfig(units=4)), *digits.parts, 2, 0)
    tensors = golden(EXPERIMENT.parts(task), task.model)
    found = {name: tensors[f"model/{name}/logits"] for name in ("float32", "float64")}
    assert found["float32"].dtype == torch.float32
    assert found["float64"].dtype == torch.float64
    assert torch.allclose(found["float32"].double(), found["float64"], atol=1e-5)


def test_a_layer_norm_that_is_missing_in_a_graph_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = read_digits(None, 0.25).flat()
    task = Classification(MLP(MLPConfig(units=4)), *digits.parts, 2, 0)
    (part,) = EXPERIMENT.parts(task)
    graph = PartGraph(part, task.model, tmp_path)
    assert native(graph).holds
    for found, missing in ((0, 2), (3, 1)):
        monkeypatch.setattr("lab.export.count_layer_norms", lambda *_, found=found: found)
        assert (native(graph).value, native(graph).holds) == (missing, False)


@pytest.mark.parametrize("training", [True, False])
def test_what_is_judged_is_afterwards_in_the_mode_it_was_in(training: bool) -> None:
    model = MLP(MLPConfig(units=4)).train(training)
    with evaluating(model):
        assert not any(module.training for module in model.modules())
        assert not torch.is_grad_enabled()
    assert all(module.training is training for module in model.modules())
    assert torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), evaluating(model):
        _ = 1 / 0
    assert model.training is training  # however it ends


def test_a_batch_larger_than_what_there_is_to_learn_is_refused() -> None:
    examples = Examples(torch.zeros(3, 2), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"^batch\.rows is 4; it must be 1 to 3$"):
        Classification(Fixed(), examples, examples, examples, 4, 0)


def test_every_example_of_an_epoch_is_seen_once_in_an_order_of_the_seed() -> None:
    examples = Examples(torch.arange(12.0).unsqueeze(1), torch.zeros(12, dtype=torch.int64))

    def order(seed: int, epoch: int) -> list[float]:
        task = Classification(Fixed(), examples, examples, examples, 4, seed)
        return [x for i in range(3) for x in task.batch(3 * epoch + i)[0][0].flatten().tolist()]

    assert sorted(order(0, 0)) == list(range(12))
    assert order(0, 1) == order(0, 1) != order(0, 0)
    assert order(0, 0) != order(1, 0) != order(0, 1)


def test_the_softmax_layer_is_not_normalised_and_every_hidden_one_is() -> None:
    model = MLP(MLPConfig(units=8))
    assert sum(isinstance(m, LayerNorm) for m in model.modules()) == 2
    x = torch.rand(3, 784)
    with torch.no_grad():
        logits = model(x)
        model.readout.weight.mul_(2)
        model.readout.bias.mul_(2)
    assert torch.allclose(model(x), 2 * logits)


def test_a_weight_that_was_changed_after_training_turns_the_report_red(
    laboratory: Callable[[str, str], Laboratory], tmp_path: Path
) -> None:
    found = laboratory("digits", "layer")
    task = found.trained("layer", 0)
    (part,) = found.experiment.parts(task)
    graph = PartGraph(part, task.model, tmp_path)
    with torch.no_grad():
        task.model.get_parameter("hidden.0.weight")[0, 0:400] += 1e-3
    red = [finding.name for finding in compare(graph, task.model) if not finding.holds]
    assert red == ["model, rounding"]
