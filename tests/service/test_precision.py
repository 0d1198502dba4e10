"""Of a model that is served in eight bits too, one of the two answers requests that name none."""

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract.golden import Arrays
from service import precision
from service.artifact import load_artifact
from service.catalogue import Models
from service.engine.given import run_steps
from service.engine.runners import Runner
from service.kinds import KINDS
from service.metrics import Metrics
from service.models import ServedModel, Speedup
from service.precision import choose, compare, pairs, speedup_of
from tests.service.altered import edit_manifest
from tests.service.serving import Service, contents, eventually, running, settings
from tests.service.writing import online

Measured = Callable[[str], Service]

_ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "letters": ("/v1/completions", {"prompt": "It ", "max_tokens": 20, "seed": 4}),
    "scrawl": ("/v1/handwriting", {"text": "ab", "seed": 4, "format": "json"}),
}


@pytest.fixture(scope="module", params=_ASKED)
def both(
    request: pytest.FixtureRequest,
    in_both: Callable[[str, Path], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A folder with a model of either kind in both precisions, named by the exact one."""
    return in_both(request.param, tmp_path_factory.mktemp("both") / request.param)


@pytest.fixture(scope="module")
def measured(both: Path) -> Iterator[Measured]:
    """Services that have compared the precisions of their models, by the one that they are to
    prefer: each is started once, and whoever changes one has to change it back."""
    with ExitStack() as stack:

        @cache
        def preferring(precision: str) -> Service:
            chosen = settings(both, precision=precision, checkpoint_steps=32)
            service = stack.enter_context(running(chosen))
            eight = service.app.state.models[f"{both.name}-int8"]
            assert eventually(lambda: eight.speedups)
            return service

        yield preferring


def answer(service: Service, folder: Path, **changes: Any) -> dict[str, Any]:
    """To a request that names no model, if the changes do not."""
    path, body = _ASKED[folder.name]
    response = service.client.post(path, json=body | changes)
    assert response.status_code == 200, response.text
    return dict(response.json())


@pytest.mark.parametrize(
    ("wanted", "suffix_of"),
    [
        ("exact", {9.0: ""}),
        ("int8", {0.1: "-int8"}),
        ("auto", {1.1: "-int8", 0.9: ""}),
    ],
)
def test_what_names_no_model_gets_the_precision_of_the_settings(
    measured: Measured, both: Path, wanted: str, suffix_of: dict[float, str]
) -> None:
    service = measured(wanted)
    models = service.app.state.models
    exact, eight = models[both.name], models[f"{both.name}-int8"]
    for speedup, suffix in suffix_of.items():
        eight.speedups[exact] = Speedup(speedup, speedup)
        name = both.name + suffix
        told = answer(service, both)
        assert told["model"] == name
        named = answer(service, both, model=name)
        unlike = {"id": "", "created": 0}  # of every answer
        assert told | unlike == named | unlike
        listed = service.client.get("/v1/models").json()["data"]
        assert [model["id"] for model in listed if model["default"]] == [name]


class Stub(SimpleNamespace):
    """What can stand where a model does, which is no other however alike they are."""

    __hash__ = object.__hash__


def _stub(name: str, of: str | None = None) -> Any:
    """As much of a model as its place among others depends on; of eight bits if it is `of` one."""
    manifest = SimpleNamespace(provenance={} if of is None else {"from": {"name": of}})
    return Stub(
        name=name,
        precision="float32" if of is None else "int8",
        artifact=SimpleNamespace(manifest=manifest),
        engine=SimpleNamespace(ready=True),
        speedups={},
    )


def _measured(exact: Any, eight: Any, alone: float, crowded: float) -> list[Any]:
    eight.speedups[exact] = Speedup(alone, crowded)
    return [exact, eight]


def test_of_two_that_are_as_fast_the_exact_one_answers() -> None:
    for speedup, name in ((0.999, "a"), (1.0, "a"), (1.001, "a-int8")):
        models = _measured(_stub("a"), _stub("a-int8", "a"), speedup, 2.0)
        assert choose(models, "auto").name == name


def test_of_several_of_eight_bits_the_first_answers() -> None:
    exact = _stub("a")
    models = [exact, *(_measured(exact, _stub(n, "a"), 2.0, 2.0)[1] for n in ("a-4", "a-int8"))]
    for wanted in ("int8", "auto"):
        assert choose(models, wanted).name == "a-4"


def test_what_is_faster_alone_but_not_among_others_is_not_taken_for_it() -> None:
    for crowded, name in ((0.8, "a"), (1.0, "a"), (1.001, "a-int8")):
        models = _measured(_stub("a"), _stub("a-int8", "a"), 1.3, crowded)
        assert choose(models, "auto").name == name


def test_what_has_not_been_measured_beside_its_exact_model_is_not_taken_for_it() -> None:
    """A nearer one that comes may be of another size than the one it was measured beside."""
    first, eight = _exact_stub("mine", "a"), _stub("a-int8", "a")
    models = _measured(first, eight, 2.0, 2.0)
    assert choose(models, "auto") is eight
    nearer = _stub("a")
    assert choose([nearer, eight], "auto") is nearer
    assert speedup_of(eight, [*models, nearer]) is None


def test_what_was_trained_on_from_eight_bits_has_no_exact_one() -> None:
    models = [_stub("a"), _stub("a-int8", "a"), _stub("a-more", "a-int8")]
    assert [(exact.name, eight.name) for exact, eight in pairs(models)] == [("a", "a-int8")]
    assert choose(models, "exact") is None


def _exact_stub(name: str, of: str) -> Any:
    """One of float32 that was trained on from another."""
    stub = _stub(name, of)
    stub.precision = "float32"
    return stub


def test_a_model_and_its_rounding_are_one_where_both_were_trained_on_from_another() -> None:
    models = _measured(_exact_stub("mine", "a"), _stub("mine-int8", "a"), 2.0, 2.0)
    apart = _stub("a-int8", "b")
    beside = [(exact.name, eight.name) for exact, eight in pairs([*models, apart])]
    assert beside == [("mine", "mine-int8")]
    assert choose(models, "exact").name == "mine"
    assert choose(models, "auto").name == "mine-int8"


def test_the_one_it_was_trained_on_from_is_nearer_than_another_that_was() -> None:
    models = [_exact_stub("mine", "a"), _stub("a"), _stub("a-int8", "a")]
    assert [(exact.name, eight.name) for exact, eight in pairs(models)] == [("a", "a-int8")]
    assert choose(models, "int8") is None


@pytest.mark.parametrize("wanted", ["exact", "int8", "auto"])
def test_a_model_that_is_named_is_never_exchanged(
    measured: Measured, both: Path, wanted: str
) -> None:
    service = measured(wanted)
    for name in (both.name, f"{both.name}-int8"):
        model = service.app.state.models[name]
        told = answer(service, both, model=name)
        assert (told["model"], told["system_fingerprint"]) == (name, model.fingerprint)


def test_eight_bits_that_are_not_attested_answer_nobody_who_did_not_ask_for_them(
    measured: Measured, both: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = measured("int8")
    eight = service.app.state.models[f"{both.name}-int8"]
    monkeypatch.setattr(eight.engine, "ready", False)
    assert answer(service, both)["model"] == both.name


def test_models_are_listed_with_their_precision(measured: Measured) -> None:
    listed = measured("exact").client.get("/v1/models").json()["data"]
    assert [model["precision"] for model in listed] == ["float32", "int8"]
    for speedup in ("speedup", "speedup_crowded"):
        assert listed[0][speedup] is None
        assert listed[1][speedup] > 0


class Slow:
    """A runner that takes its time."""

    divides = False

    def __init__(self, runner: Runner, pause_s: float) -> None:
        self._runner, self._pause_s = runner, pause_s
        self.width, self.turn = runner.width, runner.turn
        self.load, self.read = runner.load, runner.read

    def run(self, *args: Any, **options: Any) -> Arrays:
        time.sleep(self._pause_s)
        return self._runner.run(*args, **options)


@pytest.mark.parametrize("slow", ["", "-int8"])
def test_what_is_faster_is_said_and_logged(
    measured: Measured,
    both: Path,
    slow: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = measured("auto")
    models = service.app.state.models
    exact: ServedModel = models[both.name]
    eight: ServedModel = models[f"{both.name}-int8"]
    slots = models[both.name + slow].engine._slots
    monkeypatch.setattr(slots, "runner", Slow(slots.runner, pause_s=0.04))
    eight.speedups.clear()
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="service.precision"):
        service.client.portal.call(models.compare)
    speedup = eight.speedups[exact]
    assert (speedup.alone > 1) == (speedup.crowded > 1) == (slow == "")
    alone, crowded = (r.message for r in caplog.records if "times as fast" in r.message)
    start = f"{eight.name}, rows 1: {speedup.alone:.2f} times as fast as {exact.name} ("
    assert alone.startswith(start)
    assert crowded.startswith(f"{eight.name}, rows 8: {speedup.crowded:.2f} times as fast ")
    assert answer(service, both)["model"] == both.name + ("-int8" if slow == "" else "")


def test_what_is_compared_is_the_median_of_runs_that_are_let_in_beside_requests(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, runs = SimpleNamespace(now_s=0.0), {"a": [], "a-int8": []}

    async def run_steps(engine: str, jobs: list[Any], *, admitted: bool) -> None:
        assert admitted
        slow = len(runs[engine]) % 4 == 0  # the first run, and two more of nine
        each_s = 1.6e-3 if engine == "a" or len(jobs) > 1 else 0.8e-3  # a step of 32
        clock.now_s += each_s * 2 * (6 if slow else 1)
        runs[engine].append(len(jobs))

    monkeypatch.setattr(precision, "run_steps", run_steps)
    monkeypatch.setattr(precision, "time", SimpleNamespace(perf_counter=lambda: clock.now_s))
    job = SimpleNamespace(steps_wanted=lambda: 32)
    monkeypatch.setattr(precision, "_some_steps", lambda artifact: job)
    exact, eight = (Stub(name=name, engine=name, artifact=None, speedups={}) for name in runs)
    with caplog.at_level(logging.INFO, logger="service.precision"):
        asyncio.run(compare(exact, eight))  # type: ignore[arg-type]
    assert runs == {"a": [1] * 9 + [8] * 9, "a-int8": [1] * 9 + [8] * 9}
    assert eight.speedups == {exact: Speedup(alone=2.0, crowded=1.0)}
    assert [record.message for record in caplog.records] == [
        "a-int8, rows 1: 2.00 times as fast as a (µs a step: 50 and 100)",
        "a-int8, rows 8: 1.00 times as fast as a (µs a step: 100 and 100)",
    ]


def test_a_run_is_of_32_steps_of_the_graph_that_most_requests_have(artifacts: Path) -> None:
    job = precision._some_steps(load_artifact(artifacts / "letters"))
    assert (job.steps_wanted(), job.filtered) == (32, False)


@pytest.mark.parametrize("share", [0.25, 0.0])  # 0: it is over before the first run, by a pause
def test_measuring_takes_no_longer_than_it_may(
    measured: Measured, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    rows = list[int]()

    async def counted(engine: Any, jobs: Any, **options: Any) -> None:
        rows.append(len(jobs))
        await run_steps(engine, jobs, **options)

    service = measured("exact")
    monkeypatch.setattr(precision, "run_steps", counted)
    models = service.app.state.models
    monkeypatch.setattr(precision, "_MOST_S", precision._MOST_S * share)
    each_s = precision._MOST_S * 0.6  # a pair takes longer than all may: not one of 9 is begun
    for model in models:
        slots = model.engine._slots
        monkeypatch.setattr(slots, "runner", Slow(slots.runner, pause_s=each_s))
        model.speedups.clear()
    service.client.portal.call(models.compare)
    assert rows == [1, 1, 8, 8]


def test_a_model_in_one_precision_is_not_measured(
    artifacts: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO), running(settings(artifacts)) as service:
        service.client.portal.call(service.app.state.models.compare)
        for model in service.client.get("/v1/models").json()["data"]:
            assert (model["precision"], model["speedup"]) == ("float32", None)
    assert "times as fast" not in caplog.text


@pytest.mark.parametrize(
    ("exact_ready", "eight_ready", "speedup", "measured"),
    [
        (True, True, None, True),
        (False, True, None, False),
        (True, False, None, False),
        (True, True, Speedup(2.0, 2.0), False),
    ],
)
def test_a_pair_is_measured_once_and_while_both_serve(
    artifacts: Path,
    monkeypatch: pytest.MonkeyPatch,
    exact_ready: bool,
    eight_ready: bool,
    speedup: Speedup | None,
    measured: bool,
) -> None:
    exact = Stub(engine=SimpleNamespace(ready=exact_ready))
    speedups = {} if speedup is None else {exact: speedup}
    eight = Stub(engine=SimpleNamespace(ready=eight_ready), speedups=speedups)
    compared: list[Any] = []

    async def note(*pair: Any) -> None:
        compared.append(pair)

    monkeypatch.setattr("service.catalogue.pairs", lambda models: [(exact, eight)])
    monkeypatch.setattr("service.catalogue.compare", note)
    asyncio.run(Models(settings(artifacts), Metrics(), KINDS)._compare())
    assert compared == ([(exact, eight)] if measured else [])


def test_eight_bits_of_a_model_that_is_not_served_are_a_model_like_any(
    both: Path, tmp_path: Path
) -> None:
    folder, eight = tmp_path / both.name, f"{both.name}-int8"
    shutil.copytree(both / eight, folder / eight)
    with running(settings(folder)) as service:
        assert answer(service, folder)["model"] == eight


def test_models_that_were_trained_apart_have_to_be_named(
    in_both: Callable[[str, Path], Path], tmp_path: Path
) -> None:
    eight = in_both("letters", tmp_path) / "letters-int8"
    edit_manifest(eight, lambda manifest: manifest["provenance"]["from"].update(name="noise"))
    with running(settings(tmp_path, precision="int8")) as service:
        refused = service.client.post("/v1/completions", json={"prompt": "It "})
        assert refused.status_code == 404
        message = "model is missing; those that can do this: letters, letters-int8"
        assert refused.json()["error"]["message"] == message


def test_what_goes_on_after_a_cut_goes_on_in_its_precision(measured: Measured, both: Path) -> None:
    path, body = _ASKED[both.name]
    longer = {"max_tokens": 100} if both.name == "letters" else {"text": "ab\ncd"}
    asked = body | longer | {"stream": True, "resume": True}
    events = contents(measured("int8").client.post(path, json=asked).text)
    told = [part for event in events for part in (event, *event.get("choices", []))]
    resumes = [part["resume"] for part in told if "resume" in part]
    assert resumes
    assert {resume["model"] for resume in resumes} == {f"{both.name}-int8"}


def test_a_point_that_is_far_away_is_taken_as_training_takes_it(
    measured: Measured, both: Path
) -> None:
    """Of eight bits for one of 256 units, though the graph's digits go on to 263."""
    if both.name == "letters":
        pytest.skip("bytes have no distance")
    px = 64 / 14  # of a unit

    def says(service: Service, model: str, units: float) -> list[Any]:
        with online(service, model=model, text="ab", seed=4, origin=[0, 0]) as session:
            told = session.ask(point=[units * px, 0, 0])
            return [told["pen_up"], [m["weight"] for m in told["mixture"]]]

    service, model = measured("int8"), f"{both.name}-int8"
    for side in (1, -1):
        far, edge, near = (says(service, model, side * units) for units in (1000, 256, 200))
        assert far == edge != near
    assert says(service, both.name, 1000) != says(service, both.name, 256)
