"""Protocol buffer messages read strictly: what a schema does not list is refused, not skipped.

Nothing is copied but strings and numbers, so a message takes no more memory than a small multiple
of its bytes. https://protobuf.dev/programming-guides/encoding/
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


class WireError(ValueError):
    """Bytes that are no message, or one with something that its schema does not have."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message; `many` of them make a list, and one may stand once at most.

    A `message` stays bytes for who reads it with its own schema; `ignored` is never looked at.
    """

    name: str
    kind: Literal["number", "text", "message", "ignored"]
    many: bool = False


Schema = dict[int, Field]
Message = dict[str, Any]


def read_message(data: memoryview, schema: Schema) -> Message:
    """The fields of a message by name, those that are absent as None or an empty list.

    Raises `WireError`.
    """
    message: Message = {f.name: [] if f.many else None for f in schema.values()}
    for number, wire_type, value in _fields(data):
        field = schema.get(number)
        if field is None:
            raise WireError(f"field {number} is not one of: {', '.join(message)}")
        if field.kind == "ignored":
            continue
        values = _values(field, wire_type, value)
        if field.many:
            message[field.name] += values
        elif message[field.name] is not None:
            raise WireError(f"{field.name} stands more than once")
        else:
            (message[field.name],) = values
    return message


def _values(field: Field, wire_type: int, value: int | memoryview) -> list[Any]:
    """The value of a field, or several numbers that are packed into one.

    Other readers pass over a number that is packed alone, as over a field they do not know.
    """
    if field.kind == "number":
        if wire_type == _VARINT:
            return [value]
        if field.many and wire_type == _BYTES and isinstance(value, memoryview):
            return list(_varints(value))
    elif wire_type == _BYTES and isinstance(value, memoryview):
        return [value if field.kind == "message" else _text(value)]
    raise WireError(f"{field.name} is not a {field.kind}")


def _fields(data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """Number, wire type and value of each field, in order."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire_type = key & 7
        if wire_type == _VARINT:
            value, at = _varint(data, at)
            yield key >> 3, wire_type, value
            continue
        if wire_type == _BYTES:
            size, at = _varint(data, at)
        elif wire_type in (_FIXED32, _FIXED64):
            size = 4 if wire_type == _FIXED32 else 8
        else:
            raise WireError(f"wire type {wire_type} at byte {at}")
        if not 0 <= size <= len(data) - at:
            raise WireError(f"cut short at byte {at}: {size} bytes should follow")
        yield key >> 3, wire_type, data[at : at + size]
        at += size


def _varints(data: memoryview) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A signed number of 64 bits, and where it ends."""
    if at < len(data) and data[at] < 0x80:  # as nearly all of them
        return data[at], at + 1
    value = 0
    for index in range(_LONGEST_VARINT):
        if at + index >= len(data):
            raise WireError(f"cut short at byte {at}, inside a number")
        byte = data[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return value - (value >> 63 << 64), at + index + 1
    raise WireError(f"a number at byte {at} has more than 64 bits")


def _text(data: memoryview) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise WireError(f"text that is not UTF-8: {error.reason}") from error
