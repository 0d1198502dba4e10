"""`/asyncapi.json` describes every message of `/v1/online`, said or answered."""

from typing import Any

import pytest
from jsonschema import Draft7Validator

from service.http.messages import describe_messages
from service.kinds import KINDS
from tests.kinds.waves.service import WAVES
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
