"""Reading one tool call out of text, its name and its arguments as they come.

A call is read in two steps. Its head goes up to where the arguments begin: what is no head is no call.
Then the arguments, in whatever form: from here on it is a call, however it ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from llmrun.chat.syntax import bare_keys, json_text, nested, pythonic, tagged
from llmrun.chat.syntax.form import (
    BareKeyArguments,
    Calls,
    JsonArguments,
    NestedArguments,
    PythonArguments,
    Slot,
)
from llmrun.chat.syntax.source import Out, Reading, Source, ignored
from llmrun.chat.syntax.typed import Schema

_NAME = re.compile(r"[^\s<>\[\](){}\"'=,|]")
_MAX_NAME = 256
_ARGUMENTS = ("arguments", "parameters")
_ALSO = (*_ARGUMENTS, "type")


@dataclass(frozen=True)
class Head:
    """What is known of a call where its arguments begin. `arguments`: they stood before the name, in full;
    None: they come now."""

    name: str
    id: str = ""
    arguments: str | None = None


def read_head(source: Source, calls: Calls) -> Reading[Head | None]:
    """Read a call up to its arguments, without its first literal text. None where it is no call."""
    if calls.keys:
        return (yield from _json_head(source, calls))
    found: dict[Slot, str] = {}
    before = calls.call[: calls.call.index(Slot.ARGUMENTS)]
    for place, part in enumerate(before):
        if isinstance(part, str):
            if place and part.strip() and not (yield from _literal(source, calls, part)):
                return None
            continue
        text = yield from _slot(source, part)
        if not text or found.setdefault(part, text) != text:
            return None
    if isinstance(calls.arguments, JsonArguments):
        yield from source.skip_space()
        character = yield from source.peek()
        if character != "{" and (character or not source.cut):
            return None
    id = found.get(Slot.ID, "")
    if calls.named_ids:
        id = f"functions.{found[Slot.NAME]}:{found.get(Slot.INDEX, calls.first_index)}"
    return Head(found[Slot.NAME], id)


def read_arguments(source: Source, calls: Calls, parameters: Schema, out: Out) -> Reading[bool]:
    """Read the arguments behind a head; `out` gets JSON. False where they are cut or no arguments; then `out`
    has what there was."""
    ends = ends_of(calls)
    whole = yield from _arguments(source, calls, parameters, ends, out)
    if not whole:  # up to its end, or to where the next one begins
        which = yield from source.until((*ends, calls.marker), out, pin=True)
        if which == len(ends):
            source.back()
        source.unpin()
    return whole


def _arguments(
    source: Source, calls: Calls, parameters: Schema, ends: tuple[str, ...], out: Out
) -> Reading[bool]:
    form = calls.arguments
    if isinstance(form, JsonArguments):
        yield from source.skip_space()
        return (yield from json_text.read_object(source, out))
    if isinstance(form, PythonArguments):
        return (yield from pythonic.read(source, out))
    if isinstance(form, BareKeyArguments):
        return (yield from bare_keys.read(source, form.quote, out))
    if isinstance(form, NestedArguments):
        return (yield from nested.read(source, form.prefix, parameters, ends, out))
    return (yield from tagged.read(source, form, parameters, ends, out))


def ends_of(calls: Calls) -> tuple[str, ...]:
    """The texts that may stand behind a call's arguments, as far as they are more than a bracket."""
    last = calls.call[-1]
    tail = last if isinstance(last, str) else ""
    if calls.keys:
        tail = tail[tail.rindex("}") + 1 :]
    return tuple(text for text in (tail, calls.close) if text.strip())


def read_tail(source: Source, calls: Calls) -> Reading[None]:
    """Read what ends a call behind its arguments, as far as it stands there."""
    if calls.keys:
        yield from _json_tail(source)
    for part in calls.call[calls.call.index(Slot.ARGUMENTS) + 1 :]:
        if isinstance(part, str):
            yield from source.accept(part[part.rindex("}") + 1 :] if calls.keys and "}" in part else part)
        elif not calls.keys:
            yield from _slot(source, part)


def next_call(source: Source, calls: Calls) -> Reading[bool]:
    """Read what stands between two calls that one marker opens. False where no further call follows."""
    first = calls.call[0]
    if not calls.keys:
        between = calls.separator + (first if isinstance(first, str) else "")
        return (yield from source.accept(between))
    yield from source.skip_space()
    if (yield from source.peek()) in (",", ";"):
        source.take(1)
        yield from source.skip_space()
    return (yield from source.peek()) == "{"


def read_close(source: Source, calls: Calls) -> Reading[None]:
    """Read what stands behind the last call of several, as far as it stands there."""
    close = calls.close
    if calls.keys and (yield from source.accept("]")):
        yield from source.accept("".join(ends_of(calls)[:1]) if not close.strip() else "")
        close = close.lstrip().removeprefix("]")
    yield from source.accept(close)


def _literal(source: Source, calls: Calls, part: str) -> Reading[bool]:
    if not calls.header_end:
        return (yield from source.accept(part))
    return (yield from source.until([calls.header_end], ignored)) is not None


def _slot(source: Source, slot: Slot) -> Reading[str]:
    text = ""
    yield from source.skip_space()
    while len(text) < _MAX_NAME and (character := (yield from source.peek())):
        if slot is Slot.INDEX and not character.isdecimal():
            break
        if not _NAME.match(character) or (slot is Slot.NAME and character == ":" and text):
            break
        text += source.take(1)
    return text


def _json_head(source: Source, calls: Calls) -> Reading[Head | None]:
    """Read a JSON object up to the value of its arguments, or whole where the name comes behind them."""
    keys = calls.keys
    yield from source.accept("[")
    if not keys or not (yield from source.accept("{")):
        return None
    found: dict[str, str] = {}
    while not (yield from source.accept("}")):
        if found and not (yield from source.accept(",")):
            return None
        key = yield from _json_key(source)
        if key is None:
            return None
        yield from source.skip_space()
        if not calls.marker and key not in (keys.name, keys.id, keys.arguments, *_ALSO):
            return None  # some other object, which need not wait for its end to be content
        if key == keys.arguments or (key in _ARGUMENTS and keys.arguments in _ARGUMENTS):
            key = keys.arguments
            if keys.name in found and (yield from source.peek()) == "{":
                return _head(keys.name, keys.id, found)
        value = yield from json_text.read_value(source)
        if value is None:
            return None
        found[key] = value
    arguments = _unpacked(found.get(keys.arguments, "{}"))
    head = _head(keys.name, keys.id, found)
    return Head(head.name, head.id, arguments) if head and arguments else None


def _json_key(source: Source) -> Reading[str | None]:
    yield from source.skip_space()
    if (yield from source.peek()) != '"':
        return None
    text = yield from json_text.read_value(source)
    if text is None or not (yield from source.accept(":")):
        return None
    return _text(text)


def _text(value: str | None) -> str:
    """The string that JSON `value` is; "" where it is none."""
    found = json_text.parsed(value or "")
    return found[0] if found and isinstance(found[0], str) else ""


def _head(name: str, id: str, found: Mapping[str, str]) -> Head | None:
    called = _text(found.get(name))
    return Head(called, _text(found.get(id))) if called else None


def _unpacked(value: str) -> str | None:
    """The arguments' JSON text, also where the model packed it into a string. None: they are no object."""
    if value == "null":
        return "{}"
    text = _text(value) or value
    return text if json_text.is_object(text) else None


def _json_tail(source: Source) -> Reading[None]:
    """Read a call's object from behind its arguments to its end."""
    while not (yield from source.accept("}")):
        if not (yield from source.accept(",")) or (yield from _json_key(source)) is None:
            return
        yield from source.skip_space()
        if (yield from json_text.read_value(source)) is None:
            return
