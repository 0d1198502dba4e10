"""What a completion is answered with, as `/openapi.json` tells it."""

from service.http.described import Answer, AnswerHead


class Logprobs(Answer):
    """Four lists with an entry for each byte."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class Choice(Answer):
    """One completion; `state` if it was asked for."""

    index: int
    text: str
    logprobs: Logprobs | None
    finish_reason: str
    state: str | None = None


class Usage(Answer):
    """Bytes read and written."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completed(AnswerHead):
    """The answer to a request that is not streamed."""

    choices: list[Choice]
    usage: Usage


class Tokens(Answer):
    """A text as tokens."""

    count: int
    tokens: list[int]


class TokenizerInfo(Answer):
    """What stands before and after a text; null for nothing."""

    tokenizer_class: str
    bos_token: str
    eos_token: None
