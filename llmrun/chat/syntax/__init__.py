"""How a chat template's models write tool calls and reasoning: read off the template, and parsed.

    syntax = derive(template)
    parser = OutputParser(syntax, tools, primed_by(syntax, prompt))
    pieces = parser.feed(text) + parser.close()

Pure: no vocabulary, no model.
"""

from llmrun.chat.syntax.derive import derive
from llmrun.chat.syntax.form import (
    FALLBACK,
    JSON_TYPES,
    Arguments,
    BareKeyArguments,
    Block,
    Calls,
    JsonArguments,
    JsonType,
    NestedArguments,
    Part,
    PythonArguments,
    Slot,
    Syntax,
    TaggedArguments,
)
from llmrun.chat.syntax.markers import primed_by
from llmrun.chat.syntax.parser import OutputParser
from llmrun.chat.syntax.pieces import (
    ArgumentsPiece,
    CallEndPiece,
    CallPiece,
    ContentPiece,
    Piece,
    ReasoningPiece,
)

__all__ = [
    "FALLBACK",
    "JSON_TYPES",
    "Arguments",
    "ArgumentsPiece",
    "BareKeyArguments",
    "Block",
    "CallEndPiece",
    "CallPiece",
    "Calls",
    "ContentPiece",
    "JsonArguments",
    "JsonType",
    "NestedArguments",
    "OutputParser",
    "Part",
    "Piece",
    "PythonArguments",
    "ReasoningPiece",
    "Slot",
    "Syntax",
    "TaggedArguments",
    "derive",
    "primed_by",
]
