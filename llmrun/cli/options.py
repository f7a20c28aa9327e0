"""Generation options as people write them: `KEY=VALUE` on the command line, `/set KEY VALUE` in chat.

Goes in: text. Comes out: `llmrun.types.Options`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from llmrun.errors import USAGE, LlmrunError
from llmrun.types import Options, SamplingParams
from llmrun.types.option_text import OPTION_NAMES, option_form, option_spelling, option_value

UNSET = "model's own"
# What other programs call them, where the spelling alone would not lead to ours.
_ELSEWHERE = {"num_predict": "max_tokens", "n_predict": "max_tokens", "temp": "temperature"}


def option_name(key: str) -> str:
    """The option that `key` means; `top-p` is `top_p`. LlmrunError USAGE for none, with the nearest."""
    name = key.strip().replace("-", "_").lower()
    if name not in OPTION_NAMES:
        near = difflib.get_close_matches(_ELSEWHERE.get(name, name), OPTION_NAMES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(OPTION_NAMES)}"
        raise LlmrunError(USAGE, f"there is no option {key.strip()!r}", hint=hint)
    return name


def parse_option(key: str, text: str) -> Options:
    """One option. LlmrunError USAGE for an unknown key or a value of the wrong type."""
    name = option_name(key)
    try:
        return Options(**{name: option_value(name, text)})
    except ValueError:
        message = f"option {name} is {text!r}, which is not {option_form(name)}"
        raise LlmrunError(USAGE, message) from None


def parse_options(pairs: Iterable[str]) -> Options:
    """`KEY=VALUE` pairs, a later one over an earlier; stops add up."""
    options = Options()
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise LlmrunError(USAGE, f"-o {pair!r} has no value", hint=f"write -o {pair}=VALUE")
        options = parse_option(key, text).over(options)
    return options


def describe(options: Options, model: Options | None = None) -> dict[str, str]:
    """Each option's name and the value in force as text, and where it comes from if it is not set here: from
    the `model`, or from llama.cpp. `UNSET` where nothing sets it; also where `model` is not known."""
    if model is None:
        return {name: _text(name, options) or UNSET for name in OPTION_NAMES}
    plain = SamplingParams()
    shown = {}
    for name in OPTION_NAMES:
        known = getattr(plain, name, None) is not None
        default = f"{_text(name, plain)} (default)" if known else "not set"
        models = _text(name, model)
        shown[name] = _text(name, options) or (f"{models} (the model's)" if models else default)
    return shown


def _text(name: str, options: Options | SamplingParams) -> str:
    """The value of one option, as one would type it; empty where it is not set."""
    value = getattr(options, name)
    if name == "stop":
        return " ".join(map(repr, value))
    if name == "samplers" and value:
        return ";".join(value)
    return "" if value is None else str(value) if isinstance(value, float) else option_spelling(value)
