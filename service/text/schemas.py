"""Requests as they arrive, in the words of the OpenAI completions API, and their checks."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, WrapValidator, field_validator, model_validator

from contract.alphabets import VOCABULARY
from service.errors import shortened, shown
from service.http.fields import (
    FLOAT32,
    UNICODE,
    WHOLE,
    Count,
    RequestBody,
    Text,
    WorkRequest,
    at_most,
    check_unicode,
)
from service.text.sampling import Sampling

Token = Annotated[int, Field(ge=0, lt=VOCABULARY)]
_MAX_TOKENS = 16  # where a request does not say
_MOST_STOPS = 16
# Characters: while a stop string may have begun, the states since then are kept.
_Stop = Annotated[str, Field(max_length=256), UNICODE]
_MOST_METADATA = 16
MOST_CHOICES = 128
# Positions times the bytes listed at each: some 20 MB of numbers and their names.
_MOST_LOGPROBS = 140_000
# One spelling each, or a byte could have two biases.
_TOKEN_IN_DIGITS = "^([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])$"


def _prompt(value: Any, _: object) -> Any:
    """A prompt whose shape is known before its items are looked at: pydantic would try every branch
    of the union on each of a million tokens, and keep an error of each."""
    if isinstance(value, str):
        return check_unicode(value)
    if not isinstance(value, list):
        raise ValueError("a prompt is text, a list of bytes 0 to 255, or a list of one of them")
    kinds = set(map(type, value))
    if kinds <= {int}:
        return _tokens(value)
    if len(value) > MOST_CHOICES:
        raise ValueError(f"{len(value):,} prompts; at most {MOST_CHOICES}")
    if kinds == {str}:
        return list(map(check_unicode, value))
    if kinds == {list} and all(set(map(type, tokens)) <= {int} for tokens in value):
        return list(map(_tokens, value))
    raise ValueError("a list of prompts holds texts alone, or lists of bytes 0 to 255 alone")


def _tokens(value: list[int]) -> list[int]:
    if value and not 0 <= min(value) <= max(value) < VOCABULARY:
        wrong = str(next(token for token in value if not 0 <= token < VOCABULARY))
        raise ValueError(
            f"{shortened(wrong)} is no token; tokens are bytes, 0 or more and less than 256"
        )
    return value


class StreamOptions(RequestBody):
    """`stream_options` of a request; events are as long as what they say, obfuscated or not."""

    include_usage: bool = False
    include_obfuscation: bool = False


class CompletionRequest(WorkRequest):
    """`POST /v1/completions`. A token is a byte; counts and limits are in bytes.

    `top_k`, `min_p` and most that every request for work has go beyond OpenAI's API; options of it
    that this service does not have are accepted only at the value that means nothing.
    """

    model: str | None = None
    prompt: Annotated[
        Text | list[Text] | list[Token] | list[list[Token]], WrapValidator(_prompt)
    ] = ""
    max_tokens: Count = _MAX_TOKENS
    temperature: Annotated[float, Field(ge=0, le=2), FLOAT32] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1), FLOAT32] = 1.0
    top_k: Annotated[int, Field(ge=1), WHOLE] = VOCABULARY
    min_p: Annotated[float, Field(ge=0, le=1), FLOAT32] = 0.0
    logit_bias: Annotated[
        dict[str, Annotated[float, Field(ge=-100, le=100), FLOAT32]] | None,
        Field(json_schema_extra={"propertyNames": {"pattern": _TOKEN_IN_DIGITS}}),
        at_most(VOCABULARY, "biases"),
    ] = None
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES), WHOLE] = 1
    stop: Annotated[
        _Stop | Annotated[list[_Stop], Field(max_length=_MOST_STOPS)] | None,
        at_most(_MOST_STOPS, "stop strings"),
    ] = None
    echo: bool = False
    logprobs: Annotated[int, Field(ge=0, le=VOCABULARY), WHOLE] | None = None
    stream_options: StreamOptions | None = None
    # For the caller's own records: read, and forgotten.
    user: str | None = None
    metadata: Annotated[dict[str, str] | None, at_most(_MOST_METADATA, "entries")] = None
    # Part of OpenAI's API or vLLM's, not of this service.
    best_of: Annotated[int, Field(ge=1, le=MOST_CHOICES), WHOLE] | None = None
    frequency_penalty: Literal[0] | None = None
    presence_penalty: Literal[0] | None = None
    repetition_penalty: Literal[1] | None = None
    ignore_eos: bool | None = None  # no byte ends a text
    suffix: Literal[""] | None = None

    @field_validator("frequency_penalty", "presence_penalty", "repetition_penalty", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        if isinstance(value, bool):  # to Python, false is 0
            raise ValueError("it must be a number")
        return int(value) if isinstance(value, float) and value.is_integer() else value

    @field_validator("logit_bias")
    @classmethod
    def _byte_keys(cls, value: dict[str, float] | None) -> dict[str, float] | None:
        for key in value or {}:
            if not re.fullmatch(_TOKEN_IN_DIGITS, key):
                raise ValueError(f"{shown(key)} is not a token; tokens are the bytes 0 to 255")
        return value

    @model_validator(mode="after")
    def _none_is_left_out(self) -> "CompletionRequest":
        if self.best_of not in (None, 1, self.n):
            raise ValueError(f"best_of is {self.best_of}; this service only takes 1, or n")
        return self

    @model_validator(mode="after")
    def _not_too_many_logprobs(self) -> "CompletionRequest":
        if self.logprobs is not None:
            read = sum(map(len, self.prompts())) if self.echo else 0
            positions = self.n * (read + self.max_tokens * len(self.prompts()))
            numbers = positions * (self.logprobs + 1)
            if numbers > _MOST_LOGPROBS:
                raise ValueError(
                    f"logprobs of {self.logprobs} at {positions:,} positions are {numbers:,} "
                    f"numbers; at most {_MOST_LOGPROBS:,} are told"
                )
        return self

    def prompts(self) -> list[bytes]:
        """The prompts as bytes, one at least."""
        match self.prompt:
            case str():
                return [self.prompt.encode()]
            case [] | [int(), *_]:
                return [bytes(self.prompt)]  # type: ignore[arg-type]
            case _:
                return [p.encode() if isinstance(p, str) else bytes(p) for p in self.prompt]

    def stops(self) -> tuple[bytes, ...]:
        """The stop strings as bytes; an empty one stops nothing."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(stop.encode() for stop in stops if stop)

    def sampling(self) -> Sampling:
        """How a byte is chosen."""
        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            logit_bias={int(k): v for k, v in (self.logit_bias or {}).items()},
        )


def least(body: dict[str, Any]) -> tuple[str | None, int] | None:
    """The model a body names and the fewest steps its first choice can take, by what is plain to
    see; None where that is nothing, or not what it should be."""
    name, written = body.get("model"), body.get("max_tokens", _MAX_TOKENS)
    if not isinstance(name, str | None) or type(written) is not int or written < 0:
        return None
    if body.get("state") is not None:  # of a session, it may have the next byte already
        return None
    prompt = body.get("prompt")
    # A character is a byte at least; of a list it is not plain what its first prompt is.
    steps = written + (len(prompt) if isinstance(prompt, str) else 0)
    return (name, steps) if steps else None
