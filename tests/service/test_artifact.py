"""An artifact is served as it was written or not at all."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file

from service.artifact import ArtifactError, load_artifact, load_artifacts
from service.kinds import KINDS
from service.metrics import Metrics
from service.models import Models
from tests.service.altered import copy_of, edit_golden, edit_manifest, rehash
from tests.service.serving import settings

_FILES = [
    "golden.safetensors",
    "model.safetensors",
    "model.onnx",
    "model-filtered.onnx",
    "step.onnx",
    "step-filtered.onnx",
]


@pytest.fixture
def copy(artifacts: Path, tmp_path: Path) -> Path:
    return copy_of(artifacts / "letters", tmp_path)


def _refused(artifact: Path) -> str:
    with pytest.raises(ArtifactError) as caught:
        load_artifact(artifact)
    return str(caught.value)


def test_a_whole_artifact_is_loaded(artifacts: Path) -> None:
    assert list(load_artifacts(artifacts)) == ["letters", "noise"]


def test_the_digest_names_the_content(copy: Path, artifacts: Path) -> None:
    assert load_artifact(copy).digest == load_artifact(artifacts / "letters").digest
    edit_golden(copy, logits=1.0)
    assert load_artifact(copy).digest != load_artifact(artifacts / "letters").digest


@pytest.mark.parametrize("name", _FILES)
def test_a_truncated_file_is_named(copy: Path, name: str) -> None:
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[:-1])
    assert str(copy / name) in _refused(copy)


@pytest.mark.parametrize("name", _FILES)
def test_a_file_with_one_bit_changed_is_named(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    assert str(copy / name) in _refused(copy)


@pytest.mark.parametrize("name", _FILES)
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    assert _refused(copy) == f"{copy / name} is missing"


@pytest.mark.parametrize("name", _FILES)
def test_every_file_must_have_a_hash(copy: Path, name: str) -> None:
    edit_manifest(copy, lambda manifest: manifest["files"].pop(name))
    assert name in _refused(copy)


def test_a_file_outside_the_folder_is_refused(copy: Path) -> None:
    (copy.parent / "outside").write_bytes((copy / "model.onnx").read_bytes())

    def edit(manifest: dict[str, Any]) -> None:
        manifest["files"]["../outside"] = manifest["files"]["model.onnx"]

    edit_manifest(copy, edit)
    assert "outside" in _refused(copy)


def test_a_changed_hash_is_an_error_that_shows_both(copy: Path) -> None:
    edit_manifest(copy, lambda manifest: manifest["files"].update({"step.onnx": "0" * 64}))
    message = _refused(copy)
    assert "step.onnx has sha256" in message
    assert "000000000000" in message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("surprise", 1),
        ("format_version", 1),
        ("format_version", 3),
        ("kind", "ink"),
        ("kind", None),
        ("parameters", "many"),
        ("graphs", {"loop": {"plain": "model.onnx", "filtered": "model.onnx"}}),
        ("alphabet", {"kind": "bytes", "more": 0}),
        ("alphabet", {"kind": "bytes", "size": 256, "start_token": 10}),
        ("variant", {"folded": True, "squared": True}),
        ("parity", [{"name": "bits", "value": 0, "bound": 0, "detail": "all", "holds": True}]),
    ],
)
def test_a_manifest_key_out_of_place_is_named(copy: Path, key: str, value: object) -> None:
    edit_manifest(copy, lambda manifest: manifest.update({key: value}))
    message = _refused(copy)
    assert "manifest.json" in message
    assert key in message


def test_a_manifest_without_a_key_names_it(copy: Path) -> None:
    edit_manifest(copy, lambda manifest: manifest.pop("ports"))
    assert "manifest.json: ports: Field required" in _refused(copy)


@pytest.mark.parametrize("runner", ["scan", "step"])
def test_a_manifest_without_the_graphs_of_a_runner_is_refused(copy: Path, runner: str) -> None:
    edit_manifest(copy, lambda manifest: manifest["graphs"].pop(runner))
    assert "graphs" in _refused(copy)


@pytest.mark.parametrize("content", [b"", b"{", b"not json", b"\xff\xfe", b"[]", b"null"])
def test_a_manifest_that_is_not_json_is_named(copy: Path, content: bytes) -> None:
    (copy / "manifest.json").write_bytes(content)
    assert str(copy / "manifest.json") in _refused(copy)


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    assert str(tmp_path / "manifest.json") in _refused(tmp_path)


def test_a_service_without_any_artifact_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="make serve"):
        load_artifacts(tmp_path)


def test_two_artifacts_of_one_name_are_refused(artifacts: Path, tmp_path: Path) -> None:
    copy_of(artifacts / "letters", tmp_path)
    second = copy_of(artifacts / "noise", tmp_path)
    edit_manifest(second, lambda manifest: manifest.update({"name": "letters"}))
    with pytest.raises(ArtifactError, match="letters"):
        load_artifacts(tmp_path)


@pytest.mark.parametrize("bound", [math.inf, -math.inf, math.nan, 0, -1e-5, "inf", "nan"])
def test_golden_vectors_whose_bound_is_none_are_refused(copy: Path, bound: float | str) -> None:
    edit_golden(copy, logits=bound)
    message = _refused(copy)
    assert f"{copy}: golden.safetensors: the bound of logits is {float(bound)}" in message
    assert message.endswith("it must be finite and above 0")


def test_golden_vectors_whose_bound_is_no_number_are_refused(copy: Path) -> None:
    edit_golden(copy, logits="not a number")
    assert "golden.safetensors: could not convert" in _refused(copy)


def test_golden_vectors_without_facts_are_refused(copy: Path) -> None:
    path = copy / "golden.safetensors"
    save_file(load_file(path), path)
    rehash(copy)
    assert "golden.safetensors says nothing of" in _refused(copy)


@pytest.mark.parametrize("gone", ["truth.logits", "filtered", "exact.next", "steps.forced"])
def test_golden_vectors_of_unequal_length_are_refused(copy: Path, gone: str) -> None:
    def edit(tensors: dict[str, Any]) -> None:
        tensors[gone] = tensors[gone][:-1].copy()

    edit_golden(copy, edit)
    assert "golden.safetensors: golden vectors are not all of" in _refused(copy)


@pytest.mark.parametrize("name", ["truth.logits", "filtered"])
def test_golden_vectors_without_a_tensor_are_refused(copy: Path, name: str) -> None:
    edit_golden(copy, lambda tensors: tensors.pop(name))
    assert f"golden.safetensors says nothing of '{name.removeprefix('truth.')}'" in _refused(copy)


def test_golden_vectors_without_inputs_are_refused(copy: Path) -> None:
    def edit(tensors: dict[str, Any]) -> None:
        for name in [name for name in tensors if name.startswith("steps.")]:
            del tensors[name]

    edit_golden(copy, edit)
    assert "golden.safetensors: golden vectors have no steps or no outputs" in _refused(copy)


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_golden_vectors_that_do_not_say_what_is_filtered_are_refused(
    copy: Path, dtype: str
) -> None:
    def edit(tensors: dict[str, Any]) -> None:
        tensors["filtered"] = tensors["filtered"].astype(dtype)

    edit_golden(copy, edit)
    assert "which rows ask for symbols to be left out" in _refused(copy)


def test_golden_vectors_that_are_no_tensors_are_refused(copy: Path) -> None:
    (copy / "golden.safetensors").write_bytes(b"no tensors")
    rehash(copy)
    assert "golden.safetensors: " in _refused(copy)


def test_a_graph_that_onnxruntime_cannot_read_is_named(copy: Path) -> None:
    (copy / "model.onnx").write_bytes(b"no graph")
    rehash(copy)
    with pytest.raises(ArtifactError, match=r"onnxruntime refuses .*model\.onnx"):
        Models(settings(copy.parent, runner="scan"), Metrics(), KINDS)


def test_the_manifest_is_readable_json(artifacts: Path) -> None:
    manifest = json.loads((artifacts / "noise" / "manifest.json").read_text())
    assert [port["name"] for port in manifest["ports"]["state"]] == ["token", "h0", "h1"]
