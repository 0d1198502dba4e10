"""An artifact is served as it was written or not at all."""

import hashlib
import json
import math
import os
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file

from contract.manifest import DERIVED, GOLDEN, WEIGHTS
from service.artifact import ArtifactError, _check_file, artifact_folders, load_artifact
from tests.service.altered import edit_golden, edit_manifest, rehash

_FILES = [GOLDEN, WEIGHTS, "model.onnx", "model-filtered.onnx", "step.onnx", "step-filtered.onnx"]


def _refused(artifact: Path) -> str:
    with pytest.raises(ArtifactError) as caught:
        load_artifact(artifact)
    return str(caught.value)


def _names(root: Path) -> list[str]:
    return [load_artifact(folder).name for folder in artifact_folders(root)]


def test_a_whole_artifact_is_loaded(artifacts: Path) -> None:
    assert _names(artifacts) == ["letters", "noise"]


def test_the_digest_names_the_content(copy: Path, artifacts: Path) -> None:
    assert load_artifact(copy).digest == load_artifact(artifacts / "letters").digest
    edit_golden(copy, logits=0.01)
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


def test_a_file_that_has_changed_since_it_was_checked_is_not_read(copy: Path) -> None:
    artifact = load_artifact(copy)
    content = artifact.read("step.onnx")
    (copy / "step.onnx").write_bytes(content[:-1])
    with pytest.raises(ArtifactError, match=r"step\.onnx has sha256"):
        artifact.read("step.onnx")


@pytest.mark.parametrize("name", [WEIGHTS, DERIVED])
def test_weights_may_be_larger_than_any_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("service.artifact._LARGEST_FILE_BYTES", 4)
    expected = hashlib.sha256(b"large").hexdigest()
    for file in (name, GOLDEN):
        (tmp_path / file).write_bytes(b"large")
    assert _check_file(tmp_path / name, expected) == 5
    with pytest.raises(ArtifactError, match="has 5 bytes, more than 4"):
        _check_file(tmp_path / GOLDEN, expected)
    monkeypatch.setattr("service.artifact._LARGEST_FILE_BYTES", 5)
    assert _check_file(tmp_path / GOLDEN, expected) == 5


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
        artifact_folders(tmp_path)


def test_a_folder_that_nobody_can_find_holds_no_artifact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArtifactError, match=f"^{tmp_path}/loop holds no artifact"):  # all of it
        artifact_folders(Path("loop"))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ArtifactError, match="artifacts holds no artifact"):
        artifact_folders(Path("artifacts"))


@pytest.mark.parametrize("bound", [math.inf, -math.inf, math.nan, 0, -1e-5, "inf", "nan"])
def test_golden_vectors_whose_bound_is_none_are_refused(copy: Path, bound: float | str) -> None:
    edit_golden(copy, logits=bound)
    message = _refused(copy)
    assert f"{copy}: golden.safetensors: the bound of logits is {float(bound)}" in message
    assert message.endswith("it must be finite and above 0")


@pytest.mark.parametrize(("bound", "scale"), [(0.03, 1), (1.0, 1), (1e30, 1), (1e38, 1e30)])
def test_golden_vectors_whose_bound_lets_other_models_pass_are_refused(
    copy: Path, bound: float, scale: float
) -> None:
    """Of float32 too, in which the square of a large value is infinite."""

    def narrow(golden: dict[str, Any]) -> None:
        golden["truth.logits"] = golden["truth.logits"].astype("f4") * scale

    edit_golden(copy, narrow, logits=bound)
    assert f"the bound of logits is {bound:.3g}; it must be at most 0.01 of" in _refused(copy)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e300])
def test_golden_values_that_training_cannot_compute_are_refused(copy: Path, value: float) -> None:
    edit_golden(copy, lambda golden: golden["truth.logits"].__setitem__((7, 1, 9), value))
    assert "logits is not what training could have computed" in _refused(copy)


@pytest.mark.parametrize("name", ["steps.uniform", "rows.logit_bias", "truth.logits", "exact.next"])
@pytest.mark.parametrize("change", ["shape", "type"])
def test_golden_vectors_that_the_graphs_cannot_run_are_refused(
    copy: Path, name: str, change: str
) -> None:
    def edit(tensors: dict[str, Any]) -> None:
        was = tensors[name]
        tensors[name] = was[..., None] if change == "shape" else was.astype("uint16")

    edit_golden(copy, edit)
    assert "golden.safetensors" in _refused(copy)


@pytest.mark.parametrize(
    "facts",
    [
        "[" * 10**5,
        "1",
        '{"bounds": {"logits": 1' + "0" * 400 + '}, "training_error": 0}',
        '{"bounds": {"logits": 1e-5}, "training_error": Infinity}',
        '{"bounds": [], "training_error": 0}',
    ],
)
def test_golden_facts_that_are_none_are_refused(copy: Path, facts: str) -> None:
    path = copy / "golden.safetensors"
    save_file(load_file(path), path, {"evenkeel": facts})
    rehash(copy)
    assert "golden.safetensors" in _refused(copy)


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


def test_golden_vectors_that_say_nothing_of_an_output_are_refused(copy: Path) -> None:
    edit_golden(copy, lambda tensors: tensors.pop("exact.next"))
    assert "golden.safetensors does not say what next must be" in _refused(copy)


def test_golden_vectors_that_leave_no_symbols_out_are_refused(copy: Path) -> None:
    def edit(tensors: dict[str, Any]) -> None:
        plain = ~tensors["filtered"]
        for name, array in tensors.items():
            by_row = name == "filtered" or name.startswith("rows.")
            tensors[name] = (array[plain] if by_row else array[:, plain]).copy()

    edit_golden(copy, edit)
    assert "has no row that asks for symbols to be left out" in _refused(copy)


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


def test_a_graph_that_is_none_is_named(copy: Path) -> None:
    (copy / "model.onnx").write_bytes(b"no graph")
    rehash(copy)
    assert str(copy / "model.onnx") in _refused(copy)


def test_the_manifest_is_readable_json(artifacts: Path) -> None:
    manifest = json.loads((artifacts / "noise" / "manifest.json").read_text())
    assert [port["name"] for port in manifest["ports"]["state"]] == ["token", "h0", "h1"]


@pytest.mark.parametrize("name", ["manifest.json", "model.safetensors", "model.onnx"])
@pytest.mark.parametrize("link", ["symbolic", "hard", "pipe", "folder"])
def test_only_plain_files_are_opened(copy: Path, name: str, link: str) -> None:
    elsewhere = (copy / name).rename(copy.parent / name)
    if link == "symbolic":
        (copy / name).symlink_to(elsewhere)
    elif link == "hard":
        os.link(elsewhere, copy / name)
    elif link == "pipe":
        os.mkfifo(copy / name)
    else:
        (copy / name).mkdir()
    with ThreadPoolExecutor(1) as thread:
        if not wait([told := thread.submit(_refused, copy)], 20).done:
            os.close(os.open(copy / name, os.O_WRONLY))  # whom it waits for
            pytest.fail("a pipe is waited for")
    assert str(copy / name) in (refused := told.result())
    assert ("no plain file" in refused) == (link in ("hard", "pipe"))


@pytest.mark.parametrize(
    ("name", "size"),
    [("manifest.json", 1 << 21), ("model.onnx", 1 << 21), (GOLDEN, 65 << 20), (WEIGHTS, 5 << 30)],
)
def test_a_file_larger_than_any_is_not_read(copy: Path, name: str, size: int) -> None:
    with (copy / name).open("ab") as file:
        file.truncate(size)
    rehash(copy) if name == "model.onnx" else None  # of others the size is enough
    assert f"{copy / name} has {size} bytes, more than" in _refused(copy)


def test_a_folder_may_be_a_link_to_one_inside_but_not_to_one_outside(
    copy: Path, tmp_path: Path
) -> None:
    root, outside = tmp_path / "root", tmp_path / "root-of-another"
    (root / "versions").mkdir(parents=True)
    copy.rename(root / "versions" / "3")
    (root / "letters").symlink_to(root / "versions" / "3")
    assert _names(root) == ["letters"]
    outside.mkdir()
    (outside / "manifest.json").touch()
    (root / "noise").symlink_to(outside)
    with pytest.raises(ArtifactError, match=r"noise is a link to .*, not in"):
        _names(root)


_ODD = [
    ("name", "../letters"),
    ("name", "a/b"),
    ("name", ""),
    ("files", {"a\0b": "00"}),
    ("files", {"..": "00"}),
    ("files", dict.fromkeys([*_FILES, *map(str, range(27))], "00")),
    ("provenance", {"loss": "<1e400>"}),
    ("provenance", {"loss": "<NaN>"}),
    ("provenance", {"loss": "<" + "[" * 5000 + ">"}),
    ("parameters", "<1" + "0" * 5000 + ">"),
    ("graphs", {"scan": {"plain": "x" * 10**5}, "step": {"plain": "step.onnx"}}),
]


@pytest.mark.parametrize(("key", "value"), _ODD)
def test_an_odd_manifest_is_refused(copy: Path, key: str, value: object) -> None:
    edit_manifest(copy, lambda manifest: manifest.update({key: value}))
    path = copy / "manifest.json"
    path.write_text(path.read_text().replace('"<', "").replace('>"', ""))
    message = _refused(copy)
    assert str(path) in message
    assert len(message) < 2000  # of which a log has a line


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("shape", [-1]),
        ("shape", [0]),
        ("shape", [1 << 40]),
        ("shape", [1 << 19, 1 << 19]),
        ("shape", [1] * 9),
        ("initial", "NaN"),
        ("initial", 0.5),
        ("initial", 1e300),
        ("initial", 3.5e38),
        ("initial", -3.5e38),
        ("name", "h0"),
        ("name", "h0_after"),
        ("dtype", "float64"),
    ],
)
def test_an_odd_port_is_refused(copy: Path, key: str, value: object) -> None:
    edit_manifest(copy, lambda manifest: manifest["ports"]["state"][0].update({key: value}))
    assert "manifest.json: ports" in _refused(copy)
