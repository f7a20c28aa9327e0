"""What a chat template's tool calls and reasoning look like in text: enough to read them and to write them.

An assistant's turn is, each part where there is one:

    reasoning.open R reasoning.close  content.open C content.close  after_content
    calls.open  call  calls.separator  call  calls.close  end

Every text here is literal, white space included, as the template writes it. No vocabulary, no model.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from typing import Any, Literal

JsonType = Literal["string", "integer", "number", "boolean", "null", "array", "object"]
CDATA = ("<![CDATA[", "]]>")
JSON_TYPES: tuple[JsonType, ...] = ("string", "integer", "number", "boolean", "null", "array", "object")


class Slot(enum.Enum):
    """What stands between the literal texts of a call.

    NAME       the tool's name, as it is
    ID         an id of the call (a letter or digit each, nine of them suit every template)
    INDEX      the call's number in decimal digits, from `Calls.first_index`
    ARGUMENTS  the arguments, in the form that `Calls.arguments` says
    """

    NAME = "name"
    ID = "id"
    INDEX = "index"
    ARGUMENTS = "arguments"


Part = str | Slot


@dataclass(frozen=True)
class Block:
    """The markers around a text. Either may be empty."""

    open: str = ""
    close: str = ""


@dataclass(frozen=True)
class JsonArguments:
    """The arguments are one JSON object."""


@dataclass(frozen=True)
class TaggedArguments:
    """Each argument stands between tags of its own; a string as it is, without quotes or escapes.

    open       in front of a key
    between    from a key to its value, by the value's type
    close      behind a value, by its type
    separator  between two arguments
    python     values that are no strings are Python literals, else JSON
    cdata      strings may be wrapped in `<![CDATA[` and `]]>`
    """

    open: str
    between: tuple[tuple[JsonType, str], ...]
    close: tuple[tuple[JsonType, str], ...]
    separator: str = ""
    python: bool = False
    cdata: bool = False


@dataclass(frozen=True)
class PythonArguments:
    """Keyword arguments as in a Python call, `key=value, key=value`, values being Python or JSON literals."""


@dataclass(frozen=True)
class NestedArguments:
    """Values nest in tags named after their keys, items of lists in `item` tags: `<key>value</key>`.

    prefix  stands in front of each tag
    """

    prefix: str


@dataclass(frozen=True)
class BareKeyArguments:
    """JSON whose keys have no quotes and whose strings stand between `quote` marks, without escapes."""

    quote: str


Arguments = JsonArguments | TaggedArguments | PythonArguments | NestedArguments | BareKeyArguments


@dataclass(frozen=True)
class Calls:
    """The tool calls of a turn.

    open, close      around all calls of a turn
    call             one call: literal texts and slots. NAME and ARGUMENTS stand in it, ARGUMENTS once
    separator        between two calls
    arguments        how the arguments are written
    several          whether a turn may hold more than one call
    first_index      what INDEX begins with
    arguments_text   whether the template wants a message's arguments as JSON text; else as an object
    named_ids        whether the template makes the call's text of its id alone, which is then
                     `functions.NAME:INDEX`
    also             other texts that a model may write in place of `head`
    end              what ends a turn of calls, where that is not `Syntax.end`
    header_end       what ends the text between a call's name and its arguments, which then may vary
    """

    call: tuple[Part, ...]
    open: str = ""
    close: str = ""
    separator: str = ""
    arguments: Arguments = JsonArguments()
    several: bool = True
    first_index: int = 0
    arguments_text: bool = False
    named_ids: bool = False
    also: tuple[str, ...] = ()
    end: str = ""
    header_end: str = ""
    keys: JsonKeys | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", _json_keys(self.call, self.arguments))

    @property
    def head(self) -> str:
        """The literal text from the first call's beginning to its first slot."""
        first = self.call[0]
        return self.open + first if isinstance(first, str) else self.open

    @property
    def marker(self) -> str:
        """The text that tells a call from content; "" where nothing does but a JSON object's own looks."""
        head = self.head
        if self.keys:
            head = head[: head.rindex("{")].rstrip().removesuffix("[")
        return head.strip()

    def before_arguments(self, name: str, index: int = 0, id: str = "") -> str:
        """The text of a call of `name` up to its arguments, without `open` or `separator`."""
        return self._written(self.call[: self.call.index(Slot.ARGUMENTS)], name, index, id)

    def after_arguments(self, name: str, index: int = 0, id: str = "") -> str:
        """The text of a call of `name` behind its arguments, without `close`."""
        return self._written(self.call[self.call.index(Slot.ARGUMENTS) + 1 :], name, index, id)

    def _written(self, parts: tuple[Part, ...], name: str, index: int, id: str) -> str:
        slots = {Slot.NAME: name, Slot.INDEX: str(self.first_index + index), Slot.ID: id}
        return "".join(part if isinstance(part, str) else slots[part] for part in parts)


@dataclass(frozen=True)
class JsonKeys:
    """The keys of a call that is a JSON object. `id` is "" where the object holds none."""

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True)
class Syntax:
    """One template's syntax. Immutable.

    reasoning      the markers around reasoning; None: it has none
    content        what stands around content, where it does not stand free
    also_content   other texts that open content
    calls          None: the template knows no tool calls
    after_content  between content and the calls behind it
    end            what ends the turn
    left_out       texts that stand for nothing in an answer
    primed         what a generation prompt without any switch already holds of the answer
    """

    reasoning: Block | None = None
    content: Block = Block()
    also_content: tuple[str, ...] = ()
    calls: Calls | None = None
    after_content: str = ""
    end: str = ""
    left_out: tuple[str, ...] = ()
    primed: str = ""


def _json_keys(call: tuple[Part, ...], arguments: Arguments) -> JsonKeys | None:
    """The keys where the call is a JSON object with the name as one value and the arguments as another."""
    if not isinstance(arguments, JsonArguments):
        return None
    samples = {Slot.NAME: "N", Slot.ID: "I", Slot.INDEX: "0", Slot.ARGUMENTS: '{"A": 1}'}
    text = "".join(part if isinstance(part, str) else samples[part] for part in call)
    start, end = text.find("{"), text.rfind("}") + 1
    try:
        value: Any = json.loads(text[start:end])
    except ValueError:
        return None
    keys = {json.dumps(item): key for key, item in value.items()}
    if '"N"' not in keys or '{"A": 1}' not in keys:
        return None
    return JsonKeys(keys['"N"'], keys['{"A": 1}'], keys.get('"I"', ""))


FALLBACK = Syntax(
    calls=Calls(
        call=('<tool_call>\n{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}\n</tool_call>"),
        separator="\n",
    ),
    after_content="\n",
    left_out=("<tool_response>\n", "\n</tool_response>"),
)
"""For templates that know no tools: how Hermes and Qwen models write calls, which most others can be told.
Around results stand tags that they then like to write themselves."""
