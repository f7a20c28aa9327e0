"""The Jinja environment of chat templates: what transformers gives them, and nothing that escapes.

Templates come with model files from strangers. They see plain data, may change none but lists of their
own, and reach no attribute that leads to Python's internals. Rendering may be given a `Mark` (see
`llmrun.chat.mark`); then comparing and splitting marked text gives what it would give without marks.

Importing this module imports jinja2, so the command line does it only when it renders.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import jinja2
import jinja2.meta
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import BlockReference, Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

from llmrun.chat import marked_text, template_filters
from llmrun.chat.render_context import RenderContext
from llmrun.chat.weight import ITEM, MAX_BITS, too_large

_EQUALITY = ("eq", "ne", "in", "notin")
_GROWING = frozenset({"append", "extend", "insert", "pop"})
_AT_ONCE = frozenset({"fromkeys"})
"""Makes a mapping of any keys in one go: for ever, where all of them have one hash."""
_PASSING_ON = (Macro, LoopContext, BlockReference)
"""What is called with values and looks at none."""


class _Generation(Extension):
    """`{% generation %}…{% endgeneration %}` marks what an assistant said, for training. Here: a scope."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it so

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


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
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            extensions=[_Generation, jinja2.ext.loopcontrols],
        )
        template_filters.equip(self)

    def read(self, source: str) -> nodes.Template:
        """The template's syntax tree, with comparisons made blind to marks, loops and macros that look at the
        clock, and a look at each value that is gone through. Raises TemplateSyntaxError."""
        tree = self.parse(source)
        turns: list[_Turn] = [
            *tree.find_all(nodes.For),
            *tree.find_all(nodes.Macro),
            *tree.find_all(nodes.CallBlock),
        ]
        for turn in turns:
            _time(turn)
        for comparison in tree.find_all(nodes.Compare):
            by = "unmarked" if any(operand.op in _EQUALITY for operand in comparison.ops) else "weighed"
            comparison.expr = _through(by, comparison.expr)
            for operand in comparison.ops:
                operand.expr = _through(by, operand.expr)
        joined: list[nodes.Output | nodes.Concat] = [
            *tree.find_all(nodes.Output),
            *tree.find_all(nodes.Concat),
        ]
        for texts in joined:
            texts.nodes = [_through("weighed", node) for node in texts.nodes]
        for pair in tree.find_all(nodes.Pair):
            pair.key = _through("weighed", pair.key)
        for item in tree.find_all(nodes.Getitem):
            if not isinstance(item.arg, nodes.Slice):
                item.arg = _through("weighed", item.arg)
        return tree

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if type(obj) is list and attr in _GROWING:  # its own: Kimi K2's template keeps a queue of call ids
            return True
        if attr in _AT_ONCE:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        assert isinstance(context, RenderContext)
        context.in_time()
        mark, owner = context.mark, None
        if not isinstance(function, _PASSING_ON):
            context.weigh(*args, *kwargs.values())
            owner = getattr(function, "__self__", None)
        if mark and isinstance(owner, str) and mark.sign in owner:
            function = marked_text.bound(mark, owner, function.__name__) or function
        elif isinstance(owner, (list, tuple)) and function.__name__ not in _GROWING:
            context.weigh(owner)
        result = context.held(super().call(context, function, *args, **kwargs))
        if type(owner) is list:
            context.held(owner)
        return result

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        assert isinstance(context, RenderContext)
        context.in_time()
        match operator:
            case "*":
                _refuse_repeated(context.room, left, right)
            case "**" if isinstance(left, int) and isinstance(right, int):
                if left.bit_length() * right > MAX_BITS:
                    raise OverflowError(f"it makes a number of more than {MAX_BITS} bits")
            case "-" if isinstance(left, Set) or isinstance(right, Set):  # makes a set at once, as `_AT_ONCE`
                raise SecurityError("it takes sets from each other")
            case "%":
                context.weigh(left, right)
        return context.held(super().call_binop(context, operator, left, right))


def _refuse_repeated(room: int, left: Any, right: Any) -> None:
    for many, times in ((left, right), (right, left)):
        if isinstance(many, (str, bytes, list, tuple)) and isinstance(times, int):
            size = len(many) * (1 if isinstance(many, (str, bytes)) else ITEM)
            if size * times > room:
                raise too_large(room)


_Turn = nodes.For | nodes.Macro | nodes.CallBlock


def _time(turn: _Turn) -> None:
    """Have every turn of a loop, and every call of a macro, look at the clock."""
    true = nodes.Const(True, lineno=turn.lineno)
    looking = nodes.Filter(true, "in_time", [], [], None, None, lineno=turn.lineno)
    turn.body.insert(0, nodes.ExprStmt(looking, lineno=turn.lineno))
    if isinstance(turn, nodes.For) and turn.test is not None:  # a turn that it leaves out takes time too
        turn.test = nodes.And(looking, turn.test, lineno=turn.lineno)


def _through(filter: str, expression: nodes.Expr) -> nodes.Expr:
    if isinstance(expression, (nodes.Const, nodes.TemplateData)):
        return expression
    return nodes.Filter(expression, filter, [], [], None, None, lineno=expression.lineno)


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
