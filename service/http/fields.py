"""Requests of every kind of model as they arrive: what they have in common, and their fields."""

from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from service.state import StatePolicy

# From here on a float stands for several integers: 2.0**53 may have been written as one more.
_NO_LONGER_WHOLE = 2.0**53
# What rounds to the least normal float32 or more, and what rounds past the largest: half a step
# below either. Of smaller numbers few digits are left, and some kernels take them for 0.
_LEAST, _TOO_LARGE = 2.0**-126 - 2.0**-150, 2.0**128 - 2.0**103


class RequestBody(BaseModel):
    """Unknown fields are errors, types are taken as they are, and null means the default."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _null_is_the_default(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        fields = cls.model_fields
        known = {n: value for n, value in given.items() if n in fields and value is not None}
        # What is unknown stays an error, and one is enough: a body has room for 100,000.
        unknown = next((n for n in given if n not in fields), None)
        if unknown is None:
            return known
        # Of half of a surrogate pair pydantic would say that no object was given.
        return known | {unknown.encode(errors="backslashreplace").decode(): given[unknown]}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        told = handler.resolve_ref_schema(handler(schema))
        for name, field in told["properties"].items():
            if name not in told.get("required", ()):
                told["properties"][name] = _or_null(field)
        return told


def _or_null(field: JsonSchemaValue) -> JsonSchemaValue:
    """The schema of a field that may be null, whose type does not say so yet."""
    if {"type": "null"} in field.get("anyOf", ()):
        return field
    rule = {name: value for name, value in field.items() if name not in ("title", "default")}
    choices = rule.pop("anyOf", None) or [rule.copy()]
    about = {name: value for name, value in field.items() if name in ("title", "default")}
    return {"anyOf": [*choices, {"type": "null"}]} | about


def _in_float32(value: float) -> float:
    """The graphs compute in float32: there it has to be a normal number, and 0 only if it is 0."""
    if value and not _LEAST <= abs(value) < _TOO_LARGE:
        raise ValueError("float32 has no such number")
    return value


def _whole(value: Any) -> Any:
    """Some clients write their integers as 1328.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _NO_LONGER_WHOLE:
        return int(value)
    return value


def check_unicode(text: str) -> str:
    """The text, if it can be UTF-8. Raises `ValueError`."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"character {error.start} is half of a surrogate pair") from error
    return text


def _unicode(value: Any) -> Any:
    return check_unicode(value) if isinstance(value, str) else value


def at_most(count: int, what: str) -> BeforeValidator:
    """Refuses a longer list or object before anything in it is looked at, or an error made of each
    of a million."""

    def check(value: Any) -> Any:
        if isinstance(value, list | dict) and len(value) > count:
            raise ValueError(f"{len(value):,} {what}; at most {count:,}")
        return value

    return BeforeValidator(check)


# The last of an annotation: the limits before them are then part of the schema.
FLOAT32 = AfterValidator(_in_float32)
WHOLE = BeforeValidator(_whole)
UNICODE = BeforeValidator(_unicode)

Text = Annotated[str, UNICODE]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63), WHOLE]
# Of a number of thousands of digits an error of ours would tell each.
Count = Annotated[int, Field(ge=0, lt=2**53), WHOLE]


class WorkRequest(RequestBody):
    """What every request has that a model is to write for."""

    seed: Seed | None = None
    state: str | None = None
    state_policy: StatePolicy = "exact"
    return_state: bool = False
    stream: bool = False
    resume: bool = Field(
        False, description="with stream: events carry what to change in the request to go on there"
    )
    event_ids: bool = Field(
        True, description="with stream: number the events, and send comments while there are none"
    )
    deadline_s: float | None = Field(
        None, gt=0, description="seconds it may take, never more than the service allows"
    )

    @model_validator(mode="after")
    def _resumes_a_stream(self) -> Self:
        if self.resume and not self.stream:
            raise ValueError("resume needs stream: a whole answer is not gone on with")
        return self
