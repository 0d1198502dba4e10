"""A model proves itself on the provider in use before anybody is served from it."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from contract.golden import Verdict
from service.artifact import load_artifact
from service.attestation import attest, attest_in_queue
from service.engine.given import GivenSteps, run_steps
from service.engine.runners import make_runner
from service.engine.runtime import choose_runtime
from service.errors import NotReady
from service.kinds import KINDS
from service.loading import Loader
from service.metrics import Metrics
from tests.service.altered import (
    copy_of,
    edit_golden,
    lose_state,
    pass_on,
    perturb,
    perturb_graph,
)
from tests.service.engine.scripted import limits, made_engine
from tests.service.serving import Service, attested, eventually, running, settings

_WEIGHT = "stack.cells.0.weight_h"
_RUNNERS = pytest.mark.parametrize("runner", ["scan", "slots"])
_PLAIN = {"scan": "model.onnx", "slots": "step.onnx"}
_FILTERED = {"scan": "model-filtered.onnx", "slots": "step-filtered.onnx"}


@_RUNNERS
@pytest.mark.parametrize("name", ["letters", "noise"])
@pytest.mark.parametrize("slots", [1, 2, 5])
def test_an_untouched_artifact_proves_itself(
    artifacts: Path, name: str, runner: str, slots: int
) -> None:
    verdict = attested(artifacts / name, runner, slots)
    assert verdict.ok
    assert 0 < verdict.max_error <= verdict.bound
    assert 0 < verdict.training_error < verdict.bound
    # Four rows that the plain graph can run, and all eight on the one with every option.
    assert verdict.steps == 50 * (4 + 8)


@_RUNNERS
def test_golden_vectors_of_a_single_step_are_replayed_in_one_run(
    artifacts: Path, runner: str
) -> None:
    loaded = load_artifact(artifacts / "letters")
    arrays = {name: getattr(loaded.golden, name) for name in ("steps", "truth", "exact")}
    first = {name: {n: a[:1] for n, a in group.items()} for name, group in arrays.items()}
    loaded = replace(loaded, golden=replace(loaded.golden, **first))
    runtime = choose_runtime(settings(artifacts, runner=runner, slots=4))
    verdict = attest(loaded, make_runner(loaded, runtime))
    assert (verdict.ok, verdict.steps) == (True, 4 + 8)


@_RUNNERS
@pytest.mark.parametrize("place", [(0, 0), (70, 31), (191, 47)])
def test_one_weight_off_by_a_thousandth_fails_although_hashes_agree(
    copy: Path, runner: str, place: tuple[int, int]
) -> None:
    perturb(copy, _WEIGHT, place, 1e-3)
    verdict = attested(copy, runner)
    assert not verdict.ok
    assert verdict.max_error > verdict.bound
    assert "logits: outside the bound at step" in verdict.detail
    assert f"> {verdict.bound:.3g}" in verdict.detail


@pytest.mark.parametrize("graph", ["model.onnx", "model-filtered.onnx"])
def test_state_that_is_lost_from_run_to_run_fails(copy: Path, graph: str) -> None:
    lose_state(copy, graph, "h0")
    verdict = attested(copy, "scan")
    assert verdict.detail.startswith("logits: outside the bound at step 25:")


def test_the_verdict_names_the_first_step_that_differs(copy: Path) -> None:
    edit_golden(copy, lambda golden: golden["truth.logits"][7, 1].__iadd__(1.0), logits=0.02)
    verdict = attested(copy)
    assert not verdict.ok
    assert verdict.detail == "logits: outside the bound at step 7: 1 > 0.02"
    assert verdict.max_error == pytest.approx(1.0, abs=1e-4)


@_RUNNERS
@pytest.mark.parametrize("row", range(8))
def test_a_byte_drawn_differently_by_any_row_fails_even_within_the_bound(
    copy: Path, runner: str, row: int
) -> None:
    def edit(golden: dict[str, np.ndarray]) -> None:
        golden["exact.next"][9, row] ^= 1

    edit_golden(copy, edit, logits=0.02)
    verdict = attested(copy, runner)
    assert not verdict.ok
    assert verdict.detail == "next differs from the golden one at step 9"


@_RUNNERS
@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("letters", "inverse_temperature"),
        ("letters", "logit_bias"),
        ("letters", "log_min_p"),  # to `noise` no byte is much less probable than another
        ("noise", "top_k"),  # `letters` writes few bytes beyond the twelve most probable
        ("letters", "top_p"),
    ],
)
def test_every_option_is_one_that_golden_rows_were_drawn_with(
    artifacts: Path, tmp_path: Path, runner: str, name: str, option: str
) -> None:
    def edit(golden: dict[str, np.ndarray]) -> None:
        golden[f"rows.{option}"][:] = golden[f"rows.{option}"][0]  # which is neutral

    copy = copy_of(artifacts / name, tmp_path)
    edit_golden(copy, edit)
    loaded = load_artifact(copy)
    loaded.golden.bounds["logits"] = 1e9
    runtime = choose_runtime(settings(tmp_path, runner=runner, slots=4))
    verdict = attest(loaded, make_runner(loaded, runtime))
    assert verdict.detail.startswith("next differs from the golden one at step")


def test_a_service_with_an_altered_model_is_alive_but_never_ready(
    copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    perturb(copy, _WEIGHT, (0, 0), 1e-3)
    with running(settings(copy.parent), ready=False) as service:
        models = service.app.state.models
        assert eventually(lambda: models["letters"].verdict is not None)
        ready = service.client.get("/readyz")
        assert (ready.status_code, ready.headers["retry-after"]) == (503, "2")
        assert service.client.get("/livez").status_code == 200
        health = service.client.get("/health")
        assert health.status_code == 503
        assert health.json()["models"]["letters"]["ready"] is False
        assert "step" in health.json()["models"]["letters"]["attestation"]["detail"]
        answer = service.post(max_tokens=1)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
        assert "retry-after" in answer.headers
    told = [line.levelname for line in caplog.records if "attestation FAILED" in line.message]
    assert told == ["ERROR"]


def test_one_altered_model_does_not_stop_another(artifacts: Path, copy: Path) -> None:
    copy_of(artifacts / "noise", copy.parent)
    perturb(copy, _WEIGHT, (0, 0), 1e-3)
    with running(settings(copy.parent), ready=False) as service:
        models = service.app.state.models
        assert eventually(lambda: all(model.engine.attested.is_set() for model in models))
        ready = service.client.get("/readyz")
        assert (ready.status_code, ready.text) == (200, "ok; failed: letters")
        assert service.post(model="letters").status_code == 503
        assert service.post(model="noise").status_code == 200


@_RUNNERS
@pytest.mark.parametrize("place", [(0, 0), (191, 47)])
def test_a_weight_off_in_the_filtered_graph_alone_fails(
    copy: Path, runner: str, place: tuple[int, int]
) -> None:
    perturb_graph(copy, _FILTERED[runner], _WEIGHT, place)
    verdict = attested(copy, runner)
    assert not verdict.ok
    assert verdict.max_error > verdict.bound
    assert "logits: outside the bound at step" in verdict.detail
    other = "slots" if runner == "scan" else "scan"
    assert attested(copy, other).ok  # whose own graphs are as they were


@_RUNNERS
def test_a_service_whose_filtered_graph_alone_is_altered_is_never_ready(
    copy: Path, runner: str
) -> None:
    perturb_graph(copy, _FILTERED[runner], _WEIGHT, (0, 0))
    with running(settings(copy.parent, runner=runner), ready=False) as service:
        models = service.app.state.models
        assert eventually(lambda: models["letters"].verdict is not None)
        assert service.client.get("/readyz").status_code == 503
        attestation = service.client.get("/v1/models/letters").json()["attestation"]
        assert attestation["ok"] is False
        assert service.post(max_tokens=1).status_code == 503


@_RUNNERS
def test_a_replay_in_the_queue_finds_what_one_at_the_start_does(copy: Path, runner: str) -> None:
    assert _in_queue(copy, runner) == attested(copy, runner, slots=8)
    perturb_graph(copy, _FILTERED[runner], _WEIGHT, (0, 0))
    verdict = _in_queue(copy, runner)
    assert not verdict.ok
    assert verdict == attested(copy, runner, slots=8)


@_RUNNERS
@pytest.mark.parametrize("graphs", [_PLAIN, _FILTERED])
def test_a_graph_that_is_deaf_is_found_in_the_queue_as_well(
    copy: Path, runner: str, graphs: dict[str, str]
) -> None:
    pass_on(copy, graphs[runner], "drawn")
    verdict = _in_queue(copy, runner)
    assert not verdict.ok
    assert verdict.detail.endswith("is not what a step was forced to emit")
    assert verdict == attested(copy, runner, slots=8)


def _in_queue(copy: Path, runner: str) -> Verdict:
    loaded = load_artifact(copy)
    engine = made_engine(
        make_runner(loaded, choose_runtime(settings(copy.parent, runner=runner, slots=8))),
        limits=limits(chunk_steps=7, queue_size=9),
    )
    engine.start()
    try:
        assert eventually(lambda: engine.ready)
        return asyncio.run(attest_in_queue(loaded, engine))
    finally:
        engine.stop()


def test_a_replay_is_let_in_like_any_request_and_then_to_its_end(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of either graph one run that replays, and then those that force."""
    told = list[bool]()

    async def noted(engine: Any, jobs: Sequence[GivenSteps], *, admitted: bool) -> None:
        told.append(admitted)
        await run_steps(engine, jobs, admitted=admitted)

    monkeypatch.setattr("service.attestation.run_steps", noted)
    assert _in_queue(artifacts / "letters", "scan").ok
    assert told == [False, True, True, True]


def test_steps_that_were_not_run_are_not_paid_for(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stopped(engine: Any, jobs: Sequence[GivenSteps], **_: Any) -> None:
        size = jobs[0].steps_wanted() // 2
        jobs[0].accept({name: np.zeros(size) for name in ("next", "logits")})
        raise NotReady("the model has been stopped")

    monkeypatch.setattr("service.attestation.run_steps", stopped)
    paid: list[int] = []
    engine: Any = None
    with pytest.raises(NotReady):
        asyncio.run(attest_in_queue(load_artifact(artifacts / "letters"), engine, paid.append))
    assert paid == [25]


@pytest.mark.parametrize("name", ["letters", "noise"])
def test_attested_again_among_other_requests_the_verdict_is_the_same(
    service: Service, name: str
) -> None:
    first = service.client.get(f"/v1/models/{name}").json()["attestation"]
    with ThreadPoolExecutor(9) as pool:
        others = [
            pool.submit(service.post, model=name, max_tokens=300, top_p=1 - 0.1 * (i % 2))
            for i in range(8)
        ]
        for _ in range(3):
            answer = service.client.post(f"/v1/models/{name}/attest")
            assert answer.status_code == 200
            assert answer.json() == first
        assert {other.result().status_code for other in others} == {200}
    assert first["ok"] is True


def test_a_model_that_no_longer_agrees_stops_being_ready(copy: Path) -> None:
    with running(settings(copy.parent)) as service:
        assert service.post(max_tokens=1).status_code == 200
        golden = service.app.state.models["letters"].artifact.golden
        golden.truth["logits"][7, 1] += 1.0
        golden.bounds["logits"] = 0.5
        verdict = service.client.post("/v1/models/letters/attest").json()
        assert verdict["ok"] is False
        assert verdict["detail"] == "logits: outside the bound at step 7: 1 > 0.5"
        assert service.client.get("/readyz").status_code == 503
        assert service.client.get("/v1/models/letters").json()["attestation"] == verdict
        assert service.post(max_tokens=1).status_code == 503
        assert service.client.post("/v1/models/letters/attest").status_code == 503


def test_a_model_whose_engine_ends_as_it_is_attested_is_not_ready_again(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread of its engine may end in the midst of what the event loop asks and says of it."""
    loader = Loader(settings(artifacts, slots=2), Metrics(), KINDS)
    model = loader.make(load_artifact(artifacts / "letters"))
    model.engine.ready = True
    asked = model._may_serve

    def ended() -> bool:
        model.engine.ready = False
        return asked()

    async def agrees(*_: Any) -> Verdict:
        return Verdict(ok=True, max_error=0.0, bound=1.0, training_error=0.0, steps=1, detail="")

    monkeypatch.setattr(model, "_may_serve", ended)
    monkeypatch.setattr("service.models.attest_in_queue", agrees)
    assert asyncio.run(model.attest_now(lambda steps: None)).ok
    assert not model.engine.ready


def test_a_model_is_as_good_as_the_worst_that_runs_it(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that uses fewer threads while others are at work proves itself as well."""
    model = Loader(settings(artifacts), Metrics(), KINDS).make(load_artifact(artifacts / "letters"))
    good, bad = (Verdict(ok, 1e-6, 1e-5, 0.0, 50, f"{ok}") for ok in (True, False))
    monkeypatch.setattr("service.models.attest", lambda artifact, part: part)
    for parts in ((good, bad), (bad, good)):
        runner: Any = SimpleNamespace(parts=parts)
        assert not model.attest(runner)
        assert model.verdict == replace(bad, steps=100)
        told = "letters: attestation FAILED, max error 1e-06 (bound 1e-05): False"
        assert caplog.messages[-1] == told


def test_an_unknown_model_cannot_be_attested(scan: Service) -> None:
    assert scan.client.post("/v1/models/gpt/attest").status_code == 404
