"""What OpenAI's clients send out of habit: nulls for defaults, integers with a point, options that
change nothing here."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from service.ink.schemas import HandwritingRequest, StyleRequest
from service.text.schemas import CompletionRequest
from service.text.tokenizer import TokenizeRequest
from tests.service.serving import Service, listening, settings
from tests.service.writing import InkService

_PLAIN = {"prompt": "Zoë", "max_tokens": 20, "seed": 3}


def _optional(request: type[Any]) -> list[str]:
    return [name for name, field in request.model_fields.items() if not field.is_required()]


@pytest.mark.parametrize("field", sorted(set(_optional(CompletionRequest)) - {"model"}))
def test_null_is_the_default(scan: Service, field: str) -> None:
    given = {name: value for name, value in _PLAIN.items() if name != field}
    if field == "seed":  # whose default is another seed each time
        assert scan.text(**given, temperature=0) == scan.text(**given, temperature=0, seed=None)
    else:
        assert scan.text(**given) == scan.text(**given | {field: None})


def test_nulls_are_the_defaults_of_ink_too(ink: InkService) -> None:
    page = {"text": "a null", "seed": 2}
    nulls = dict.fromkeys(set(_optional(HandwritingRequest)) - page.keys())
    plain, given = ink.post(**page), ink.post(**page | nulls)
    assert (given.status_code, given.content) == (200, plain.content)
    strokes = {"strokes": [[[i, i % 5] for i in range(40)]], "text": "ab"}
    assert _optional(StyleRequest) == ["model"]
    answer = ink.client.post("/v1/styles", json=strokes | {"model": None})
    assert answer.status_code == 200
    assert ink.post(**page, style=strokes | {"text": None}).status_code == 400


def test_null_in_an_option_of_an_option_is_its_default(scan: Service) -> None:
    for options in ({}, {"include_usage": None}, {"include_obfuscation": None}):
        events = scan.events(**_PLAIN, stream_options=options)
        assert all("usage" not in event for event in events)


def test_a_required_field_that_is_null_is_missing(scan: Service, ink: InkService) -> None:
    for answer in (
        ink.post(text=None),
        ink.client.post("/tokenize", json={"prompt": None}),
    ):
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].endswith(" is missing")


def test_a_model_that_is_null_is_none_of_several(scan: Service) -> None:
    error = scan.post(model=None)
    assert error.status_code == 404
    assert error.json()["error"]["message"].startswith("model is missing; those that can do this:")


@pytest.mark.parametrize("value", [None, 1])
def test_an_unknown_field_is_an_error_whatever_its_value(ink: InkService, value: Any) -> None:
    strokes = {"strokes": [[[0, 0], [9, 9]]], "text": "a"}
    for answer in (
        ink.client.post("/v1/completions", json={"model": "letters", "surprise": value}),
        ink.client.post("/v1/completions", json={
            "model": "letters", "stream": True, "stream_options": {"surprise": value}}),
        ink.post(text="a", surprise=value),
        ink.post(text="a", style=strokes | {"surprise": value}),
        ink.client.post("/v1/styles", json=strokes | {"surprise": value}),
        ink.client.post("/tokenize", json={"prompt": "a", "surprise": value}),
    ):  # fmt: skip
        assert answer.status_code == 400
        assert "surprise" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "field", ["max_tokens", "n", "seed", "top_k", "logprobs", "best_of", "presence_penalty"]
)
def test_an_integer_may_be_written_with_a_point(scan: Service, field: str) -> None:
    whole = {"max_tokens": 1328 % 30, "presence_penalty": 0}.get(field, 1)
    assert scan.choice(**_PLAIN | {field: whole}) == scan.choice(**_PLAIN | {field: float(whole)})


def test_integers_of_ink_may_be_written_with_a_point(ink: InkService) -> None:
    page = {"text": "a point", "seed": 2, "width": 400}
    pointed = page | {"seed": 2.0, "width": 400.0}
    assert ink.post(**page).content == ink.post(**pointed).content


@pytest.mark.parametrize("value", [1.5, 2.0**53 + 2, 1e300, -1.0, "12", True])
def test_what_is_no_integer_is_still_refused(scan: Service, ink: InkService, value: Any) -> None:
    assert scan.post(max_tokens=value).status_code == 400
    assert ink.post(text="a", width=value).status_code == 400


@pytest.mark.parametrize("stop", ["", [""], ["", ""], []])
def test_an_empty_stop_string_stops_nothing(scan: Service, stop: Any) -> None:
    assert scan.choice(**_PLAIN, stop=stop) == scan.choice(**_PLAIN)


def test_an_empty_stop_string_leaves_the_others_at_work(scan: Service) -> None:
    text = scan.text(**_PLAIN)
    character = next(c for c in text[3:] if c != "\ufffd")
    stopped = scan.choice(**_PLAIN, stop=["", character])
    assert stopped["finish_reason"] == "stop"
    assert stopped["text"] == text.partition(character)[0]


def test_options_that_change_nothing_are_read(scan: Service) -> None:
    plain = [event["choices"] for event in scan.events(**_PLAIN)]
    for options in ({"include_obfuscation": True}, {"include_obfuscation": False}):
        assert [e["choices"] for e in scan.events(**_PLAIN, stream_options=options)] == plain
    for same in ({"metadata": {"run": "7"}}, {"metadata": {}}, {"user": "somebody"}):
        assert scan.choice(**_PLAIN, **same) == scan.choice(**_PLAIN)
    assert scan.post(metadata={"run": 7}).status_code == 400


def test_the_best_of_as_many_as_are_shown_are_all_of_them(scan: Service) -> None:
    plain = scan.complete(**_PLAIN, n=3)["choices"]
    for best_of in (1, 3, 3.0):
        assert scan.complete(**_PLAIN, n=3, best_of=best_of)["choices"] == plain


@pytest.fixture(scope="module")
def client(artifacts: Path) -> Iterator[openai.OpenAI]:
    with (
        listening(settings(artifacts, runner="scan")) as (url, _),
        openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as made,
    ):
        yield made


_OPTIONS = ("best_of", "echo", "frequency_penalty", "logit_bias", "logprobs", "max_tokens", "n",
            "presence_penalty", "stop", "stream", "suffix", "temperature", "top_p")  # fmt: skip


def test_the_client_may_pass_none_or_leave_out_whatever_it_likes(client: openai.OpenAI) -> None:
    create = client.completions.create
    plain = create(model="letters", prompt="Zoë", seed=3)
    for omitted in (openai.omit, openai.NOT_GIVEN, None):
        answer = create(model="letters", prompt="Zoë", seed=3, **dict.fromkeys(_OPTIONS, omitted))
        assert answer.choices == plain.choices
    nulls = create(model="letters", prompt="Zoë", temperature=0, user=None, seed=None)
    assert nulls.choices == create(model="letters", prompt="Zoë", temperature=0).choices


def test_the_client_may_ask_a_stream_for_obfuscation(client: openai.OpenAI) -> None:
    options: dict[str, Any] = {"include_usage": True, "include_obfuscation": True}
    *_, last = client.completions.create(
        model="letters", prompt="Zoë", stream=True, stream_options=options
    )
    assert last.usage is not None


def test_a_chat_is_told_where_to_go(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="/v1/completions"):
        client.chat.completions.create(
            model="letters", messages=[{"role": "user", "content": "hello"}]
        )


def test_tokens_go_there_and_back(scan: Service) -> None:
    for text in ("", "Zoë paid €5 🦉", "\x00", "long " * 20_000):
        there = scan.client.post("/tokenize", json={"prompt": text}).json()
        assert there == {"count": len(text.encode()), "tokens": list(text.encode())}
        back = scan.client.post("/detokenize", json={"tokens": there["tokens"]}).json()
        assert back == {"prompt": text}
    assert scan.client.post("/detokenize", json={"tokens": [255]}).json() == {"prompt": "\ufffd"}
    assert "add_special_tokens" in _optional(TokenizeRequest)


def test_what_stands_before_a_text_is_what_the_model_begins_with(scan: Service) -> None:
    info = scan.client.get("/tokenizer_info").json()
    assert info["eos_token"] is None
    state = scan.app.state.models["letters"].artifact.initial_state()
    assert ord(info["bos_token"]) == int(state[next(iter(state))])


@pytest.mark.parametrize("tokens", [[256], [-1], ["a"], [[1]], "abc", [True]])
def test_tokens_that_are_none_are_refused(scan: Service, tokens: Any) -> None:
    answer = scan.client.post("/detokenize", json={"tokens": tokens})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "tokens"
