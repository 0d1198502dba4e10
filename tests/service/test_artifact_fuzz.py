"""An artifact of any bytes at all is refused with a reason, or is one that onnxruntime loads.

`EVENKEEL_FUZZ_ARTIFACTS=100000` says how many are made; every second one has a changed graph.
"""

import json
import os
import random
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import onnx
import pytest
from google.protobuf.message import DecodeError

from service.artifact import Artifact, ArtifactError, load_artifact
from service.engine.runtime import Runtime
from tests.service.altered import rehash

_CASES = int(os.environ.get("EVENKEEL_FUZZ_ARTIFACTS", "400"))
_GRAPHS = ("model.onnx", "model-filtered.onnx", "step.onnx", "step-filtered.onnx")
_LONGEST_S = 10.0
_LONGEST_MESSAGE = 2000
_LARGEST_GROWTH_KB = 512 << 10
_ODD: list[Any] = [
    *(0, -1, 1, 1 << 31, 1 << 63, -(1 << 63), 10**400, 0.5, -0.0, 1e308, True, None),
    *("", "h0", "..", "a\0b", "Infinity", "NaN", "1", "model.onnx", "\u00b2", "x" * 10**5),
    *([], {}, [[[[]]]], {"name": "h0"}, [1 << 40], [0] * 1000),
]


def _outcome(folder: Path) -> Artifact | None:
    """The artifact, or None for one that was refused in short; anything else fails the test."""
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    try:
        return load_artifact(folder)
    except ArtifactError as error:
        return _named(folder, str(error))
    finally:
        assert time.monotonic() - started < _LONGEST_S
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _LARGEST_GROWTH_KB


def _named(folder: Path, message: str) -> None:
    assert str(folder) in message
    assert len(message) < _LONGEST_MESSAGE


def _bytes_changed(content: bytes, chance: random.Random) -> bytes:
    """A few bytes flipped, put in, taken out, repeated, or cut off."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        span = chance.choice((1, 1, 2, 8, 200))
        change = chance.randrange(5)
        if change == 0 and at < len(changed):
            changed[at] ^= 1 << chance.randrange(8)
        elif change == 1:
            changed[at:at] = chance.randbytes(span)
        elif change == 2:
            del changed[at : at + span]
        elif change == 3:
            changed[at:at] = changed[at : at + span] * chance.choice((1, 3, 100))
        else:
            changed[at : at + span] = b"\xff" * span
    return bytes(changed[: chance.choice((None, None, None, chance.randrange(len(changed) + 1)))])


def _messages(message: Any) -> Iterator[Any]:
    """A protobuf message and all in it, but what is told of values between nodes."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None and field.name != "value_info":
            for part in [value] if not hasattr(value, "append") else value:
                yield from _messages(part)


def _structure_changed(content: bytes, chance: random.Random) -> bytes:
    """A few fields of a graph set to something odd, dropped, doubled, or put elsewhere."""
    model = onnx.ModelProto.FromString(content)
    for _ in range(chance.randint(1, 3)):
        parts = [part for part in _messages(model) if part.ListFields()]
        part, other = chance.choice(parts), chance.choice(parts)
        field, value = chance.choice(part.ListFields())
        try:
            if chance.random() < 0.3:
                part.ClearField(field.name)
            elif field.message_type is None and not hasattr(value, "append"):
                setattr(part, field.name, chance.choice(_ODD))
            elif hasattr(value, "append"):
                value.append(chance.choice([*value, *_ODD]))
            else:
                part.MergeFrom(other)
        except (TypeError, ValueError, OverflowError, DecodeError):
            continue  # what the field cannot hold
    return model.SerializeToString()


@pytest.mark.parametrize("change", [_bytes_changed, _structure_changed])
def test_any_graph_is_refused_or_loads(
    copy: Path, change: Callable[[bytes, random.Random], bytes]
) -> None:
    session, loaded = Runtime("cpu", "scan", 1, slots=2).session, 0
    for case in range(_CASES // 4):
        chance = random.Random(f"{change.__name__} {case}")
        path = copy / chance.choice(_GRAPHS)
        content = path.read_bytes()
        try:
            path.write_bytes(change(content, chance))
            rehash(copy)
            if (artifact := _outcome(copy)) is not None:
                loaded += 1
                started = time.monotonic()
                with suppress(ArtifactError):
                    session(artifact, path.name)
                assert time.monotonic() - started < _LONGEST_S
        finally:
            path.write_bytes(content)
    rehash(copy)
    assert _outcome(copy) is not None
    assert loaded < _CASES // 4


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every key of every table and list of a JSON value."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def test_any_manifest_is_refused_or_loads(copy: Path) -> None:
    path = copy / "manifest.json"
    content, refused = path.read_text(), 0
    assert _outcome(copy) is not None
    for case in range(_CASES // 4):
        chance = random.Random(f"manifest {case}")
        manifest = json.loads(content)
        for _ in range(chance.randint(1, 3)):
            table, key = chance.choice(list(_places(manifest)))
            if chance.random() < 0.2:
                del table[key]
            else:
                table[key] = deepcopy(chance.choice([*_ODD, float("nan"), float("inf")]))
        path.write_text(json.dumps(manifest))
        if (artifact := _outcome(copy)) is None:
            refused += 1
        else:
            told = artifact.manifest
            findings = [finding.describe() for finding in told.parity or ()]
            json.dumps([findings, told.provenance, told.hyperparameters], allow_nan=False)
            artifact.initial_state()
    path.write_text(content)
    assert _outcome(copy) is not None
    assert refused > _CASES // 8


@pytest.mark.parametrize("name", ["manifest.json", "golden.safetensors"])
def test_any_other_file_is_refused_or_loads(copy: Path, name: str) -> None:
    content = (copy / name).read_bytes()
    head = content[:2000]  # where all that is not numbers lies
    for case in range(_CASES // 8):
        chance = random.Random(f"{name} {case}")
        (copy / name).write_bytes(_bytes_changed(head, chance) + content[len(head) :])
        if name != "manifest.json":
            rehash(copy)
        _outcome(copy)
