"""State tokens: where a generation stands, signed and handed to the caller. The server keeps none.

A token describes the moment after the last byte returned. What was generated beyond it (an
incomplete UTF-8 sequence, bytes that may start a stop string) travels along undecided.
"""

import base64
import binascii
import hashlib
import json
import struct
from dataclasses import dataclass

import numpy as np
from itsdangerous import BadSignature, Signer

from service.artifact import Arrays, Artifact
from service.errors import InvalidRequest, StateMismatch


@dataclass(frozen=True, slots=True)
class Moment:
    """Recurrent state of one row, the randomness still to come, and what lies at its edge.

    Of text: bytes not yet returned. Of ink: the character the window leaves behind, which stays in
    its sight, and the height of the pen over the baseline in units.
    """

    state: Arrays
    seed: int
    choice: int
    drawn: int
    undecided: bytes = b""
    context: str = ""
    height: float = 0.0


class StateCodec:
    """Turns moments of one model on one runtime into tokens and back."""

    def __init__(self, key: bytes, artifact: Artifact, fingerprint: str) -> None:
        self._signer = Signer(key, salt="evenkeel.state", digest_method=hashlib.sha256)
        self._origin = {"model": artifact.digest, "runtime": fingerprint}
        self._ports = artifact.manifest.ports.state

    def encode(self, moment: Moment) -> str:
        """An opaque URL-safe string, a few KB."""
        header = self._origin | {
            "seed": moment.seed,
            "choice": moment.choice,
            "drawn": moment.drawn,
            "undecided": moment.undecided.hex(),
            "context": moment.context,
            "height": moment.height,
        }
        packed = json.dumps(header).encode()
        arrays = b"".join(np.ascontiguousarray(moment.state[p.name]).tobytes() for p in self._ports)
        content = struct.pack("<I", len(packed)) + packed + arrays
        return self._signer.sign(base64.urlsafe_b64encode(content)).decode()

    def decode(self, token: str) -> Moment:
        """The moment in a token. Raises `InvalidRequest` for one this service did not sign, and
        `StateMismatch` for one of another model or runtime."""
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
        for what, mine in self._origin.items():
            if header[what] != mine:
                raise StateMismatch(f"state is of another {what}: {header[what]}", "state")
        return Moment(
            self._unpack(content[4 + size :]),
            header["seed"],
            header["choice"],
            header["drawn"],
            bytes.fromhex(header["undecided"]),
            header["context"],
            header["height"],
        )

    def _unpack(self, content: bytes) -> Arrays:
        state, offset = {}, 0
        for port in self._ports:
            count = int(np.prod(port.shape))
            flat = np.frombuffer(content, port.dtype, count, offset)
            state[port.name] = flat.reshape(port.shape).copy()
            offset += flat.nbytes
        return state
