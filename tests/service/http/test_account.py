"""Who asks, by what a request says; and what a key has used up, by a clock that the test moves."""

import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.engine import terms
from service.errors import TooManyRequests
from service.http.callers import Account, Callers, _presented
from service.http.keys import BadKeys, Key, Keys, new_key, read_keys
from tests.service.interleaved import WatchedLock
from tests.service.serving import told_by


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """`now_s` is the time."""
    told = SimpleNamespace(now_s=0.0)
    monkeypatch.setattr("service.http.callers.time", SimpleNamespace(monotonic=lambda: told.now_s))
    return told


def _account(clock: SimpleNamespace) -> Account:
    """One that has 20 bytes less than none, and gets ten a second."""
    account = Account("it", Key(sha256="0" * 64, bytes_per_minute=600))
    account.charge(620)
    return account


@pytest.mark.parametrize(("now_s", "retry_after_s"), [(0.0, 3), (0.1, 2), (1.0, 2), (2.0, 1)])
def test_until_there_is_a_byte_again_it_says_when(
    clock: SimpleNamespace, now_s: float, retry_after_s: int
) -> None:
    """With none left, neither more nor less, as well; and no second later than that."""
    account, clock.now_s = _account(clock), now_s
    with pytest.raises(TooManyRequests) as refused:
        account.check()
    assert refused.value.retry_after_s == retry_after_s


_SMALL, _LARGE = (Key(sha256="0" * 64, bytes_per_minute=count) for count in (600, 6000))


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        (Account.check, lambda account: account.charge(700), -100),
        (lambda account: account.charge(100), lambda account: account.charge(30), 470),
        (lambda account: account.charge(100), lambda account: account.renew(_LARGE), 6000),
    ],
    ids=["read", "charged", "renewed"],
)
def test_what_another_thread_does_meanwhile_is_not_lost(
    clock: SimpleNamespace,
    first: Callable[[Account], object],
    second: Callable[[Account], object],
    left: float,
) -> None:
    account, lock = Account("it", _SMALL), WatchedLock()

    class Left(float):
        def _changed(self, by: float) -> float:
            lock.beside(lambda: second(account))
            return float(self) + by

        def __add__(self, by: float) -> float:
            return self._changed(by)

        def __sub__(self, by: float) -> float:
            return self._changed(-by)

    account._left_bytes, account._lock = Left(600), lock  # type: ignore[assignment]
    first(account)
    lock.join()
    assert account._left_bytes == left


def test_the_same_seconds_fill_it_once(clock: SimpleNamespace) -> None:
    account, clock.now_s = _account(clock), 2.5
    account.check()
    account.charge(5)
    with pytest.raises(TooManyRequests):
        account.check()
    clock.now_s = 3.0
    account.check()


@pytest.mark.parametrize(
    ("headers", "admin"),
    [([], True), ([(b"x-forwarded-for", b"192.0.2.1")], False),
     ([(b"forwarded", b"for=192.0.2.1")], False), ([(b"via", b"1.1 proxy")], False),
     ([(b"x-real-ip", b"192.0.2.1")], False), ([(b"x-forwarded-host", b"keel.example")], False),
     ([(b"x-forwarded-proto", b"https")], False)],
    ids=str,
)  # fmt: skip
def test_who_comes_through_a_proxy_of_this_machine_is_not_of_it(
    headers: list[tuple[bytes, bytes]], admin: bool
) -> None:
    callers = Callers(lambda *_: None, None, local=True)  # type: ignore[arg-type, return-value]
    scope = {"type": "http", "client": ("127.0.0.1", 5000), "headers": headers}
    assert callers._by_address(scope).admin is admin


@pytest.mark.parametrize("given", [b"Bearer ek-1", b"bEARER ek-1", b"bearer   ek-1 "])
def test_a_key_is_known_however_it_is_announced(given: bytes) -> None:
    assert _presented({"type": "http", "headers": [(b"authorization", given)]}) == "ek-1"


@pytest.fixture
def _far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Twelve hours before UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Etc/GMT-12")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_far_east")
@pytest.mark.parametrize("zoned", [True, False])
@pytest.mark.parametrize(("seconds", "valid"), [(3600, True), (-1, False)])
def test_a_key_ends_to_the_second_and_in_utc_where_it_names_no_zone(
    seconds: int, valid: bool, zoned: bool
) -> None:
    expires = datetime.now(UTC) + timedelta(seconds=seconds)
    key = Key(sha256="0" * 64, expires=expires if zoned else expires.replace(tzinfo=None))
    assert key.valid is valid


@pytest.mark.parametrize("written", ["20270131", "1801440000.5", "'1801440000'", "true", "'soon'"])
def test_what_is_no_date_is_refused_with_how_one_is_written(tmp_path: Path, written: str) -> None:
    """A number would be taken for seconds since 1970."""
    file = tmp_path / "keys.toml"
    file.write_text(f"[mine]\nsha256 = '{'0' * 64}'\nexpires = {written}\n")
    rule = r"mine.expires: a date is written 2027-01-31 or 2027-01-31T00:00:00Z$"
    with pytest.raises(BadKeys, match=rule):
        read_keys(file)


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("hour", ["", "T00:00:00", "T00:00:00Z", " 00:00:00", "T02:00:00+02:00"])
def test_a_key_ends_where_its_day_begins_in_utc(tmp_path: Path, hour: str, quote: str) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(f"[mine]\nsha256 = '{'0' * 64}'\nexpires = {quote}2027-01-31{hour}{quote}\n")
    expires = read_keys(file)["mine"].expires
    assert expires is not None
    zoned = expires if expires.tzinfo else expires.replace(tzinfo=UTC)
    assert zoned == datetime(2027, 1, 31, tzinfo=UTC)


def test_a_file_that_changes_while_it_is_first_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, added = tmp_path / "keys.toml", list[str]()
    new_key(file, "first")

    def read(path: Path) -> dict[str, Key]:
        found = read_keys(path)
        if not added:
            added.append(new_key(path, "second"))
        return found

    monkeypatch.setattr("service.http.keys.read_keys", read)
    keys = Keys(file)
    keys.look()
    assert keys.find(added[0]) is not None


def test_a_file_that_may_be_read_by_now_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who puts it there may give the right to read it a moment later."""
    file, read = tmp_path / "keys.toml", read_keys
    new_key(file, "it")
    keys = Keys(file)
    key = new_key(file, "other")
    with monkeypatch.context() as patch:
        patch.setattr("service.http.keys.read_keys", lambda _: read(tmp_path))
        keys.look()
    assert keys.find(key) is None
    before_ns = file.stat().st_ctime_ns
    while file.stat().st_ctime_ns == before_ns:  # its clock ticks every few milliseconds
        file.chmod(0o644)
    keys.look()
    assert keys.find(key) is not None


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "in place"])
def test_a_change_of_a_file_is_noticed_that_leaves_its_size(tmp_path: Path, replaced: bool) -> None:
    """And its time too, where another file takes its place; or all but a millisecond of it."""
    file, other = tmp_path / "keys.toml", tmp_path / "other.toml"
    new_key(file, "it")
    key = new_key(other, "it")
    at_ns = 10**18
    for path in (file, other):
        os.utime(path, ns=(at_ns, at_ns))
    keys = Keys(file)
    assert keys.find(key) is None
    if replaced:
        other.replace(file)
    else:
        file.write_text(other.read_text())
        os.utime(file, ns=(at_ns, at_ns + 10**6))
    keys.look()
    assert keys.find(key) is not None


@pytest.mark.parametrize("limit", ["concurrency", "bytes_per_minute"])
def test_a_limit_of_nothing_is_refused_and_not_taken_for_none(tmp_path: Path, limit: str) -> None:
    file = tmp_path / "keys.toml"
    with pytest.raises(BadKeys, match="greater than or equal to 1"):
        new_key(file, "it", **{limit: 0})  # type: ignore[arg-type]
    assert not file.exists()
    new_key(file, "it", admin=True, **{limit: 1})  # type: ignore[arg-type]
    assert (read_keys(file)["it"].admin, getattr(read_keys(file)["it"], limit)) == (True, 1)


def test_bytes_do_not_pile_up_beyond_a_minute() -> None:
    account = Account("it", Key(sha256="0" * 64, bytes_per_minute=60_000_000))
    account.charge(59_999_999)
    account.check()  # fills a million a second, and never more than a minute's worth
    account.charge(60_000_001)
    with pytest.raises(Exception, match="60000000 bytes a minute"):
        account.check()


def test_another_limit_begins_with_a_minutes_worth_whatever_was_used_before() -> None:
    account = Account("it", Key(sha256="0" * 64))
    account.charge(10**9)
    account.renew(Key(sha256="0" * 64, bytes_per_minute=1000))
    account.check()
    account.charge(1001)
    with pytest.raises(Exception, match="1000 bytes a minute"):
        account.check()
    account.renew(Key(sha256="0" * 64, bytes_per_minute=1000, concurrency=3))
    with pytest.raises(Exception, match="1000 bytes a minute"):
        account.check()
    for other in (500, 2000):
        account.renew(Key(sha256="0" * 64, bytes_per_minute=other))
        account.check()
        account.charge(other + 1)


class _Inside:
    """What is behind the keys: it takes `costs` bytes of each who comes, and may fail."""

    def __init__(self) -> None:
        self.costs = 0
        self.fails = False
        self.admins: list[bool] = []
        self.asked_by: list[str] = []  # as the queue has it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.admins.append(scope["state"]["caller"].admin)
        self.asked_by.append(terms.current().caller)
        scope["state"]["known"]().charge(self.costs)
        if self.fails:
            raise RuntimeError("broken")
        await Response()(scope, receive, send)


def _status(callers: Callers, key: str) -> int:
    """Of the answer to whoever comes with a key."""
    headers = [(b"authorization", f"Bearer {key}".encode())]
    scope = {"type": "http", "method": "GET", "path": "/v1/models", "headers": headers}
    status: int = told_by(callers, scope)[0]["status"]
    return status


def test_a_key_may_do_what_its_file_says_by_now(tmp_path: Path) -> None:
    file, inside = tmp_path / "keys.toml", _Inside()
    key = new_key(file, "it")
    keys = Keys(file)
    callers = Callers(inside, keys, local=False)
    for admin in ("true", "false"):
        assert _status(callers, key) == 200
        file.write_text(re.sub("admin = .*", f"admin = {admin}", file.read_text()))
        keys.look()
    assert _status(callers, key) == 200
    assert inside.admins == [False, True, False]


def test_work_is_on_behalf_of_whoever_has_the_key(tmp_path: Path) -> None:
    """In the queue they take turns."""
    file, inside = tmp_path / "keys.toml", _Inside()
    keys = [new_key(file, name) for name in ("one", "other")]
    callers = Callers(inside, Keys(file), local=False)
    assert [_status(callers, key) for key in keys] == [200, 200]
    assert inside.asked_by == ["one", "other"]


@pytest.mark.parametrize(
    ("offered", "taken"), [([], None), (["chat"], None), (["chat", "evenkeel"], "evenkeel")]
)
def test_no_subprotocol_is_taken_that_was_not_offered(
    offered: list[str], taken: str | None
) -> None:
    async def accepts(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})

    scope = {"type": "websocket", "path": "/v1/online", "headers": [], "subprotocols": offered}
    told = told_by(Callers(accepts, None, local=True), scope)
    assert [message.get("subprotocol") for message in told] == [taken]


def test_what_failed_or_was_refused_is_not_under_way_any_more(
    tmp_path: Path, clock: SimpleNamespace
) -> None:
    """Of a key that may have one request at once."""
    inside = _Inside()
    key = new_key(tmp_path / "keys.toml", "it", concurrency=1, bytes_per_minute=60)
    callers = Callers(inside, Keys(tmp_path / "keys.toml"), local=False)
    inside.fails = True
    with pytest.raises(RuntimeError, match="broken"):
        _status(callers, key)
    inside.fails, inside.costs = False, 61
    assert [_status(callers, key) for _ in range(3)] == [200, 429, 429]
    clock.now_s = 2.5
    assert _status(callers, key) == 200


def test_a_file_of_keys_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text("a = " + "[" * 100_000)
    with pytest.raises(BadKeys, match="nested too deep"):
        read_keys(path)


@pytest.mark.parametrize("before", ["", "\ufeff"])
def test_keys_are_read_as_editors_write_them(tmp_path: Path, before: str) -> None:
    """Some with a mark of the encoding, and with two characters at the end of a line."""
    path = tmp_path / "keys.toml"
    key = new_key(path, "one")
    path.write_text(before + path.read_text("utf-8"), "utf-8", newline="\r\n")
    another = new_key(path, "another")
    keys = Keys(path)
    assert [found and found[0] for found in map(keys.find, (key, another))] == ["one", "another"]


@pytest.mark.parametrize("endless", ["/dev/zero", "/dev/full"])
def test_what_has_no_end_is_no_file_of_keys(endless: str) -> None:
    with pytest.raises(BadKeys, match=f"{endless}: more than 16,777,216 bytes"):
        read_keys(Path(endless))


def test_a_pipe_is_read_once_and_holds_nobody_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The time of a pipe changes when it is written to, and nobody writes to it again."""
    file, pipe = tmp_path / "keys.toml", tmp_path / "pipe"
    key = new_key(file, "it")
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(Keys, pipe)
        pipe.write_bytes(file.read_bytes())
        keys = [read.result(timeout=20), Keys(file)]
        pipe.replace(file)
        os.link(file, pipe)
        looked = pool.submit(lambda: [each.look() for each in keys])
        try:
            looked.result(timeout=20)
            assert [each.find(key) for each in keys] == [("it", ANY)] * 2
        finally:
            while not looked.done():  # whoever waits for a writer waits no longer
                os.close(os.open(file, os.O_RDWR))
                time.sleep(0.01)
    assert caplog.messages == [f"the keys stay as they were: {file} is gone, or is no plain file"]


def test_a_key_that_rests_for_an_hour_has_a_minutes_worth(clock: SimpleNamespace) -> None:
    account, clock.now_s = Account("it", _SMALL), 3600.0
    account.check()
    account.charge(600)
    with pytest.raises(TooManyRequests):
        account.check()
    clock.now_s += 3600.0
    account.renew(Key(sha256="0" * 64, bytes_per_minute=60))
    account.charge(60)
    with pytest.raises(TooManyRequests):  # nor has it bytes of the hour before its limit
        account.check()


def test_a_key_that_another_takes_the_place_of_leaves_it_what_it_has_used_up() -> None:
    """By the name of its table; or whoever is refused would get a new one."""
    found = iter([_SMALL, Key(sha256="1" * 64, bytes_per_minute=600)])
    keys: Any = SimpleNamespace(find=lambda presented: ("alice", next(found)))
    callers, scope = Callers(keys, keys, local=False), {"type": "http", "headers": []}
    assert callers._known(keys, scope) is callers._known(keys, scope)
