"""A model on a device: when it is opened, stopped, and asked to prove itself."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from contract.alphabets import ALPHABET
from service.ink.letters import MARKS
from tests.site.conftest import Ask


def test_a_model_that_could_not_be_had_is_asked_for_again_and_a_job_stops_in_its_run(
    ask: Ask,
) -> None:
    (found,) = ask("tried", [{}])
    assert found["opened"] == 2
    assert (found["runs"], found["end"]) == (1, "AbortError")
    # With another seed its randomness begins anew.
    assert found["moments"] == [{"seed": 3, "drawn": 40}, {"seed": 4, "drawn": 0}]
    assert found["holds"] == [True, False]


def test_a_model_is_told_of_as_by_the_service(ask: Ask, artifact: Callable[[str], Path]) -> None:
    names = ("handwriting", "shakespeare")
    manifests = [json.loads((artifact(name) / "manifest.json").read_text()) for name in names]
    alike = ("kind", "parameters", "layer_normalizations", "hyperparameters", "provenance")
    pen, text = ask("described", manifests)
    for name, manifest, told in zip(names, manifests, (pen, text), strict=True):
        assert {part: told[part] for part in alike} == {part: manifest[part] for part in alike}
        known = (told["id"], told["digest"], told["attestation"], told["unproved"])
        assert known == (name, "any", None, None)
        assert told.get("ink") == manifest.get("ink")
        assert told["parity"] == [finding | {"holds": True} for finding in manifest["parity"]]
    writes = pen["writes"]
    assert (writes["characters"], set(writes["marks"])) == (ALPHABET, MARKS)
    assert "writes" not in text


def test_a_worker_hears_between_runs_that_a_job_is_stopped(ask: Ask) -> None:
    assert ask("interrupted", [{}]) == [{"end": "AbortError", "early": True}]


@pytest.mark.parametrize(("loads", "replayed"), [(True, 1), (False, 2)])
def test_who_checks_a_model_has_it_replayed(ask: Ask, loads: bool, replayed: int) -> None:
    (found,) = ask("checked", [{"loads": loads}])
    sample = {"equal": 0, "of": 3, "unit": "bytes", "runtime": "any"}
    assert found == {"ok": True, "replayed": replayed, "sample": sample}


def test_a_model_that_does_not_compute_what_it_did_in_training_writes_nothing(
    ask: Ask, artifact: Callable[[str], Path]
) -> None:
    (found,) = ask("zeroed", [{"folder": str(artifact("shakespeare"))}])
    pending = "Not attested yet: its 1.3 MB have not been fetched."
    assert found["before"] == {"pending": pending, "runtime": "WebAssembly"}
    assert found["meanwhile"] == {"pending": None, "runtime": "WebAssembly"}
    assert found["after"] == {"pending": None, "runtime": "wasm-ort1.2", "ok": False}
    assert found["heard"]  # by who waits for news of it
    error = found["body"]["error"]
    assert (found["status"], error["type"], error["param"]) == (503, "server_error", None)
    assert error["message"].startswith("Not attested here: ")
    assert found["fingerprint"] == "0123456789abcdef-wasm-ort1.2"


def test_each_letter_is_told_of_as_it_is_written(ask: Ask, artifact: Callable[[str], Path]) -> None:
    manifest = json.loads((artifact("handwriting") / "manifest.json").read_text())
    case = {"manifest": manifest, "text": "keel"}
    alone, parted, together = ask("lettered", [case | {"run": count} for count in (1, 3, 9)])
    assert [event["character"] for event in alone] == [0, 1, 2, 3, 3]
    # Of several that come at once each has its own points, as in the service.
    assert [(e["character"], len(e["points"])) for e in parted] == [(0, 1), (1, 1), (2, 1), (3, 2)]
    assert together == parted


def test_marks_come_last_when_the_pen_has_been_lifted_and_end_at_the_edge(
    ask: Ask, artifact: Callable[[str], Path]
) -> None:
    manifest = json.loads((artifact("handwriting") / "manifest.json").read_text())
    (told,) = ask("lettered", [{"manifest": manifest, "text": "n\u00f6", "dx": 500}])
    *written, marks = told
    (x, y, up), *dots = marks["points"]
    points = [point for event in written for point in event["points"]]
    assert marks["character"] == written[-1]["character"] == 1
    assert [x, y] == points[-1][:2]
    assert [up for *_, up in points] == [0, 0]
    assert [up, *(up for *_, up in dots)] == [1, 0, 1, 0, 1]
    assert max(x for x, *_ in dots) == 800
