"""A model whose parity report is missing or red is not served, unless it is allowed to be."""

import logging
import math
from pathlib import Path
from typing import Any

import pytest

from contract.manifest import Finding
from contract.manifests import read_manifest
from service.settings import Settings
from tests.service.altered import copy_of, edit_manifest
from tests.service.serving import eventually, running, settings

_GREEN = Finding(name="bits", value=0.0, bound=0.0, detail="all the same")
_RED = Finding(name="logits", value=2e-3, bound=1e-4, detail="far off")
_NAN = Finding(name="operators", value=math.nan, bound=1.0, detail="no number")
_NO_BOUND = Finding(name="growth", value=0.5, bound=math.nan, detail="no bound")

_MISSING = "there is no parity report; `python -m export verify --record ARTIFACT` makes one"
_UNPROVED = pytest.mark.parametrize(
    ("report", "doubt"),
    [
        (None, _MISSING),
        ((), _MISSING),
        ((_GREEN, _RED), "the parity report is red: logits"),
        ((_NAN, _GREEN), "the parity report is red: operators"),
        ((_NO_BOUND,), "the parity report is red: growth"),
        ((_RED, _GREEN, _NAN), "the parity report is red: logits, operators"),
    ],
    ids=["missing", "empty", "red", "nan", "no bound", "two red"],
)


def _record(artifact: Path, report: tuple[Finding, ...] | None, **provenance: str) -> None:
    """Let the manifest have this parity report, written as export writes it."""
    manifest = read_manifest(artifact)
    changes = {"parity": report, "provenance": manifest.provenance | provenance}
    manifest.model_copy(update=changes).write(artifact)


@_UNPROVED
def test_an_unproved_model_is_not_ready_and_says_why(
    copy: Path, report: tuple[Finding, ...] | None, doubt: str
) -> None:
    _record(copy, report)
    with running(settings(copy.parent, allow_unproved=False), ready=False) as service:
        model = service.app.state.models["letters"]
        assert eventually(model.engine.attested.is_set)
        assert model.verdict.ok  # it computes what its golden vectors say
        assert service.client.get("/readyz").status_code == 503
        health = service.client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "not ready")
        entry = health.json()["models"]["letters"]
        assert (entry["ready"], entry["unproved"]) == (False, doubt)
        for path in ("/v1/models/letters", "/v1/models"):
            answer = service.client.get(path).json()
            card = answer.get("data", [answer])[0]
            assert (card["unproved"], card["ready"], card["failed"]) == (doubt, False, doubt)
            assert (card["parity"] is None) == (report is None)
        assert service.metric("model_failed") == 1
        refused = service.post(max_tokens=1)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_ready")
        assert refused.json()["error"]["message"] == doubt
        assert service.client.post("/v1/models/letters/attest").status_code == 503
        assert service.client.get("/readyz").status_code == 503


@_UNPROVED
def test_an_unproved_model_that_is_allowed_is_ready_and_still_says_why(
    copy: Path, report: tuple[Finding, ...] | None, doubt: str, caplog: pytest.LogCaptureFixture
) -> None:
    _record(copy, report)
    with running(settings(copy.parent, allow_unproved=True)) as service:
        entry = service.client.get("/health").json()["models"]["letters"]
        assert (entry["ready"], entry["unproved"]) == (True, doubt)
        card = service.client.get("/v1/models/letters").json()
        assert (card["unproved"], card["failed"]) == (doubt, None)
        assert service.complete(max_tokens=3)["usage"]["completion_tokens"] == 3
        assert service.client.post("/v1/models/letters/attest").json()["ok"] is True
        assert service.complete(max_tokens=3)["usage"]["completion_tokens"] == 3
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert f"letters: not proved: {doubt}" in warnings


def test_a_proved_model_is_ready_without_being_allowed(copy: Path) -> None:
    _record(copy, (_GREEN,))
    with running(settings(copy.parent, allow_unproved=False)) as service:
        entry = service.client.get("/health").json()["models"]["letters"]
        assert (entry["ready"], entry["unproved"]) == (True, None)
        card = service.client.get("/v1/models/letters").json()
        assert (card["unproved"], card["ready"], card["failed"]) == (None, True, None)
        assert service.complete(max_tokens=3)["usage"]["completion_tokens"] == 3


def test_being_allowed_is_no_leave_to_fail_the_golden_vectors(copy: Path) -> None:
    _record(copy, None)
    with running(settings(copy.parent, allow_unproved=True)) as service:
        service.app.state.models["letters"].artifact.golden.truth["logits"][7, 1] += 1.0
        assert service.client.post("/v1/models/letters/attest").json()["ok"] is False
        assert service.client.get("/readyz").status_code == 503
        card = service.client.get("/v1/models/letters").json()
        assert card["failed"].startswith("it failed its attestation: logits: outside")


def test_one_unproved_model_does_not_stop_another(artifacts: Path, copy: Path) -> None:
    _record(copy_of(artifacts / "noise", copy.parent), (_GREEN,))
    with running(settings(copy.parent, allow_unproved=False), ready=False) as service:
        models = service.app.state.models
        assert eventually(lambda: all(model.engine.attested.is_set() for model in models))
        ready = service.client.get("/readyz")
        assert (ready.status_code, ready.text) == (200, "ok; failed: letters")
        assert service.post(model="letters").status_code == 503
        assert service.post(model="noise").status_code == 200


def test_models_must_be_proved_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVENKEEL_ALLOW_UNPROVED", raising=False)
    assert Settings().allow_unproved is False
    monkeypatch.setenv("EVENKEEL_ALLOW_UNPROVED", "1")
    assert Settings().allow_unproved is True


def test_a_red_report_under_batch_norm_names_the_cause(copy: Path) -> None:
    _record(copy, (_GREEN, _RED), golden_mode="evaluation")
    with running(settings(copy.parent, allow_unproved=False), ready=False) as service:
        doubt = service.client.get("/health").json()["models"]["letters"]["unproved"]
    assert doubt.startswith("the parity report is red: logits; its batch norm computes another")


@pytest.mark.parametrize("report", [None, (_GREEN,)])
def test_a_report_that_is_not_red_blames_no_batch_norm(
    copy: Path, report: tuple[Finding, ...] | None
) -> None:
    _record(copy, report, golden_mode="evaluation")
    assert "batch norm" not in (read_manifest(copy).doubt or "")
    assert (read_manifest(copy).doubt is None) == (report is not None)


def test_a_report_is_shown_with_its_verdicts(copy: Path) -> None:
    _record(copy, (_GREEN, _NAN))
    with running(settings(copy.parent)) as service:
        shown = service.client.get("/v1/models/letters").json()["parity"]
    assert [(f["name"], f["value"], f["holds"]) for f in shown] == [
        ("bits", 0.0, True),
        ("operators", None, False),
    ]


def test_a_verdict_written_into_a_report_is_not_believed(copy: Path) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["parity"] = [_RED.model_dump() | {"holds": True}]

    edit_manifest(copy, edit)
    with pytest.raises(ValueError, match="holds"):
        read_manifest(copy)
