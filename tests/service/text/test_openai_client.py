"""The official OpenAI client against a real server: what its users do works as they know it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest

from tests.service.serving import listening, settings


@pytest.fixture(scope="module", params=["scan", "slots"])
def url(request: pytest.FixtureRequest, artifacts: Path) -> Iterator[str]:
    with listening(settings(artifacts, runner=request.param, slots=8)) as (started, _):
        yield started


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as made:
        yield made


def _text(client: openai.OpenAI, **options: object) -> str:
    options = {"model": "letters", "max_tokens": 40, "seed": 1, "prompt": "Zoë"} | options
    return client.completions.create(**options).choices[0].text


def test_a_completion(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="letters", prompt="Zoë", max_tokens=20, temperature=0)
    assert answer.object == "text_completion"
    assert answer.model == "letters"
    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].text.startswith(" paid €5 for")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 4
    assert answer.usage.completion_tokens == 20
    assert answer.usage.total_tokens == 24


def test_a_stream_with_usage(client: openai.OpenAI) -> None:
    stream = client.completions.create(
        model="letters",
        prompt="Zoë",
        max_tokens=200,
        seed=1,
        stream=True,
        stream_options={"include_usage": True},
    )
    *chunks, last = stream
    assert len(chunks) > 3
    text = "".join(chunk.choices[0].text for chunk in chunks)
    assert text == _text(client, max_tokens=200)
    assert "\ufffd" not in text[:-1]
    assert [c.choices[0].finish_reason for c in chunks[-2:]] == [None, "length"]
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.completion_tokens == 200


def test_a_stream_that_is_closed_early(client: openai.OpenAI) -> None:
    with client.completions.create(model="letters", max_tokens=60_000, stream=True, prompt="") as s:
        assert next(iter(s)).choices[0].finish_reason is None
    assert _text(client)


def test_logprobs(client: openai.OpenAI) -> None:
    answer = client.completions.create(
        model="letters", prompt="", max_tokens=12, logprobs=3, seed=1
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.tokens is not None
    assert "".join(logprobs.tokens) == answer.choices[0].text
    assert logprobs.token_logprobs is not None
    assert all(value <= 0 for value in logprobs.token_logprobs)
    assert logprobs.top_logprobs is not None
    assert [len(top) for top in logprobs.top_logprobs] == [3] * 12
    assert logprobs.text_offset == list(range(12))


def test_echo_scores_a_prompt(client: openai.OpenAI) -> None:
    answer = client.completions.create(
        model="letters", prompt="It rained;", max_tokens=0, echo=True, logprobs=0
    )
    assert answer.choices[0].text == "It rained;"
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.token_logprobs is not None
    assert len(logprobs.token_logprobs) == 10
    assert _text(client, echo=True) == "Zoë" + _text(client)


def test_stop(client: openai.OpenAI) -> None:
    answer = client.completions.create(
        model="letters", prompt="Zoë", max_tokens=100, temperature=0, stop=["café", "owl"]
    )
    assert answer.choices[0].text == " paid €5 for a "
    assert answer.choices[0].finish_reason == "stop"


def test_n_and_seed(client: openai.OpenAI) -> None:
    hot = {"temperature": 1.8, "max_tokens": 60}
    answer = client.completions.create(model="letters", prompt="Zoë", seed=1, n=3, **hot)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert answer.choices[0].text == _text(client, **hot)
    assert len({choice.text for choice in answer.choices}) == 3
    assert _text(client, **hot, seed=2) != _text(client, **hot)


def test_prompts_in_lists(client: openai.OpenAI) -> None:
    alone = [_text(client, prompt=prompt) for prompt in ("Zoë", "It rained")]
    for prompts in (["Zoë", "It rained"], [list("Zoë".encode()), list(b"It rained")]):
        answer = client.completions.create(model="letters", prompt=prompts, max_tokens=40, seed=1)
        assert [choice.text for choice in answer.choices] == alone
    assert _text(client, prompt=list("Zoë".encode())) == alone[0]


def test_logit_bias_and_top_p(client: openai.OpenAI) -> None:
    assert _text(client, logit_bias={"120": 100}) == "x" * 40
    assert _text(client, top_p=1e-6) == _text(client, temperature=0)


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["letters", "noise"]
    assert client.models.retrieve("noise").owned_by == "evenkeel"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt")


def test_state_in_the_extra_body(client: openai.OpenAI) -> None:
    options = {"model": "letters", "prompt": "", "temperature": 1.2}
    first = client.completions.create(
        **options, max_tokens=15, seed=1, extra_body={"return_state": True, "top_k": 20}
    )
    state = first.choices[0].state
    rest = client.completions.create(
        **options, max_tokens=25, extra_body={"state": state, "top_k": 20}
    )
    whole = _text(client, prompt="", temperature=1.2, extra_body={"top_k": 20})
    assert first.choices[0].text + rest.choices[0].text == whole


def test_a_streamed_state(client: openai.OpenAI) -> None:
    stream = client.completions.create(
        model="letters", prompt="", stream=True, seed=1, extra_body={"return_state": True}
    )
    *_, last = stream
    state = last.choices[0].state
    assert _text(client, prompt="", seed=None, extra_body={"state": state})


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"temperature": 9.0}, openai.BadRequestError),
        ({"presence_penalty": 0.5}, openai.BadRequestError),
        ({"extra_body": {"surprise": 1}}, openai.BadRequestError),
        ({"extra_body": {"state": "forged"}}, openai.BadRequestError),
        ({"model": "gpt"}, openai.NotFoundError),
    ],
)
def test_errors_are_the_clients_own(
    client: openai.OpenAI, options: dict[str, object], error: type[openai.APIStatusError]
) -> None:
    with pytest.raises(error) as caught:
        _text(client, **options)
    assert caught.value.type == "invalid_request_error"
    assert caught.value.param is not None


def test_a_state_of_another_model_is_a_conflict(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="noise", prompt="", extra_body={"return_state": True})
    state = answer.choices[0].state
    assert _tries(client, openai.ConflictError, state=state) == 1


def test_what_was_not_done_in_its_time_is_not_begun_again(client: openai.OpenAI) -> None:
    assert _tries(client, openai.InternalServerError, deadline_s=1e-9) == 1


def _tries(client: openai.OpenAI, error: type[Exception], **fields: object) -> int:
    """How often a client that may ask three times asks before it raises this."""
    asked: list[httpx.Request] = []
    with openai.DefaultHttpxClient(event_hooks={"request": [asked.append]}) as counted:
        patient = client.with_options(max_retries=2, http_client=counted)
        with pytest.raises(error):
            _text(patient, extra_body=fields)
    return len(asked)


def test_an_oversized_body_is_refused(client: openai.OpenAI, url: str) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        _text(client, prompt="x" * 2**20)
    assert caught.value.status_code == 413

    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield b"x" * 2**16

    answer = httpx.post(
        f"{url}/v1/completions", content=chunks(), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "invalid_request_error"
