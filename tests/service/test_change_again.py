"""What was unloaded, or whose engine has ended, is served again and looked after as before."""

import asyncio
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.sync.client import connect

from service.app import create_app
from service.catalogue import Models
from service.http import admin
from service.models import ServedModel
from tests.service.altered import copy_of, edit_manifest
from tests.service.changing import Changing, changing
from tests.service.serving import eventually, settings


@pytest.fixture
def serving(artifacts: Path, tmp_path: Path) -> Iterator[Changing]:
    copy_of(artifacts / "letters", tmp_path)
    with changing(tmp_path) as service:
        yield service


def test_what_was_loaded_again_is_looked_after_again(serving: Changing, tmp_path: Path) -> None:
    serving.tell("unload")
    assert serving.tell("load").status_code == 200
    assert (serving.reloads("ok"), serving.reloads("failed")) == (1, 0)
    (tmp_path / "letters" / "step.onnx").write_bytes(b"")
    serving.look()
    assert "step.onnx" in serving.standing()["failed"]
    assert serving.text()[0]


def test_a_model_that_comes_is_counted_by_its_own_name(
    serving: Changing, artifacts: Path, tmp_path: Path
) -> None:
    """Its folder may be called otherwise."""
    shutil.copytree(artifacts / "noise", tmp_path / "newest")
    serving.look()
    assert (serving.reloads("ok", "noise"), serving.reloads("ok", "newest")) == (1, 0)


def test_what_could_not_be_loaded_again_is_looked_after_too(
    serving: Changing, tmp_path: Path
) -> None:
    graph = tmp_path / "letters" / "step.onnx"
    whole = graph.read_bytes()
    serving.tell("unload")
    graph.unlink()
    assert serving.tell("load").status_code == 409
    assert serving.standing()["state"] == "failed"
    graph.write_bytes(whole)
    serving.look()
    assert serving.standing()["state"] == "ready"


def test_an_engine_that_has_ended_is_made_anew_by_a_load(serving: Changing, tmp_path: Path) -> None:
    before, engine = serving.text(), serving.models["letters"].engine
    engine.stop()
    assert eventually(lambda: serving.standing()["state"] == "failed")
    assert "engine has ended" in serving.standing()["failed"]
    graph = tmp_path / "letters" / "step.onnx"
    whole = graph.read_bytes()
    graph.unlink()
    assert serving.tell("load").status_code == 409
    assert "step.onnx is missing" in serving.standing()["failed"]  # which no other engine mends
    graph.write_bytes(whole)
    assert serving.tell("load").json()["ready"] is True
    assert serving.models["letters"].engine is not engine
    assert serving.text() == before


def test_an_engine_that_has_ended_is_made_anew_after_a_hang_up_alone(serving: Changing) -> None:
    serving.models["letters"].engine.stop()
    serving.look()
    assert serving.standing()["state"] == "failed"
    serving.look(again=True)
    assert serving.standing()["state"] == "ready"


def test_the_engine_of_a_folder_that_has_gone_ends(
    serving: Changing, artifacts: Path, tmp_path: Path
) -> None:
    copy_of(artifacts / "noise", tmp_path)  # without any, what serves is kept
    assert serving.tell("load", "noise").status_code == 200
    engine = serving.models["letters"].engine
    shutil.rmtree(tmp_path / "letters")
    serving.look()
    assert eventually(lambda: not engine.ready)


def test_a_session_goes_on_with_the_model_that_was_replaced(serving: Changing) -> None:
    """As long as the drain lasts."""
    with connect(str(serving.client.base_url.join("/v1/online").copy_with(scheme="ws"))) as socket:
        socket.send(json.dumps({"model": "letters"}))
        assert json.loads(socket.recv())["model"] == "letters"
        assert serving.tell("reload").status_code == 200
        time.sleep(0.2)
        socket.send(json.dumps({"write": 3}))
        assert len(json.loads(socket.recv())["bytes"]) == 3


def test_a_newer_one_that_failed_is_tried_again_after_a_hang_up_alone(
    serving: Changing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the machine was too busy to prove it in time; the one before it serves."""
    edit_manifest(tmp_path / "letters", lambda manifest: manifest["provenance"].update(told="now"))
    with monkeypatch.context() as busy:
        hasty = settings(tmp_path, stall_timeout_s=1e-9)
        busy.setattr(serving.models._loader, "_settings", hasty)
        serving.look()
    for _ in range(2):
        assert "its attestation took longer than 1e-09 s" in serving.standing()["failed"]
        assert serving.standing()["state"] == "ready"
        serving.look()
    serving.look(again=True)
    assert serving.standing()["failed"] is None
    assert serving.client.get("/v1/models/letters").json()["provenance"]["told"] == "now"


@pytest.mark.parametrize("change", [admin.load, admin.reload])
def test_a_change_whose_administrator_has_gone_comes_to_its_end(
    artifacts: Path, tmp_path: Path, change: Callable[..., Any]
) -> None:
    """Where a server cancels what nobody waits for: the next engine was nobody's then, and what the
    folder held was not looked at again."""
    folder = copy_of(artifacts / "letters", tmp_path)
    app = create_app(settings(tmp_path, watch_s=0))
    models: Models = app.state.models
    begun, go_on, prove = threading.Event(), threading.Event(), models._loader.prove

    def held(model: ServedModel) -> None:
        begun.set()
        assert go_on.wait(20)
        prove(model)

    async def leave() -> None:
        async with app.router.lifespan_context(app):
            edit_manifest(folder, lambda manifest: manifest["provenance"].update(told="now"))
            asked = asyncio.create_task(change(SimpleNamespace(app=app), "letters"))
            await asyncio.to_thread(begun.wait, 20)
            asked.cancel()
            await asyncio.wait([asked])
            go_on.set()
            async with models._changing:  # once that is over
                assert models["letters"].artifact.manifest.provenance.get("told") == "now"

    models._loader.prove = held  # type: ignore[method-assign]
    asyncio.run(leave())
