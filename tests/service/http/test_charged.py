"""A request costs what was read and written of it, however it ends."""

import itertools
import json
import logging
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from service.errors import DeadlineExceeded
from service.http import record
from service.http.keys import new_key
from service.ink.line import InkLine
from tests.service.serving import Service, bearing, running, settings
from tests.service.writing import InkService, Session, online

_BODY: dict[str, Any] = {"model": "letters", "max_tokens": 1}
_LONG = "It rained. " * 50_000  # takes seconds to read


def test_what_was_not_read_before_the_deadline_costs_nothing(letters: Path, tmp_path: Path) -> None:
    key = new_key(tmp_path / "keys.toml", "slow", bytes_per_minute=len(_LONG) // 2)
    sent: dict[str, Any] = {"headers": bearing(key)}
    body = {"model": "letters", "prompt": _LONG, "max_tokens": 3, "deadline_s": 0.3}
    with running(settings(letters, keys=tmp_path / "keys.toml")) as service:
        late = service.client.post("/v1/completions", json=body, **sent)
        assert late.status_code == 504
        assert service.metric("prompt_tokens_total") <= service.metric("steps_total") < len(_LONG)
        again = body | {"prompt": "It ", "deadline_s": 9}
        assert service.client.post("/v1/completions", json=again, **sent).status_code == 200


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.in_process
def test_what_has_been_read_in_the_end_is_all_of_the_prompt(scan: Service, begun: bool) -> None:
    """After a session too, the byte of which that is ahead takes no step."""
    body: dict[str, Any] = {"prompt": "It rains", "max_tokens": 2}
    if begun:
        with online(scan, model="letters") as session:
            session.ask(write=2)
            body["state"] = session.ask(state=True)["state"]
    before = scan.metric("prompt_tokens_total")
    scan.complete(**body)
    assert scan.metric("prompt_tokens_total") == before + len("It rains")


@pytest.mark.in_process
def test_a_line_that_the_pen_never_began_costs_none_of_its_characters(ink: InkService) -> None:
    pen = ink.app.state.models["scrawl"]
    line = InkLine("an even keel", pen.fresh(1), pen.manifest, lambda piece: None)
    assert line.read == 0
    line.inputs(3)
    assert line.read == len("an even keel")


@pytest.mark.in_process
def test_an_image_costs_a_step_for_every_4000_px_that_it_begins(
    ink: InkService, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is given up for the time it takes as well."""

    def late(*_: Any) -> bytes:
        raise DeadlineExceeded("the picture took too long")

    page = {"text": "a\na\na", "seed": 1, "width": 160, "line_height": 16}
    px = (told := ink.write(**page))["width"] * told["height"]
    assert px % 4000
    with caplog.at_level(logging.INFO, logger=record.log.name):
        assert ink.post(**page, format="png").status_code == 200
        monkeypatch.setattr("service.ink.drawing.to_png", late)
        assert ink.post(**page, format="png").status_code == 504
    lines = [r.message for r in caplog.records if r.name == record.log.name]
    assert [json.loads(line)["steps"] for line in lines] == [math.ceil(px / 4000)] * 2


def test_a_job_that_is_given_up_costs_what_is_told_of_it() -> None:
    """Its engine may go on with it for the rest of a chunk."""

    class Going:
        arrived_s, first_run_s, first_output_s, read = 0.0, None, None, 3
        _written = itertools.count(1)
        written = property(lambda self: next(self._written))

    job: Any = Going()
    kept, charged = record.Record("id"), list[int]()
    kept.charge = charged.append
    kept.begin([job], "letters")
    kept.end()
    assert charged == [work.read + work.written for work in kept.works] == [4]


def test_a_session_may_do_what_its_key_may_by_now(letters: Path, tmp_path: Path) -> None:
    """Taken away, or given less, while nobody else asks."""
    file = tmp_path / "keys.toml"
    keys = [new_key(file, name, bytes_per_minute=10**6) for name in ("gone", "less")]
    changed = file.read_text().partition("[less]")[2].replace("1000000", "6")
    with running(settings(letters, keys=file)) as service:
        codes: list[str | None] = []
        for key in keys:
            before = file.read_text()
            with service.client.websocket_connect("/v1/online", headers=bearing(key)) as socket:
                session = Session(socket)
                assert "bytes" in session.ask(model="letters") | session.ask(write=9)
                file.write_text(f"[less]{changed}")
                service.app.state.keys.look()
                told = [session.ask(write=9)]
                while "error" not in told[-1] and len(told) < 3:
                    told.append(session.ask(write=9))
                codes.append(told[-1].get("error", {}).get("code"))
                assert "state" in told[-1]  # where it stood, to go on with another key
            file.write_text(before)
            service.app.state.keys.look()
    assert codes == ["invalid_api_key", "rate_limited"]


def test_a_session_whose_key_has_another_name_by_now_has_the_account_of_that(
    letters: Path, tmp_path: Path
) -> None:
    """Or it would use up what nobody looks at any more."""
    file = tmp_path / "keys.toml"
    headers = bearing(new_key(file, "before", bytes_per_minute=6))
    with (
        running(settings(letters, keys=file)) as service,
        service.client.websocket_connect("/v1/online", headers=headers) as socket,
    ):
        session = Session(socket)
        session.ask(model="letters")
        file.write_text(file.read_text().replace("[before]", "[after]"))
        service.app.state.keys.look()
        assert "bytes" in session.ask(write=9)
        assert session.ask(write=9)["error"]["code"] == "rate_limited"


def test_a_session_without_a_key_any_more_ends_at_whatever_it_asks(
    letters: Path, tmp_path: Path
) -> None:
    """It may have its state, which costs nothing, as the last thing it is told."""
    file = tmp_path / "keys.toml"
    headers = bearing(new_key(file, "gone"))
    with (
        running(settings(letters, keys=file)) as service,
        service.client.websocket_connect("/v1/online", headers=headers) as socket,
    ):
        session = Session(socket)
        session.ask(model="letters")
        file.write_text("")
        service.app.state.keys.look()
        told = session.ask(state=True)
        assert (told["error"]["code"], session.closed()) == ("invalid_api_key", 1008)
        assert "state" in told


def test_what_was_read_and_written_is_charged_and_comes_back_in_time(
    tmp_path: Path, letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = new_key(tmp_path / "keys.toml", "slow", bytes_per_minute=600)
    now_s = 1000.0
    clock = SimpleNamespace(monotonic=lambda: now_s)
    monkeypatch.setattr("service.http.callers.time", clock)
    with running(settings(letters, keys=tmp_path / "keys.toml")) as service:

        def ask(**body: Any) -> httpx.Response:
            return service.client.post("/v1/completions", json=_BODY | body, headers=bearing(key))

        assert ask(prompt="x" * 300, max_tokens=320).status_code == 200  # 20 more than there are
        refused = ask()
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "3"  # at 10 a second
        assert "600 bytes a minute" in refused.json()["error"]["message"]
        now_s += 1.9
        assert ask().status_code == 429
        now_s += 0.2
        assert ask().status_code == 200


def test_steps_of_a_socket_are_charged(tmp_path: Path, letters: Path) -> None:
    key = new_key(tmp_path / "keys.toml", "slow", bytes_per_minute=10)
    with (
        running(settings(letters, keys=tmp_path / "keys.toml")) as service,
        service.client.websocket_connect("/v1/online", headers=bearing(key)) as online,
    ):
        online.send_json({"model": "letters"})
        online.receive_json()
        for _ in range(2):
            online.send_json({"write": 12})
            last = online.receive_json()
        assert last["error"]["code"] == "rate_limited"


def test_work_that_shows_nothing_of_itself_is_charged(tmp_path: Path, inks: Path) -> None:
    file = tmp_path / "keys.toml"
    line = [[[5 * i, 20 * (i % 2)] for i in range(40)]]
    free = {
        "/v1/styles": {"strokes": line, "text": "ab"},
        "/v1/handwriting": {"text": "a", "style": {"strokes": line, "text": "ab"}, "first_line": 9},
        "/v1/read": {"strokes": line},
        "/v1/models/letters/attest": {},
        "/tokenize": {"prompt": "🦊" * 5},  # 20 bytes
        "/detokenize": {"tokens": [97] * 20},
    }
    # Whose text is charged as it ends; and chat, which is refused.
    others = {"/v1/completions", "/v1/chat/completions", "/v1/responses"}
    keys = [new_key(file, f"slow{i}", bytes_per_minute=300) for i in range(len(free))]
    with running(settings(inks, keys=file)) as service:
        posted = {r.path for r in service.app.state.routes if "POST" in getattr(r, "methods", ())}
        assert {path for path in posted if not path.endswith("load")} - others == {
            path.replace("letters", "{name}") for path in free
        }
        for key, (path, body) in zip(keys, free.items(), strict=True):
            told = list[int]()
            while 429 not in told and len(told) < 40:
                answer = service.client.post(path, json=body, headers=bearing(key))
                told.append(answer.status_code)
            assert told[0] in (200, 400), path
            assert told[-1] == 429, path


def test_a_large_image_costs_what_it_takes(tmp_path: Path, inks: Path) -> None:
    key = new_key(tmp_path / "keys.toml", "slow", bytes_per_minute=600)
    body = {"text": "a", "seed": 1, "width": 4096, "line_height": 400}
    with running(settings(inks, keys=tmp_path / "keys.toml")) as service:
        told = [
            service.client.post(
                "/v1/handwriting", json=body | {"format": name}, headers=bearing(key)
            ).status_code
            for name in ("svg", "png", "svg")
        ]
    assert told == [200, 200, 429]
