"""Modelfiles: how a model is described. In: text. Out: `Modelfile`; and back.

The syntax is Ollama's, one instruction a line, any case, `#` starts a comment line:

    FROM reference              the first source of the weights; required, once
    SOURCE reference            a further source of the very same bytes, tried in the order written
    SHA256 hex                  pins the (first) file; required once there is a SOURCE
    SIZE bytes                  pins the length of all files together
    PARAMETER name value        a sampling option; `stop` may be repeated
    TEMPLATE, SYSTEM, LICENSE   text; the template is Jinja
    DEFAULT                     (catalogue) the tag meant when the name stands alone

A value is the rest of its line, or stands in "quotes" (nothing is escaped), or in triple quotes over several
lines. What is known but not built yet is refused by name. Pure: no disk, no network.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.store.reference import Reference, parse_reference
from llmrun.types import Options

_NOT_BUILT = ("ADAPTER", "MESSAGE", "REQUIRES", "DRAFT")
_INSTRUCTIONS = ["FROM", "SOURCE", "SHA256", "SIZE", "PARAMETER", "TEMPLATE", "SYSTEM", "LICENSE", "DEFAULT"]
_TRIPLE = '"""'
_ALIASES = {"num_predict": "max_tokens", "num_ctx": "ctx"}
# What only a Go template writes: a field, a variable, or a keyword that Jinja puts into {% %}.
_GO_TEMPLATE = re.compile(r"\{\{-?\s*(?:\.|\$|if\b|range\b|end\b|else\b|template\b)")


@dataclass(frozen=True)
class Modelfile:
    """What a Modelfile says. `sources` are FROM and then SOURCE, in order, never empty."""

    sources: tuple[Reference, ...]
    sha256: str | None = None
    size: int | None = None
    options: Options = field(default_factory=Options)
    template: str | None = None
    system: str | None = None
    license: str = ""
    default: bool = False


def _between(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return parse


def _at_least(low: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < low:
            raise ValueError(text)
        return value

    return parse


_PARAMETERS: dict[str, tuple[Callable[[str], float], str]] = {
    "temperature": (_between(0, 100), "a number from 0"),
    "top_k": (_at_least(0), "a count"),
    "top_p": (_between(0, 1), "a number from 0 to 1"),
    "min_p": (_between(0, 1), "a number from 0 to 1"),
    "typical_p": (_between(0, 1), "a number from 0 to 1"),
    "repeat_penalty": (_between(0.01, 100), "a number above 0"),
    "repeat_last_n": (_at_least(-1), "a count or -1"),
    "presence_penalty": (_between(-100, 100), "a number"),
    "frequency_penalty": (_between(-100, 100), "a number"),
    "seed": (_at_least(0), "a whole number from 0"),
    "max_tokens": (_at_least(1), "a count of tokens"),
    "ctx": (_at_least(1), "a count of tokens"),
}


def parse_modelfile(text: str, where: str = "Modelfile") -> Modelfile:
    """The Modelfile in `text`; `where` names it in errors. INVALID_REQUEST with the line at fault."""
    values: dict[str, str] = {}
    sources: list[Reference] = []
    parameters: dict[str, float] = {}
    stops: list[str] = []
    for line, instruction, name, value in _instructions(text, where):
        place = f"{where}, line {line}"
        if instruction == "PARAMETER":
            _parameter(name, value, place, parameters, stops)
        elif instruction == "SOURCE":
            sources.append(_reference(value, place))
        elif instruction in values:
            raise _error(place, f"{instruction} is there twice")
        else:
            values[instruction] = value
            if instruction == "FROM":
                sources.insert(0, _reference(value, place))
            _check(instruction, value, place)
    if "FROM" not in values:
        raise _error(where, "there is no FROM line")
    if len(sources) > 1 and "SHA256" not in values:
        raise _error(where, "SOURCE promises the same bytes, so it needs a SHA256 line")
    return Modelfile(
        sources=tuple(sources),
        sha256=values["SHA256"].lower() if "SHA256" in values else None,
        size=int(values["SIZE"]) if "SIZE" in values else None,
        options=msgspec.convert({**parameters, "stop": tuple(dict.fromkeys(stops))}, Options),
        template=values.get("TEMPLATE"),
        system=values.get("SYSTEM"),
        license=values.get("LICENSE", ""),
        default="DEFAULT" in values,
    )


def format_modelfile(modelfile: Modelfile) -> str:
    """`modelfile` as text that parses back to it."""
    lines = [f"FROM {modelfile.sources[0]}", *(f"SOURCE {source}" for source in modelfile.sources[1:])]
    if modelfile.sha256:
        lines.append(f"SHA256 {modelfile.sha256}")
    if modelfile.size is not None:
        lines.append(f"SIZE {modelfile.size}")
    options = {name: getattr(modelfile.options, name) for name in _PARAMETERS}
    lines += [f"PARAMETER {name} {value}" for name, value in options.items() if value is not None]
    lines += [f"PARAMETER stop {_quoted(stop)}" for stop in modelfile.options.stop]
    for name in ("TEMPLATE", "SYSTEM", "LICENSE"):
        if text := getattr(modelfile, name.lower()):
            lines.append(f"{name} {_quoted(text)}")
    if modelfile.default:
        lines.append("DEFAULT")
    return "\n".join(lines) + "\n"


def _instructions(text: str, where: str) -> Iterator[tuple[int, str, str, str]]:
    """Line number, instruction in capitals, parameter name (else empty) and value, one after the other."""
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    index = 0
    while index < len(lines):
        number, line = index + 1, lines[index].strip()
        index += 1
        if not line or line.startswith("#"):
            continue
        word, rest = _split(line)
        place, instruction, name = f"{where}, line {number}", word.upper(), ""
        if instruction in _NOT_BUILT:
            raise _error(place, f"{instruction} is not built yet", "take the line out")
        if instruction not in _INSTRUCTIONS:
            raise _error(place, f"{word!r} is not an instruction", _nearest(instruction, _INSTRUCTIONS))
        if instruction == "PARAMETER":
            name, rest = _split(rest)
        if rest.startswith(_TRIPLE):
            held = [rest.removeprefix(_TRIPLE)]
            while _TRIPLE not in held[-1]:
                if index == len(lines):
                    raise _error(place, f"the triple quote {_TRIPLE} is never closed")
                held.append(lines[index])
                index += 1
            held[-1], _, after = held[-1].partition(_TRIPLE)
            if after.strip():
                raise _error(f"{where}, line {index}", f"{after.strip()!r} stands after the closing quotes")
            value = "\n".join(held)
        else:
            value = rest[1:-1] if len(rest) > 1 and rest[0] == rest[-1] == '"' else rest
        if not value and instruction != "DEFAULT":
            raise _error(place, f"{instruction} has no value")
        yield number, instruction, name, value


def _split(line: str) -> tuple[str, str]:
    """The first word and, stripped, what follows it."""
    word, *rest = line.split(None, 1) or [""]
    return word, rest[0] if rest else ""


def _parameter(name: str, text: str, place: str, numbers: dict[str, float], stops: list[str]) -> None:
    if name == "stop":
        stops.append(text)
        return
    option = _ALIASES.get(name, name)
    if option not in _PARAMETERS:
        raise _error(place, f"{name!r} is not a parameter", _nearest(name, [*_PARAMETERS, *_ALIASES, "stop"]))
    parse, form = _PARAMETERS[option]
    try:
        if name == "num_predict" and int(text) in (-1, -2):
            return  # "until the context is full": what holds where nothing is set
        numbers[option] = parse(text)
    except ValueError:
        raise _error(place, f"{name} is {text!r}, which is not {form}") from None


def _reference(value: str, place: str) -> Reference:
    try:
        return parse_reference(value)
    except LlmrunError as error:
        raise _error(place, error.message, error.hint) from None


def _check(instruction: str, value: str, place: str) -> None:
    if instruction == "SHA256" and not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise _error(place, f"SHA256 is {value!r}, which is not 64 hexadecimal digits")
    if instruction == "SIZE" and not (value.isascii() and value.isdigit()):
        raise _error(place, f"SIZE is {value!r}, which is not a count of bytes")
    if instruction == "DEFAULT" and value:
        raise _error(place, "DEFAULT stands alone")
    if instruction == "TEMPLATE" and (found := _GO_TEMPLATE.search(value)):
        raise _error(
            place,
            f"the template is written for Go ({found[0]!r})",
            "write it in Jinja, or leave TEMPLATE out to use the model's own",
        )


def _quoted(text: str) -> str:
    return f"{_TRIPLE}{text}{_TRIPLE}" if "\n" in text else f'"{text}"'


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"


def _error(place: str, what: str, hint: str = "mend the Modelfile") -> LlmrunError:
    return LlmrunError(INVALID_REQUEST, f"{place}: {what}", hint=hint)
