"""Reading arguments that stand between tags of their own, and passing them on as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from llmrun.chat.syntax import typed
from llmrun.chat.syntax.form import CDATA, TaggedArguments
from llmrun.chat.syntax.source import Out, Reading, Source, ignored


def read(
    source: Source, form: TaggedArguments, parameters: typed.Schema, ends: Sequence[str], out: Out
) -> Reading[bool]:
    """Read arguments up to one of `ends`, the texts that end a call; `out` gets JSON. False where they stop
    being arguments, or the text ends."""
    out("{")
    before = ""
    while (yield from _opens(source, form, bool(before))):
        key: list[str] = []
        marker = yield from source.until(_distinct(form.between), key.append)
        if marker is None:
            return False
        out(f"{before}{typed.dumps(''.join(key))}: ")
        schema = typed.parameter_schema(parameters, "".join(key))
        if not (yield from _value(source, form, _distinct(form.between)[marker], schema, out)):
            return False
        before = ", "
    if not (yield from at_end(source, ends)):
        return False
    out("}")
    return True


def at_end(source: Source, ends: Sequence[str]) -> Reading[bool]:
    """Whether the arguments are over: one of `ends` stands here, or the model ended its turn."""
    yield from source.skip_space()
    if not (yield from source.peek()):
        return not source.cut
    for end in ends:
        if (yield from source.matches(end.strip())):
            return True
    return False


def _opens(source: Source, form: TaggedArguments, again: bool) -> Reading[bool]:
    if again and form.separator.strip():
        yield from source.accept(form.separator)
    return (yield from source.accept(form.open))


def _value(
    source: Source, form: TaggedArguments, between: str, schema: typed.Schema, out: Out
) -> Reading[bool]:
    types = {kind for kind, text in form.between if text == between}
    closes = _distinct(tuple((kind, text) for kind, text in form.close if kind in types))
    wrapped = form.cdata and (yield from source.accept(CDATA[0]))
    if wrapped or types == {"string"} or ("string" in types and typed.is_text(schema)):
        out('"')
        ends = [CDATA[1]] if wrapped else closes
        if (yield from source.until(ends, lambda text: out(typed.dumps(text)[1:-1]))) is None:
            return False
        out('"')
        return (not wrapped) or (yield from source.until(closes, ignored)) is not None
    parts: list[str] = []
    if (yield from source.until(closes, parts.append)) is None:
        return False
    text = "".join(parts)
    out(
        typed.json_of(text, schema) if "string" in types else typed.literal(text.strip()) or typed.dumps(text)
    )
    return True


def _distinct(texts: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for _, text in texts))
