"""The markers of tool calls, read off what a template renders for one call and for two."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from llmrun.chat.syntax.atoms import common_end, common_start, counted_end, first_tag
from llmrun.chat.syntax.derive_arguments import PAIR, Render, Written, derive_arguments, json_span
from llmrun.chat.syntax.derive_reasoning import SWITCHES, named, opening
from llmrun.chat.syntax.form import Block, Calls, JsonArguments, Part, Slot, Syntax
from llmrun.chat.syntax.probe import CONTENT, IDS, KEYS, NAMES, THOUGHT, Call, Probe, Turn

Span = tuple[int, int, Slot]


@dataclass(frozen=True)
class _Shape:
    """How the template wants calls: arguments as text, ids that hold the name, content beside them."""

    probe: Probe
    ids: tuple[str, str]
    content: Any
    written: Written

    def render(self, count: int, content: Any = None) -> str | None:
        calls = [Call(NAMES[i], self.arguments(i), self.ids[i]) for i in range(count)]
        return self.probe.answer(content=self.content if content is None else content, calls=calls)

    @staticmethod
    def arguments(index: int) -> dict[str, str]:
        """Different for each call, so that they can be told apart."""
        return PAIR if index == 0 else {key: f"other{value}" for key, value in PAIR.items()}


def derive_calls(turn: Turn, syntax: Syntax) -> Syntax:
    """`syntax` with the template's calls, where it renders any."""
    for shape in _shapes(turn.probe):
        one = shape.render(1)
        if one and len(found := _slots(one, shape, 0)) > 1:
            return _read(turn, syntax, shape, one, found)
    return syntax


def _shapes(probe: Probe) -> Iterator[_Shape]:
    """Ways to give calls under which the template shows name and arguments, the likeliest first."""
    for text in (False, True):
        found: list[_Shape] = []
        for ids in (IDS, tuple(f"functions.{name}:{i}" for i, name in enumerate(NAMES))):
            for content in ("", None, CONTENT):
                using = probe.using(arguments_text=text)

                written = derive_arguments(_rendering(using, ids[0], content), NAMES[0])
                if written is None:
                    continue
                shape = _Shape(using, (ids[0], ids[1]), content, written)
                if isinstance(written.form, JsonArguments):
                    yield shape
                    return
                found.append(shape)
        yield from found


def _rendering(probe: Probe, id: str, content: Any) -> Render:
    return lambda arguments: probe.answer(content=content, calls=[Call(NAMES[0], arguments, id)])


def _slots(text: str, shape: _Shape, index: int, start: int = 0) -> list[Span]:
    """Where the slots of call `index` stand in `text`, in order. Empty where it does not show."""
    if isinstance(shape.written.form, JsonArguments):
        span = json_span(text, shape.arguments(index), start)
    else:
        values = list(shape.arguments(index).values())
        first = text.find(values[0], start)
        key = text.rfind(KEYS[0], start, first) if first >= 0 else -1
        last = text.find(values[1], first)
        span = (key - shape.written.before, last + len(values[1]) + shape.written.after) if key >= 0 else None
    if span is None:
        return []
    slots: list[Span] = [(*span, Slot.ARGUMENTS)]
    words = [(NAMES[index], Slot.NAME)]
    if NAMES[index] not in shape.ids[index]:
        words.append((shape.ids[index], Slot.ID))
    for word, slot in words:
        place = text.find(word, start)
        while place >= 0:
            if not span[0] <= place < span[1]:
                slots.append((place, place + len(word), slot))
            place = text.find(word, place + len(word))
    return sorted(slots, key=lambda span: span[0])


def _read(turn: Turn, syntax: Syntax, shape: _Shape, one: str, slots: list[Span]) -> Syntax:
    """The syntax of calls from the texts around their slots."""
    text, second = one, []
    if two := shape.render(2):
        first, second = _slots(two, shape, 0), _slots(two, shape, 1)
        if [slot for *_, slot in first] == [slot for *_, slot in second] and first[-1][1] <= second[0][0]:
            text, slots = two, first
        else:
            second = []
    before = _own(turn, syntax, text[: slots[0][0]])
    syntax, after = _ended(turn, syntax, text[(second or slots)[-1][1] :], several=bool(second))
    calls = _several(text, slots, second, before, after) if second else _single(text, slots, before, after)
    calls = replace(
        calls,
        arguments=shape.written.form,
        arguments_text=shape.probe.arguments_text,
        named_ids=NAMES[0] in shape.ids[0],
    )
    if calls.keys is None and Slot.NAME not in calls.call[: calls.call.index(Slot.ARGUMENTS)]:
        return syntax  # arguments that come before anyone knows whose
    if not calls.open.strip() and calls.close.strip():  # what closes nothing that was opened ends the turn
        calls = replace(calls, close="", end=calls.close)
    syntax = replace(syntax, calls=calls, after_content=_after_content(syntax, calls, shape))
    return syntax if syntax.reasoning else replace(syntax, reasoning=_thinking(turn, calls, shape))


def _single(text: str, slots: list[Span], before: str, after: str) -> Calls:
    """Calls of which a turn holds one."""
    return Calls(call=_joined([before, *_inner(text, slots, []), after]), several=False)


def _own(turn: Turn, syntax: Syntax, before: str) -> str:
    """What of the text in front of the first call is the calls' own, not the turn's or other parts'."""
    own = before[len(common_start(turn.prompt, before)) :]
    reasoning = syntax.reasoning or named(turn)
    if reasoning and (close := reasoning.close.strip()) in own:
        behind = own.rpartition(close)[2]
        space = reasoning.close[len(reasoning.close.rstrip()) :]
        own = behind.removeprefix(common_start(behind, space))
    if CONTENT in own:
        own = own.rpartition(CONTENT)[2]
    return own.removeprefix(syntax.content.open)


def _ended(turn: Turn, syntax: Syntax, after: str, *, several: bool) -> tuple[Syntax, str]:
    """The syntax with what closes content and ends the turn, and what of the text behind the last call closes
    calls. Where a turn of one call ends in its own way, an object's end is taken for the call's."""
    plain, after = turn.plain.partition(CONTENT)[2].rstrip(), after.rstrip()
    end = common_end(plain, after)
    if not end.strip():
        return syntax, after if several or "}" not in after else after[: after.rindex("}") + 1]
    after, close = after.removesuffix(end), plain.removesuffix(end)
    if not close.strip():
        end, close = close + end, ""
    ending = first_tag(end)
    syntax = replace(syntax, content=replace(syntax.content, close=close), end=ending)
    return syntax, after.partition(ending.strip())[0]


def _several(text: str, first: list[Span], second: list[Span], before: str, after: str) -> Calls:
    """Calls from a text that holds two."""
    between = text[first[-1][1] : second[0][0]]
    pairs = counted_end(text[: first[0][0]], between)
    while pairs and len(_text(pairs)) > len(before) and (before.strip() or not pairs[0][0].strip()):
        pairs = pairs[1:]
    opening = "".join(two for _, two in pairs)
    rest = between[: len(between) - len(opening)]
    close = common_start(rest, after)
    call = _joined([*_counted(pairs), *_inner(text, first, second), close])
    gaps = zip(itertools.pairwise(first), itertools.pairwise(second), strict=True)
    inner = [
        pair
        for (one, then), (other, next_) in gaps
        for pair in counted_end(text[one[1] : then[0]], text[other[1] : next_[0]])
    ]
    return Calls(
        open=before.removesuffix(_text(pairs)),
        call=call,
        separator=rest.removeprefix(close),
        close=after.removeprefix(close),
        first_index=next((int(one) for one, two in [*pairs, *inner] if one != two), 0),
    )


def _text(pairs: list[tuple[str, str]]) -> str:
    return "".join(one for one, _ in pairs)


def _counted(pairs: list[tuple[str, str]]) -> list[Part]:
    return [one if one == two else Slot.INDEX for one, two in pairs]


def _inner(text: str, first: list[Span], second: list[Span]) -> list[Part]:
    """The slots of a call and the texts between them; where two calls' texts count up, their index."""
    parts: list[Part] = []
    for place, (start, _, slot) in enumerate(first):
        if place:
            literal = text[first[place - 1][1] : start]
            other = text[second[place - 1][1] : second[place][0]] if second else literal
            pairs = counted_end(literal, other)
            parts += _counted(pairs) if _text(pairs) == literal else [literal]
        parts.append(slot)
    return parts


def _joined(parts: list[Part]) -> tuple[Part, ...]:
    """The parts with neighbouring texts joined and empty ones left out."""
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(last := joined[-1], str):
            joined[-1] = last + part
        elif part:
            joined.append(part)
    return tuple(joined)


def _lead(calls: Calls) -> str:
    """The text from the first call's beginning to its name or id."""
    parts = itertools.takewhile(lambda part: part not in (Slot.NAME, Slot.ID, Slot.ARGUMENTS), calls.call)
    return calls.open + "".join(part if isinstance(part, str) else str(calls.first_index) for part in parts)


def _after_content(syntax: Syntax, calls: Calls, shape: _Shape) -> str:
    """What the template puts between content and a call."""
    text = shape.render(1, CONTENT)
    slots = _slots(text, shape, 0) if text and CONTENT in text else []
    if text is None or not slots:
        return ""
    between = text[text.index(CONTENT) + len(CONTENT) : slots[0][0]].removeprefix(syntax.content.close)
    lead = _lead(calls)
    return between.removesuffix(lead) if between.endswith(lead) else ""


def _thinking(turn: Turn, calls: Calls, shape: _Shape) -> Block | None:
    """The markers of reasoning, of a template that shows it only in front of calls."""
    for switches in SWITCHES:
        probe = shape.probe.using(switches=switches)
        call = Call(NAMES[0], shape.arguments(0), shape.ids[0])
        text = probe.answer(content=shape.content, thought=THOUGHT, calls=[call])
        prompt = probe.prompt()
        if text is None or prompt is None or THOUGHT not in text:
            continue
        before, _, rest = text.partition(THOUGHT)
        close, found, _ = rest.partition(_lead(calls))
        if found and close.strip():
            return Block(opening(turn, prompt, before, close), close)
    return None
