"""A stream comes whole and once, whatever happens to the connections it comes over."""

import inspect
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
from tenacity import nap, wait_none

from clients import replicas
from clients.arrived import Arrived
from clients.client import Client
from clients.errors import Refused, check, is_temporary
from clients.replicas import Replicas
from tests.clients.scripted import (
    Scripted,
    page_of,
    refusal,
    resume_text,
    scripted,
    streamed,
    text_of,
)

_END = {"choices": [{"index": 0, "text": "", "finish_reason": "length"}]}


@pytest.fixture
def hasty(service: Scripted, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """One that does not wait before it asks again."""
    monkeypatch.setattr(replicas, "_BACKOFF", wait_none())
    with Client([f"{service.url}/{i}" for i in range(3)]) as client:
        yield client


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Closes what a test made: sockets left open are found by whichever test runs later."""
    with ExitStack() as made:
        begin = Client.__init__

        def begun(self: Client, *given: Any, **more: Any) -> None:
            begin(self, *given, **more)
            made.enter_context(self)

        monkeypatch.setattr(Client, "__init__", begun)
        yield


@pytest.fixture(scope="module")
def service() -> Iterator[Scripted]:
    with scripted() as started:
        yield started


@pytest.fixture(autouse=True)
def _as_new(service: Scripted) -> None:
    service.requests.clear()
    service.headers.clear()
    service.script = []
    service.fingerprint = "fp"


def _texts(events: Iterator[dict[str, Any]]) -> tuple[list[str], int]:
    """The text of each choice, and how many have ended."""
    texts, ends = ["", ""], 0
    for choice in (choice for event in events for choice in event["choices"]):
        assert choice["text"] or choice.get("finish_reason")  # what was there is no news
        texts[choice["index"]] += choice["text"]
        ends += choice.get("finish_reason") is not None
    return texts, ends


def _page(events: Iterator[dict[str, Any]]) -> tuple[list[list[Any]], int, int]:
    """The points of each line, and how many heads and ends of lines came."""
    lines: list[list[Any]] = [[], [], []]
    heads = ends = 0
    for event in events:
        lines[event.get("line", 0)] += event.get("points", [])
        heads += "lines" in event
        ends += "finish_reason" in event
    return lines, heads, ends


def _length(service: Scripted, path: str, **body: Any) -> int:
    service.requests.clear()
    return len(service.answer(path, {"resume": True, "seed": 7} | body))


def test_a_text_cut_at_any_byte_comes_whole(service: Scripted, hasty: Client) -> None:
    went_on = 0
    for cut in range(_length(service, "completions")):
        service.requests.clear()
        service.script = [cut, cut // 2]
        assert _texts(hasty.complete(seed=7)) == ([text_of(7), ""], 1)
        went_on += any(request.get("state") for request in service.requests)
    assert went_on > 200


def test_ink_cut_at_any_byte_comes_whole(service: Scripted, hasty: Client) -> None:
    went_on = 0
    for cut in range(0, _length(service, "handwriting"), 5):
        service.requests.clear()
        service.script = [cut, cut // 2]
        assert _page(hasty.write(seed=7)) == (page_of(7), 1, 3)
        went_on += any(request.get("first_line") for request in service.requests)
    assert went_on > 50


def test_several_choices_come_again_from_their_beginning(service: Scripted, hasty: Client) -> None:
    for cut in range(0, _length(service, "completions", n=2, resume=False), 50):
        service.requests.clear()
        service.script = [cut]
        assert _texts(hasty.complete(seed=7, n=2)) == ([text_of(7, 0), text_of(7, 1)], 2)


def test_a_stream_cut_before_its_first_event_is_repeated_with_the_seed(
    service: Scripted, hasty: Client
) -> None:
    service.script = [0, 0]
    texts, _ = _texts(hasty.complete(model="m", prompt="Once"))
    seeds = [request["seed"] for request in service.requests]
    assert seeds == [seeds[0]] * 3
    assert 0 <= seeds[0] < 2**53  # which every reader of JSON keeps whole
    assert texts[0] == text_of(seeds[0])


@pytest.mark.parametrize("key", ["ek-\u00e9", "ek-1\nek-2", "ek-\x00"], ids=ascii)
def test_a_key_that_no_header_can_have_is_refused_at_once_and_not_told(key: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII") as refused:
        Client(["http://nowhere"], key)
    assert "ek-" not in str(refused.value)


def test_what_is_around_a_key_is_no_part_of_it(service: Scripted) -> None:
    _texts(Client([service.url], " ek-1\r\n").complete(seed=7))
    assert "Bearer ek-1\r\n" in service.headers[0]


def test_what_no_request_can_be_made_of_is_not_tried_again() -> None:
    assert not is_temporary(httpx.LocalProtocolError("illegal header"))


def test_an_error_event_with_a_token_is_gone_on_from(service: Scripted, hasty: Client) -> None:
    text = text_of(7)
    error = {"error": {"message": "time is up", "type": "server_error"}, "resume": resume_text(5)}
    part = {"choices": [{"index": 0, "text": text[:5]}]}
    service.script = [streamed([part, error, "[DONE]"])]
    assert _texts(hasty.complete(seed=7)) == ([text, ""], 1)
    assert service.requests[1]["state"] == "5"
    assert service.requests[1]["seed"] is None


@pytest.mark.parametrize("format_", ["json", "svg"])
def test_the_tail_of_a_page_comes_after_an_error_event(
    service: Scripted, hasty: Client, format_: str
) -> None:
    head = {"lines": ["a"] * 3}
    error = {"error": _STOPPED, "resume": {"state": "s", "seed": None, "first_line": 0}}
    service.script = [streamed([head, error, "[DONE]"])]
    *_, tail = hasty.write(seed=7, format=format_)
    assert tail == {"usage": {}}


def test_null_is_the_default_of_what_has_one_here(service: Scripted, hasty: Client) -> None:
    service.script = [0]
    texts, _ = _texts(hasty.complete(prompt="Once", seed=None, state=None, n=None))
    seeds = [request["seed"] for request in service.requests]
    assert seeds == [seeds[0]] * 2
    assert texts[0] == text_of(seeds[0])


_STOPPED = {"message": "the service is stopping", "type": "server_error"}


def test_a_token_that_was_not_asked_for_is_of_one_choice_alone(
    service: Scripted, hasty: Client
) -> None:
    part = {"choices": [{"index": 0, "text": text_of(7)[:5]}]}
    error = {"error": _STOPPED, "index": 0, "resume": resume_text(5)}
    service.script = [streamed([part, error, "[DONE]"])]
    texts = ([text_of(7, 0), text_of(7, 1)], 2)
    assert _texts(hasty.complete(seed=7, n=2)) == texts
    assert [request["n"] for request in service.requests] == [2, 2]


def test_a_drawing_is_asked_for_again_from_its_first_line(service: Scripted, hasty: Client) -> None:
    begun = [{"lines": ["a"] * 3}, {"line": 0, "points": page_of(7)[0]}]
    error = {"error": _STOPPED, "resume": {"state": "s", "seed": None, "first_line": 1}}
    service.script = [streamed([*begun, {"line": 0, "finish_reason": "stop"}, error, "[DONE]"])]
    assert _page(hasty.write(seed=7, format="svg")) == (page_of(7), 1, 3)
    assert [r.get("first_line", 0) for r in service.requests] == [0, 0]


def test_an_error_of_the_request_is_told_at_once(service: Scripted) -> None:
    service.script = [refusal(400, kind="invalid_request_error")]
    with pytest.raises(Refused, match="told 400"):
        list(Client([service.url]).complete())
    assert len(service.requests) == 1
    wrong = {"error": {"message": "no such state", "type": "invalid_request_error"}}
    service.script = [streamed([wrong])]
    with pytest.raises(Refused, match="no such state"):
        list(Client([service.url]).complete())
    assert len(service.requests) == 2


def test_one_that_says_when_to_ask_again_is_asked_no_sooner(
    service: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept_s = list[float]()
    monkeypatch.setattr(nap, "time", SimpleNamespace(sleep=slept_s.append))
    service.script = [refusal(503, "20")]
    assert _texts(Client([service.url]).complete(seed=7))[0][0] == text_of(7)
    assert slept_s == [pytest.approx(20)]
    assert len(service.requests) == 2


def test_another_replica_is_asked_at_once(service: Scripted) -> None:
    service.script = [refusal(503, "30")]
    began_s = time.monotonic()
    client = Client([service.url, f"{service.url}/other"])
    assert _texts(client.complete(seed=7))[0][0] == text_of(7)
    assert time.monotonic() - began_s < 15
    assert "/other" in service.headers[1]
    assert _texts(client.complete(seed=7))[0][0] == text_of(7)
    assert "/other" in service.headers[2]


def test_streams_that_share_a_client_leave_the_replica_that_failed_them(service: Scripted) -> None:
    client = Client([service.url, f"{service.url}/other"])
    service.script = [streamed([{"choices": [{"index": 0, "text": text_of(7)[:2]}]}])] * 2
    streams = [client.complete(seed=7), client.complete(seed=7)]
    texts = [next(stream)["choices"][0]["text"] for stream in streams]
    texts = [text + _texts(s)[0][0] for text, s in zip(texts, streams, strict=True)]
    assert texts == [text_of(7)] * 2
    assert ["/other" in head for head in service.headers] == [False, False, True, True]


def test_a_dead_replica_is_left_for_another(service: Scripted) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    client = Client([f"http://127.0.0.1:{port}", service.url])
    assert _page(client.write(seed=7))[0] == page_of(7)


def test_patience_ends(service: Scripted) -> None:
    service.script = [refusal(503)] * 100
    with pytest.raises(Refused, match="told 503"):
        list(Client([service.url], patience_s=0.3).complete())
    assert 2 <= len(service.requests) < 50
    service.script = [10] * 100
    with pytest.raises(httpx.TransportError):
        list(Client([service.url], patience_s=0).complete())
    service.script = [streamed([{"choices": [{"index": 0, "text": "0"}]}])] * 100  # no news
    with pytest.raises(httpx.TransportError):
        list(Client([service.url], patience_s=0.1).complete(seed=7, n=2))


def test_a_pause_that_would_outlast_the_patience_is_not_begun(service: Scripted) -> None:
    service.script = [refusal(503, "30")] * 4
    began_s = time.monotonic()
    with pytest.raises(Refused, match="told 503"):
        list(Client([service.url, f"{service.url}/other"], patience_s=2).complete())
    assert time.monotonic() - began_s < 15
    assert len(service.requests) == 2  # each replica was asked


def test_patience_begins_again_with_all_that_is_new(service: Scripted) -> None:
    part = [{"choices": [{"index": 0, "text": c, "resume": resume_text(i + 1)}]}
            for i, c in enumerate(text_of(7))]  # fmt: skip
    service.script = [streamed([one]) for one in part]
    client = Client([service.url, f"{service.url}/other"], patience_s=0)
    assert _texts(client.complete(seed=7)) == ([text_of(7), ""], 1)
    assert len(service.requests) == len(part) + 1


def test_another_model_does_not_go_on_with_the_text_of_the_first(service: Scripted) -> None:
    service.script = [streamed([{"system_fingerprint": "old", **_END, "id": "x"}])]
    with pytest.raises(Refused, match="old to fp"):
        list(Client([service.url]).complete(seed=7))


def test_another_runtime_goes_on_where_close_will_do(service: Scripted) -> None:
    begun = [{"index": 0, "text": text_of(7)[:4], "resume": resume_text(4)}]
    event = {"system_fingerprint": "fp-elsewhere-avx2", "choices": begun}
    service.fingerprint = "fp-here-avx2"
    service.script = [streamed([event])]
    texts = _texts(Client([service.url]).complete(seed=7, state_policy="close"))
    assert "".join(texts[0]) == text_of(7)
    for policy in (None, "exact"):
        service.script = [streamed([event])]
        with pytest.raises(Refused, match="fp-elsewhere-avx2 to fp-here-avx2"):
            list(Client([service.url]).complete(seed=7, state_policy=policy))
    service.script = [streamed([event | {"system_fingerprint": "old-elsewhere-avx2"}])]
    with pytest.raises(Refused, match="old to fp"):
        list(Client([service.url]).complete(seed=7, state_policy="close"))


@pytest.mark.parametrize("status", [400, 401, 404, 408, 409, 413, 429, 500, 503, 504])
def test_what_may_succeed_another_time_is_told_from_what_will_not(status: int) -> None:
    response = httpx.Response(status, request=httpx.Request("POST", "http://one"))
    with pytest.raises(Refused) as refused:
        check(response)
    assert is_temporary(refused.value) is (status in {408, 429, 500, 503, 504})


def test_a_replica_is_left_alone_for_a_minute_at_most() -> None:
    alone = Replicas(["one", "two"], patience_s=0)
    attempts = alone.attempts()
    attempt, asked = next(attempts)
    with attempt:
        raise Refused("an hour, please", temporary=True, pause_s=3600)
    assert (asked, next(attempts)[1]) == ("one", "two")
    assert alone._free_at_s["one"] <= time.monotonic() + 60


def test_who_goes_on_from_a_token_has_its_seed(service: Scripted) -> None:
    service.script = [streamed([_END, "[DONE]"])] * 2
    for body in ({"state": "3"}, {}):
        list(Client([service.url]).complete(**body))
    assert ["seed" in request for request in service.requests] == [False, True]


@pytest.mark.parametrize(
    ("body", "resume"),
    [
        ({"prompt": "a"}, True),
        ({"prompt": ["a", "b"]}, False),
        ({"n": 2}, False),
        ({"format": "svg"}, False),
        ({"format": "json"}, True),
    ],
    ids=str,
)
def test_tokens_are_asked_for_where_one_goes_on_from_them(
    body: dict[str, Any], resume: bool
) -> None:
    assert Arrived(body).request()["resume"] is resume


@pytest.mark.parametrize(
    ("verb", "first"),
    [("complete", {"choices": [{"index": 0, "text": "0"}]}), ("write", {"lines": ["a"] * 3})],
)
def test_a_stream_goes_on_with_the_model_that_began_it(
    service: Scripted, verb: str, first: dict[str, Any]
) -> None:
    """Where none is named each replica chooses, and one may prefer another precision."""
    service.script = [streamed([{"model": "that", "system_fingerprint": "fp"} | first])]
    list(getattr(Client([service.url]), verb)(seed=7))
    assert [request.get("model") for request in service.requests] == [None, "that"]


def test_the_key_is_sent_as_a_bearer(service: Scripted) -> None:
    list(Client([service.url], "secret").complete(seed=7))
    assert "\r\nAuthorization: Bearer secret\r\n" in service.headers[0]
    list(Client([service.url]).complete(seed=7))
    assert "authorization" not in service.headers[1].lower()


@pytest.mark.parametrize("logprobs", [0, 1])  # with 0 there are those of what was drawn
def test_logprobs_are_refused_rather_than_cut_wrongly(service: Scripted, logprobs: int) -> None:
    with pytest.raises(ValueError, match="log-probabilities"):
        list(Client([service.url]).complete(logprobs=logprobs))


def test_a_long_prompt_is_given_the_time_it_takes_to_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing comes meanwhile; whoever asked again would have it read from its beginning."""
    with scripted() as service:  # of its own: what it answers too late counts in no other test
        answer = service.answer

        def slow(head: str, body: dict[str, Any]) -> bytes:
            time.sleep(0.15)
            return answer(head, body)

        monkeypatch.setattr(service, "answer", slow)
        asked = {"timeout_s": 0.05, "patience_s": 0}
        assert list(Client([service.url], **asked).complete(prompt="a" * 1000))
        with pytest.raises(httpx.ReadTimeout):
            list(Client([service.url], **asked).complete(prompt="a"))


def test_a_connection_is_let_go_before_the_service_closes_it() -> None:
    closes_after_s = inspect.signature(uvicorn.Config).parameters["timeout_keep_alive"].default
    for url in "http://127.0.0.1:1", "http://elsewhere.example":
        with Client([url]) as client:
            pool = client._http._transport._pool  # type: ignore[attr-defined]
            assert pool._keepalive_expiry < closes_after_s
