"""The texts that tell the parts of an assistant's turn apart, of one syntax, as the parser looks for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from llmrun.chat.syntax.atoms import first_tag, special_tags
from llmrun.chat.syntax.form import Syntax

CALL: Final = "call"
REASONING: Final = "reasoning"
CONTENT: Final = "content"
END: Final = "end"
STRAY: Final = "stray"

_SHORTEST = 6  # characters of a tag that marks a call by itself


class Markers:
    """opening   what may stand in front of content, with what it marks, longest first
    texts     what may stand behind or between content; `kinds`: what each marks
    closes    what ends reasoning
    strays    tags that are never content: where one stands for nothing it is left out
    bare      whether a call is known only by looking like one: a JSON object in place of content
    """

    def __init__(self, syntax: Syntax) -> None:
        opening = [(text, CONTENT) for text in (syntax.content.open, *syntax.also_content)]
        marked = [(syntax.content.close, CONTENT), (syntax.end, END)]
        self.closes: tuple[str, ...] = ()
        self.strays = tuple(dict.fromkeys(tag for text in _texts(syntax) for tag in special_tags(text)))
        if reasoning := syntax.reasoning:
            opening += [(reasoning.open, REASONING), (reasoning.close, CONTENT)]
            self.closes = tuple(filter(str.strip, (reasoning.close, syntax.end)))
            if special_tags(reasoning.open):
                marked.append((reasoning.open, REASONING))
        self.bare = syntax.calls is not None and not syntax.calls.marker
        if syntax.calls:
            marked.append((syntax.calls.end, END))
            if syntax.calls.open.strip() and syntax.calls.close.strip():  # an empty list of calls
                marked.append((syntax.calls.open + syntax.calls.close, CONTENT))
        calls = [(text, CALL) for text in call_markers(syntax)]
        marked += calls
        marked += [(text, STRAY) for text in (*syntax.left_out, *self.strays)]
        heads = tuple(text.strip() for text, _ in _visible(opening))
        opening += [(text, kind) for text, kind in calls if text.strip().startswith(heads)]
        self.opening = sorted(_visible(opening), key=lambda item: -len(item[0].strip()))
        self.texts = tuple(text for text, _ in _visible(marked))
        self.kinds = tuple(kind for _, kind in _visible(marked))


def call_markers(syntax: Syntax) -> list[str]:
    """The texts that a call begins with, the template's own first."""
    calls = syntax.calls
    if calls is None:
        return []
    marker, found = calls.marker, list(calls.also)
    if marker:
        space = "" if calls.keys else calls.head[len(calls.head.rstrip()) :]
        first = calls.head[: len(calls.head) - len(calls.head.lstrip())] + marker + space
        found = [syntax.after_content + first, first, *found]
        tag = marker[marker.rindex("<") :] if "<" in marker[1:] else ""
        if not calls.keys and len(tag) >= _SHORTEST:  # models leave out what stands around it
            found.append(tag + space)
    # White space in a marker may be missing where the parser looks for it: models put some between tags.
    return [text.replace("><", "> <") for text in dict.fromkeys(found)]


def _texts(syntax: Syntax) -> Iterator[str]:
    """The texts between the parts of a turn, and between the slots of a call."""
    for block in filter(None, (syntax.reasoning, syntax.content)):
        yield from (block.open, block.close)
    yield from (*syntax.also_content, syntax.after_content, syntax.end)
    if calls := syntax.calls:
        yield from (part for part in calls.call if isinstance(part, str))
        yield from (calls.open, calls.separator, calls.close, calls.end, *calls.also)


def primed_by(syntax: Syntax, prompt: str) -> str:
    """The end of a rendered prompt that already begins the answer: a marker. "" where there is none."""
    found = [syntax.reasoning.open] if syntax.reasoning else []
    if syntax.reasoning and first_tag(syntax.reasoning.close) == syntax.reasoning.close.rstrip():
        found.append(syntax.reasoning.close)
    if syntax.calls:
        found += [syntax.calls.head, syntax.calls.marker]
    for text in (syntax.content.open, *found):
        visible = prompt.rstrip()
        if text.strip() and visible.endswith(text.strip()):
            return prompt[len(visible) - len(text.strip()) :]
    return ""


def _visible(items: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(text, kind) for text, kind in items if text.strip()]
