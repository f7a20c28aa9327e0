"""What every request body is checked against, and how a failed check is put into words.

A dialect's bodies derive from `Body`. Each field there is one of three, and the field itself says
which: honoured (the plain ones), `Ignored` (checked for its type, without effect on the answer) or
`Refused` (known to the dialect, would change the answer, not built). A name in none of them is an
error. The tables in docs/api.md are read off the same declarations (`llmrun.api.fields`).

A lenient check (`LLMRUN_LENIENT`) passes over fields that are refused or unknown, and says which. What
stands in place of something, such as an image among the parts of a message, is refused all the same.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, model_validator
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_FIELD, LlmrunError

UNSUPPORTED = "unsupported"
WRONG = "wrong"
MAX_NAME = 200  # characters of a field's path in an error; names come from the request


@dataclass(frozen=True)
class Ignored:
    """Marks a field that is accepted and has no effect; `why` that is harmless."""

    why: str


@dataclass(frozen=True)
class Refused:
    """Marks a field that is refused, unless it is null or one of `unless` (values that ask for nothing).

    what  what the field asks for, worded to follow "asks for"
    """

    what: str
    unless: tuple[object, ...] = ()

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: object) -> dict[str, Any]:
        return {"enum": [None, *self.unless], "description": f"Refused: {self.what}."}

    def _check(self, value: object, info: ValidationInfo) -> None:
        harmless = value is None or any(type(value) is type(v) and value == v for v in self.unless)
        if not harmless and not _passed_over(info, str(info.field_name)):
            raise unsupported(self.what)


def _passed_over(info: ValidationInfo, name: str) -> bool:
    """Whether the check is lenient; it then takes the field's name down."""
    if info.context is None:
        return False
    info.context.append(name)
    return True


def unsupported(what: str, field: str = "", hint: str = "leave the field out") -> PydanticCustomError:
    """The error of a value that asks for `what`, which is not built; `field`: below the thing checked."""
    context = {"what": what, "field": field, "hint": hint}
    return PydanticCustomError(UNSUPPORTED, "asks for {what}, which is not supported yet", context)


def wrong(message: str, field: str = "", hint: str = "") -> PydanticCustomError:
    """The error of a value; `message` follows its name. `field`: below the thing checked."""
    return PydanticCustomError(WRONG, "{message}", {"message": message, "field": field, "hint": hint})


B = TypeVar("B", bound="Body")


class Body(BaseModel):
    """A JSON object of a request: strict types, no unknown names, null the same as absent."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        defer_build=True,
        json_schema_extra={"additionalProperties": False},  # as `_known_names` has it
    )

    @model_validator(mode="before")
    @classmethod
    def _known_names(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, dict):
            known = [info.alias or name for name, info in cls.model_fields.items()]
            for name in value:
                if name not in known and not _passed_over(info, name):
                    near = difflib.get_close_matches(name, known, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else "the known fields are listed at /docs"
                    raise wrong("is not a known field", name, hint)
        return value

    @classmethod
    def parse(cls: type[B], value: object, passed_over: list[str] | None = None) -> B:
        """`value` as this body; INVALID_REQUEST or UNSUPPORTED_FIELD, naming the field, where it is none.

        passed_over  makes the check lenient: it takes the names of fields that were not honoured
        """
        try:
            return cls.model_validate(value, context=passed_over)
        except ValidationError as error:
            raise worded(error.errors(include_url=False)) from None


def one_value(body: Body, *names: str) -> Any:
    """The value of a field that has several names, None where no name is sent; an error where they differ."""
    given = [(name, value) for name in names if (value := getattr(body, name)) is not None]
    for name, value in given[1:]:
        first, other = given[0]
        if value != other:
            raise wrong(f"is {value} but {first} is {other}: send one", name)
    return given[0][1] if given else None


# pydantic's words for these, "Input should be a valid integer", are a programmer's.
_SHOULD = {
    "string_type": "should be a string",
    "int_type": "should be a whole number",
    "float_type": "should be a number",
    "bool_type": "should be true or false",
    "list_type": "should be a list",
    "dict_type": "should be an object",
    "model_type": "should be an object",
}


_TYPE = re.compile(r"(?:dict|list|tuple)\[.*\]")  # which of a field's types was tried, in pydantic's path


def worded(errors: Sequence[ErrorDetails]) -> LlmrunError:
    """One error for a person out of pydantic's list: what is not built first, else the first."""
    error = min(errors, key=lambda e: e["type"] != UNSUPPORTED)
    kind, context = error["type"], error.get("ctx", {})
    path = [str(part) for part in error["loc"] if part != "[key]" and not _TYPE.fullmatch(str(part))]
    if kind in (UNSUPPORTED, WRONG) and context["field"]:
        path.append(context["field"])
    name = ".".join(path)[:MAX_NAME]
    if kind in (UNSUPPORTED, WRONG):
        row = UNSUPPORTED_FIELD if kind == UNSUPPORTED else INVALID_REQUEST
        return LlmrunError(row, f"{name} {error['msg']}", hint=context["hint"], field=name)
    if kind == "missing":
        return LlmrunError(INVALID_REQUEST, f"{name} is missing", field=name)
    if kind in ("too_short", "string_too_short"):
        return LlmrunError(INVALID_REQUEST, f"{name} should not be empty", field=name)
    if kind == "too_long":
        most = context["max_length"]
        return LlmrunError(INVALID_REQUEST, f"{name} should have at most {most} items", field=name)
    should = _SHOULD.get(kind) or "should " + error["msg"].partition(" should ")[2]
    return LlmrunError(INVALID_REQUEST, f"{name} {should}, not {_shown(error['input'])}", field=name)


def _shown(value: object) -> str:
    """A value as an error may show it: what kind of thing it is, and itself where it is small."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            text = repr(value)
            return text if len(text) <= 24 else f"{text[:20]}…"
        case str():
            return repr(value) if len(value) <= 24 else "a longer string"
        case list():
            return "a list" if value else "an empty list"
        case _:
            return "an object"


def takes(body: type[Body]) -> dict[str, Any]:
    """What a route that reads `body` itself adds to the OpenAPI description."""
    schema = {"$ref": f"#/components/schemas/{body.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
