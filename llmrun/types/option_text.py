"""Options as people write them: the text of one value to the value, and what a right one looks like."""

from __future__ import annotations

import functools
import math
from typing import Any, get_args, get_type_hints

import msgspec

from llmrun.types.sampling import Options, SamplerName

# Other spellings of sampler names that llama.cpp takes, and a sequence in a GGUF may hold.
_ALIASES = {"typical_p": "typ_p", "typical": "typ_p", "temp": "temperature", "nucleus": "top_p"}
# How llama.cpp's command line and llama-server abbreviate an order of samplers: `edskypmxt`.
_LETTERS: dict[str, SamplerName] = {
    **{"e": "penalties", "d": "dry", "s": "top_n_sigma", "k": "top_k", "y": "typ_p", "p": "top_p"},
    **{"m": "min_p", "x": "xtc", "t": "temperature", "a": "adaptive_p", "i": "infill"},
}
_FIELDS = {field.name: field for field in msgspec.structs.fields(Options)}
OPTION_NAMES = tuple(_FIELDS)


def option_value(name: str, text: str) -> Any:
    """The value of the option `name` that `text` spells; ValueError where it spells none.

    A list is written as JSON, or is its one item; `samplers` may be written with semicolons, as in
    llama.cpp. `stop` is one text, whatever it holds.
    """
    if name == "stop":
        return (text,)
    given: object = text.strip()
    if _is_list(name):
        given = _items(name, text)
    try:
        value = msgspec.convert(given, _FIELDS[name].type, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(text)
    return value


def option_spelling(value: object) -> str:
    """The text that `option_value` reads as this value of an option other than `stop`."""
    return msgspec.json.encode(value).decode()


def option_form(name: str) -> str:
    """What a value of the option looks like, to follow "is not"."""
    if name == "samplers":
        return f"a list of {', '.join(get_args(SamplerName))}"
    if _is_list(name):
        return "a JSON list of texts"
    schema = msgspec.json.schema(_FIELDS[name].type)["anyOf"][0]
    if schema["type"] == "boolean":
        return "true or false"
    kind = "a whole number" if schema["type"] == "integer" else "a number"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        return kind
    return f"{kind} from {low:g}" if high is None or high > 10_000 else f"{kind} from {low:g} to {high:g}"


@functools.cache
def _is_list(name: str) -> bool:
    return "tuple" in str(get_type_hints(Options)[name])


def _items(name: str, text: str) -> object:
    if text.lstrip().startswith("["):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            raise ValueError(text) from None
    if name != "samplers":
        return [text]
    return sampler_names([part for part in text.split(";") if part.strip()])


def sampler_names(names: str | list[object]) -> list[object]:
    """The names of samplers, in llama.cpp's own spelling where they are known in another one; of a text
    each letter is one, as llama-server has it."""
    if isinstance(names, str):
        return [_LETTERS.get(letter, letter) for letter in names]
    return [_sampler_name(name) for name in names]


def _sampler_name(name: object) -> object:
    if not isinstance(name, str):
        return name
    plain = name.strip().lower().replace("-", "_")
    return _ALIASES.get(plain, plain)
