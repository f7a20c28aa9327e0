"""One rendering of a chat template: its variables, and how much time and room it may take.

In: the variables. Out: the context that Jinja hands to everything in a template; whatever can take long asks
it first.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import jinja2
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext

from llmrun.chat.mark import Mark
from llmrun.chat.weight import ITEM, Once, too_large, weigh
from llmrun.errors import LlmrunError

# So much, and more for each character that the variables bring.
MAX_SIZE, SIZE_EACH = 4_000_000, 8
"""Characters of one value, and of all that is written."""
MAX_SECONDS, SECONDS_EACH = 1.0, 1e-6
"""Of the thread's own time: a busy machine takes nothing away."""


class GivenList(list[Any]):
    """A list that came from outside: a template may not change it, but lists of its own it may."""


def _given(value: Any, known: dict[int, int]) -> Any:
    """A copy of JSON data with every list in it a `GivenList`; the weights of its parts go into `known`."""
    if isinstance(value, Mapping):
        copied: Any = {key: _given(item, known) for key, item in value.items()}
        parts: Iterable[Any] = chain(copied, copied.values())
    elif isinstance(value, list):
        parts = copied = GivenList([_given(item, known) for item in value])
    else:
        return value
    known[id(copied)] = ITEM + sum(_weight(part, known) for part in parts)
    return copied


def _weight(value: Any, known: Mapping[int, int]) -> int:
    return ITEM + len(value) if isinstance(value, str) else known.get(id(value), ITEM)


class RenderContext(Context):
    """A rendering's variables, its mark where it has one, and its bounds.

    seconds   how long it may take, and `deadline`, when that is over on the thread's clock
    room      the weight that a value may have, and the characters that may be written
    known     weights of the variables' parts, which nothing changes
    """

    mark: Mark | None = None
    seconds: float = MAX_SECONDS
    deadline: float = 0.0
    room: int = MAX_SIZE
    known: Mapping[int, int] = {}

    def derived(self, locals: dict[str, Any] | None = None) -> RenderContext:
        context = super().derived(locals)
        assert isinstance(context, RenderContext)
        context.mark, context.known, context.room = self.mark, self.known, self.room
        context.seconds, context.deadline = self.seconds, self.deadline
        return context

    def in_time(self) -> None:
        """TimeoutError past the deadline."""
        if time.thread_time() > self.deadline:
            raise TimeoutError(f"it runs for more than {self.seconds:.3g} s")

    def weigh(self, *values: Any) -> None:
        """OverflowError for a value that Python would not get through soon."""
        for value in values:
            if type(value) is not str or len(value) > self.room:
                weigh(value, self.room, self.known)

    def held(self, value: Any) -> Any:
        """`value`, which an operation made, computed where it is lazy. OverflowError for one too large."""
        if isinstance(value, (str, bytes)):
            size = len(value)
        elif isinstance(value, (list, tuple, dict)):
            size = len(value) * ITEM
        elif isinstance(value, Iterator) and not isinstance(value, (Once, LoopContext)):
            return self._computed(value)
        else:
            self.weigh(value)
            return value
        if size > self.room:
            raise too_large(self.room)
        return value

    def _computed(self, items: Iterator[Any]) -> Once:
        computed: list[Any] = []
        try:
            for item in items:
                self.in_time()
                computed.append(item)
                self.held(computed)
        except (LlmrunError, SecurityError, TimeoutError, OverflowError, MemoryError, RecursionError):
            raise
        except Exception as error:
            return Once(computed, error)
        return Once(computed)


def new_context(template: jinja2.Template, variables: Mapping[str, Any], mark: Mark | None) -> RenderContext:
    """The context to render `template` in, with the bounds for what `variables` bring."""
    known: dict[int, int] = {}
    given = {name: _given(value, known) for name, value in variables.items()}
    weight = sum(_weight(value, known) for value in given.values())
    context = template.new_context(given)
    assert isinstance(context, RenderContext)
    context.mark, context.known = mark, known
    context.room = MAX_SIZE + SIZE_EACH * weight
    context.seconds = MAX_SECONDS + SECONDS_EACH * weight
    context.deadline = time.thread_time() + context.seconds
    return context
