"""What a chat template may call: filters, tests and functions, as transformers has them, within bounds.

Each looks at the rendering's clock and at the size of what it is given before it begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import filters
from jinja2.exceptions import SecurityError
from jinja2.utils import Namespace

from llmrun.chat import marked_text
from llmrun.chat.render_context import RenderContext
from llmrun.chat.weight import weigh
from llmrun.errors import TEMPLATE, LlmrunError

_EQUALITY_TESTS = ("eq", "equalto", "==", "ne", "!=", "in")
_WALKING_TESTS = ("lower", "upper", ">", "gt", "greaterthan", "ge", ">=", "<", "lt", "lessthan", "le", "<=")
"""Those that go through all of a value, like comparisons; the others look at its outside."""
_OUTSIDE = frozenset({"count", "length", "first", "last", "list", "d", "default"})
"""Filters that look at a value's outside alone."""
_SLOW = frozenset({"pprint", "striptags", "urlize", "wordwrap"})
_MAX_SLOW = 20_000
"""Characters for a filter whose time grows with their square."""
_MAX_PRECISION = 1000


class ChatNamespace(Namespace):
    """Jinja's `namespace()` without private names: those would reach into Python."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # so that `self` stays free for a template
        self, *given = args
        if not all(isinstance(each, Mapping) for each in given):
            raise TypeError("a namespace is made of a mapping or of names")
        values = dict(*given, **kwargs)
        for name in values:
            _refuse_private(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_private(name)
        super().__setitem__(name, value)


def _refuse_private(name: Any) -> None:
    if str(name).startswith("_"):
        raise SecurityError(f"a namespace may not hold the private name {name!r}")


@jinja2.pass_context
def _dict(context: RenderContext, given: Any = (), /, **kwargs: Any) -> dict[Any, Any]:
    if isinstance(given, Mapping):
        return dict(given, **kwargs)
    made: dict[Any, Any] = {}
    for pair in given:  # each may take a while, where all keys have one hash
        context.in_time()
        made.update((pair,))
    return {**made, **kwargs}


@jinja2.pass_context
def _sum(context: RenderContext, values: Iterable[Any], attribute: Any = None, start: Any = 0) -> Any:
    if attribute is not None:
        values = filters.sync_do_map(context, values, attribute=attribute)
    for value in values:  # lists too: each sum is a copy
        context.in_time()
        start = context.held(start + value)
    return start


def _round(value: float, precision: int = 0, method: Any = "common") -> float:
    if precision > _MAX_PRECISION:
        raise OverflowError(f"it rounds to {precision} digits, over {_MAX_PRECISION}")
    return filters.do_round(value, precision, method)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def _escape_ascii(text: str, keep: str) -> str:
    return re.sub(
        r"[^\x00-\x7f]", lambda match: match[0] if match[0] == keep else json.dumps(match[0])[1:-1], text
    )


@jinja2.pass_context
def _tojson(
    context: RenderContext,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as transformers writes it: no HTML escapes, Unicode as it is."""
    if isinstance(value, Iterator):  # what `map` and `select` give
        value = list(value)
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, sort_keys=sort_keys)
    if not ensure_ascii:
        return text
    mark = context.mark
    return _escape_ascii(text, keep=mark.sign if mark else "")


@jinja2.pass_context
def _replace(context: RenderContext, text: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, mark = str(text), context.mark
    replace = marked_text.bound(mark, text, "replace") if mark else None
    return str((replace or text.replace)(str(old), str(new), -1 if count is None else count))


@jinja2.pass_context
def _unmarked(context: RenderContext, value: Any) -> Any:
    context.weigh(value)
    return context.mark.clean(value) if context.mark else value


@jinja2.pass_context
def _weighed(context: RenderContext, value: Any) -> Any:
    """`value`: stands wherever a template goes through all of a value by itself."""
    context.weigh(value)
    return value


@jinja2.pass_context
def _in_time(context: RenderContext, value: Any) -> Any:
    """`value`, once more before the deadline: stands wherever a template can go round."""
    context.in_time()
    return value


@jinja2.pass_context
def _raise_exception(context: RenderContext, message: str) -> None:
    words = _unmarked(context, str(message))
    raise LlmrunError(TEMPLATE, f"the chat template refuses these messages: {words}")


def _bounded(name: str, filter: Callable[..., Any]) -> Callable[..., Any]:
    wants = getattr(filter, "jinja_pass_arg", None)

    @jinja2.pass_context
    def looking(context: RenderContext, *args: Any, **kwargs: Any) -> Any:
        context.in_time()
        if name in _SLOW:
            weigh((args, kwargs), _MAX_SLOW, {})
        elif name not in _OUTSIDE:
            context.weigh(*args, *kwargs.values())
        match wants and wants.name:
            case "context":
                args = (context, *args)
            case "eval_context":
                args = (context.eval_ctx, *args)
            case "environment":
                args = (context.environment, *args)
        return context.held(filter(*args, **kwargs))

    return looking


def _behind(look: Callable[[RenderContext, Any], Any], test: Any) -> Callable[..., bool]:
    """A test of values that `look` has seen, and made what it gives."""

    @jinja2.pass_context
    def compare(context: RenderContext, *values: Any) -> bool:
        return bool(test(*(look(context, value) for value in values)))

    return compare


def equip(environment: jinja2.Environment) -> None:
    """Give a new environment all of these in place of its own."""
    filters, tests = environment.filters, environment.tests
    filters.update(tojson=_tojson, replace=_replace, sum=_sum, round=_round)
    filters.update({name: _bounded(name, each) for name, each in filters.items()})
    filters.update(unmarked=_unmarked, weighed=_weighed, in_time=_in_time)  # for the environment's own use
    tests.update({name: _behind(_unmarked, tests[name]) for name in _EQUALITY_TESTS})
    tests.update({name: _behind(_weighed, tests[name]) for name in _WALKING_TESTS})
    environment.globals.update(
        raise_exception=_raise_exception, strftime_now=_strftime_now, namespace=ChatNamespace, dict=_dict
    )
    del environment.globals["lipsum"]  # texts of any length, of no use in a prompt
