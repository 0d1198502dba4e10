"""`/asyncapi.json` describes every message of `/v1/online`, said or answered."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from websockets.sync.client import connect

from service.http.messages import describe_messages
from service.ink.kind import INK
from service.kinds import KINDS
from service.reader.kind import READER
from service.text.kind import TEXT
from tests.kinds.waves.service import WAVES
from tests.service.serving import listening, settings
from tests.service.writing import InkService, online

_SESSIONS: list[tuple[str, list[tuple[str, dict[str, Any]]], list[str]]] = [
    (
        "text",
        [
            ("TextOpening", {"model": "letters", "seed": None}),
            ("TextSaid", {"bytes": [82, 79]}),
            ("TextSaid", {"write": 3, "bytes": None}),
        ],
        ["Opened", "Distribution", "BytesWritten"],
    ),
    (
        "ink",
        [
            (
                "InkOpening",
                {"model": "scrawl", "text": "ab", "style": "upright", "origin": [9, 9.5]},
            ),
            ("InkSaid", {"point": [10, 10, 0]}),
            ("InkSaid", {"write": 2}),
        ],
        ["Opened", "Mixture", "PointsWritten"],
    ),
]


@pytest.fixture(scope="module")
def document(ink: InkService) -> dict[str, Any]:
    return dict(ink.client.get("/asyncapi.json").json())


def _fits(document: dict[str, Any], name: str, message: Any) -> bool:
    payload = document["components"]["messages"][name]["payload"]
    schema = {"allOf": [payload], "components": document["components"]}
    return Draft7Validator(schema).is_valid(message)


@pytest.mark.parametrize(("said", "answers"), [s[1:] for s in _SESSIONS], ids=["text", "ink"])
def test_a_session_is_made_of_described_messages(
    ink: InkService, document: dict[str, Any], said: list[tuple[str, Any]], answers: list[str]
) -> None:
    with online(ink) as session:
        for (name, message), expected in zip(said, answers, strict=True):
            assert _fits(document, name, message)
            assert _fits(document, expected, session.ask(**message))
        wrong = {"surprise": 1}
        assert not _fits(document, name, wrong)
        assert _fits(document, "Failed", session.ask(**wrong))


def test_where_a_session_stands_is_described_and_what_goes_on_from_there(
    ink: InkService, document: dict[str, Any]
) -> None:
    """At another runtime too, and with bytes that a completion held back."""
    half = {"logit_bias": {"226": 100}, "max_tokens": 1, "seed": 4, "return_state": True}
    begun = ink.client.post("/v1/completions", json={"model": "letters", "prompt": "a"} | half)
    moved = ink.moved("letters", str(begun.json()["choices"][0]["state"]))
    with online(ink) as session:
        opened = session.ask(model="letters", state=moved, state_policy="close")
        stands = session.ask(state=True)
        failed = session.ask(state=False)
    assert {"undecided", "state_runtime"} <= opened.keys()
    for name, told in (("Opened", opened), ("Standing", stands), ("Failed", failed)):
        assert _fits(document, name, told), (name, told)
    assert "state" in failed
    assert _fits(document, "StateAsked", {"state": True})
    assert not _fits(document, "StateAsked", {"state": False})


def test_how_a_session_is_closed_is_described(letters: Path, document: dict[str, Any]) -> None:
    with ExitStack() as stack:
        with listening(settings(letters)) as (url, _):
            address = url.replace("http", "ws") + "/v1/online"
            socket = stack.enter_context(connect(address))
            socket.send(json.dumps({"model": "letters"}))
            socket.recv()
        told = json.loads(socket.recv(timeout=20))
    assert told.keys() == {"closing", "state"}
    assert _fits(document, "Closing", told)


def test_every_message_is_said_or_answered() -> None:
    """What callers say the service receives, what it answers it sends."""
    # Other tests of this process may have made a kind of their own known.
    document = describe_messages({kind.name: kind for kind in (TEXT, INK, READER)})
    channel, operations = document["channels"]["online"], document["operations"]
    assert channel["address"] == "/v1/online"
    hears, tells = (
        {reference["$ref"].rpartition("/")[2] for reference in operations[name]["messages"]}
        for name in ("hear", "answer")
    )
    assert [operations[name]["action"] for name in ("hear", "answer")] == ["receive", "send"]
    named = {"$ref": "#/channels/online"}
    assert [operations[name]["channel"] for name in ("hear", "answer")] == [named] * 2
    assert hears == {"StateAsked", "TextSaidFrame", "InkSaidFrame"} | {
        kind + part for kind in ("Text", "Ink", "Reader") for part in ("Opening", "Said")
    }
    assert tells == {
        *("Opened", "Standing", "Closing", "Failed", "Distribution", "BytesWritten", "Mixture"),
        *("PointsWritten", "ReadSoFar", "Numbers"),
    }
    assert channel["messages"].keys() == hears | tells
    assert all(told.get("summary") for told in document["components"]["messages"].values())


def test_a_binary_message_is_told_with_its_field_and_its_numbers(document: dict[str, Any]) -> None:
    messages = document["components"]["messages"]
    for name, field, numbers in (
        ("InkSaidFrame", "point", "float32"), ("TextSaidFrame", "bytes", "uint8"),
    ):  # fmt: skip
        assert f"`{field}` alone, as {numbers}" in messages[name]["summary"]
        assert messages[name]["contentType"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("TextOpening", {}),
        ("TextOpening", {"model": "letters", "text": "a"}),
        ("TextSaid", {"bytes": [256]}),
        ("TextSaid", {"bytes": []}),
        ("TextSaid", {"write": 0}),
        ("InkOpening", {"model": "scrawl", "bias": 6}),
        ("InkSaid", {"point": [1, 2]}),
        ("InkSaid", {"write": 4097}),
    ],
)
def test_a_broken_rule_is_one_of_the_document_too(
    document: dict[str, Any], name: str, message: dict[str, Any]
) -> None:
    assert not _fits(document, name, message)


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    found = _references(document)
    assert len(found) > 20
    for reference in found:
        node: Any = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if "$ref" in node else []
        return own + [r for child in node.values() for r in _references(child)]
    return [r for child in node for r in _references(child)] if isinstance(node, list) else []


def test_another_kind_of_model_is_described_as_well() -> None:
    document = describe_messages({"waves": WAVES})
    assert _fits(document, "WaveSaid", {"values": [0.5]})
    assert not _fits(document, "WaveSaid", {"values": "a"})


def test_kinds_may_have_messages_of_the_same_name() -> None:
    document = describe_messages(KINDS | {WAVES.name: WAVES})  # both have a Gaussian
    for reference in _references(document):
        node: Any = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]


def test_it_is_made_once(ink: InkService, monkeypatch: pytest.MonkeyPatch) -> None:
    """To make it takes the event loop, which everybody waits for."""
    first = ink.client.get("/asyncapi.json").content
    monkeypatch.setattr("service.http.messages.describe_messages", None)
    assert ink.client.get("/asyncapi.json").content == first
