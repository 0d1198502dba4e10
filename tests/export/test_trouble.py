"""What is wrong with data, places and artifacts is told in a line, and before the work."""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

import onnx_ir as ir
import pytest

from contract.files import replacing
from contract.manifest import Finding
from export.__main__ import main
from export.artifact import read_artifact
from export.convert import convert
from export.folders import made_whole, require_parent, require_place
from export.parity import numbers
from export.parity.report import Evidence, Extent, Served
from export.text.parity import validation_text
from export.verify import verify
from models.generation import LanguageStep
from models.language import LanguageModel
from tests.service.altered import rehash
from tests.training.tiny import TEXT, tiny_recipe
from training import checkpoint
from training.command import add_training_options, asked_recipe
from training.loop import CHECKPOINT
from training.run import data_at
from training.start import begin_from

SMALL = Extent(sampled_steps=40, structure_steps=5, bit_steps=6, timed=False)


def test_a_file_and_a_folder_that_may_not_be_read_are_not_the_corpus(
    artifact: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, text in ("a", TEXT[::-1]), ("b", TEXT), ("closed", TEXT):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / corpus.name).write_text(text)
    scan, read = os.scandir, Path.read_bytes

    def scandir(path: str) -> object:  # root may read anything
        if Path(path).name == "closed":
            raise PermissionError(path)
        return scan(path)

    def read_bytes(path: Path) -> bytes:
        if path.parent.name == "a":
            raise PermissionError(path)
        return read(path)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    manifest = read_artifact(artifact)
    evidence = Evidence(manifest, Served(artifact, manifest), SMALL, tmp_path)
    assert validation_text(evidence)[0] is not None


def _change(folder: Path, **changes: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _told(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The line that tells of an error."""
    assert main(words) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    return said


def _nobodys(_: Path) -> bool:
    return False


@pytest.mark.parametrize("name", ["step.onnx", "model.safetensors", "golden.safetensors"])
def test_what_the_manifest_does_not_list_is_neither_verified_nor_converted(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _change(folder, files={n: h for n, h in read_artifact(folder).files.items() if n != name})
    for words in ["verify", str(folder)], ["convert", str(folder), str(folder.parent / "again")]:
        assert f"files: {name} is not among them" in _told(words, capsys)


@pytest.mark.parametrize(
    ("table", "changes", "why"),
    [
        ("hyperparameters", {"wings": 2}, "wings"),
        ("hyperparameters", {"units": "24"}, "model.units is '24'; it must be a whole number"),
        ("hyperparameters", {"units": 24.0}, "model.units is 24.0; it must be a whole number"),
        ("hyperparameters", {"layers": True}, "model.layers is True; it must be a whole number"),
        ("hyperparameters", {"units": 32}, "size mismatch"),
        ("hyperparameters", {"layers": 3}, "Missing key"),
        ("provenance", {"batch": None}, "NoneType"),
        ("provenance", {"batch": {"rows": 0, "steps": 20}}, "batch.rows is 0"),
        ("provenance", {"batch": {"rows": 8}}, "'steps' is missing"),
        ("provenance", {"batch": {"rows": 10**12, "steps": 20}}, "at most 1048576 steps of all"),
        ("provenance", {"training": None}, "NoneType"),
        ("provenance", {"versions": []}, "list"),
    ],
)
def test_an_artifact_of_another_version_is_told_in_a_line(
    folder: Path, table: str, changes: dict[str, object], why: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    before = getattr(read_artifact(folder), table)
    _change(folder, **{table: before | changes})
    for words in ["verify", str(folder)], ["convert", str(folder), str(folder.parent / "again")]:
        said = _told(words, capsys)
        assert f"{folder} is of another version or was altered: " in said
        assert why in said


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"elapsed_s": None}, "progress.elapsed_s is None; it must be a number"),
        ({"updates": "12"}, "progress.best_update is '12'; it must be a whole number"),
        ({"batch": {"rows": 2.5, "steps": 20}}, "batch.rows is 2.5; it must be a whole number"),
    ],
)
def test_an_artifact_that_counts_in_what_is_no_number_is_told_in_a_line(
    folder: Path, changes: dict[str, object], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _change(folder, provenance=read_artifact(folder).provenance | changes)
    said = _told(["convert", str(folder), str(folder.parent / "again")], capsys)
    assert f"{folder} is of another version or was altered: {why}" in said


def test_weights_that_are_none_are_told_with_their_artifact(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "model.safetensors").write_bytes(b"no weights")
    rehash(folder)
    for words in ["verify", str(folder)], ["convert", str(folder), str(folder.parent / "again")]:
        assert f"{folder} is of another version or was altered: " in _told(words, capsys)


@pytest.mark.parametrize("missing", ["batch", "versions", "updates"])
def test_an_artifact_that_does_not_say_how_it_was_trained_is_told(
    folder: Path, missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = read_artifact(folder).provenance
    _change(folder, provenance={n: fact for n, fact in trained.items() if n != missing})
    words = ["convert", str(folder), str(folder.parent / "again")]
    assert f"altered: '{missing}' is missing" in _told(words, capsys)


@pytest.mark.parametrize("changes", [{"kind": "music"}, {"progress": None}, {"model": {"a": 1}}])
def test_a_run_of_another_version_is_told_in_a_line(
    run: Path, tmp_path: Path, changes: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    tensors, facts = checkpoint.load(run / CHECKPOINT)
    checkpoint.save(tmp_path / CHECKPOINT, tensors, facts | changes)
    said = _told(["convert", str(tmp_path), str(tmp_path / "made")], capsys)
    assert f"{tmp_path} is of another version or was altered: " in said


@pytest.mark.parametrize("option", ["fold", "quantize"])
def test_what_is_converted_is_made_as_it_was_asked_for(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[dict[str, bool]]()
    monkeypatch.setattr("export.__main__.convert", lambda *_, **how: asked.append(how))
    assert main(["convert", "a", "b", f"--{option}"]) == 0
    assert asked == [{name: name == option for name in ("fold", "quantize")}]


def test_a_picture_that_cannot_be_written_is_refused_before_the_work(
    artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr("export.verify.verify", None)
    monkeypatch.setattr("training.ink.command.show", None)
    (tmp_path / "dir.npz").mkdir()
    for words in ["verify", str(artifact)], ["pens", "synthetic"]:
        odd = [*words, "--plot", str(tmp_path / "x.abc")]
        assert "x.abc ends with .abc; it may with " in _told(odd, capsys)
    words = ["pens", "synthetic", "--out", str(tmp_path / "dir.npz")]
    assert "dir.npz is a folder; name a file" in _told(words, capsys)


def test_a_place_where_nothing_may_be_written_is_refused_before_the_work(
    artifact: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "closed").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path / "closed")
    monkeypatch.setattr("training.run.data_at", None)
    monkeypatch.setattr("export.verify.verify", None)
    monkeypatch.setattr("training.ink.command.show", None)
    monkeypatch.setattr("export.ink.styles.require_pen", lambda artifact: None)
    closed, data = tmp_path / "closed" / "a" / "b", ["--data", str(corpus)]
    for words in (
        ["train", "quickstart", *data, "--out", str(closed)],
        ["train", "quickstart", *data, "--out", str(closed.parent.parent)],
        ["build", "quickstart", *data, "--artifact", str(closed)],
        ["convert", str(artifact), str(closed)],
        ["verify", str(artifact), "--plot", str(tmp_path / "closed" / "x.png")],
        ["verify", str(tmp_path / "closed"), "--record"],
        ["styles", str(tmp_path / "closed"), *data],
        ["pens", "synthetic", "--out", str(tmp_path / "closed" / "x.npz")],
    ):
        said = _told(words, capsys)
        assert f"nothing may be written in {tmp_path / 'closed'}" in said
    (tmp_path / "link").symlink_to("gone")
    for place in "file", "link":
        words = ["train", "quickstart", *data, "--out", str(tmp_path / place / "run")]
        assert f"{place} is no folder" in _told(words, capsys)
    words[-1] = str(tmp_path / "link")
    assert "link is no folder" in _told(words, capsys)


def test_what_is_typed_is_here_and_what_a_recipe_names_in_the_data_folder(
    artifact: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a build compares with what it has trained on."""
    seen: list[Path] = []

    def compared(_: Path, data: Path, __: Extent) -> None:
        seen.append(data)
        raise ValueError("no more is asked here")

    for place in "here", "data":
        (tmp_path / place).mkdir()
        (tmp_path / place / "mine").write_text(place)
    (tmp_path / "data" / "theirs").write_text("data")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("EVENKEEL_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("export.__main__.train_by", lambda *_: None)
    monkeypatch.setattr("export.verify.verify", compared)
    monkeypatch.setattr("export.__main__.convert", lambda *_, approve: approve(artifact))
    for words, source in (
        (["--data", "mine"], tmp_path / "here" / "mine"),
        (["--data", "./mine"], tmp_path / "here" / "mine"),
        (["--data", "theirs"], tmp_path / "data" / "theirs"),
        (["--set", "data.source=mine"], tmp_path / "data" / "mine"),
        (["--set", f"data.source={corpus}"], corpus),
        ([], None),
    ):
        recipe = asked_recipe(training_options("quickstart", *words))
        trained = data_at(recipe.data.source, tmp_path / "data")
        assert trained == str(source or "pydoc")
        main(["build", "quickstart", *words])
        assert seen.pop() == (source or tmp_path / "data")


def training_options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_training_options(parser)
    return parser.parse_args(words)


def test_a_folder_may_have_a_name_that_is_no_utf_8(
    artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries open no file by such a name. What has none is left out, as it takes long: what
    compares the structure is made elsewhere, and a step is traced without a look at a file."""
    steps = read_artifact(artifact).graphs.step.files()

    def traced(step: LanguageStep) -> ir.Model:
        return ir.load(artifact / steps["filtered" if len(step.row_ports) > 2 else "plain"])

    nothing = Finding(name="structure", value=0, bound=0, detail="")
    monkeypatch.setattr("export.variant.trace", traced)
    monkeypatch.setattr(numbers, "structure", lambda *_: nothing)
    odd = tmp_path / os.fsdecode(b"caf\xe9") / "tiny"
    shutil.copytree(artifact, odd)
    assert verify(odd, None, SMALL).holds
    convert(odd, odd.with_name("again"))
    assert (
        begin_from(odd, LanguageModel(tiny_recipe(odd).model), tiny_recipe(odd))["name"] == "tiny"
    )


@pytest.mark.parametrize("name", ["sheet.png", "corpus.npz"])
def test_a_name_without_room_for_one_that_is_longer_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setattr("training.ink.command.show", None)
    option = "--plot" if name.endswith("png") else "--out"
    file = tmp_path / f"{'x' * (255 - len(name))}{name}"
    file.touch()  # the system takes it
    assert "a name has " in _told(["pens", "synthetic", option, str(file)], capsys)
    longest = os.pathconf(tmp_path, "PC_NAME_MAX") - len(f"..{os.getpid()}")
    with replacing(file.with_name("y" * longest)) as whole:  # which is not too long
        whole.touch()
    require_parent(file.with_name("y" * longest))
    link = tmp_path / "link"
    link.symlink_to(file)
    with pytest.raises(ValueError, match="a name has "):
        require_parent(link)  # what it leads to is what is replaced


def test_a_folder_whose_name_has_no_room_is_refused_before_the_work(tmp_path: Path) -> None:
    longest = os.pathconf(tmp_path, "PC_NAME_MAX") - len(".making-~") - 8
    with pytest.raises(ValueError, match=f"a name has {longest} bytes"):
        require_place(tmp_path / "new" / ("é" * (longest // 2) + "ee"), _nobodys, "artifact")
    with made_whole(tmp_path / ("y" * longest), _nobodys, "artifact") as made:
        made.joinpath("file").touch()
    assert tmp_path.joinpath("y" * longest, "file").exists()


def test_the_folder_that_a_link_leads_to_has_to_be_there(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone" / "sheet.png")
    with pytest.raises(ValueError, match=r"there is no folder .*gone"):
        require_parent(link)


@pytest.mark.parametrize(("verb", "why"), [("verify", "is not an artifact"), ("pens", "no folder")])
def test_what_draws_nothing_needs_nothing_to_draw_with(
    verb: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name in "training.curves", "training.ink.sheet":
        monkeypatch.setitem(sys.modules, name, None)
    assert why in _told([verb, str(tmp_path / "none")], capsys)
