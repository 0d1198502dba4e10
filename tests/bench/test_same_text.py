"""The check that peers write the service's text can fail."""

from contextlib import AbstractContextManager, nullcontext

import pytest

from bench.peers import same_text
from bench.peers.same_text import CASES, PLAIN_PREFIX_CHARACTERS, compare
from bench.target import PEERS, SERVERS, Target

_TEXT = "".join(map(chr, range(32, 127)))


def test_the_same_text_passes() -> None:
    """Nothing is raised for any peer."""
    for name in ("plain", "litserve", "bentoml"):
        compare(name, 1, _TEXT, _TEXT)


@pytest.mark.parametrize(
    "other", [_TEXT[:-1], _TEXT[:-1] + "~~", "", _TEXT[:60] + "?" + _TEXT[61:]]
)
def test_a_peer_on_the_same_graph_may_not_differ_anywhere(other: str) -> None:
    """A byte less, a byte more, nothing at all, another byte."""
    for name in ("litserve", "litserve-stream", "bentoml"):
        with pytest.raises(AssertionError, match=f"{name}, seed 1"):
            compare(name, 1, _TEXT, other)


def test_pytorch_may_part_late_but_not_early() -> None:
    """Its rounding may move one draw in a long while."""
    late, early = PLAIN_PREFIX_CHARACTERS, PLAIN_PREFIX_CHARACTERS - 1
    compare("plain", 1, _TEXT, _TEXT[:late] + "\n" + _TEXT[late + 1 :])
    with pytest.raises(AssertionError, match=f"after {early} characters"):
        compare("plain", 1, _TEXT, _TEXT[:early] + "\n" + _TEXT[early + 1 :])


def test_a_peer_is_asked_three_times_in_each_of_its_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def texts(target: Target, *, streamed: bool) -> dict[int, str]:
        asked.append((target.name, streamed))
        return dict.fromkeys(CASES, _TEXT)

    monkeypatch.setattr(same_text, "_texts", texts)
    service, peer = (Target(name, 1, server=SERVERS[name]) for name in ("service", "plain"))
    assert same_text.same_text(service, peer) == 6 * len(CASES)
    assert asked == [("service", False), *3 * [("plain", False), ("plain", True)]]


def test_what_a_peer_writes_is_held_against_what_the_service_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def texts(target: Target, *, streamed: bool) -> dict[int, str]:
        return dict.fromkeys(CASES, _TEXT) | ({6: "another"} if target.name == "bentoml" else {})

    monkeypatch.setattr(same_text, "_texts", texts)
    service, peer = (Target(name, 1, server=SERVERS[name]) for name in ("service", "bentoml"))
    with pytest.raises(AssertionError, match="bentoml, seed 6: 'another' after 0 characters"):
        same_text.same_text(service, peer)


@pytest.mark.parametrize(("named", "asked"), [(["plain", "bentoml"], None), ([], PEERS)])
def test_those_are_asked_that_are_named_or_all(
    named: list[str],
    asked: tuple[str, ...] | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And of each it is told how many texts were compared."""
    launched = list[str]()

    def launch(name: str) -> AbstractContextManager[Target]:
        launched.append(name)
        return nullcontext(Target(name, 1))

    monkeypatch.setattr(same_text, "launch", launch)
    monkeypatch.setattr(same_text, "same_text", lambda service, peer: len(peer.name))
    same_text.main(named)
    assert launched == ["service", *(asked or named)]
    told = [f"{name}: the same text {len(name)} times" for name in asked or named]
    assert capsys.readouterr().out.splitlines() == told
