"""Models on their way to serving, and those that never do."""

import asyncio
import gc
import math
import threading
import time
import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.artifact import Artifact, ArtifactError, load_artifact
from service.catalogue import Models
from service.engine.pace import Pace, median_step_s
from service.engine.runners import Runner, given_up
from service.engine.runtime import Runtime
from service.errors import InvalidRequest, NotReady
from service.kinds import KINDS
from service.loading import Loader
from service.metrics import Metrics
from service.models import ServedModel
from service.settings import Settings
from service.state import Moment
from service.text.completion import TextEdge
from tests.service.serving import running, settings

_ONE = Runtime("cpu", "scan", threads=1, slots=2)


@pytest.fixture
def loader(artifacts: Path) -> Loader:
    return Loader(settings(artifacts, slots=2), Metrics(), KINDS)


def test_one_that_will_stand_in_for_another_has_its_runtime(
    loader: Loader, artifacts: Path
) -> None:
    like = replace(loader._runtime, threads=2, slots=3)
    artifact = load_artifact(artifacts / "letters")
    assert loader.make(artifact, like).runtime == like
    assert loader.make(artifact).runtime == loader._runtime


@pytest.mark.parametrize(("threads", "other"), [(1, 2), (2, 1)])
def test_a_model_that_may_change_its_threads_may_do_so_ever_after(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch, threads: int, other: int
) -> None:
    """Its place taken by another, or its runner after a fault; and whoever works beside it sees
    that it may want both cores."""
    monkeypatch.setattr("service.loading.usable_cores", lambda: 2)
    artifact = load_artifact(artifacts / "letters")
    like = replace(_ONE, threads=threads, other_threads=other)
    model = Loader(settings(artifacts, slots=2), Metrics(), KINDS).make(artifact, like)
    again = model.engine._another()
    for runner in (model.engine._slots.runner, again):
        assert [part.threads for part in runner.parts] == [2, 1]
        assert runner.threads == threads
    share = model.engine._share
    share._budget.share(1).acquire()
    assert share.oversubscribed


def test_models_of_a_service_make_room_for_each_other(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("service.loading.usable_cores", lambda: 2)
    loader = Loader(settings(artifacts, slots=2, threads=2), Metrics(), KINDS)
    assert "EVENKEEL_THREADS" not in caplog.text  # of which there are no more than cores
    models = [loader.make(load_artifact(artifacts / name)) for name in ("letters", "noise")]
    one, other = (model.engine._share for model in models)
    assert not other.oversubscribed
    one.acquire()
    assert (one.oversubscribed, other.oversubscribed) == (False, True)


def test_a_model_that_works_alone_has_its_threads_however_many_are_asked_for(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("service.loading.usable_cores", lambda: 2)
    loader = Loader(settings(artifacts, slots=2, threads=3), Metrics(), KINDS)
    assert "EVENKEEL_THREADS is 3, but there are 2 cores" in caplog.text
    model = loader.make(load_artifact(artifacts / "letters"))
    assert model.runtime.threads == 2
    assert model.health()["threads"] == model.describe()["threads"] == 2
    assert not model.engine._share.oversubscribed


def test_threads_are_counted_on_a_cpu_alone(loader: Loader, artifacts: Path) -> None:
    artifact = load_artifact(artifacts / "letters")
    for runtime in (Runtime("cuda", "slots", 0, 2), Runtime("cpu", "scan", 3, 2)):
        assert loader._made(artifact, runtime) == ({}, runtime)


def test_counting_threads_has_ten_times_as_long_as_a_run(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def count(artifact: object, runtime: Runtime, *, limit_s: float) -> tuple[object, Runtime]:
        asked.append(limit_s)
        return {}, runtime

    monkeypatch.setattr("service.loading.fastest_runners", count)
    loader = Loader(settings(artifacts, stall_timeout_s=7), Metrics(), KINDS)
    loader._made(load_artifact(artifacts / "letters"), Runtime("cpu", "scan", 0, 2))
    assert asked == [70]


def test_measuring_its_pace_is_given_up_as_a_proof_is(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(artifact: Artifact, runner: Runner) -> Pace:
        until_s = time.monotonic() + 10
        while time.monotonic() < until_s:
            median_step_s(artifact, runner, 1, runs=1)
        return Pace((1.0, 0.0), (1.0, 0.0))

    monkeypatch.setattr("service.loading.measure_pace", measure)
    loader = Loader(settings(artifacts, slots=2, threads=1, stall_timeout_s=0.02), Metrics(), KINDS)
    engine = loader.make(load_artifact(artifacts / "letters")).engine
    with pytest.raises(Exception, match="terminate flag"):
        engine._measure(engine._slots.runner)


def test_without_a_key_of_the_settings_each_service_makes_its_own(
    artifacts: Path, caplog: pytest.LogCaptureFixture
) -> None:
    artifact = load_artifact(artifacts / "letters")
    chosen = settings(artifacts, slots=2, state_key=None)
    caplog.set_level("INFO", "service.loading")
    loaders = [Loader(chosen, Metrics(), KINDS) for _ in range(2)]
    told = "EVENKEEL_STATE_KEY is not set: state tokens last until the service stops"
    assert caplog.messages == [told, told]
    assert [len(bytes.fromhex(loader._key.decode())) for loader in loaders] == [32, 32]  # 256 bits
    mine, another = (loader.make(artifact).codec for loader in loaders)
    token = mine.encode(Moment(artifact.initial_state(), 1, 0, 0, TextEdge()))
    assert mine.decode(token).seed == 1
    with pytest.raises(InvalidRequest):
        another.decode(token)


def test_a_service_knows_every_fallback_of_its_key(
    artifacts: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "service.loading")
    artifact = load_artifact(artifacts / "letters")
    keys = tuple(f"the secret of year {year}" for year in (2026, 2025, 2024))
    alone, *before = (settings(artifacts, slots=2, state_key=key) for key in keys)
    rotated = alone.model_copy(
        update={"state_key_fallbacks": tuple(chosen.state_key for chosen in before)}
    )
    codec = Loader(rotated, Metrics(), KINDS).make(artifact).codec
    for chosen in (alone, *before):
        other = Loader(chosen, Metrics(), KINDS).make(artifact).codec
        token = other.encode(Moment(artifact.initial_state(), 7, 0, 0, TextEdge()))
        assert codec.decode(token).seed == 7
    assert "EVENKEEL_STATE_KEY" not in caplog.text


def test_an_engine_whose_model_cannot_serve_has_ended(
    loader: Loader, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loader.make(load_artifact(artifacts / "letters"))
    monkeypatch.setattr(model, "_may_serve", lambda: False)
    with pytest.raises(ArtifactError, match="letters"):
        loader.prove(model)
    assert not model.engine._thread.is_alive()


def test_a_time_that_is_limited_may_be_without_end(artifacts: Path) -> None:
    fields = Settings.model_fields.items()
    seconds = [name for name, field in fields if name.endswith("_s") and field.annotation is float]
    assert {"chunk_s", "stall_timeout_s"} <= set(seconds)
    body = {"prompt": "It ", "max_tokens": 60, "seed": 1}
    with running(settings(artifacts)) as service:
        expected = service.text(**body)
    with running(settings(artifacts, **dict.fromkeys(seconds, math.inf))) as service:
        assert service.text(**body) == expected
        assert service.client.portal is not None
        load = partial(service.app.state.models.load, again=True)
        assert service.client.portal.call(load, "letters").engine.ready


def test_a_model_whose_golden_vectors_cannot_be_replayed_says_so(
    loader: Loader, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loader.make(load_artifact(artifacts / "letters"))
    monkeypatch.setattr("service.models.attest", None)  # not callable: a replay raises
    with pytest.raises(ArtifactError, match="letters: its golden vectors could not be replayed"):
        loader.prove(model)


def test_a_proof_that_takes_too_long_is_given_up(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reloads a model would wait for it, and so would every other change."""
    monkeypatch.setattr("service.engine.engine._PATIENCE_S", 0.01)
    loader = Loader(settings(artifacts, slots=2, stall_timeout_s=0.05), Metrics(), KINDS)
    model, hold = loader.make(load_artifact(artifacts / "letters")), threading.Event()
    monkeypatch.setattr(model.engine, "_attest", lambda runner: hold.wait(10))
    try:
        with pytest.raises(
            ArtifactError, match=r"letters: its attestation took longer than 0.05 s"
        ):
            loader.prove(model)
    finally:
        hold.set()
        model.engine._thread.join()


def test_an_attestation_that_is_stuck_holds_up_no_stop(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.engine.engine._PATIENCE_S", 0.1)
    stuck, hold, ended = (threading.Event() for _ in range(3))
    models = Models(settings(artifacts), Metrics(), KINDS)
    models.start()
    model = models._loader.make(load_artifact(artifacts / "letters"))

    def attest(*_: object) -> bool:
        stuck.set()
        return hold.wait(60)

    def prove() -> None:
        with pytest.raises(NotReady):
            models._loader.prove(model)
        ended.set()

    monkeypatch.setattr(model.engine, "_attest", attest)
    proving = threading.Thread(target=prove)
    try:
        proving.start()
        assert stuck.wait(10)
        models.stop()
        assert ended.wait(10)  # long before it would be tired of it
    finally:
        hold.set()
        proving.join()


def test_a_model_that_was_being_read_as_the_service_stopped_has_nothing_to_prove(
    loader: Loader, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If its proof is stuck, the end of the process would wait for that."""
    model, begun = loader.make(load_artifact(artifacts / "letters")), list[Runner]()
    monkeypatch.setattr(model.engine, "_attest", begun.append)
    loader.stop()
    with pytest.raises(NotReady, match="the service is stopping"):
        loader.prove(model)
    assert begun == []


def test_a_model_that_is_proved_as_the_service_stops_serves_nobody(loader: Loader) -> None:
    """Who stops the engines has asked which there are, and this was none of them yet."""
    ended: list[str] = []

    def wait(limit_s: float) -> bool:
        loader.stop()
        return True

    engine = SimpleNamespace(
        start=lambda: None,
        attested=SimpleNamespace(wait=wait, set=lambda: None),
        ready=True,
        tell_to_stop=lambda: ended.append("told"),
        stop=lambda: ended.append("stopped"),
    )
    with pytest.raises(NotReady, match="the service is stopping"):
        loader.prove(SimpleNamespace(engine=engine))  # type: ignore[arg-type]
    assert ended == ["told", "stopped"]


def test_a_proof_that_ends_as_the_service_stops_leaves_no_engine(
    loader: Loader, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has the model yet that would stop it; a thread in a run outlives no process well."""
    engine = loader.make(load_artifact(artifacts / "letters")).engine
    monkeypatch.setattr(engine, "_attest", lambda runner: loader.stop() or True)
    loader._proving = engine
    engine.start()
    engine._thread.join(5)
    assert not engine._thread.is_alive()


def test_whoever_asks_for_a_model_as_the_service_ends_is_told_that(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was told that the engine had ended, with a line in the log: nothing is wrong with it."""
    models = Models(settings(artifacts), Metrics(), KINDS)
    loader = models._loader
    prove = loader.prove

    def stopped(model: ServedModel) -> None:
        monkeypatch.setattr(model.engine, "_attest", lambda runner: loader.stop() or True)
        prove(model)
        raise AssertionError("it was proved")

    monkeypatch.setattr(loader, "prove", stopped)
    with pytest.raises(NotReady, match="stopping"):
        asyncio.run(models.load("letters", again=True))
    place = models.places.find("letters")
    place.seen = frozenset()  # as if it had changed
    asyncio.run(models.look())
    assert place.refused is None
    assert not [line for line in caplog.records if line.levelname == "ERROR"]


def test_a_model_that_has_proved_itself_is_not_kept_by_that(
    loader: Loader, artifacts: Path
) -> None:
    """It would stay in memory when another has taken its place."""
    model = loader.make(load_artifact(artifacts / "letters"))
    loader.prove(model)
    engine = weakref.ref(model.engine)
    model.engine.stop()
    del model
    gc.collect()
    assert engine() is None


def test_a_limit_of_a_proof_keeps_no_process_that_ends_meanwhile() -> None:
    """A proof has minutes, and a service that is stopped waits for none."""
    runner: Any = SimpleNamespace(give_up=lambda: None)
    before = set(threading.enumerate())
    with given_up(runner, 60):
        assert [thread.daemon for thread in set(threading.enumerate()) - before] == [True]
