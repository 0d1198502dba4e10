"""However many keys there are, nobody who asks waits for more than their own, and each is found as
it was given and as long as its file says."""

import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from errno import EACCES, EIO, EMFILE, ENFILE
from hashlib import sha256
from pathlib import Path

import pytest

from service.http import keys
from service.http.callers import _presented
from service.http.keys import BadKeys, Key, Keys, new_key, read_keys
from tests.service.serving import bearing, eventually, running, settings


def _calls(work: Callable[[], object]) -> int:
    """How many functions are called meanwhile."""
    events = list[str]()
    sys.setprofile(lambda frame, event, of: events.append(event))
    try:
        work()
    finally:
        sys.setprofile(None)
    return sum(event in ("call", "c_call") for event in events)


@pytest.mark.parametrize("presented", ["key 0", "key 9", "none"])
def test_a_key_is_found_as_fast_among_thousands(tmp_path: Path, presented: str) -> None:
    """Each was compared, for every request: of 100,000 they took some 12 ms."""
    counts = list[int]()
    for many in (10, 2000):
        file = tmp_path / f"{many}.toml"
        hashes = [sha256(f"key {i}".encode()).hexdigest() for i in range(many)]
        file.write_text("".join(f"[k{i}]\nsha256 = '{h}'\n" for i, h in enumerate(hashes)))
        known = Keys(file)
        found = known.find(presented)
        assert (found and found[0]) == {"key 0": "k0", "key 9": "k9"}.get(presented)
        counts.append(_calls(lambda known=known: known.find(presented)))  # type: ignore[misc]
    assert counts[0] == counts[1]


def test_a_file_is_read_again_beside_the_event_loop(
    letters: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One of 8,000 keys takes 0.15 s; and where a look fails, the next reads what that has not."""
    file, read, on_loop = tmp_path / "keys.toml", keys.read_keys, list[bool]()
    new_key(file, "first")

    def noted(path: Path) -> dict[str, Key]:
        on_loop.append(False)
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            on_loop[-1] = True
        if len(on_loop) == 2:
            raise MemoryError
        return read(path)

    monkeypatch.setattr(keys, "read_keys", noted)
    monkeypatch.setattr(keys, "_LOOK_EVERY_S", 0.01)
    with running(settings(letters, keys=file)) as service:
        second = bearing(new_key(file, "second"))
        models = "/v1/models"
        assert eventually(lambda: service.client.get(models, headers=second).status_code == 200)
    assert on_loop[1:] == [False, False]
    (failed,) = (r for r in caplog.records if r.name == keys.log.name)
    assert failed.getMessage() == "a look at the keys failed"
    assert isinstance(failed.exc_info[1] if failed.exc_info else None, MemoryError)


@pytest.mark.parametrize("refusal", [EMFILE, ENFILE, EIO])
def test_a_key_that_was_taken_away_ends_though_the_system_would_not_read_the_file_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    refusal: int,
) -> None:
    """It opened until the file changed once more: of a moment without a free descriptor nobody
    thinks who has taken a key away."""
    file, refused = tmp_path / "keys.toml", list[Path]()
    taken = new_key(file, "taken")
    known = Keys(file)

    def refuse(path: Path, *_: object) -> None:
        refused.append(path)
        raise OSError(refusal, os.strerror(refusal), str(path))

    file.write_text("")
    with monkeypatch.context() as busy:
        busy.setattr(Path, "open", refuse)
        for _ in range(2):
            known.look()
    assert refused == [file, file]
    assert known.find(taken) is not None  # as of any file that cannot be used
    known.look()
    assert known.find(taken) is None
    told = [r.getMessage() for r in caplog.records if r.name == keys.log.name]
    assert told == [f"the keys stay as they were: {file}: {os.strerror(refusal)}"]  # once


def test_that_a_file_cannot_be_read_is_told_again_once_it_said_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever mends a file and forgets its permissions a second time heard nothing of that."""
    file = tmp_path / "keys.toml"
    new_key(file, "first")
    known = Keys(file)

    def refuse(path: Path, *_: object) -> None:
        raise OSError(EACCES, os.strerror(EACCES), str(path))

    for broken in ("[first", "[second"):
        file.write_text(broken)
        with monkeypatch.context() as closed:
            closed.setattr(Path, "open", refuse)
            known.look()
        known.look()
    *_, told = zip(*(r.getMessage().rsplit(": ", 1) for r in caplog.records), strict=True)
    assert [why == os.strerror(EACCES) for why in told] == [True, False, True, False]


def test_looks_that_fail_alike_are_told_once_and_again_after_one_that_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each second was a traceback, as long as there was no thread for a look."""
    new_key(tmp_path / "keys.toml", "first")
    known, looks = Keys(tmp_path / "keys.toml"), list[bool]()

    async def look(do: Callable[[], None]) -> None:
        looks.append(True)
        if len(looks) != 3:
            raise RuntimeError("can't start new thread")
        do()

    async def follow() -> None:
        following = asyncio.ensure_future(known.follow())
        while len(looks) < 5 and not following.done():
            await asyncio.sleep(0)
        following.cancel()

    monkeypatch.setattr(keys, "_LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(asyncio, "to_thread", look)
    asyncio.run(follow())
    assert len(looks) == 5
    assert len(caplog.records) == 2


def test_a_file_may_be_as_large_as_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys.toml"
    new_key(file, "first")
    size = file.stat().st_size
    monkeypatch.setattr(keys, "_LARGEST_BYTES", size)
    assert read_keys(file).keys() == {"first"}
    monkeypatch.setattr(keys, "_LARGEST_BYTES", size - 1)
    with pytest.raises(BadKeys, match=f"more than {size - 1} bytes"):
        read_keys(file)


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose clock is ten hours ahead."""
    monkeypatch.setenv("TZ", "XST-10")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_east")
@pytest.mark.parametrize("zone", [None, UTC, timezone(timedelta(hours=-10))])
@pytest.mark.parametrize("left_h", [-1, 1])
def test_a_key_ends_at_its_time_wherever_that_is_told(zone: timezone | None, left_h: int) -> None:
    """Without a zone it is UTC, whatever the machine has."""
    end = datetime.now(zone or UTC) + timedelta(hours=left_h)
    ends = end if zone else end.replace(tzinfo=None)
    assert Key(sha256="0" * 64, expires=ends).valid == (left_h > 0)


def test_a_key_in_a_subprotocol_may_have_dots_of_its_own() -> None:
    offered = ["evenkeel", "bearer.a.b.c", "bearer.d"]
    assert _presented({"type": "websocket", "headers": [], "subprotocols": offered}) == "a.b.c"


def test_a_key_that_cannot_be_kept_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = list[str]()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(BadKeys, match="No space left"):
        new_key(tmp_path / "keys.toml", "me", show=shown.append)
    assert not shown


def test_a_key_is_written_to_no_pipe_nor_waited_for_in_it(tmp_path: Path) -> None:
    path, shown = tmp_path / "keys.toml", list[str]()
    with socket.socket(socket.AF_UNIX) as pipe:  # which whoever opens it need not wait for
        pipe.bind(str(path))
        with pytest.raises(BadKeys, match=r"keys\.toml: it is no plain file"):
            new_key(path, "bob", show=shown.append)
    assert shown == []
    assert path.is_socket()
