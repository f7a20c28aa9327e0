"""Generation options as people write them: `KEY=VALUE` on the command line, `/set KEY VALUE` in chat.

Goes in: text. Comes out: `llmrun.types.Options`. Ranges are the daemon's to judge.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

import msgspec

from llmrun.errors import USAGE, LlmrunError
from llmrun.types import Options

_TYPES = {field.name: field.type for field in msgspec.structs.fields(Options)}
OPTION_NAMES = tuple(_TYPES)
UNSET = "model's own"
# What other programs call them, where the spelling alone would not lead to ours.
_ELSEWHERE = {"num_predict": "max_tokens", "n_predict": "max_tokens", "temp": "temperature"}


def option_name(key: str) -> str:
    """The option that `key` means; `top-p` is `top_p`. LlmrunError USAGE for none, with the nearest."""
    name = key.strip().replace("-", "_").lower()
    if name not in _TYPES:
        near = difflib.get_close_matches(_ELSEWHERE.get(name, name), OPTION_NAMES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(OPTION_NAMES)}"
        raise LlmrunError(USAGE, f"there is no option {key.strip()!r}", hint=hint)
    return name


def parse_option(key: str, text: str) -> Options:
    """One option. LlmrunError USAGE for an unknown key or a value of the wrong type."""
    name = option_name(key)
    if name == "stop":
        return Options(stop=(text,))
    try:
        value: Any = msgspec.convert(text.strip(), _TYPES[name], strict=False)
    except msgspec.ValidationError:
        value = None
    if value is None or not math.isfinite(value):
        kind = "a whole number" if _TYPES[name] == int | None else "a number"
        raise LlmrunError(USAGE, f"option {name} is {text!r}, which is not {kind}")
    return Options(**{name: value})


def parse_options(pairs: Iterable[str]) -> Options:
    """`KEY=VALUE` pairs, a later one over an earlier; stops add up."""
    options = Options()
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise LlmrunError(USAGE, f"-o {pair!r} has no value", hint=f"write -o {pair}=VALUE")
        options = parse_option(key, text).over(options)
    return options


def describe(options: Options) -> dict[str, str]:
    """Each option's name and its value as text; `UNSET` where it is not set."""
    values = {name: getattr(options, name) for name in OPTION_NAMES}
    values["stop"] = " ".join(map(repr, options.stop)) or None
    return {name: UNSET if value is None else str(value) for name, value in values.items()}
