"""What a key has used up, by a clock that the test moves."""

from types import SimpleNamespace

import pytest

from service.errors import TooManyRequests
from service.http.callers import Account
from service.http.keys import Key


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


@pytest.mark.parametrize(("now_s", "retry_after_s"), [(0.0, 3), (1.0, 2), (2.0, 1)])
def test_until_there_is_a_byte_again_it_says_when(
    clock: SimpleNamespace, now_s: float, retry_after_s: int
) -> None:
    """With none left, neither more nor less, as well."""
    account, clock.now_s = _account(clock), now_s
    with pytest.raises(TooManyRequests) as refused:
        account.check()
    assert refused.value.retry_after_s == retry_after_s


def test_the_same_seconds_fill_it_once(clock: SimpleNamespace) -> None:
    account, clock.now_s = _account(clock), 2.5
    account.check()
    account.charge(5)
    with pytest.raises(TooManyRequests):
        account.check()
    clock.now_s = 3.0
    account.check()
