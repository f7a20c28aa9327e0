"""llama.cpp's grammar notation, GBNF, as llguidance's dialect of Lark. Text in, text out.

The notation is that of llama.cpp's `grammars/README.md` and `llama-grammar.cpp`. A rule that never comes back
to itself becomes a terminal, of which llguidance's lexer sees the whole; the others stay rules. Every
character is written so that neither Lark nor a regular expression can read anything else into it.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

_DEPTH = 100
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_BLANK_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_TIMES = re.compile(r"\{[ \t]*(\d+)[ \t]*(?:(,)[ \t]*(\d+)?[ \t]*)?\}")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]"}
_HEX = {"x": 2, "u": 4, "U": 8}


class GbnfFault(ValueError):
    """What is wrong with a grammar, in a line that says where."""


class _Ref(NamedTuple):
    """A rule's name where another uses it."""

    name: str
    at: int


_Body = list[str | _Ref]  # pieces of Lark


def to_lark(text: str) -> str:
    """A grammar of the same language. GbnfFault where the text is no GBNF."""
    rules = _Reader(text).rules()
    for body in rules.values():
        for piece in body:
            if isinstance(piece, _Ref) and piece.name not in rules:
                raise _fault(text, piece.at, f"there is no rule {piece.name!r}")
    if "root" not in rules:
        raise GbnfFault("there is no rule 'root'")
    recursive = _recursive(rules)
    names = {name: f"{'r' if name in recursive else 'T'}{at}" for at, name in enumerate(rules)}
    lines = [f"start: {names['root']}"]
    for name, body in rules.items():
        pieces = (names[piece.name] if isinstance(piece, _Ref) else piece for piece in body)
        lines.append(f"{names[name]}: {' '.join(pieces)}")
    return "\n".join(lines) + "\n"


def _recursive(rules: dict[str, _Body]) -> set[str]:
    """The rules that come back to themselves, and those that lead to one."""
    left = {name: {piece.name for piece in body if isinstance(piece, _Ref)} for name, body in rules.items()}
    while ready := [name for name, names in left.items() if not names]:
        for name in ready:
            del left[name]
        for names in left.values():
            names.difference_update(ready)
    return set(left)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def rules(self) -> dict[str, _Body]:
        """By name, in their order."""
        rules: dict[str, _Body] = {}
        self._skip(_BLANK_LINES)
        while self._at < len(self._text):
            start = self._at
            name = self._name()
            if name in rules:
                raise _fault(self._text, start, f"the rule {name!r} is there twice")
            self._skip(_BLANK)
            self._expect("::=")
            self._skip(_BLANK_LINES)
            rules[name] = self._alternatives(0)
            if self._at < len(self._text) and self._text[self._at] not in "\r\n":
                raise self._wrong("the end of the rule")
            self._skip(_BLANK_LINES)
        return rules

    def _alternatives(self, depth: int) -> _Body:
        if depth > _DEPTH:
            raise _fault(self._text, self._at, "it is nested too deeply")
        found = self._sequence(depth)
        while self._next == "|":
            self._at += 1
            self._skip(_BLANK_LINES)
            found += ["|", *self._sequence(depth)]
        return found

    def _sequence(self, depth: int) -> _Body:
        """Items up to what ends them; inside a group lines may end anywhere."""
        blank = _BLANK_LINES if depth else _BLANK
        items: _Body = []
        while (item := self._item(depth)) is not None:
            self._skip(blank)
            while times := self._times():
                item = ['""'] if times == "{0,0}" else ["(", *item, f"){times}"]
                self._skip(blank)
            items += item
        return items or ['""']

    def _item(self, depth: int) -> _Body | None:
        """The next item, None where none begins."""
        at, sign = self._at, self._next
        if sign == '"':
            return [json.dumps(self._literal(), ensure_ascii=False)]
        if sign == "[":
            return [self._class()]
        if sign == ".":
            self._at += 1
            return ["/(?s:.)/"]
        if sign == "(":
            self._at += 1
            self._skip(_BLANK_LINES)
            found = self._alternatives(depth + 1)
            self._expect(")")
            return ["(", *found, ")"]
        if sign in ("<", "!"):
            raise _fault(self._text, at, "tokens (<…>) are not supported")
        return [_Ref(self._name(), at)] if _NAME.match(self._text, at) else None

    def _times(self) -> str:
        """How often what stands before it may come; "" where nothing is said of that."""
        sign = self._next
        if sign in ("*", "+", "?"):
            self._at += 1
            return sign
        if sign != "{":
            return ""
        found = _TIMES.match(self._text, self._at)
        if found is None:
            raise self._wrong("{m}, {m,} or {m,n}")
        least, comma, most = found.groups()
        most = most if comma else least
        if most is not None and int(most) < int(least):
            raise _fault(self._text, self._at, "the second number is less than the first")
        self._at = found.end()
        return f"{{{int(least)},{'' if most is None else int(most)}}}"

    def _literal(self) -> str:
        begin = self._at
        self._at += 1
        found = ""
        while self._next != '"':
            found += self._char(begin, "text")
        self._at += 1
        return found

    def _class(self) -> str:
        begin = self._at
        self._at += 1
        inverted = self._next == "^"
        self._at += inverted
        ranges = []
        while self._next != "]":
            first = last = self._char(begin, "class")
            if self._next == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                last = self._char(begin, "class")
            if last < first:
                raise _fault(self._text, begin, f"a range ends before it begins ({first!r} to {last!r})")
            ranges.append(f"{_code(first)}-{_code(last)}")
        self._at += 1
        if not ranges:
            raise _fault(self._text, begin, "the class is empty")
        return f"/[{'^' if inverted else ''}{''.join(ranges)}]/"

    def _char(self, begin: int, what: str) -> str:
        """The next character, escaped or not, of the `what` that begins there."""
        sign = self._next
        if not sign:
            raise _fault(self._text, begin, f"the {what} has no end")
        self._at += 1
        if sign != "\\":
            return sign
        sign = self._next
        self._at += 1
        if sign in _PLAIN:
            return _PLAIN[sign]
        digits = self._text[self._at : self._at + _HEX.get(sign, 0)]
        if sign not in _HEX or not re.fullmatch(rf"[0-9A-Fa-f]{{{_HEX[sign]}}}", digits):
            raise _fault(self._text, self._at - 2, f"\\{sign}{digits} is no escape")
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise _fault(self._text, self._at - 2, f"\\{sign}{digits} is no character")
        self._at += len(digits)
        return chr(code)

    # --- where it is

    @property
    def _next(self) -> str:
        """The next character; "" at the end."""
        return self._text[self._at : self._at + 1]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        assert found is not None  # it matches nothing as well
        self._at = found.end()

    def _name(self) -> str:
        found = _NAME.match(self._text, self._at)
        if found is None:
            raise self._wrong("the name of a rule")
        self._at = found.end()
        return found[0]

    def _expect(self, sign: str) -> None:
        if not self._text.startswith(sign, self._at):
            raise self._wrong(sign)
        self._at += len(sign)

    def _wrong(self, wanted: str) -> GbnfFault:
        found = repr(self._next) if self._next else "the end"
        return _fault(self._text, self._at, f"{wanted} is wanted, not {found}")


def _code(char: str) -> str:
    return f"\\x{{{ord(char):x}}}"


def _fault(text: str, at: int, what: str) -> GbnfFault:
    line = text.count("\n", 0, at) + 1
    return GbnfFault(f"line {line}, column {at - text.rfind(chr(10), 0, at)}: {what}")
