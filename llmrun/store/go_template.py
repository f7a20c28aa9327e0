"""Go chat templates, as Ollama's Modelfiles carry them, to Jinja. In: a Go template. Out: its Jinja twin.

Go's text/template is read as far as chat templates use it: text, fields, `if`, `range`, variables,
comparisons, `len`, `slice`, `index`, `json`, and the trim marks. What has no twin is refused by name, never
guessed. Two kinds of templates exist (Ollama's `docs/template.md`):

- those over `.Messages` render the whole conversation and are translated as they stand;
- those over `.System`, `.Prompt` and `.Response` render one exchange; their twin repeats it for each and ends
  before the last `.Response`, where the model writes.

Texts become Jinja string literals, so that no whitespace setting of Jinja's touches them. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from llmrun.store.go_syntax import Node, Untranslatable, nodes_of

_LOOKS_GO = re.compile(
    r"\{\{-?\s*(?:\.|\$|/\*|(?:if|range|end|else|template|with|block|define|break)(?=\s|\}))"
)
_JINJA_BLOCK = re.compile(r"\{%[-+]?\s*(?:if|for|set|macro|raw|filter|call|block|generation)\b")
_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*"|`[^`]*`)|(?P<number>-?\d+)|(?P<op>:=|[()|,=])'
    r"|(?P<path>\$\w*(?:\.\w+)*|(?:\.\w+)+|\.)|(?P<word>\w+))"
)
_LONGEST = 256 * 1024
"""Characters of a template, and of any value in its twin: comparisons with several repeat the first."""
_TOP = {
    "Messages": "messages",
    "System": "system",
    "Tools": "tools",
    "Think": "enable_thinking",
    "Prompt": "prompt",
    "Response": "response",
}
_FIELDS = {
    "Role": "role",
    "Content": "content",
    "Thinking": "reasoning_content",
    "ToolCalls": "tool_calls",
    "ToolName": "name",
    "Function": "function",
    "Name": "name",
    "Arguments": "arguments",
    "Description": "description",
    "Parameters": "parameters",
    "ID": "id",
}
_JSON = {"tools", "arguments", "function", "parameters", "tool_calls"}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_SYSTEM = (
    "{%- set system = messages | selectattr('role', 'equalto', 'system')"
    " | map(attribute='content') | join('\\n\\n') -%}"
)


def looks_go(template: str) -> bool:
    """Whether `template` holds what Go alone writes in double braces, and no block of Jinja's."""
    return _LOOKS_GO.search(template) is not None and _JINJA_BLOCK.search(template) is None


def to_jinja(template: str) -> str:
    """The Jinja twin of a Go chat template. Untranslatable, with the reason, where there is none."""
    if len(template) > _LONGEST:
        raise Untranslatable(f"it has {len(template)} characters, and {_LONGEST} are the most")
    try:
        return _twin(template)
    except RecursionError:
        raise Untranslatable("it is nested too deeply") from None


def _twin(template: str) -> str:
    nodes = nodes_of(template)
    if _mentions(nodes, ".Messages"):
        return _SYSTEM + _render(nodes, _Scope(constants={"prompt": "''", "response": "''"}))
    return _exchanges(nodes)


@dataclass(frozen=True)
class _Scope:
    """What names mean here: `dot` is the value of `.` (None: the top), `variables` maps Go's to Jinja's,
    `constants` stands for top-level fields that have one value."""

    dot: str | None = None
    depth: int = 0
    variables: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)


def _mentions(nodes: list[Node], name: str) -> bool:
    return any(
        (node.kind != "text" and name in node.source)
        or _mentions(node.body, name)
        or _mentions(node.other, name)
        for node in nodes
    )


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"


def _render(nodes: list[Node], scope: _Scope) -> str:
    out = []
    for node in nodes:
        if node.kind == "text":
            out.append(f"{{{{- {_literal(node.source)} -}}}}")
        elif node.kind == "show":
            value = _expression(node.source, scope)
            printed_as_json = value.rpartition(".")[2] in _JSON or value == "tool"
            shown = f"{value} | tojson" if printed_as_json else f"{value} or ''"
            out.append(f"{{{{- {shown} -}}}}")
        elif node.kind == "set":
            name = node.body[0].source
            scope = replace(scope, variables={**scope.variables, name: f"v_{name[1:]}"})
            out.append(f"{{%- set v_{name[1:]} = {_expression(node.source, scope)} -%}}")
        elif node.kind == "if":
            out.append(f"{{%- if {_expression(node.source, scope)} -%}}{_render(node.body, scope)}")
            out.append(
                f"{{%- else -%}}{_render(node.other, scope)}{{%- endif -%}}"
                if node.other
                else "{%- endif -%}"
            )
        else:
            out.append(_loop(node, scope))
    return "".join(out)


def _loop(node: Node, scope: _Scope) -> str:
    match = re.fullmatch(r"(?:(\$\w+)\s*,\s*)?(\$\w+)\s*:=\s*(.+)", node.source, re.DOTALL)
    index, item, source = match.groups() if match else (None, None, node.source)
    over = _expression(source, scope)
    dot = f"item{scope.depth}" if over != "tools" else "tool"
    variables = {**scope.variables}
    body = ""
    if index:
        variables[index] = f"index{scope.depth}"
        body = f"{{%- set index{scope.depth} = loop.index0 -%}}"
    if item:
        variables[item] = dot
    body += _render(node.body, replace(scope, dot=dot, depth=scope.depth + 1, variables=variables))
    other = f"{{%- else -%}}{_render(node.other, scope)}" if node.other else ""
    return f"{{%- for {dot} in {over} or [] -%}}{body}{other}{{%- endfor -%}}"


def _expression(source: str, scope: _Scope) -> str:
    """A pipeline as a Jinja expression."""
    tokens, at = [], 0
    while at < len(source.rstrip()):
        match = _TOKEN.match(source, at)
        if not match:
            raise Untranslatable(f"{source!r} cannot be read")
        tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
        at = match.end()
    value = _pipeline(tokens, scope)
    if tokens:
        raise Untranslatable(f"{source!r} cannot be read")
    return value


def _pipeline(tokens: list[tuple[str, str]], scope: _Scope) -> str:
    value = _call(tokens, scope, [])
    while tokens and tokens[0][1] == "|":
        tokens.pop(0)
        value = _call(tokens, scope, [value])
    return value


def _call(tokens: list[tuple[str, str]], scope: _Scope, last: list[str]) -> str:
    """A function with its operands (the piped one comes last), or a single operand."""
    if not tokens:
        raise Untranslatable("an action is empty")
    function = (
        tokens.pop(0)[1] if tokens[0][0] == "word" and tokens[0][1] not in ("true", "false", "nil") else ""
    )
    operands = []
    while tokens and tokens[0][1] not in (")", "|"):
        operands.append(_operand(tokens, scope))
    operands += last
    if not function:
        if len(operands) != 1:
            raise Untranslatable("an action has several values")
        return operands[0]
    return _apply(function, operands)


def _apply(function: str, operands: list[str]) -> str:
    if sum(map(len, operands)) + len(operands) * len(operands[0] if operands else "") > _LONGEST:
        raise Untranslatable("it compares too much")
    if function in _COMPARISONS and len(operands) >= 2:
        pairs = [f"{operands[0]} {_COMPARISONS[function]} {operand}" for operand in operands[1:]]
        return f"({' or '.join(pairs)})"
    if function in ("and", "or") and operands:
        return f"({f' {function} '.join(operands)})"
    match function, operands:
        case "not", [value]:
            return f"(not {value})"
        case "len", [value]:
            return f"(({value} or []) | length)"
        case "json", [value]:
            return f"({value} | tojson)"
        case "slice", [value, start]:
            return f"{value}[{start}:]"
        case "slice", [value, start, end]:
            return f"{value}[{start}:{end}]"
        case "index", [value, key]:
            return f"{value}[{key}]"
    raise Untranslatable(f"it calls the function {function!r}")


def _operand(tokens: list[tuple[str, str]], scope: _Scope) -> str:
    kind, text = tokens.pop(0)
    if text == "(":
        value = _pipeline(tokens, scope)
        if not tokens or tokens.pop(0)[1] != ")":
            raise Untranslatable("a parenthesis is never closed")
        return value
    if kind == "string":
        return _literal(text[1:-1] if text[0] == "`" else re.sub(r"\\(.)", _unescape, text[1:-1]))
    if kind == "number" or text in ("true", "false"):
        return text
    if text == "nil":
        return "none"
    if kind == "path":
        return _path(text, scope)
    raise Untranslatable(f"{text!r} stands where a value should")


def _unescape(match: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": "\r"}.get(match[1], match[1])


def _path(text: str, scope: _Scope) -> str:
    head, *fields = text.split(".")
    if head and head != "$":
        if head not in scope.variables:
            raise Untranslatable(f"the variable {head} is unknown")
        value = scope.variables[head]
    elif head == "$" or scope.dot is None:
        if not fields or not fields[0]:
            raise Untranslatable("it shows all there is ({{ . }})")
        top = _TOP.get(fields[0])
        if top is None:
            raise Untranslatable(f"it uses .{fields[0]}")
        value, fields = scope.constants.get(top, top), fields[1:]
    else:
        value = scope.dot
    for name in filter(None, fields):
        if name not in _FIELDS:
            raise Untranslatable(f"it uses .{name}")
        value += f".{_FIELDS[name]}"
    return value


def _exchanges(nodes: list[Node]) -> str:
    """The twin of a template for one exchange: a macro called for each, cut at `.Response` for the last."""
    if not _mentions(nodes, ".Prompt"):
        raise Untranslatable("it shows neither .Messages nor .Prompt")
    cut = next(
        (i for i, node in enumerate(nodes) if node.kind == "show" and node.source == ".Response"), None
    )
    if cut is None and _mentions(nodes, ".Response"):
        raise Untranslatable("its .Response stands inside an if")
    before = _render(nodes[:cut], _Scope(constants={"response": "''"}))
    after = _render(nodes[cut + 1 :], _Scope()) if cut is not None else ""
    return (
        "{%- macro opening(system, prompt) -%}" + before + "{%- endmacro -%}"
        "{%- macro closing(system, prompt, response) -%}" + after + "{%- endmacro -%}"
        "{%- set turn = namespace(system='', prompt='', open=false) -%}"
        "{%- for message in messages -%}"
        "{%- if message.role == 'system' -%}{%- set turn.system = message.content -%}"
        "{%- elif message.role == 'assistant' -%}"
        "{{- opening(turn.system, turn.prompt) -}}{{- message.content -}}"
        "{{- closing(turn.system, turn.prompt, message.content) -}}"
        "{%- set turn.system = '' -%}{%- set turn.prompt = '' -%}{%- set turn.open = false -%}"
        "{%- else -%}"
        "{%- set turn.prompt = (turn.prompt ~ '\\n\\n' if turn.open else '') ~ message.content -%}"
        "{%- set turn.open = true -%}"
        "{%- endif -%}{%- endfor -%}"
        "{%- if turn.open -%}{{- opening(turn.system, turn.prompt) -}}{%- endif -%}"
    )
