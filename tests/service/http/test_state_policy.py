"""A token of the same model from another runtime: refused, or gone on from if close will do, and
then the answer says so. Nothing else becomes good by that."""

from dataclasses import replace
from typing import Any

import pytest

from service.state import StateCodec
from tests.service.serving import ELSEWHERE, KEY, contents
from tests.service.writing import InkService, Session, online

_INK = {"text": "keel over\nand on", "format": "json"}


def _text_token(ink: InkService) -> str:
    body = {"model": "letters", "prompt": "It rained", "max_tokens": 9, "return_state": True}
    answer = ink.client.post("/v1/completions", json=body | {"seed": 3}).json()
    return str(answer["choices"][0]["state"])


def _ink_token(ink: InkService) -> str:
    return str(ink.write(text="even", seed=3, return_state=True)["state"])


def _complete(ink: InkService, **body: Any) -> Any:
    return ink.client.post("/v1/completions", json={"model": "letters", "max_tokens": 30} | body)


def _refused(answer: Any, status: int, code: str | None, param: str = "state") -> None:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == (code, param)


def test_a_text_goes_on_from_another_runtime_where_close_will_do(ink: InkService) -> None:
    token = _text_token(ink)
    moved = ink.moved("letters", token)
    _refused(_complete(ink, state=moved), 409, "state_mismatch")
    _refused(_complete(ink, state=moved, state_policy="exact"), 409, "state_mismatch")
    expected = _complete(ink, state=token).json()
    answer = _complete(ink, state=moved, state_policy="close", n=2).json()
    assert answer["state_runtime"] == ELSEWHERE
    # This replica computes as the one that made the token, whatever that says.
    assert answer["choices"][0]["text"] == expected["choices"][0]["text"]
    events = contents(_complete(ink, state=moved, state_policy="close", stream=True).text)
    assert [event["state_runtime"] for event in events] == [ELSEWHERE] * len(events)


def test_what_goes_on_has_tokens_of_this_runtime(ink: InkService) -> None:
    body = {"state": ink.moved("letters", _text_token(ink)), "return_state": True}
    state = _complete(ink, **body, state_policy="close").json()["choices"][0]["state"]
    answer = _complete(ink, state=state)
    assert answer.status_code == 200
    assert "state_runtime" not in answer.json()


@pytest.mark.parametrize("policy", ["exact", "close"])
def test_an_exact_token_is_told_of_by_nobody(ink: InkService, policy: str) -> None:
    answer = _complete(ink, state=_text_token(ink), state_policy=policy).json()
    assert "state_runtime" not in answer
    page = ink.write(**_INK, state=_ink_token(ink), state_policy=policy)
    assert "state_runtime" not in page


@pytest.mark.parametrize("field", ["state", "style"])
def test_a_hand_goes_on_from_another_runtime_where_close_will_do(
    ink: InkService, field: str
) -> None:
    token = _ink_token(ink)
    moved, seed = ink.moved("scrawl", token), {"seed": 5}
    _refused(ink.post(**_INK, **{field: moved}), 409, "state_mismatch", field)
    body = _INK | seed | {field: moved, "state_policy": "close"}
    page, expected = ink.write(**body), ink.write(**_INK, **seed, **{field: token})
    assert page["state_runtime"] == ELSEWHERE
    assert page["lines"] == expected["lines"]
    drawn = ink.post(**body | {"format": "svg"})
    assert drawn.headers["X-Evenkeel-State-Runtime"] == ELSEWHERE
    head, *rest = ink.events(**body)
    assert head["state_runtime"] == ELSEWHERE
    assert not any("state_runtime" in event for event in rest)


def test_ink_is_read_on_from_another_runtime_where_close_will_do(ink: InkService) -> None:
    def read(**body: Any) -> Any:
        return ink.client.post("/v1/read", json={"strokes": [[[0, 0], [30, 20], [60, 0]]]} | body)

    token = str(read(line_height=64, return_state=True).json()["state"])
    moved = ink.moved("squint", token)
    _refused(read(state=moved), 409, "state_mismatch")
    answer, expected = read(state=moved, state_policy="close").json(), read(state=token).json()
    assert answer["state_runtime"] == ELSEWHERE
    assert answer["characters"] == expected["characters"]
    assert "state_runtime" not in expected


@pytest.mark.parametrize(
    ("opening", "said"),
    [
        ({"model": "letters"}, {"write": 20}),
        ({"model": "scrawl", "text": "keel"}, {"write": 9}),
        ({"model": "squint"}, {"points": [[x, x % 7, float(x % 5 == 0)] for x in range(60)]}),
    ],
    ids=["text", "ink", "reader"],
)
def test_a_session_goes_on_from_another_runtime_where_close_will_do(
    ink: InkService, opening: dict[str, Any], said: dict[str, Any]
) -> None:
    seed = {} if opening["model"] == "squint" else {"seed": 4}
    with online(ink, **opening, **seed) as session:
        session.ask(**said)
        token = session.ask(state=True)["state"]
        expected = session.ask(**said)
    moved = ink.moved(opening["model"], token)
    with ink.client.websocket_connect("/v1/online") as socket:
        refused = Session(socket).ask(**opening, state=moved)
        assert refused["error"]["code"] == "state_mismatch"
    with ink.client.websocket_connect("/v1/online") as socket:
        session = Session(socket)
        opened = session.ask(**opening, state=moved, state_policy="close")
        assert opened["state_runtime"] == ELSEWHERE
        again = session.ask(**said)
        # The text of a reader is that of its session.
        assert again | {"text": ""} == expected | {"text": ""}


def test_a_session_is_in_a_hand_of_another_runtime_where_close_will_do(ink: InkService) -> None:
    token = _ink_token(ink)
    written = []
    for style in (token, ink.moved("scrawl", token)):
        with ink.client.websocket_connect("/v1/online") as socket:
            session, hand = Session(socket), {"style": style, "state_policy": "close"}
            session.ask(model="scrawl", text="keel", seed=4, **hand)
            written.append(session.ask(write=9)["points"])
    assert written[0] == written[1]


def test_close_is_no_other_model_and_no_other_key(ink: InkService) -> None:
    close = {"state_policy": "close"}
    token, hand = _text_token(ink), _ink_token(ink)
    served = ink.app.state.models["letters"]
    moment = served.codec.decode(token)
    newer = replace(served.artifact, digest="0" * 64)
    for runtime in (served.runtime.fingerprint, ELSEWHERE):
        other = StateCodec(KEY.encode(), newer, runtime, type(moment.edge)).encode(moment)
        _refused(_complete(ink, state=other, **close), 409, "state_mismatch")
    for of_ink in (hand, ink.moved("scrawl", hand)):
        _refused(_complete(ink, state=of_ink, **close), 409, "state_mismatch")
    for of_text in (token, ink.moved("letters", token)):
        _refused(ink.post(**_INK, state=of_text, **close), 409, "state_mismatch")
    strange = StateCodec(b"a key of somebody else", served.artifact, ELSEWHERE, type(moment.edge))
    for forged in (strange.encode(moment), token[:-1], token[:40] + token[41:]):
        _refused(_complete(ink, state=forged, **close), 400, None)


def test_there_is_no_other_policy(ink: InkService) -> None:
    refused = _complete(ink, state_policy="any")
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "state_policy"
