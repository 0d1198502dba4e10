"""`/tokenize` and `/detokenize`, where a token is a byte: what lm-eval asks a server for before it
scores, in the words of vLLM.
"""

from typing import Annotated, Any

from pydantic import Field

from contract.alphabets import START_TOKEN
from service.errors import InvalidRequest
from service.http import record
from service.http.described import fails
from service.http.fields import RequestBody, Text
from service.http.methods import Routes
from service.text.described import Detokenized, TokenizerInfo, Tokens
from service.text.schemas import Token

router = Routes(tags=["text"])


class TokenizeRequest(RequestBody):
    """`POST /tokenize`. No token is special, so `add_special_tokens` adds none."""

    model: str | None = None
    prompt: Text
    add_special_tokens: bool = True


class DetokenizeRequest(RequestBody):
    """`POST /detokenize`."""

    model: str | None = None
    tokens: Annotated[list[Token], Field(max_length=1 << 20, fail_fast=True)]


@router.get("/tokenizer_info", response_model=TokenizerInfo)
async def tokenizer_info() -> dict[str, Any]:
    """What stands before a text, and that nothing marks its end."""
    return {"tokenizer_class": "bytes", "bos_token": chr(START_TOKEN), "eos_token": None}


@router.post("/tokenize", response_model=Tokens, responses=fails(InvalidRequest))
async def tokenize(body: TokenizeRequest) -> dict[str, Any]:
    """The UTF-8 bytes of a text."""
    tokens = list(body.prompt.encode())
    record.current().pay(len(tokens))
    return {"count": len(tokens), "tokens": tokens}


@router.post("/detokenize", response_model=Detokenized, responses=fails(InvalidRequest))
async def detokenize(body: DetokenizeRequest) -> dict[str, str]:
    """The text of bytes; what is not UTF-8 becomes U+FFFD."""
    record.current().pay(len(body.tokens))
    return {"prompt": bytes(body.tokens).decode("utf-8", "replace")}
