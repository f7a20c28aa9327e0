"""Values of every shape that a client's own types allow, made from the types themselves."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions
from pydantic import BaseModel
from typing_extensions import NotRequired, Required

TEXT = "x"
"""Stands for any text. What else a sample holds of text is a word of the type's own."""
_SIMPLE: dict[Any, tuple[Any, ...]] = {
    str: (TEXT,),
    bool: (True, False),
    int: (1,),
    float: (0.5,),
    type(None): (None,),
    object: ({},),
    Any: ({},),
}


def fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """The fields of a typed dictionary or a model: their types, and whether they must be there."""
    if typing_extensions.is_typeddict(kind):
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        return {
            name: (
                hint,
                get_origin(hint) is Required or (kind.__total__ and get_origin(hint) is not NotRequired),
            )
            for name, hint in hints.items()
        }
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {
            info.serialization_alias or info.alias or name: (info.annotation, info.is_required())
            for name, info in kind.model_fields.items()
        }
    return {}


def samples(kind: Any, within: tuple[Any, ...] = ()) -> Iterator[Any]:
    """One value for each way to write one. Nothing for types that no JSON has."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _SIMPLE:
        yield from _SIMPLE[kind]
    elif origin in (Required, NotRequired, Annotated):
        yield from samples(inner[0], within)
    elif origin in (Union, types.UnionType):
        for one in inner:
            yield from samples(one, within)
    elif origin is Literal:
        yield from inner
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield {}
        if inner[1] not in (object, Any):
            yield from ({TEXT: value} for value in samples(inner[1], within))
    elif isinstance(origin, type) and issubclass(origin, Iterable) and origin is not typing.IO:
        yield from ([value] for value in samples(inner[0], within))
    elif kind not in within:
        yield from _objects(kind, (*within, kind))


def _objects(kind: Any, within: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """The object with what it must have; then with each value of each field."""
    known = fields(kind)
    least = {name: next(samples(hint, within), None) for name, (hint, needed) in known.items() if needed}
    if known:
        yield least
    for name, (hint, _) in known.items():
        yield from ({**least, name: value} for value in samples(hint, within))
