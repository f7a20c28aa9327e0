"""The Jinja environment of chat templates: what transformers gives them, and nothing that escapes.

Templates come with model files from strangers. They see plain data, may change none but lists of their
own, and reach no attribute that leads to Python's internals. Rendering may be given a `Mark` (see
`llmrun.chat.mark`); then comparing and splitting marked text gives what it would give without marks.

Importing this module imports jinja2, so the command line does it only when it renders.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

import jinja2
import jinja2.meta
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from llmrun.chat import marked_text
from llmrun.chat.mark import Mark
from llmrun.errors import TEMPLATE, LlmrunError

MAX_OUTPUT = 64_000_000  # characters; also of one repeated string, and items of one repeated list
MAX_SECONDS = 20.0  # of one rendering
_MAX_BITS = 100_000

_EQUALITY = ("eq", "ne", "in", "notin")
_EQUALITY_TESTS = ("eq", "equalto", "==", "ne", "!=", "in")


_GROWING = frozenset({"append", "extend", "insert", "pop"})


class GivenList(list[Any]):
    """A list that came from outside: a template may not change it, but lists of its own it may."""


def _given(value: Any) -> Any:
    """A copy of JSON data with every list in it a `GivenList`."""
    if isinstance(value, Mapping):
        return {key: _given(item) for key, item in value.items()}
    if isinstance(value, list):
        return GivenList(map(_given, value))
    return value


class RenderContext(Context):
    """A rendering's variables, its mark where it has one, and when (`time.monotonic`) it must have ended."""

    mark: Mark | None = None
    deadline: float = 0.0

    def derived(self, locals: dict[str, Any] | None = None) -> RenderContext:
        context = super().derived(locals)
        assert isinstance(context, RenderContext)
        context.mark = self.mark
        context.deadline = self.deadline
        return context


def _mark_of(context: Context) -> Mark | None:
    return context.mark if isinstance(context, RenderContext) else None


class ChatNamespace(Namespace):
    """Jinja's `namespace()` without private names: those would reach into Python."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # so that `self` stays free for a template
        self, *given = args
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


def _dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)


class _Generation(Extension):
    """`{% generation %}…{% endgeneration %}` marks what an assistant said, for training. Here: a scope."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it so

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def _escape_ascii(text: str, keep: str) -> str:
    return re.sub(
        r"[^\x00-\x7f]", lambda match: match[0] if match[0] == keep else json.dumps(match[0])[1:-1], text
    )


@jinja2.pass_context
def _tojson(
    context: Context,
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
    mark = _mark_of(context)
    return _escape_ascii(text, keep=mark.sign if mark else "")


@jinja2.pass_context
def _replace(context: Context, text: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, mark = str(text), _mark_of(context)
    replace = marked_text.bound(mark, text, "replace") if mark else None
    return str((replace or text.replace)(str(old), str(new), -1 if count is None else count))


@jinja2.pass_context
def _unmarked(context: Context, value: Any) -> Any:
    mark = _mark_of(context)
    return mark.clean(value) if mark else value


@jinja2.pass_context
def _in_time(context: Context, value: Any) -> Any:
    """`value`, once more before the deadline: stands wherever a template can go round."""
    if isinstance(context, RenderContext) and time.monotonic() > context.deadline:
        raise TimeoutError(f"it runs for more than {MAX_SECONDS:g} s")
    return value


def _timed(filter: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that looks at the clock first: each may take a second, and a line holds thousands."""
    wants = getattr(filter, "jinja_pass_arg", None)

    @jinja2.pass_context
    def looking(context: Context, *args: Any, **kwargs: Any) -> Any:
        _in_time(context, None)
        match wants and wants.name:
            case "context":
                return filter(context, *args, **kwargs)
            case "eval_context":
                return filter(context.eval_ctx, *args, **kwargs)
            case "environment":
                return filter(context.environment, *args, **kwargs)
        return filter(*args, **kwargs)

    return looking


@jinja2.pass_context
def _raise_exception(context: Context, message: str) -> None:
    words = _unmarked(context, str(message))
    raise LlmrunError(TEMPLATE, f"the chat template refuses these messages: {words}")


def _unmarked_test(test: Any) -> Callable[..., bool]:
    @jinja2.pass_context
    def compare(context: Context, *values: Any) -> bool:
        return bool(test(*(_unmarked(context, value) for value in values)))

    return compare


class _NothingEarly(CodeGenerator):
    """Leaves all of a template's work to the rendering: that has bounds, and the load of a model does not."""

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)


class ChatSandbox(ImmutableSandboxedEnvironment):
    """The environment; immutable after it is made, safe for many templates and threads."""

    context_class = RenderContext
    code_generator_class = _NothingEarly
    intercepted_binops = frozenset({"*", "**"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            extensions=[_Generation, jinja2.ext.loopcontrols],
        )
        self.filters.update(tojson=_tojson, replace=_replace, unmarked=_unmarked, in_time=_in_time)
        self.tests.update({name: _unmarked_test(self.tests[name]) for name in _EQUALITY_TESTS})
        self.globals.update(
            raise_exception=_raise_exception, strftime_now=_strftime_now, namespace=ChatNamespace, dict=_dict
        )
        del self.globals["lipsum"]  # texts of any length, of no use in a prompt
        self.filters = {name: _timed(each) for name, each in self.filters.items()}

    def read(self, source: str) -> nodes.Template:
        """The template's syntax tree, with comparisons made blind to marks and loops and macros that look at
        the clock. Raises TemplateSyntaxError."""
        tree = self.parse(source)
        turns: list[_Turn] = [
            *tree.find_all(nodes.For),
            *tree.find_all(nodes.Macro),
            *tree.find_all(nodes.CallBlock),
        ]
        for turn in turns:
            _time(turn)
        for comparison in tree.find_all(nodes.Compare):
            if any(operand.op in _EQUALITY for operand in comparison.ops):
                comparison.expr = _blind(comparison.expr)
                for operand in comparison.ops:
                    operand.expr = _blind(operand.expr)
        return tree

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if type(obj) is list and attr in _GROWING:  # its own: Kimi K2's template keeps a queue of call ids
            return True
        return super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        _in_time(context, None)
        mark = _mark_of(context)
        text = getattr(function, "__self__", None)
        if mark and isinstance(text, str) and mark.sign in text:
            function = marked_text.bound(mark, text, function.__name__) or function
        return super().call(context, function, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            for many, times in ((left, right), (right, left)):
                if isinstance(many, (str, list, tuple)) and isinstance(times, int):
                    _refuse_over(MAX_OUTPUT, len(many) * times)
        elif isinstance(left, int) and isinstance(right, int):
            _refuse_over(_MAX_BITS, left.bit_length() * right)
        return super().call_binop(context, operator, left, right)


def _refuse_over(limit: int, size: int) -> None:
    if size > limit:
        raise OverflowError(f"it makes a value of size {size}, over {limit}")


_Turn = nodes.For | nodes.Macro | nodes.CallBlock


def _time(turn: _Turn) -> None:
    """Have every turn of a loop, and every call of a macro, look at the clock."""
    true = nodes.Const(True, lineno=turn.lineno)
    looking = nodes.Filter(true, "in_time", [], [], None, None, lineno=turn.lineno)
    turn.body.insert(0, nodes.ExprStmt(looking, lineno=turn.lineno))
    if isinstance(turn, nodes.For) and turn.test is not None:  # a turn that it leaves out takes time too
        turn.test = nodes.And(looking, turn.test, lineno=turn.lineno)


def _blind(expression: nodes.Expr) -> nodes.Expr:
    if isinstance(expression, nodes.Const):
        return expression
    return nodes.Filter(expression, "unmarked", [], [], None, None, lineno=expression.lineno)


def literals(tree: nodes.Template) -> tuple[str, ...]:
    """Every text the template itself holds, written out or quoted."""
    texts = [node.data for node in tree.find_all(nodes.TemplateData)]
    texts += [node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)]
    return tuple(dict.fromkeys(texts))


def names(tree: nodes.Template) -> frozenset[str]:
    """Every attribute and key the template names."""
    return frozenset(literals(tree)) | {node.attr for node in tree.find_all(nodes.Getattr)}


def inputs(tree: nodes.Template) -> frozenset[str]:
    """Every variable that the template reads where it may not have set it."""
    return frozenset(jinja2.meta.find_undeclared_variables(tree))


def new_context(template: jinja2.Template, variables: Mapping[str, Any], mark: Mark | None) -> Context:
    """The context to render `template` in."""
    context = template.new_context({name: _given(value) for name, value in variables.items()})
    if isinstance(context, RenderContext):
        context.mark = mark
        context.deadline = time.monotonic() + MAX_SECONDS
    return context
