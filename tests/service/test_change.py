"""Models change while they serve: nobody is dropped, and what cannot serve changes nothing."""

import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.service.altered import copy_of, edit_manifest, perturb
from tests.service.changing import Changing, changing, process, replace_by
from tests.service.serving import ask, eventually, held, running, settings

_SEEDS = range(8)
_LENGTH = {"max_tokens": 1000}  # of a stream, in many runs


@pytest.fixture
def serving(folder: Path) -> Iterator[Changing]:
    with changing(folder) as service:
        yield service


def _whole_stream(service: Changing, seed: int) -> tuple[str, str]:
    events = list(service.streamed(seed))
    (fingerprint,) = {fingerprint for _, fingerprint in events}
    return "".join(text for text, _ in events), fingerprint


def test_under_load_every_answer_is_whole_and_of_one_model(
    serving: Changing, folder: Path, artifacts: Path
) -> None:
    known = {serving.text(seed) for seed in _SEEDS}
    replace_by(folder / "letters", artifacts / "noise")
    assert serving.tell("reload").status_code == 200
    known |= {serving.text(seed) for seed in _SEEDS}
    assert len({fingerprint for _, fingerprint in known}) == 2
    enough = threading.Event()

    def ask(seed: int) -> list[tuple[str, str]]:
        answers = []
        while not enough.is_set():
            answers += [serving.text(seed), _whole_stream(serving, seed)]
        return answers

    with ThreadPoolExecutor(len(_SEEDS)) as pool:
        asking = [pool.submit(ask, seed) for seed in _SEEDS]
        try:
            for number in range(4):
                other = artifacts / ("letters", "noise")[number % 2]
                replace_by(folder / "letters", other)
                assert serving.tell("reload").status_code == 200
        finally:
            enough.set()
        answers = {answer for one in asking for answer in one.result()}
    assert answers <= known
    assert len({fingerprint for _, fingerprint in answers}) == 2


def test_a_stream_that_began_on_the_old_model_ends_on_it(
    serving: Changing, folder: Path, artifacts: Path
) -> None:
    alone = serving.text(**_LENGTH)
    with held(serving.models["letters"], after=1):
        events = serving.streamed(**_LENGTH)
        read = [next(events)]
        replace_by(folder / "letters", artifacts / "noise")
        assert serving.tell("reload").status_code == 200
        _, new = serving.text()
    read += events
    assert "".join(text for text, _ in read) == alone[0]
    assert {fingerprint for _, fingerprint in read} == {alone[1]} != {new}
    assert eventually(lambda: not serving.models._leaving.engines)


def test_every_line_of_a_page_is_of_the_model_that_began_it(inks: Path, tmp_path: Path) -> None:
    copy_of(inks / "scrawl", tmp_path)
    asked = {"text": "a line of ink\n" * 12, "style": "hasty", "seed": 1, "stream": True}

    def points(service: Changing, *, reload: bool) -> list[list[float]]:
        with service.client.stream("POST", "/v1/handwriting", json=asked) as response:
            told = (line[6:] for line in response.iter_lines() if line.startswith("data: {"))
            events = [json.loads(next(told))]
            if reload:
                assert service.tell("reload", "scrawl").status_code == 200
                assert service.models._leaving.engines
            events += map(json.loads, told)
        assert not any("error" in event for event in events)
        return [point for event in events for point in event.get("points", ())]

    with changing(tmp_path) as service:
        alone = points(service, reload=False)
        assert points(service, reload=True) == alone


def test_what_outlasts_the_drain_ends_with_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.leaving._LAST_WORDS_S", 0.1)
    with changing(folder, drain_timeout_s=0, max_tokens=50_000_000,
                  max_request_steps=60_000_000) as service:  # fmt: skip
        events = service.streamed(max_tokens=50_000_000)
        next(events)
        assert service.tell("reload").status_code == 200
        with pytest.raises(AssertionError, match="not_ready"):
            list(events)
        service.text()


def test_an_old_model_takes_requests_as_long_as_somebody_holds_it(serving: Changing) -> None:
    held = serving.models["letters"]
    assert serving.tell("reload").status_code == 200
    assert serving.models["letters"] is not held
    assert held.engine.ready
    held.engine.submit([])
    engine = held.engine
    del held
    assert eventually(lambda: not engine.ready)
    assert serving.models["letters"].engine.ready


def test_a_state_goes_on_after_a_reload_and_not_on_another_model(
    serving: Changing, folder: Path, artifacts: Path
) -> None:
    def go_on(state: str) -> int:
        body = {"model": "letters", "max_tokens": 5, "state": state}
        return serving.client.post("/v1/completions", json=body).status_code

    body = {"model": "letters", "max_tokens": 5, "return_state": True}
    answer = serving.client.post("/v1/completions", json=body)
    state = answer.json()["choices"][0]["state"]
    assert serving.tell("reload").status_code == 200
    assert go_on(state) == 200
    replace_by(folder / "letters", artifacts / "noise")
    assert serving.tell("reload").status_code == 200
    assert go_on(state) == 409


def test_an_artifact_that_cannot_serve_leaves_the_old_one_and_says_why(
    serving: Changing, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = serving.text()
    perturb(folder / "letters", "stack.cells.0.weight_h", (0, 0), 1e-3)
    for _ in range(2):
        refused = serving.tell("reload")
        assert refused.status_code == 409
        assert refused.json()["error"]["code"] == "not_loaded"
        assert "failed its attestation" in refused.json()["error"]["message"]
    standing = serving.standing()
    assert (standing["ready"], standing["state"]) == (True, "ready")
    assert "failed its attestation: logits: outside the bound at step" in standing["failed"]
    assert serving.ready() == (200, "ok")
    assert serving.text() == before
    assert (serving.metric("model_ready"), serving.metric("model_failed")) == (1, 1)
    assert serving.reloads("failed") == 2
    told = [r for r in caplog.records if r.name == "service.catalogue" and r.levelname == "ERROR"]
    assert len(told) == 1
    assert told[0].exc_info is None


def test_weights_overwritten_in_place_change_no_bit_of_what_serves(
    serving: Changing, folder: Path
) -> None:
    before = [serving.text(seed) for seed in _SEEDS]
    path = folder / "letters" / "model.safetensors"
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.write(bytes(byte ^ 1 for byte in content))
    assert [serving.text(seed) for seed in _SEEDS] == before
    with path.open("r+b") as file:
        file.truncate(100)
    assert [serving.text(seed) for seed in _SEEDS] == before


def test_a_folder_that_is_still_being_copied_is_loaded_when_it_is_whole(
    folder: Path, artifacts: Path
) -> None:
    with changing(folder, watch_s=0.02) as service:
        half = folder / "noise"
        half.mkdir()
        shutil.copy(artifacts / "noise" / "manifest.json", half)
        assert eventually(lambda: "noise" in service.client.get("/health").json()["models"])
        assert eventually(lambda: service.standing("noise")["state"] == "failed")
        assert service.ready() == (200, "ok; failed: noise")
        for file in (artifacts / "noise").iterdir():
            shutil.copy(file, half)
        assert eventually(lambda: service.standing("noise")["ready"])
        assert service.standing("noise")["failed"] is None
        assert service.text(model="noise")[0]


def test_a_folder_that_goes_is_unloaded_and_one_that_comes_is_served(
    folder: Path, artifacts: Path
) -> None:
    with changing(folder, watch_s=0.02) as service:
        copy_of(artifacts / "noise", folder.parent).rename(folder / "noise")
        assert eventually(lambda: service.metric("model_ready", "noise") == 1)
        (folder / "letters").rename(folder.parent / "letters")
        assert eventually(lambda: service.metric("model_ready") is None)
        body = {"model": "letters", "max_tokens": 1}
        assert service.client.post("/v1/completions", json=body).status_code == 404
        assert service.ready() == (200, "ok")
        (folder / "noise").rename(folder.parent / "noise")  # the last: perhaps a mount is away
        service.look()
        assert service.text(model="noise")[0]


def test_a_file_that_is_touched_changes_nothing(serving: Changing, folder: Path) -> None:
    model = serving.models["letters"]
    os.utime(folder / "letters" / "manifest.json", (1, 1))
    serving.look()
    assert serving.models["letters"] is model
    assert serving.reloads("ok") == serving.reloads("failed") == 0


def test_a_change_is_noticed_that_leaves_size_and_time_as_they_were(
    serving: Changing, folder: Path
) -> None:
    path = folder / "letters" / "step.onnx"
    facts, content = path.stat(), path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    serving.look()
    assert "step.onnx has sha256" in serving.standing()["failed"]
    path.write_bytes(content)
    serving.look()
    assert serving.standing()["failed"] is None


def test_a_manifest_that_changes_alone_is_a_change(serving: Changing, folder: Path) -> None:
    edit_manifest(folder / "letters", lambda manifest: manifest["provenance"].update(told="now"))
    serving.look()
    assert serving.client.get("/v1/models/letters").json()["provenance"]["told"] == "now"


def test_an_unloaded_model_stays_so_until_it_is_loaded(serving: Changing) -> None:
    before = serving.text()
    assert serving.tell("unload").json() == {"id": "letters", "unloaded": True}
    serving.look()
    body = {"model": "letters", "max_tokens": 1}
    assert serving.client.post("/v1/completions", json=body).status_code == 404
    assert serving.standing()["state"] == "unloaded"
    assert serving.ready() == (503, "not ready")
    assert serving.tell("load").json()["id"] == "letters"
    assert serving.ready() == (200, "ok")
    assert serving.text() == before


def test_what_becomes_of_a_model_is_a_line_of_the_log(
    serving: Changing, folder: Path, artifacts: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "service.catalogue")
    copy_of(artifacts / "noise", folder)
    serving.look()
    served = [f"{name}: serves {serving.models[name].fingerprint}" for name in ("noise", "letters")]
    for change in ("unload", "unload", "load"):  # of which the second changes nothing
        assert serving.tell(change).status_code == 200
    (folder / "noise").rename(folder.parent / "noise")
    serving.look()
    expected = [served[0], "letters: unloaded", served[1], "noise: its folder has gone"]
    assert [r.getMessage() for r in caplog.records if r.name == "service.catalogue"] == expected


def test_loading_what_is_served_as_it_is_changes_nothing(serving: Changing) -> None:
    model = serving.models["letters"]
    assert serving.tell("load").status_code == 200
    assert serving.models["letters"] is model


def test_a_model_is_loaded_that_came_after_the_start(
    serving: Changing, folder: Path, artifacts: Path
) -> None:
    copy_of(artifacts / "noise", folder)
    assert serving.tell("load", "noise").json()["id"] == "noise"
    assert serving.text(model="noise")[0]


def test_what_runs_is_finished_when_its_model_is_unloaded(serving: Changing) -> None:
    alone, _ = serving.text(**_LENGTH)
    with held(serving.models["letters"], after=1):
        events = serving.streamed(**_LENGTH)
        first, _ = next(events)
        assert serving.tell("unload").status_code == 200
    assert first + "".join(text for text, _ in events) == alone


@pytest.mark.parametrize("name", ["gpt", "..", "%2e%2e", "..%2fletters", "%2fetc", "a%00b"])
@pytest.mark.parametrize("what", ["reload", "load", "unload"])
def test_only_what_is_in_the_folder_has_a_name(url: str, what: str, name: str) -> None:
    assert httpx.post(f"{url}/v1/models/{name}/{what}").status_code == 404


def test_a_dead_engine_is_revived_by_a_reload(serving: Changing) -> None:
    before = serving.text()
    engine = serving.models["letters"].engine
    engine._another = None
    engine._slots.runner.run = None  # not callable: every run raises
    body = {"model": "letters", "max_tokens": 3}
    for _ in range(3):
        assert serving.client.post("/v1/completions", json=body).status_code == 500
    assert eventually(lambda: serving.standing()["state"] == "failed")
    assert "its engine has ended" in serving.standing()["failed"]
    refused = serving.client.post("/v1/completions", json=body)
    assert "its engine has ended" in refused.json()["error"]["message"]
    assert serving.ready() == (503, "not ready; failed: letters")
    assert serving.tell("reload").status_code == 200
    assert serving.ready() == (200, "ok")
    assert serving.text() == before


def test_an_engine_that_is_stuck_shows_after_it_was_replaced_until_it_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.engine.engine._PATIENCE_S", 0.1)
    monkeypatch.setattr("service.leaving._LAST_WORDS_S", 0.1)
    with changing(folder, drain_timeout_s=0) as service:
        # For liveness alone: a busy machine may take longer to attest the next one.
        service.app.state.settings = settings(folder, stall_timeout_s=0.1)
        body = {"model": "letters", "max_tokens": 2}
        ask = partial(service.client.post, "/v1/completions", json=body)
        thread = threading.Thread(target=ask)
        with held(service.models["letters"]):
            thread.start()
            assert eventually(lambda: service.client.get("/livez").status_code == 503)
            assert service.tell("reload").status_code == 200
            service.text()
            thread.join()  # it is told that the model is stuck
            assert service.client.get("/livez").text == "stuck: letters"
            stalled_s = service.models.stalled_s["letters"]
            told_s = service.metric("stalled_seconds")  # and so Prometheus is told
            assert 0.1 < stalled_s <= told_s <= service.models.stalled_s["letters"]
            assert service.models._leaving.engines
        assert eventually(lambda: service.client.get("/livez").status_code == 200)
        assert eventually(lambda: not service.models._leaving.engines)  # nor are its sessions held


def test_only_an_administrator_changes_models(artifacts: Path) -> None:
    with running(settings(artifacts)) as service:  # whose client is not on the loopback interface
        for what in ("reload", "load", "unload"):
            refused = service.client.post(f"/v1/models/letters/{what}")
            assert refused.status_code == 403
            assert refused.json()["error"]["code"] == "forbidden"
        assert service.post(max_tokens=1).status_code == 200


def test_a_hang_up_has_it_look_and_try_again(folder: Path, artifacts: Path) -> None:
    with process(folder) as (service, own):
        _, before = service.text()
        graph = folder / "letters" / "model.onnx"
        content = graph.read_bytes()
        graph.write_bytes(content[:-1])
        own.send_signal(signal.SIGHUP)
        assert eventually(lambda: service.standing()["failed"] is not None)
        replace_by(folder / "letters", artifacts / "noise")
        copy_of(artifacts / "noise", folder)
        own.send_signal(signal.SIGHUP)
        assert eventually(lambda: "noise" in service.client.get("/health").json()["models"])
        assert eventually(lambda: service.standing("noise")["ready"])
        assert service.text()[1] != before
        assert service.text(model="noise")[0] == service.text()[0]
        assert service.standing()["failed"] is None


def test_a_session_is_told_that_its_model_goes_and_goes_on_with_the_next(folder: Path) -> None:
    with changing(folder, drain_timeout_s=0) as service:
        at = service.client.base_url.copy_with(scheme="ws", path="/v1/online")
        with connect(str(at)) as idle, connect(str(at)) as expected:
            for socket in (idle, expected):
                socket.send(json.dumps({"model": "letters", "seed": 5}))
                socket.recv(timeout=20)
            first, second = ({"write": 7}, {"write": 20})
            told = [ask(socket, first) for socket in (idle, expected)]
            assert told[0] == told[1]
            whole = ask(expected, second)
            assert service.tell("reload").status_code == 200
            last = json.loads(idle.recv(timeout=20))
            assert last["closing"] == "the model is being replaced"
            with pytest.raises(ConnectionClosed) as closed:
                idle.recv(timeout=20)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012
        with connect(str(at)) as again:
            again.send(json.dumps({"model": "letters", "state": last["state"]}))
            again.recv(timeout=20)
            assert ask(again, second) == whole
        assert eventually(lambda: not service.models._leaving.engines)
