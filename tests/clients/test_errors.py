"""What a refusal says, whether it is final, and who is asked next."""

import json
from typing import Any

import httpx
import pytest
import typer
from tenacity import Retrying

from clients.asking import asking
from clients.client import Client
from clients.errors import Refused, check, is_temporary
from clients.replicas import begin_again
from tests.clients.scripted import answered, refusal, scripted, streamed, text_of


@pytest.mark.parametrize(
    "told",
    [{"error": "bad gateway"}, ["bad"], {"error": None}, {"error": {"message": None}}, "bad", {}],
)
def test_what_is_no_error_of_the_service_is_told_by_its_status(told: Any) -> None:
    """As a proxy in front of it has its own."""
    response = httpx.Response(502, json=told, request=httpx.Request("POST", "http://one/v1"))
    with pytest.raises(Refused, match="502 Bad Gateway from http://one/v1"):
        check(response)


def test_a_redirection_says_where_to() -> None:
    request = httpx.Request("GET", "http://one/v1/models")
    response = httpx.Response(308, headers={"Location": "https://one/v1/models"}, request=request)
    told = (
        r"308 Permanent Redirect from http://one/v1/models, which sends to https://one/v1/models$"
    )
    with pytest.raises(Refused, match=told):
        check(response)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nothing_goes_where_an_answer_sends_to(status: int) -> None:
    """A key, or what was written, is for whom it was meant for alone."""
    with scripted() as service, scripted() as other, Client([service.url], "ek-1") as client:
        to = f"HTTP/1.1 {status} No\r\nlocation: {other.url}/v1/completions\r\n"
        service.script = [f"{to}connection: close\r\n\r\n".encode()] * 2
        with pytest.raises(Refused, match=f"which sends to {other.url}/v1/completions$"):
            list(client.complete(prompt="mine"))
        with pytest.raises(Refused, match=f"which sends to {other.url}/v1/completions$"):
            client.models()
    assert (len(service.headers), other.headers) == (2, [])


@pytest.mark.parametrize(
    ("after", "pause_s"),
    [("7", 7), ("Wed, 21 Oct 2026 07:28:00 GMT", 0), ("-1", 0), ("", 0), ("\xb2", 0)],
)
def test_seconds_to_wait_are_taken_and_no_date_as_a_proxy_tells(after: str, pause_s: float) -> None:
    request = httpx.Request("POST", "http://one/v1")
    with pytest.raises(Refused) as refused:
        check(
            httpx.Response(
                503, headers=[(b"Retry-After", after.encode("latin-1"))], request=request
            )
        )
    assert (refused.value.temporary, refused.value.pause_s) == (True, pause_s)


@pytest.mark.parametrize(
    ("kind", "temporary"),
    [
        ({"type": "server_error"}, True),
        ({"type": "rate_limit_error"}, True),
        ({}, True),  # as of a proxy
        ({"type": "invalid_request_error"}, False),
    ],
)
def test_of_errors_in_a_stream_only_those_of_the_request_are_final(
    kind: dict[str, str], temporary: bool
) -> None:
    assert Refused.by({"error": {"message": "no"} | kind}).temporary is temporary


@pytest.mark.parametrize("urls", ["http://one", [], ()])
def test_a_client_wants_a_list_of_addresses(urls: Any) -> None:
    with pytest.raises(ValueError, match="a list of one or more"):
        Client(urls)


def test_a_slash_at_the_end_of_an_address_is_none_of_the_path() -> None:
    with scripted() as service, Client([f"{service.url}/"]) as client:
        list(client.complete(seed=7))
    assert service.headers[0].startswith("POST /v1/completions ")


def test_a_client_that_was_left_keeps_no_connection() -> None:
    with Client(["http://127.0.0.1:9"], patience_s=0) as client:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        client.ask("GET", "/v1/models")


def test_what_is_damaged_on_the_way_is_asked_of_another_replica() -> None:
    """A proxy may compress, although a stream asks it not to."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
    damaged = head + b"content-length: 3\r\n\r\nno!"
    with scripted() as service, Client([service.url, f"{service.url}/other"]) as client:
        service.script = [damaged]
        choices = [choice for event in client.complete(seed=7) for choice in event["choices"]]
    assert "".join(choice["text"] for choice in choices) == text_of(7)
    assert [head.split("/")[1] for head in service.headers] == ["v1", "other"]
    assert all("\r\nAccept-Encoding: identity\r\n" in head for head in service.headers)


@pytest.mark.parametrize("charset", ["iso-8859-1", "hex", "no-such"])
def test_a_stream_is_utf_8_whatever_a_proxy_says_of_it(charset: str) -> None:
    """And whatever mark of order it puts before it."""
    texts = ["na\u00efve ", "\N{OWL}"]
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset={charset}\r\n"
    events = [{"choices": [{"index": 0, "text": text, "finish_reason": "stop"}]} for text in texts]
    told = [*(json.dumps(event, ensure_ascii=False) for event in events), "[DONE]"]
    body = "\ufeff" + "".join(f"data: {data}\n\n" for data in told)
    with scripted() as service, Client([service.url], patience_s=0) as client:
        service.script = [f"{head}connection: close\r\n\r\n{body}".encode()]
        choices = [choice for event in client.complete(seed=7) for choice in event["choices"]]
    assert [choice["text"] for choice in choices] == texts


def test_a_page_that_a_proxy_puts_into_an_event_is_a_cut() -> None:
    """Where what it had the stream from is gone, and the head has been sent."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    event = json.dumps({"choices": [{"index": 0, "text": text_of(7)[:4]}]})
    page = "<html>\n\n<h1>502 Bad Gateway</h1>\n\n</html>\n"
    for cut in range(1, len(event), 9):
        body = f"data: {event}\n\ndata: {event[:cut]}{page}"
        with scripted() as service, Client([service.url, f"{service.url}/other"]) as client:
            service.script = [head + body.encode()]
            events = list(client.complete(seed=7))
        texts = [choice["text"] for event in events for choice in event["choices"]]
        assert ("".join(texts), len(service.headers)) == (text_of(7), 2)


def test_a_question_is_put_to_another_replica_when_the_first_fails() -> None:
    with scripted() as service, Client([service.url, f"{service.url}/other"]) as client:
        service.script = [refusal(503), b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"]
        client.ask("GET", "/v1/models")
    asked = [head.partition(" HTTP")[0] for head in service.headers]
    assert asked == ["GET /v1/models", "GET /other/v1/models"]


def test_once_something_came_what_fails_is_a_first_failure() -> None:
    attempt = next(iter(Retrying()))
    attempt.retry_state.attempt_number = 7
    begin_again(attempt)
    assert attempt.retry_state.attempt_number == 1


def test_what_is_no_address_is_asked_once() -> None:
    assert is_temporary(httpx.ConnectError("refused"))
    assert not is_temporary(httpx.UnsupportedProtocol("no http://"))


def test_an_error_without_words_is_told_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), asking("http://one", None):
        raise httpx.ReadError("")
    assert capsys.readouterr().err == "evenkeel: no answer from http://one: ReadError\n"


@pytest.mark.parametrize("message", ["", None, ["bad"]])
def test_an_error_whose_message_is_none_is_told_as_an_error(message: Any) -> None:
    error = {"error": {"message": message, "type": "invalid_request_error"}}
    with scripted() as service, Client([service.url]) as client:
        service.script = [streamed([error]), answered(error).replace(b"200 OK", b"404 Gone")]
        with pytest.raises(Refused, match=r"^the answer ended in an error$"):
            list(client.complete())
        with pytest.raises(Refused, match=f"^404 Gone from {service.url}/v1/models$"):
            client.models()
