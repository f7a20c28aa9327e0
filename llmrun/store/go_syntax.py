"""The grammar of Go's text/template, as chat templates use it. In: a template. Out: its nodes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_ACTION = re.compile(r"(\{\{(?:-(?=\s))?)(.*?)((?<=\s)-\}\}|\}\})", re.DOTALL)


class Untranslatable(Exception):
    """What in a template has no twin, in words."""


@dataclass
class Node:
    """`kind` text, show, set, if or range; `source` the text or expression; `body` and `other` its blocks."""

    kind: str
    source: str
    body: list[Node] = field(default_factory=list)
    other: list[Node] = field(default_factory=list)


def nodes_of(template: str) -> list[Node]:
    """The template's nodes. Untranslatable where it is no template, or uses what chat templates do not."""
    return _Parser(list(_pieces(template))).block(())


def _pieces(template: str) -> Iterator[tuple[str, str]]:
    """("text" or "action", source), with Go's trim marks applied."""
    at, trim = 0, False
    # Behind the last that closes, each that opens would be sought to the end.
    for match in _ACTION.finditer(template, 0, template.rfind("}}") + 2):
        text = template[at : match.start()]
        text = text.lstrip() if trim else text
        if match[1].endswith("-"):
            text = text.rstrip()
        if text:
            yield "text", text
        trim = match[3].startswith("-")
        at = match.end()
        source = match[2].strip()
        if not source.startswith("/*"):
            yield "action", source
    rest = template[at:]
    if rest := rest.lstrip() if trim else rest:
        yield "text", rest


class _Parser:
    def __init__(self, pieces: list[tuple[str, str]]) -> None:
        self._pieces = pieces
        self._at = 0
        self.ended_by = ""

    def block(self, ends: Sequence[str]) -> list[Node]:
        """Nodes up to one of the actions `ends`, which is consumed and kept in `ended_by`."""
        nodes = []
        while self._at < len(self._pieces):
            kind, source = self._pieces[self._at]
            self._at += 1
            word, _, rest = source.partition(" ") if kind == "action" else ("", "", "")
            if kind == "text":
                nodes.append(Node("text", source))
            elif word in ("end", "else"):
                if word not in ends:
                    raise Untranslatable(f"{{{{ {source} }}}} closes nothing")
                self.ended_by = source
                return nodes
            elif word in ("if", "range"):
                nodes.append(self._branch(word, rest.strip()))
            elif word in ("template", "with", "block", "define", "break", "continue"):
                raise Untranslatable(f"it uses {word!r}")
            elif match := re.match(r"(\$\w+)\s*:=\s*(.+)", source, re.DOTALL):
                nodes.append(Node("set", match[2], [Node("text", match[1])]))
            elif re.match(r"\$\w+\s*=", source):
                raise Untranslatable(f"it changes a variable ({source})")
            else:
                nodes.append(Node("show", source))
        if ends:
            raise Untranslatable("an {{ if }} or {{ range }} is never closed")
        return nodes

    def _branch(self, kind: str, source: str) -> Node:
        node = Node(kind, source, self.block(("end", "else")))
        if self.ended_by.startswith("else"):
            rest = self.ended_by.removeprefix("else").strip()
            node.other = (
                [self._branch("if", rest.removeprefix("if").strip())] if rest else self.block(("end",))
            )
        return node
