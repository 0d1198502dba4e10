"""What a completion is answered with, as `/openapi.json` tells it."""

from typing import Annotated, Any

from pydantic import Field

from service.http.described import Answer, AnswerHead


class Logprobs(Answer):
    """Four lists with an entry for each byte; null for the first after a session, which drew it."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class ChoiceHead(Answer):
    """What is told of a completion, whole or in parts; `state` if it was asked for."""

    index: int
    text: str
    logprobs: Logprobs | None
    state: str | None = None


class Choice(ChoiceHead):
    """One completion."""

    finish_reason: str


class Part(ChoiceHead):
    """What has come of one completion since the last event; `resume` is what to change in the
    request to go on from here."""

    finish_reason: str | None
    resume: dict[str, Any] | None = None


class Usage(Answer):
    """Bytes read and written."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completed(AnswerHead):
    """The answer to a request that is not streamed."""

    choices: list[Choice]
    usage: Usage


class Written(AnswerHead):
    """An event of a stream; the last one has the usage, if asked for, and no choices."""

    choices: list[Part]
    usage: Usage | None = None


class Distribution(Answer):
    """Of the byte that comes next: natural-log probabilities of all 256."""

    log_probabilities: Annotated[list[float], Field(min_length=256, max_length=256)]
    step: int


class BytesWritten(Answer):
    """Bytes of the model's own."""

    bytes: list[Annotated[int, Field(ge=0, le=255)]]
    step: int


class Tokens(Answer):
    """A text as tokens."""

    count: int
    tokens: list[int]


class Detokenized(Answer):
    """Tokens as a text."""

    prompt: str


class TokenizerInfo(Answer):
    """What stands before and after a text; null for nothing."""

    tokenizer_class: str
    bos_token: str
    eos_token: None
