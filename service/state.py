"""State tokens: where a generation stands, signed and handed to the caller. The server keeps none.

A token describes the moment after the last output returned; what lies at its edge is for each kind
of model to say.
"""

import base64
import binascii
import hashlib
import json
import struct
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

import numpy as np
from itsdangerous import BadSignature, Signer
from pydantic import BaseModel, ConfigDict

from contract.golden import Arrays
from service.artifact import Artifact
from service.errors import InvalidRequest, StateMismatch


class Edge(BaseModel):
    """What lies between the last output returned and the state: if that is `ahead`, a last output
    that nobody has seen yet, and whatever else a kind has."""

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    ahead: bool = False


_SHOWN = 12  # characters of a digest
E = TypeVar("E", bound=Edge)
# Whose tokens are good: those of the same files on the same runtime, which go on bit for bit, or
# those of any runtime, which go on from the same state and round differently from there.
StatePolicy = Literal["exact", "close"]


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
    """Turns moments of one model on one runtime into tokens and back."""

    def __init__(self, key: bytes, artifact: Artifact, fingerprint: str, edge: type[E]) -> None:
        self._signer = Signer(key, salt="evenkeel.state", digest_method=hashlib.sha256)
        self._name = artifact.name
        self._origin = {"model": artifact.digest, "runtime": fingerprint}
        self._ports = artifact.manifest.ports.state
        self._edge = edge

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
            signed = self._signer.unsign(token.encode())
            # The last character of a signature has two bits to spare: one spelling only.
            if self._signer.sign(signed) != token.encode():
                raise BadSignature("another spelling")
            content = base64.urlsafe_b64decode(signed)
        except (BadSignature, UnicodeEncodeError, binascii.Error) as error:
            raise InvalidRequest(
                "state is not a token of this service, or it was cut short", "state"
            ) from error
        (size,) = struct.unpack_from("<I", content)
        header = json.loads(content[4 : 4 + size])
        others = [what for what, mine in self._origin.items() if header[what] != mine]
        if others and (policy == "exact" or others != ["runtime"]):
            theirs = header[others[0]]
            if others[0] == "model":
                theirs = f"{header.get('name', 'one')} ({theirs[:_SHOWN]})"
            raise StateMismatch(f"state is of another {others[0]}: {theirs}", "state")
        return Moment(
            self._unpack(content[4 + size :]),
            header["seed"],
            header["choice"],
            header["drawn"],
            self._edge.model_validate_json(json.dumps(header["edge"])),
            header["runtime"] if others else None,
        )

    def go_on(self, token: str, seed: int | None, policy: StatePolicy = "exact") -> Moment[E]:
        """The moment in a token, with other randomness if a seed is given. Raises as `decode`."""
        moment = self.decode(token, policy)
        return moment if seed is None else replace(moment, seed=seed, choice=0, drawn=0)

    def _unpack(self, content: bytes) -> Arrays:
        state, offset = {}, 0
        for port in self._ports:
            count = int(np.prod(port.shape))
            flat = np.frombuffer(content, port.dtype, count, offset)
            state[port.name] = flat.reshape(port.shape).copy()
            offset += flat.nbytes
        return state
