"""The line of the log names the model that was asked, where no job of an engine tells it, and when
the first ink came.
"""

import json
import logging
from contextlib import suppress
from pathlib import Path

import pytest

from service.errors import NotLoaded, ServiceError, UnknownModel
from service.http import admin, record
from tests.service.altered import copy_of
from tests.service.changing import changing
from tests.service.serving import eventually
from tests.service.writing import InkService


def _models(log: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """The last word of the path of each line, and the model it names."""
    lines = [json.loads(line.message) for line in log.records if line.name == record.log.name]
    return [(line["path"].rpartition("/")[2], line["model"]) for line in lines]


@pytest.mark.in_process
def test_a_replay_is_of_a_model(ink: InkService, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger=record.log.name):
        assert ink.client.post("/v1/models/squint/attest").status_code == 200
        assert ink.client.post("/v1/models/nobody/attest").status_code == 404
    assert _models(caplog) == [("attest", "squint"), ("attest", "")]


@pytest.mark.in_process
def test_a_hand_is_made_by_a_model(ink: InkService, caplog: pytest.LogCaptureFixture) -> None:
    wave = [[4.0 * i, 60 + 20 * (i % 5)] for i in range(60)]
    body = {"strokes": [wave], "text": "mmm", "model": "scrawl"}
    with caplog.at_level(logging.INFO, logger=record.log.name):
        assert ink.client.post("/v1/styles", json=body).status_code == 200
    assert _models(caplog) == [("styles", "scrawl")]


@pytest.mark.in_process
def test_ink_has_a_first_byte_as_well(ink: InkService, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger=record.log.name):
        ink.write(text="ab", seed=1)
    (line,) = (json.loads(line.message) for line in caplog.records if line.name == record.log.name)
    assert 0 <= line["queue_s"] < line["first_byte_s"] < line["total_s"]


def test_a_change_is_of_a_model_that_there_is(
    letters: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A name that nothing has may be anything, and is left out."""
    copy_of(letters / "letters", tmp_path)
    told = ["reload", "unload", "load", "load", "reload"]
    with caplog.at_level(logging.INFO, logger=record.log.name), changing(tmp_path) as service:
        for what in told[:3]:
            assert service.tell(what).status_code == 200
        assert service.tell("load", "nothing").status_code == 404
        (tmp_path / "letters" / "step.onnx").write_bytes(b"")
        assert service.tell("reload").status_code == 409
        assert eventually(lambda: len(_models(caplog)) == len(told))
    models = ["letters", "letters", "letters", "", "letters"]
    assert _models(caplog) == list(zip(told, models, strict=True))


@pytest.mark.parametrize(("error", "model"), [(UnknownModel, ""), (NotLoaded, "any words")])
def test_what_is_no_model_is_not_logged_as_one(
    monkeypatch: pytest.MonkeyPatch, error: type[ServiceError], model: str
) -> None:
    asked = record.Record("it")
    monkeypatch.setattr(record, "current", lambda: asked)
    with suppress(error), admin._recorded("any words"):
        raise error("no")
    assert asked.model == model
