"""State tokens: where a generation stands, signed and handed to the caller. The server keeps none.

A token describes the moment after the last output returned; what lies at its edge is for each kind
of model to say.
"""

import base64
import binascii
import hashlib
import json
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Generic, Literal, TypeVar

import numpy as np
from itsdangerous import BadSignature, Signer, base64_decode, base64_encode
from pydantic import BaseModel, ConfigDict, Field

from contract.golden import Arrays
from service.artifact import Artifact
from service.errors import InvalidRequest, StateMismatch

# No line is as long, and float32 has the square of any such number.
Length = Annotated[float, Field(ge=-1e9, le=1e9)]


class Edge(BaseModel):
    """What a moment has besides the state. A state is `ahead` if the model has drawn a last output
    that no answer has shown yet; a kind of model may have more to say."""

    model_config = ConfigDict(
        frozen=True, allow_inf_nan=False, ser_json_bytes="base64", val_json_bytes="base64"
    )

    ahead: bool = False


class _Origin(BaseModel):
    """Which model and runtime a token is of: the part of its header that every kind has."""

    model_config = ConfigDict(frozen=True, strict=True)

    model: str
    runtime: str
    name: str = "one"


# Of what is signed, but was no moment of any request.
NO_SENSE = "state is signed, but it makes no sense"
_SIZE_BYTES = 4  # of the number that says how long the header is
_SHOWN = 12  # characters of a digest
E = TypeVar("E", bound=Edge)
# Whose tokens are good: those of the same files on the same runtime, which go on bit for bit, or
# those of any runtime, which go on from the same state and round differently from there.
StatePolicy = Literal["exact", "close"]
_Number = Annotated[int, Field(ge=0, lt=2**63)]


class _Header(_Origin, Generic[E]):
    """What stands before the state in a token of a model whose edges are `E`."""

    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)]
    choice: _Number
    drawn: _Number
    edge: E


@dataclass(frozen=True, slots=True)
class Moment(Generic[E]):
    """Recurrent state of one row, the randomness still to come, and what lies at its edge.

    `runtime` is that of the token it began with, if that was not the one it goes on with.
    """

    state: Arrays
    seed: int
    choice: int
    drawn: int
    edge: E
    runtime: str | None = None

    def told(self) -> dict[str, str]:
        """What an answer that goes on from here has to say of it."""
        return {} if self.runtime is None else {"state_runtime": self.runtime}


class StateCodec(Generic[E]):
    """Turns moments of one model on one runtime into tokens and back: `key` signs them, and those
    that one of the `fallbacks` has signed are good as well; `on_fallback` hears of each that is
    accepted."""

    def __init__(
        self,
        key: bytes,
        artifact: Artifact,
        fingerprint: str,
        edge: type[E],
        fallbacks: Sequence[bytes] = (),
        on_fallback: Callable[[], None] = lambda: None,
    ) -> None:
        self._signer, self._fallbacks = _signer(key), _signer(*fallbacks)
        self._on_fallback = on_fallback
        self._name = artifact.name
        self._origin = {"model": artifact.digest, "runtime": fingerprint}
        self._ports = artifact.manifest.ports.state
        self._header = _Header[edge]  # type: ignore[valid-type]

    def encode(self, moment: Moment[E]) -> str:
        """An opaque URL-safe string, a few KB."""
        header = self._origin | {
            "name": self._name,
            "seed": moment.seed,
            "choice": moment.choice,
            "drawn": moment.drawn,
            "edge": moment.edge.model_dump(mode="json"),
        }
        packed = json.dumps(header).encode()
        arrays = b"".join(np.ascontiguousarray(moment.state[p.name]).tobytes() for p in self._ports)
        content = struct.pack("<I", len(packed)) + packed + arrays
        return self._signer.sign(base64.urlsafe_b64encode(content)).decode()

    def decode(self, token: str, policy: StatePolicy = "exact") -> Moment[E]:
        """The moment in a token. Raises `InvalidRequest` for one this service did not sign, and
        `StateMismatch` for one of another model or, unless close will do, of another runtime."""
        try:
            signed, of_fallback = self._unsigned(token.encode())
            # The last character of a signature has two bits to spare: one spelling only.
            signature = token.rpartition(".")[2]
            if base64_encode(base64_decode(signature)) != signature.encode():
                raise BadSignature("another spelling")
            content = base64.urlsafe_b64decode(signed)
        except (BadSignature, UnicodeEncodeError, binascii.Error) as error:
            raise InvalidRequest(
                "state is not a token of this service, or it was cut short", "state"
            ) from error
        size = int.from_bytes(content[:_SIZE_BYTES], "little")
        packed, arrays = content[_SIZE_BYTES:][:size], content[_SIZE_BYTES + size :]
        with _sense():
            theirs = _Origin.model_validate_json(packed)
        others = [what for what, mine in self._origin.items() if getattr(theirs, what) != mine]
        if others and (policy == "exact" or others != ["runtime"]):
            told = theirs.runtime
            if others[0] == "model":
                told = f"{theirs.name} ({theirs.model[:_SHOWN]})"
            raise StateMismatch(f"state is of another {others[0]}: {told}", "state")
        with _sense():
            header = self._header.model_validate_json(packed)
            state = self._unpack(arrays)
        if of_fallback:
            self._on_fallback()
        runtime = header.runtime if others else None
        return Moment(state, header.seed, header.choice, header.drawn, header.edge, runtime)

    def go_on(self, token: str, seed: int | None, policy: StatePolicy = "exact") -> Moment[E]:
        """The moment in a token, with other randomness if a seed is given. Raises as `decode`."""
        moment = self.decode(token, policy)
        return moment if seed is None else replace(moment, seed=seed, choice=0, drawn=0)

    def _unsigned(self, token: bytes) -> tuple[bytes, bool]:
        """What is signed, and whether it is by a fallback. Raises `BadSignature`."""
        try:
            return self._signer.unsign(token), False
        except BadSignature:
            return self._fallbacks.unsign(token), True

    def _unpack(self, content: bytes) -> Arrays:
        """Raises `ValueError` for what is no state of the model."""
        state, offset = {}, 0
        for port in self._ports:
            count = int(np.prod(port.shape))
            flat = np.frombuffer(content, port.dtype, count, offset)
            if not np.isfinite(flat).all():
                raise ValueError(f"{port.name} is not finite")
            state[port.name] = flat.reshape(port.shape).copy()
            offset += flat.nbytes
        if offset < len(content):
            raise ValueError(f"{len(content)} bytes of state; it must be {offset}")
        return state


def _signer(*keys: bytes) -> Signer:
    return Signer(keys, salt="evenkeel.state", digest_method=hashlib.sha256)


@contextmanager
def _sense() -> Iterator[None]:
    """Turn a `ValueError` into `InvalidRequest`: a content with a good signature may still be no
    token of ours, if something else signs with the same key."""
    try:
        yield
    except ValueError as error:
        raise InvalidRequest(NO_SENSE, "state") from error
