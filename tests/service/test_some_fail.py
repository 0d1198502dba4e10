"""One bad artifact keeps no other from being served, unless it is required."""

import asyncio
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from contract.manifest import MANIFEST, WEIGHTS
from service.artifact import ArtifactError, artifact_folders, load_artifact
from service.catalogue import Models
from service.kinds import KINDS
from service.metrics import Metrics
from service.places import look_at
from service.settings import Settings
from tests.service.altered import copy_of, edit_manifest, perturb
from tests.service.changing import changing
from tests.service.serving import eventually, running, settings


@pytest.fixture
def folder(artifacts: Path, tmp_path: Path) -> Path:
    """`letters` and `noise`, whose weights are cut short."""
    copy_of(artifacts / "letters", tmp_path)
    weights = copy_of(artifacts / "noise", tmp_path) / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1])
    return tmp_path


def test_a_bad_artifact_is_listed_and_the_others_are_served(folder: Path) -> None:
    with running(settings(folder)) as service:
        ready = service.client.get("/readyz")
        assert (ready.status_code, ready.text) == (200, "ok; failed: noise")
        health = service.client.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "ok")
        standing = health.json()["models"]["noise"]
        assert (standing["ready"], standing["state"]) == (False, "failed")
        assert f"{WEIGHTS} has sha256" in standing["failed"]
        listed = service.client.get("/v1/models").json()["data"]
        assert [model["id"] for model in listed] == ["letters"]
        assert service.post(model="noise", max_tokens=1).status_code == 404
        assert service.post(model="letters", max_tokens=1).status_code == 200
        assert service.metric("model_failed", model="noise") == 1
        assert service.metric("model_ready", model="noise") == 0
        assert service.metric("model_failed") == 0


def test_why_an_artifact_is_bad_is_told_in_few_words(folder: Path) -> None:
    """Whatever of any length it has in its files."""
    edit_manifest(folder / "letters", lambda manifest: manifest["files"].update({"x" * 10_000: 1}))
    with pytest.raises(ArtifactError) as refused:
        load_artifact(folder / "letters")
    assert len(str(refused.value)) < 1000


def test_folders_with_a_manifest_come_in_the_order_of_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two whose models have one name the first has it. A link to nothing is no manifest."""
    for name in "abcd":
        (tmp_path / name).mkdir()
        (tmp_path / name / MANIFEST).touch()
    (tmp_path / "b" / MANIFEST).unlink()
    (tmp_path / "b" / MANIFEST).symlink_to("nothing")
    monkeypatch.setattr(Path, "iterdir", lambda root: iter([root / name for name in "cbad"]))
    assert [folder.name for folder in artifact_folders(tmp_path)] == ["a", "c", "d"]


def test_a_required_one_that_is_bad_keeps_the_service_from_starting(folder: Path) -> None:
    with pytest.raises(ArtifactError, match=r"EVENKEEL_REQUIRE has 'noise'.*has sha256"):
        _models(folder, require=("letters", "noise"))
    assert [model.name for model in _models(folder, require=("letters",))] == ["letters"]


def test_a_required_one_that_is_not_there_is_named(folder: Path, inks: Path) -> None:
    with pytest.raises(ArtifactError, match=r"EVENKEEL_REQUIRE has 'gpt'"):
        _models(folder, require=("gpt",))
    with pytest.raises(ArtifactError, match=r"'gpt', .*: there are: letters, scrawl, squint"):
        _models(inks, require=("gpt",))


def test_a_service_of_bad_artifacts_alone_says_what_is_wrong_with_each(folder: Path) -> None:
    (folder / "letters" / "step.onnx").unlink()
    with pytest.raises(ArtifactError, match=r"step\.onnx is missing; .*has sha256"):
        _models(folder)


def test_a_service_is_ready_when_each_has_proved_itself_or_failed(artifacts: Path) -> None:
    models = _models(artifacts)
    one, other = models
    one.engine.attested.set()
    one.engine.ready = True
    assert not models.ready
    other.engine.attested.set()
    assert models.ready


def test_of_a_model_and_one_that_it_replaced_the_longer_chunk_counts(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models, at_it = _models(artifacts), (("a", 9.0), ("b", 5.0), ("a", 0.0))
    engines = [SimpleNamespace(name=name, stalled_s=stalled_s) for name, stalled_s in at_it]
    monkeypatch.setattr(models, "_engines", lambda: engines)
    assert models.stalled_s == {"a": 9.0, "b": 5.0}
    assert models.stuck(5.0) == ["a"]  # for longer than that


def test_what_takes_the_place_of_a_model_has_its_runtime(artifacts: Path) -> None:
    """Threads that were counted beside others at work would be too few."""
    models = _models(artifacts)
    model = models["letters"]
    model.runtime = replace(model.runtime, threads=2)
    assert models._read(models.places.find("letters"), again=True).runtime == model.runtime


def test_what_is_unloaded_has_not_failed(folder: Path) -> None:
    models = _models(folder)
    asyncio.run(models.unload("noise"))
    noise = models.places.named["noise"]
    assert (noise.state, noise.problem) == ("unloaded", None)


def test_of_two_of_a_name_the_one_that_serves_is_unloaded(artifacts: Path, tmp_path: Path) -> None:
    shutil.copytree(artifacts / "letters", tmp_path / "other")
    (copy_of(artifacts / "letters", tmp_path) / WEIGHTS).unlink()
    models = _models(tmp_path)
    asyncio.run(models.unload("letters"))
    unloaded = {place.folder.name: place.unloaded for place in models.places}
    assert unloaded == {"letters": None, "other": "letters"}


def test_a_service_that_stops_takes_up_nothing(folder: Path, artifacts: Path) -> None:
    models = _models(folder)
    shutil.copy(artifacts / "noise" / WEIGHTS, folder / "noise")
    models.stopping = True
    asyncio.run(models.look())
    assert models.places.named["noise"].model is None


def test_of_two_artifacts_of_one_name_the_second_is_refused(
    artifacts: Path, tmp_path: Path
) -> None:
    copy_of(artifacts / "letters", tmp_path)
    second = copy_of(artifacts / "noise", tmp_path)
    edit_manifest(second, lambda manifest: manifest.update({"name": "letters"}))
    first, other = _models(tmp_path).places
    assert (first.name, first.problem) == ("letters", None)
    assert other.problem == f"{second}: another folder has a model 'letters'"


def test_a_folder_that_is_called_as_the_model_of_another_is_told_apart(
    artifacts: Path, tmp_path: Path
) -> None:
    shutil.copytree(artifacts / "letters", tmp_path / "before")  # which comes first
    copy_of(artifacts / "letters", tmp_path)
    with changing(tmp_path) as service:
        assert service.standing()["ready"]
        assert "another folder has a model 'letters'" in service.standing("letters/")["failed"]
        assert service.ready() == (200, "ok; failed: letters/")
        assert (service.metric("model_ready"), service.metric("model_failed")) == (1, 0)
        assert service.metric("attestation_ok") == 1  # by the name of the model
        told = service.client.get("/metrics").text
        assert told.count('evenkeel_model_ready{model="letters"}') == 1
        assert service.metric("model_ready", "letters/") == 0
        assert "another folder has a model" in service.tell("load", "letters%2F").text
        service.tell("unload")
        assert service.standing()["state"] == "unloaded"
        assert service.standing("letters/")["state"] == "failed"
        assert service.tell("unload", "letters/").json() == {"id": "letters/", "unloaded": True}
        assert service.standing("letters/")["state"] == "unloaded"
        told = service.tell("load", "nobody").json()["error"]["message"]
        assert told.endswith("the artifacts are: letters, letters/")


@pytest.mark.parametrize("later", [False, True])
def test_a_folder_whose_name_is_no_text_fails_alone(
    artifacts: Path, tmp_path: Path, later: bool
) -> None:
    copy_of(artifacts / "letters", tmp_path)
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    if not later:
        (odd / MANIFEST).write_text("{")
    with changing(tmp_path) as service:
        if later:
            (odd / MANIFEST).write_text("{")
            service.look()
        assert service.ready() == (200, "ok; failed: caf\\xe9")
        assert "caf\\xe9" in service.standing("caf\\xe9")["failed"]
        assert service.client.get("/metrics").status_code == 200
        assert service.tell("load", "caf%5Cxe9").status_code == 409
        assert service.text()


def test_a_load_leaves_other_folders_to_the_watch(artifacts: Path, tmp_path: Path) -> None:
    copy_of(artifacts / "letters", tmp_path)
    with changing(tmp_path) as service:
        for name in ("noise", "waves"):
            if (artifacts / name).exists():
                copy_of(artifacts / name, tmp_path)
        shutil.copytree(artifacts / "letters", tmp_path / "other")
        assert service.tell("load", "nobody").status_code == 404
        assert service.tell("load", "letters").status_code == 200
        assert set(service.client.get("/health").json()["models"]) == {"letters"}


def test_the_second_is_served_when_the_name_is_free(
    artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = copy_of(artifacts / "letters", tmp_path)
    with changing(tmp_path) as service:
        before = service.text()
        for name in ("more", "most"):
            shutil.copytree(first, tmp_path / name)
        service.look()
        assert service.standing()["ready"]
        service.tell("unload")
        service.look()  # the name is still that of the model unloaded
        assert "another folder has a model 'letters'" in service.standing("more")["failed"]
        shutil.copytree(first, tmp_path / "late")
        service.look()  # for a folder that is new as well
        assert "another folder has a model 'letters'" in service.standing("late")["failed"]
        shutil.rmtree(tmp_path / "late")
        shutil.rmtree(first)
        service.look()
        assert service.text() == before
        assert "another folder has a model 'letters'" in service.standing("most")["failed"]
        monkeypatch.setattr("service.catalogue.load_artifact", None)
        service.look()  # and it is read no more as long as nothing changes
        assert service.standing()["failed"] is None


def test_a_folder_that_may_not_be_looked_into_looks_like_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(place: Path) -> None:
        raise PermissionError(13, "Permission denied")

    assert look_at(folder / "letters")
    monkeypatch.setattr(os, "scandir", refused)
    assert look_at(folder / "letters") == frozenset()


def test_an_error_that_nobody_thought_of_is_one_like_others(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {"language": None}  # of which no model can be made
    with pytest.raises(ArtifactError, match="letters: AttributeError: 'NoneType' object has no"):
        Models(settings(artifacts), Metrics(), kinds)


@pytest.mark.parametrize(("require", "status"), [((), 200), (("noise",), 200), (("letters",), 503)])
def test_a_required_one_that_fails_later_makes_the_service_not_ready(
    artifacts: Path, tmp_path: Path, require: tuple[str, ...], status: int
) -> None:
    copy_of(artifacts / "noise", tmp_path)
    perturb(copy_of(artifacts / "letters", tmp_path), "stack.cells.0.weight_h", (0, 0), 1e-3)
    with running(settings(tmp_path, require=require), ready=False) as service:
        models = service.app.state.models
        assert eventually(lambda: all(model.engine.attested.is_set() for model in models))
        ready = service.client.get("/readyz")
        assert ready.status_code == status
        assert ready.text.endswith("; failed: letters")
        assert service.client.get("/health").status_code == status
        registry = service.app.state.metrics.registry
        assert registry.get_sample_value("evenkeel_ready") == float(status == 200)


@pytest.mark.parametrize("name", ["require", "allowed_hosts"])
@pytest.mark.parametrize("value", ["a.example, b,", '["a.example", "b"]'])
def test_several_are_separated_by_commas_or_a_json_list(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"EVENKEEL_{name.upper()}", value)
    assert getattr(Settings(), name) == ("a.example", "b")


def _models(folder: Path, **chosen: object) -> Models:
    return Models(settings(folder, **chosen), Metrics(), KINDS)
