"""How a template is told to have its model think, or how hard: found by rendering it with each way to say so.

A way counts where it changes the prompt. Which of two values means "on" is known by its word.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import msgspec

from llmrun.chat.template import ChatTemplate, variables
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import Effort, Thinking

MAX_SECONDS = 20.0  # of all renderings of one template
_EFFORTS: tuple[Effort, ...] = get_args(Effort)
_NEAREST: Mapping[Effort, Effort] = {"minimal": "low", "xhigh": "high", "max": "high"}
"""For the efforts that few templates have a word for."""
_NAMES = ("enable_thinking", "thinking", "thinking_mode", "reasoning")  # the usual ones first
_SWITCH = re.compile(r"think|reason|thought")
_NO_SWITCH = re.compile(r"effort|strength|budget")
_EFFORT = re.compile(r"(think|reason)\w*_(effort|strength)")
_NEGATED = re.compile(r"^(no|skip|disable|without)_")
_PAIRS: tuple[tuple[Any, Any], ...] = (
    (False, True),
    ("off", "on"),
    ("disabled", "enabled"),
    ("no_think", "think"),
)
_EFFORT_OFF = ("none", "no_think")
_WORDS = (("/no_think", "/think"), ("/nothink", "/think"))


@dataclass(frozen=True)
class Way:
    """What says it: variables of the template, and a word in the system's turn."""

    variables: Mapping[str, Any]
    word: str = ""


@dataclass(frozen=True)
class Switches:
    """The ways that a template has. None, or not listed: it has none."""

    on: Way | None = None
    off: Way | None = None
    efforts: Mapping[Effort, Way] | None = None

    def of_effort(self, effort: Effort) -> Way | None:
        return (self.efforts or {}).get(effort)


def find_switches(template: ChatTemplate) -> Switches:
    """Renders a few dozen short prompts, at most."""
    probe = _Probe(template)
    off, on = next(_differing(probe), (None, None))
    return Switches(on, off, _efforts(probe, on))


def as_switched(thinking: Thinking, switches: Switches) -> Thinking:
    """What a request says, for a template that can only be told on or off: of the efforts `minimal` is off,
    and all above it are on. Where an effort is but a wish, it turns nothing on."""
    if thinking.effort is None or switches.efforts is not None or thinking.enabled is False:
        return thinking
    enabled = thinking.effort != "minimal" if not thinking.wish else thinking.enabled
    return msgspec.structs.replace(thinking, enabled=enabled, effort=None)


def way_of(thinking: Thinking, switches: Switches, *, thinks: bool) -> Way:
    """How the template is told what a request says. INVALID_REQUEST where it cannot be.

    thinks  whether the template knows reasoning at all. What has no switch to turn it off is closed in the
            prompt, by who renders it
    """
    if thinking.enabled and not thinks and not thinking.wish:
        raise _cannot("this model does not think: its chat template knows no reasoning", thinking.field)
    if thinking.enabled is False:
        return switches.off or Way({})
    way = switches.of_effort(thinking.effort) if thinking.effort else None
    if way is None and thinking.effort and not thinking.wish:
        known = ", ".join(switches.efforts or ()) or "none"
        raise _cannot(
            f"this model's chat template knows no effort {thinking.effort!r} (known: {known})", thinking.field
        )
    return way or (switches.on if thinking.enabled else None) or Way({})


def _cannot(what: str, field: str) -> LlmrunError:
    return LlmrunError(INVALID_REQUEST, what, hint="leave it out, or use another model", field=field)


class _Probe:
    def __init__(self, template: ChatTemplate) -> None:
        self.template = template
        self._deadline = time.monotonic() + MAX_SECONDS
        self._known: dict[str, str | None] = {}

    def prompt(self, way: Way) -> str | None:
        """The prompt of a short conversation; None where the template refuses it, or time is over."""
        key = repr(way)
        if key not in self._known and time.monotonic() > self._deadline:
            return None
        if key not in self._known:
            turns = [{"role": "user", "content": "Hi"}]
            if way.word:
                turns.insert(0, {"role": "system", "content": way.word})
            given = {**variables(turns), "bos_token": "", "eos_token": "", **way.variables}
            try:
                self._known[key] = self.template.render(given)
            except LlmrunError:
                self._known[key] = None
        return self._known[key]

    def differ(self, one: Way, other: Way) -> bool:
        prompts = self.prompt(one), self.prompt(other)
        return None not in prompts and prompts[0] != prompts[1]


def _differing(probe: _Probe) -> Iterator[tuple[Way, Way]]:
    """Pairs of ways to say off and on that make a difference."""
    inputs = probe.template.inputs
    names = [name for name in inputs if _SWITCH.search(name) and not _NO_SWITCH.search(name)]
    for name in sorted(names, key=lambda name: (_NAMES.index(name) if name in _NAMES else 99, name)):
        for pair in _PAIRS:
            off, on = reversed(pair) if _NEGATED.match(name) else pair
            if probe.differ(one := Way({name: off}), other := Way({name: on})):
                yield one, other
    for name in _effort_names(probe):
        for none in _EFFORT_OFF:
            known = any(none == literal for literal in probe.template.literals)
            if known and probe.differ(one := Way({name: none}), other := Way({name: "high"})):
                yield one, other
    written = "\0".join(probe.template.literals)
    for no, yes in _WORDS:
        if no in written and _answers_to(probe, no, yes):
            yield Way({}, no), Way({}, yes)
    if "thinking_budget" in inputs:
        off, on = Way({"thinking_budget": 0}), Way({})
        if probe.differ(off, on):
            yield off, on


def _answers_to(probe: _Probe, no: str, yes: str) -> bool:
    """Whether the two words change more of the prompt than that they stand in it."""
    prompts = [probe.prompt(Way({}, word)) for word in (no, yes)]
    first, second = (prompt and prompt.replace(no, "").replace(yes, "") for prompt in prompts)
    return None not in prompts and first != second


def _effort_names(probe: _Probe) -> list[str]:
    return sorted(name for name in probe.template.inputs if _EFFORT.fullmatch(name))


def _efforts(probe: _Probe, on: Way | None) -> dict[Effort, Way] | None:
    """Each effort that the template renders, where any two of them differ."""
    thinking = dict(on.variables) if on else {}
    for name in _effort_names(probe):
        ways = {effort: Way({**thinking, name: _word(effort, probe)}) for effort in _EFFORTS}
        known = {effort: way for effort, way in ways.items() if probe.prompt(way) is not None}
        if len({probe.prompt(way) for way in known.values()}) > 1:
            return known
    return None


def _word(effort: Effort, probe: _Probe) -> str:
    """The template's word for an effort."""
    return effort if effort in probe.template.literals else _NEAREST.get(effort, effort)
