"""State tokens: what goes in comes out, and nothing else comes in."""

import base64
import hashlib
import json
import string
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from itsdangerous import Signer

from service.artifact import Artifact
from service.errors import InvalidRequest, StateMismatch
from service.ink.line import InkEdge
from service.reader.model import ReaderEdge
from service.state import Edge, Moment, StateCodec
from service.text.completion import TextEdge

_KEY = b"sixteen bytes ok"


@pytest.fixture
def codec(artifact: Artifact) -> StateCodec[TextEdge]:
    return StateCodec(_KEY, artifact, "here", TextEdge)


def _moment(artifact: Artifact) -> Moment[TextEdge]:
    generator = np.random.default_rng(5)
    state = {
        p.name: generator.normal(size=p.shape).astype(p.dtype) * 100
        for p in artifact.manifest.ports.state
    }
    return Moment(state, -(2**63), 127, 10**9, TextEdge(undecided=b"\xe2\x82END"))


def test_a_moment_survives_its_token(codec: StateCodec[TextEdge], artifact: Artifact) -> None:
    moment = _moment(artifact)
    again = codec.decode(codec.encode(moment))
    assert again.state.keys() == moment.state.keys()
    for name, array in moment.state.items():
        assert again.state[name].dtype == array.dtype
        assert (again.state[name] == array).all()
    assert replace(again, state={}) == replace(moment, state={})


def test_a_token_is_a_few_kilobytes_of_url_safe_text(
    codec: StateCodec[TextEdge], artifact: Artifact
) -> None:
    token = codec.encode(_moment(artifact))
    assert len(token) < 4096
    assert set(token) <= set(string.ascii_letters + string.digits + "-_=.")


def test_a_token_is_signed_with_256_bits(codec: StateCodec[TextEdge], artifact: Artifact) -> None:
    _, _, signature = codec.encode(_moment(artifact)).rpartition(".")
    assert len(base64.urlsafe_b64decode(signature + "=")) == 32


def test_another_seed_begins_with_its_own_noise(
    codec: StateCodec[TextEdge], artifact: Artifact
) -> None:
    """With 0 as with any other; without one it goes on."""
    moment = _moment(artifact)
    token = codec.encode(moment)
    for seed, told in ((0, (0, 0, 0)), (9, (9, 0, 0)), (None, (-(2**63), 127, 10**9))):
        again = codec.go_on(token, seed)
        assert (again.seed, again.choice, again.drawn) == told
        assert again.edge == moment.edge


def test_a_token_cut_short_anywhere_is_refused(
    codec: StateCodec[TextEdge], artifact: Artifact
) -> None:
    token = codec.encode(_moment(artifact))
    for size in range(len(token)):
        with pytest.raises(InvalidRequest):
            codec.decode(token[:size])


def test_a_token_with_one_character_changed_is_refused(
    codec: StateCodec[TextEdge], artifact: Artifact
) -> None:
    token = codec.encode(_moment(artifact))
    for place in range(len(token)):
        other = "B" if token[place] == "A" else "A"
        with pytest.raises(InvalidRequest):
            codec.decode(token[:place] + other + token[place + 1 :])


def test_a_token_has_one_spelling(codec: StateCodec[TextEdge], artifact: Artifact) -> None:
    # The last character of the signature carries four bits; the other two must not be free.
    token = codec.encode(_moment(artifact))
    for other in set(string.ascii_letters + string.digits + "-_") - {token[-1]}:
        with pytest.raises(InvalidRequest):
            codec.decode(token[:-1] + other)
    with pytest.raises(InvalidRequest):  # which base64 may have at its end
        codec.decode(token + "=")


@pytest.mark.parametrize("token", ["", ".", "a", "a.b", "é.b", "\ud800", "a." * 50, " ", "\x00"])
def test_what_never_was_a_token_is_refused(codec: StateCodec[TextEdge], token: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        codec.decode(token)
    assert (caught.value.status, caught.value.param) == (400, "state")


def test_a_token_signed_with_another_key_is_refused(artifact: Artifact) -> None:
    token = StateCodec(b"another key, 16+", artifact, "here", TextEdge).encode(_moment(artifact))
    with pytest.raises(InvalidRequest):
        StateCodec(_KEY, artifact, "here", TextEdge).decode(token)


def _content(codec: StateCodec[Any], moment: Moment[Any]) -> tuple[dict[str, Any], bytes]:
    """The header of a token, and the state behind it."""
    content = base64.urlsafe_b64decode(codec.encode(moment).rpartition(".")[0])
    end = 4 + int.from_bytes(content[:4], "little")
    return json.loads(content[4:end]), content[end:]


def _signed(codec: StateCodec[Any], header: bytes, state: bytes) -> str:
    """A token as whoever has the key can make it."""
    content = len(header).to_bytes(4, "little") + header + state
    return codec._signer.sign(base64.urlsafe_b64encode(content)).decode()


def _makes_no_sense(codec: StateCodec[Any], token: str) -> bool:
    with pytest.raises(InvalidRequest) as caught:
        codec.decode(token)
    return "makes no sense" in caught.value.message and caught.value.param == "state"


@pytest.mark.parametrize(
    ("edge", "change"),
    [
        *((TextEdge(), {"seed": seed}) for seed in (2**63, -(2**63) - 1, 1.5, "5", None)),
        *((TextEdge(), {name: n}) for name in ("choice", "drawn") for n in (-1, 2**63, None, [])),
        *((TextEdge(), {name: 5}) for name in ("model", "runtime", "name", "edge")),
        (TextEdge(), {"edge": {"undecided": "!"}}),
        (TextEdge(), {"edge": {"undecided": "YWI=", "ahead": True}}),
        (TextEdge(), {"edge": {"ahead": True}}),
        *((TextEdge(), {"edge": {"undecided": "YWI=", "asked": n}}) for n in (-1, 3)),
        *((InkEdge(), {"edge": {"context": context}}) for context in ("₹", "ab", "\ud800")),
        *((InkEdge(), {"edge": {n: -1}}) for n in ("advance", "reach")),
        *((InkEdge(), {"edge": {n: float("nan")}}) for n in ("height", "advance", "reach")),
        (InkEdge(), {"edge": {"place": [0, float("inf")]}}),
        *((ReaderEdge(), {"edge": {"px_per_unit": size}}) for size in (0, -1, float("nan"))),
        (ReaderEdge(), {"edge": {"last": -1}}),
        (ReaderEdge(), {"edge": {"path": [[0, 0], [1]]}}),
    ],
)
def test_a_header_that_makes_no_sense_is_refused_whoever_signed_it(
    artifact: Artifact, edge: Edge, change: dict[str, Any]
) -> None:
    codec = StateCodec(_KEY, artifact, "here", type(edge))
    header, state = _content(codec, replace(_moment(artifact), edge=edge))
    assert codec.decode(_signed(codec, json.dumps(header).encode(), state)).edge == edge
    assert _makes_no_sense(codec, _signed(codec, json.dumps(header | change).encode(), state))


@pytest.mark.parametrize("header", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000, b'{"seed": 1}'])
def test_a_header_that_is_none_is_refused(codec: StateCodec[TextEdge], header: bytes) -> None:
    assert _makes_no_sense(codec, _signed(codec, header, b""))


@pytest.mark.parametrize(
    "change",
    [
        lambda state: b"",
        lambda state: state[:-1],
        lambda state: state + b"\0",
        lambda state: state[:-4] + np.float32(np.nan).tobytes(),
        lambda state: state[:-4] + np.float32(np.inf).tobytes(),
    ],
)
def test_a_state_that_is_none_of_the_model_is_refused(
    codec: StateCodec[TextEdge], artifact: Artifact, change: Callable[[bytes], bytes]
) -> None:
    header, state = _content(codec, _moment(artifact))
    assert artifact.manifest.ports.state[-1].dtype == "float32"
    assert _makes_no_sense(codec, _signed(codec, json.dumps(header).encode(), change(state)))


def test_what_is_signed_and_no_base64_is_refused(codec: StateCodec[TextEdge]) -> None:
    with pytest.raises(InvalidRequest, match="not a token of this service"):
        codec.decode(codec._signer.sign(b"A").decode())


def test_a_signature_of_nothing_is_refused(codec: StateCodec[TextEdge]) -> None:
    for content in (b"", b"AA==", base64.urlsafe_b64encode(b"\xff" * 4)):
        assert _makes_no_sense(codec, codec._signer.sign(content).decode())


def test_a_token_of_another_runtime_does_not_match(artifact: Artifact) -> None:
    token = StateCodec(_KEY, artifact, "elsewhere", TextEdge).encode(_moment(artifact))
    with pytest.raises(StateMismatch, match="another runtime: elsewhere") as caught:
        StateCodec(_KEY, artifact, "here", TextEdge).decode(token)
    assert (caught.value.status, caught.value.param) == (409, "state")


def test_a_token_of_another_model_does_not_match(
    codec: StateCodec[TextEdge], artifact: Artifact
) -> None:
    other = replace(artifact, digest="0" * 64)
    token = StateCodec(_KEY, other, "here", TextEdge).encode(_moment(artifact))
    told = rf"state is of another model: {artifact.name} \({'0' * 12}\)"
    with pytest.raises(StateMismatch, match=told) as caught:
        codec.decode(token)
    assert caught.value.status == 409


def test_decoded_state_is_the_holders_own(codec: StateCodec[TextEdge], artifact: Artifact) -> None:
    state = codec.decode(codec.encode(_moment(artifact))).state
    for array in state.values():
        assert array.flags.writeable


def test_tokens_are_signed_as_those_of_other_versions(
    artifact: Artifact, codec: StateCodec[TextEdge]
) -> None:
    """Replicas of two serve side by side while one takes the place of the other."""
    signer = Signer(_KEY, salt="evenkeel.state", digest_method=hashlib.sha256)
    signer.unsign(codec.encode(_moment(artifact)))
