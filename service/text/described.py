"""What a completion is answered with, as `/openapi.json` tells it."""

from dataclasses import dataclass

from service.http.described import EXACTLY


@dataclass(frozen=True, slots=True)
class Logprobs:
    """Four lists with an entry for each byte."""

    __pydantic_config__ = EXACTLY

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


@dataclass(frozen=True, slots=True)
class Choice:
    """One completion; `state` if it was asked for."""

    __pydantic_config__ = EXACTLY

    index: int
    text: str
    logprobs: Logprobs | None
    finish_reason: str
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes read and written."""

    __pydantic_config__ = EXACTLY

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class Completed:
    """The answer to a request that is not streamed."""

    __pydantic_config__ = EXACTLY

    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str
    seed: int
    choices: list[Choice]
    usage: Usage


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as tokens."""

    __pydantic_config__ = EXACTLY

    count: int
    tokens: list[int]


@dataclass(frozen=True, slots=True)
class TokenizerInfo:
    """What stands before and after a text; null for nothing."""

    __pydantic_config__ = EXACTLY

    tokenizer_class: str
    bos_token: str
    eos_token: None
