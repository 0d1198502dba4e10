"""`POST /v1/read`: what is read is what the graph says of the ink, whichever way the ink comes."""

import json
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.pieces import PIECE_UNITS, RESTS, cut, line_of
from contract.reader import Read, best_path
from contract.strokes import UNITS_PER_LINE
from service.artifact import load_artifact
from service.engine.runners import ScanRunner
from service.engine.runtime import Runtime
from service.errors import NotReady
from service.http import record
from service.ink.inkml import to_inkml
from tests.service.reader.lines import MODEL, ReaderService, Strokes, line
from tests.service.writing import online

_INK = line()


def _graph_reads(inks: Path, strokes: Strokes) -> list[Read]:
    """The best path of the graph run over all of a line, and the rests after it."""
    ink = line_of([np.array(stroke) * (1, -1) for stroke in strokes])
    assert ink is not None
    pieces = cut(ink)
    artifact = load_artifact(inks / MODEL)
    forced = np.zeros((1 + len(pieces) + RESTS, 1, pieces.shape[1]), np.float32)
    forced[: len(pieces), 0] = pieces
    force = np.arange(len(forced))[:, None] < len(pieces)
    runner = ScanRunner(artifact, Runtime("cpu", "scan", 1, 1))
    outputs = runner.run([0], {"forced": forced, "force": force}, {}, filtered=False)
    return best_path(outputs["logits"][:, 0])


def test_a_line_is_read_as_the_graph_reads_it(reader: ReaderService, inks: Path) -> None:
    answer = reader.read(strokes=_INK)
    expected = _graph_reads(inks, _INK)
    assert answer["text"] == "".join(read.character for read in expected)
    assert len(answer["text"]) >= 3  # or this would say nothing
    assert answer["text"] == "".join(c["character"] for c in answer["characters"])
    # Of a character that goes on in the rests, it is that before them.
    sure = [read.confidence for read in expected]
    assert [c["confidence"] for c in answer["characters"]] == pytest.approx(sure, abs=1e-3)
    assert (answer["object"], answer["model"]) == ("reading", MODEL)
    assert abs(answer["created"] - time.time()) < 60
    assert answer["usage"]["pieces"] > 20
    assert "state" not in answer


def test_other_ink_is_read_otherwise(reader: ReaderService) -> None:
    assert reader.read(strokes=line("something else"))["text"] != reader.read(strokes=_INK)["text"]


def test_where_a_line_is_and_how_large_changes_nothing(reader: ReaderService) -> None:
    moved = [[[x * 2 + 500, y * 2 - 300] for x, y in stroke] for stroke in _INK]
    assert reader.read(strokes=moved)["text"] == reader.read(strokes=_INK)["text"]


def test_a_pen_that_rests_on_the_paper_changes_nothing_that_is_read(reader: ReaderService) -> None:
    """Many tablets tell where it is again and again, however long it stays there."""
    rested = [[*[stroke[0]] * 3, *stroke, *[stroke[-1]] * 9] for stroke in _INK]
    rested[-1] += [_INK[-1][-1]] * 500
    for place in ({}, {"line_height": 64, "origin": [40, 90]}):
        told, expected = (reader.read(strokes=ink, **place) for ink in (rested, _INK))
        assert told["characters"] == expected["characters"]
        assert told["usage"] == expected["usage"]


def test_where_ink_stands_on_its_line_is_told_by_the_origin(reader: ReaderService) -> None:
    def told(strokes: Strokes, x: float, y: float) -> list[dict]:
        return reader.read(strokes=strokes, line_height=64, origin=[x, y])["characters"]

    placed = told(_INK, 40, 90)
    assert told([[[x + 30, y - 20] for x, y in s] for s in _INK], 70, 70) == placed
    assert placed not in (told(_INK, 70, 90), told(_INK, 40, 70))


def test_inkml_is_read_as_its_strokes(reader: ReaderService) -> None:
    document = to_inkml([np.array(stroke) for stroke in _INK], "an even keel")
    mine, theirs = reader.read(inkml=document), reader.read(strokes=_INK)
    assert mine["text"] == theirs["text"]
    assert mine["usage"] == theirs["usage"]


@pytest.mark.parametrize("cut_at", [1, 3, len(_INK) - 1])
def test_ink_gone_on_with_is_the_whole_line(reader: ReaderService, cut_at: int) -> None:
    place = {"line_height": 64, "origin": [40, 90]}
    whole = reader.read(strokes=_INK, **place)
    first = reader.read(strokes=_INK[:cut_at], return_state=True, **place)
    rest = reader.read(strokes=_INK[cut_at:], state=first["state"], return_state=True)
    settled = [c for c in first["characters"] if c["settled"]]
    assert [c["character"] for c in (*settled, *rest["characters"])] == list(whole["text"])
    assert first["usage"]["pieces"] + rest["usage"]["pieces"] == whole["usage"]["pieces"]


def test_every_answer_has_a_name_of_its_own(reader: ReaderService) -> None:
    names = {reader.read(strokes=_INK)["id"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("read-") for name in names)


def test_a_token_may_be_used_twice(reader: ReaderService) -> None:
    first = reader.read(strokes=_INK[:2], return_state=True, line_height=64)
    answers = [reader.read(strokes=_INK[2:], state=first["state"]) for _ in range(2)]
    assert answers[0]["characters"] == answers[1]["characters"]


def test_a_line_without_any_height_is_read(reader: ReaderService) -> None:
    assert reader.read(strokes=[[[0, 0], [40, 0]]])["usage"]["pieces"] > 0


def test_ink_in_other_units_than_px_is_read_however_small_those_make_it(
    reader: ReaderService,
) -> None:
    small = [[[x / 1000, y / 1000] for x, y in stroke] for stroke in _INK]
    assert reader.read(strokes=small)["text"] == reader.read(strokes=_INK)["text"]


def test_it_may_have_less_time_than_others(reader: ReaderService) -> None:
    late = reader.client.post("/v1/read", json={"strokes": _INK, "deadline_s": 1e-9})
    assert late.status_code == 504


def test_a_reader_tells_how_it_cuts_ink(reader: ReaderService) -> None:
    told = reader.client.get(f"/v1/models/{MODEL}").json()["pieces"]
    assert told == {
        "units_of_size": 1.5, "units_per_line": UNITS_PER_LINE, "piece_units": PIECE_UNITS,
        "rests": RESTS, "reordered": False,
    }  # fmt: skip


@pytest.mark.in_process
def test_what_is_read_is_logged_with_its_model(
    reader: ReaderService, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="evenkeel.request"):
        pieces = reader.read(strokes=_INK)["usage"]["pieces"]
    (line,) = (json.loads(entry.message) for entry in caplog.records)
    assert (line["model"], line["steps"]) == (MODEL, 1 + pieces + RESTS)


def _break_off(jobs: Any, *, admitted: bool = False) -> None:
    """Do three steps of a job and no more."""
    jobs[0].accept({"logits": np.zeros((3, 2), np.float32)})
    jobs[0].fail(NotReady("gone"))


@pytest.mark.in_process
def test_what_has_been_read_when_reading_breaks_off_is_paid_for(
    reader: ReaderService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = reader.app.state.models[MODEL].engine
    monkeypatch.setattr(engine, "submit", _break_off)
    monkeypatch.setattr(engine, "run_now", lambda job: False)
    with caplog.at_level(logging.INFO, logger="evenkeel.request"):
        assert reader.client.post("/v1/read", json={"strokes": _INK}).status_code == 503
    (line,) = (json.loads(entry.message) for entry in caplog.records)
    assert line["steps"] == 3


def _judge(reader: ReaderService) -> None:
    """Have a line judged, as for the best of several."""
    assert reader.client.portal is not None
    model, line = reader.app.state.models[MODEL], np.array([[0.0, 0.0], [1.0, 0.5]])
    reader.client.portal.call(model.judge, "ab", [line])


@pytest.mark.in_process
def test_a_judge_is_asked_on_behalf_of_what_was_let_in(
    reader: ReaderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, seen = reader.app.state.models[MODEL].engine, []
    submit = engine.submit

    def watched(jobs: Any, *, admitted: bool = False) -> None:
        seen.append(admitted)
        submit(jobs, admitted=admitted)

    monkeypatch.setattr(engine, "submit", watched)
    _judge(reader)
    assert seen == [True]


@pytest.mark.in_process
def test_what_a_judge_did_not_read_is_not_paid_for(
    reader: ReaderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(jobs: Any, *, admitted: bool = False) -> None:
        raise NotReady("gone")

    paid: list[int] = []
    monkeypatch.setattr(record, "current", lambda: record.Record("", charge=paid.append))
    _judge(reader)
    assert sum(paid) > 0
    for submit, steps in ((refuses, 0), (_break_off, 3)):
        paid.clear()
        monkeypatch.setattr(reader.app.state.models[MODEL].engine, "submit", submit)
        with pytest.raises(NotReady):
            _judge(reader)
        assert sum(paid) == steps


def test_a_dot_is_read(reader: ReaderService) -> None:
    dot = [[[10, 10]], [[40, 10], [40, 30]]]
    assert reader.read(strokes=dot)["usage"]["pieces"] >= 2


_FLAT = [[[0, 0], [1e6, 20], [0, 40], [1e6, 0]]]
_WIDE = "<ink><trace>0 0, 1e6 0</trace></ink>"


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ({}, "one of them"),
        ({"strokes": _INK, "inkml": "<ink/>"}, "one of them"),
        ({"strokes": []}, "strokes"),
        ({"strokes": [[]]}, "strokes"),
        ({"strokes": [[[1, 2, 3]]]}, "strokes"),
        ({"strokes": [[[0, 0], [0, 0]]]}, "no line"),
        ({"strokes": [[[0, 0], [10, 0], [30, 1e-310]]]}, "float32"),
        ({"strokes": [[[5, 5]]]}, "no line"),
        ({"strokes": [[[1, 1]]] * 1001}, "at most 1000"),
        ({"strokes": [[[1, 1]] * 20_001]}, "at most"),
        ({"inkml": "<ink><trace>1 1</trace></ink>"}, "inkml the ink has no line in it"),
        ({"inkml": _WIDE, "line_height": 16}, "inkml the ink is "),
        ({"strokes": _FLAT * 100}, "strokes the ink is "),
        ({"strokes": _FLAT * 100}, "at most 4096"),
        ({"strokes": _FLAT * 100, "line_height": 16}, "at most 4096"),
        ({"strokes": [[[0, 0], [300, 0]]] * 200, "line_height": 16}, "at most 4096"),
        ({"strokes": _INK, "origin": [0, 0]}, "line_height"),
        ({"strokes": _INK, "origin": [0, 0], "state": "any"}, "state knows its line"),
        ({"strokes": _INK, "return_state": True}, "line_height"),
        ({"inkml": _WIDE, "return_state": True}, "return_state needs line_height"),
        ({"strokes": _INK, "line_height": 8}, "line_height"),
        ({"strokes": _INK, "deadline_s": 0}, "deadline_s"),
        ({"strokes": _INK, "state": "nonsense"}, "state"),
        ({"strokes": _INK, "state": "x", "line_height": 64}, "state knows its line"),
        ({"strokes": _INK, "text": "an even keel"}, "text"),
        ({"inkml": "<ink>"}, "no XML"),
        ({"inkml": "<!DOCTYPE ink []><ink/>"}, "document type"),
        (
            {"inkml": "\ufeff<?x <!-- ?>\n<!-- --><!DOCTYPE a><!-- --><ink/>"},
            "document type",
        ),
        ({"inkml": "<ink/>"}, "inkml has no trace"),
        ({"inkml": "<ink><trace>1 2, 1e7 4</trace></ink>"}, "inkml has a coordinate 10000000.0: "),
        (
            {"inkml": "<ink><trace>1 2, 1e-46 4</trace></ink>"},
            "inkml has a coordinate 1e-46: float32 has no such number",
        ),
        ({"inkml": f"<ink>{'<trace>1 2</trace>' * 1001}</ink>"}, "inkml has 1001 strokes of 1001"),
        ({"inkml": "<ink><trace>1 2, 3</trace></ink>"}, "a point of 1 numbers"),
        ({"inkml": "<ink><trace>1 2, #3 4</trace></ink>"}, "a point '#3 4'"),
        ({"inkml": "<ink><trace>1 2, nan 4</trace></ink>"}, "inkml"),
    ],
)
def test_what_cannot_be_read_is_refused(
    reader: ReaderService, body: dict[str, Any], what: str
) -> None:
    response = reader.client.post("/v1/read", json=body)
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert what in f"{error['param']} {error['message']}"
    assert len(error["message"]) < 500


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400"])
def test_numbers_that_are_none_are_refused(reader: ReaderService, number: str) -> None:
    content = json.dumps({"strokes": [[[0, 0], [7, 9]]]}).replace("7", number)
    headers = {"content-type": "application/json"}
    assert reader.client.post("/v1/read", content=content, headers=headers).status_code == 400


def test_half_of_a_surrogate_pair_is_refused(reader: ReaderService) -> None:
    content = json.dumps({"inkml": "<ink><trace>1 2</trace>\ud800</ink>"})
    headers = {"content-type": "application/json"}
    assert reader.client.post("/v1/read", content=content, headers=headers).status_code == 400


def test_a_token_of_another_model_is_refused(reader: ReaderService) -> None:
    body = {"model": "letters", "prompt": "a", "max_tokens": 1, "return_state": True}
    token = reader.client.post("/v1/completions", json=body).json()["choices"][0]["state"]
    response = reader.client.post("/v1/read", json={"strokes": _INK, "state": token})
    assert response.status_code == 409


@pytest.mark.in_process
@pytest.mark.parametrize(("pieces", "readable"), [(4096, True), (4097, False)])
def test_ink_is_judged_if_it_is_no_longer_than_a_message(
    reader: ReaderService, pieces: int, readable: bool
) -> None:
    model, portal = reader.app.state.models[MODEL], reader.client.portal
    assert portal is not None
    lines_high = pieces * PIECE_UNITS / UNITS_PER_LINE
    judged = portal.call(model.judge, "ab", [np.array([[0.0, 0.0], [lines_high, 0.0]])])
    assert (judged.rank > -np.inf) is readable


def test_a_pen_is_no_reader(reader: ReaderService) -> None:
    response = reader.client.post("/v1/read", json={"strokes": _INK, "model": "scrawl"})
    assert response.status_code == 400
    assert "of kind handwriting" in response.json()["error"]["message"]


@pytest.mark.parametrize("begun", [[[0, 50], [10, 50]], [[0, 50]]], ids=len)
def test_ink_after_a_token_of_a_stroke_begins_one_of_its_own(
    reader: ReaderService, begun: list[list[float]]
) -> None:
    """It was joined to where the pen had been by a straight line."""
    place = {"line_height": 64, "origin": [0, 64]}
    with online(reader, model=MODEL, **place) as session:
        session.ask(points=[[x, y, 0] for x, y in begun])
        token = session.ask(state=True)["state"]
    alone = reader.read(strokes=[[[400, 20], [400, 60]]], **place)["usage"]["pieces"]
    both = reader.read(strokes=[begun, [[400, 20], [400, 60]]], **place)
    gone_on = reader.read(strokes=[[[400, 20], [400, 60]]], state=token)["usage"]["pieces"]
    assert gone_on == both["usage"]["pieces"] == alone + 1
