"""Modelfiles: how a model is described. In: text. Out: `Modelfile`; and back.

The syntax is Ollama's (see `modelfile_syntax`). Its instructions:

    FROM reference              the model or the first source of the weights; required, once
    PARAMETER name value        a sampling option; `stop` may be repeated
    TEMPLATE text               the chat template, in Jinja; Go templates are translated (see `go_template`)
    SYSTEM text                 the system prompt; "" takes away that of the model it is FROM
    MESSAGE role text           a turn that every conversation starts with; repeatable
    LICENSE text                repeatable
    ADAPTER reference           a LoRA adapter; repeatable
    REQUIRES version            the least version of Ollama; kept, and of no meaning here

and those of llmrun:

    SOURCE reference            a further source of the very same bytes, tried in the order written
    SHA256 hex                  pins the (first) file; required once there is a SOURCE
    SIZE bytes                  pins the length of all files together that FROM gives
    DRAFT reference             a small model that drafts for this one
    DEFAULT                     (catalogue) the tag meant when the name stands alone

Pure: no disk, no network.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.store.go_syntax import Untranslatable
from llmrun.store.go_template import looks_go, to_jinja
from llmrun.store.modelfile_syntax import Place, Statement, format_value, statements
from llmrun.store.reference import FileRef, Reference, parse_reference
from llmrun.types import Message, Options, Role
from llmrun.types.option_text import OPTION_NAMES, option_form, option_spelling, option_value

CompanionRole = Literal["adapter", "draft"]
_LONGEST = 4 << 20  # characters
_TEXTS = ("TEMPLATE", "SYSTEM")
_INSTRUCTIONS = (
    *("FROM", "SOURCE", "SHA256", "SIZE", "PARAMETER", *_TEXTS, "MESSAGE", "LICENSE"),
    *("ADAPTER", "DRAFT", "REQUIRES", "DEFAULT"),
)
_FOREIGN = {
    "RENDERER": "it names code inside Ollama; leave it out, the model's own chat template does the work",
    "PARSER": "it names code inside Ollama; leave it out, the output format is read from the chat template",
}
_ALIASES = {"num_predict": "max_tokens", "num_ctx": "ctx"}
# Ollama's parameters that are settings of the machine here, or that llama.cpp no longer has.
_ELSEWHERE = {
    "num_gpu": "set LLMRUN_GPU_LAYERS",
    "num_thread": "set LLMRUN_THREADS",
    "num_batch": "llmrun chooses it",
    "num_keep": "llmrun keeps the system prompt, and leaves out nothing unasked",
    "main_gpu": "llmrun uses every device",
    "use_mmap": "llmrun always maps the file",
    "use_mlock": "llmrun never locks memory",
    "tfs_z": "use min_p",
    "penalize_newline": "llama.cpp has no such option",
    "draft_num_predict": "llmrun chooses it",
}


@dataclass(frozen=True)
class Modelfile:
    """What a Modelfile says. `sources` are FROM and then SOURCE, in order, never empty. Of `template` and
    `system`, None says nothing and an empty text takes away what the model it is FROM has."""

    sources: tuple[Reference, ...]
    sha256: str | None = None
    size: int | None = None
    options: Options = field(default_factory=Options)
    template: str | None = None
    system: str | None = None
    messages: tuple[Message, ...] = ()
    license: str = ""
    adapters: tuple[Reference, ...] = ()
    draft: Reference | None = None
    requires: str | None = None
    default: bool = False

    def below(self, folder: Path) -> Modelfile:
        """The same with paths that are relative taken from `folder`, where the Modelfile lies."""

        def anchored(reference: Reference) -> Reference:
            if not isinstance(reference, FileRef) or reference.text.startswith("~"):
                return reference
            return FileRef(str(folder / reference.text))

        return replace(
            self,
            sources=tuple(map(anchored, self.sources)),
            adapters=tuple(map(anchored, self.adapters)),
            draft=self.draft and anchored(self.draft),
        )

    @property
    def companions(self) -> tuple[tuple[CompanionRole, Reference], ...]:
        """What it names beside the weights, in order, and what that is to the model."""
        drafts: tuple[tuple[CompanionRole, Reference], ...] = (("draft", self.draft),) if self.draft else ()
        return (*(("adapter", adapter) for adapter in self.adapters), *drafts)


class _Draft:
    """A Modelfile while it is read: the values of what stands once, the lists of what may be repeated."""

    def __init__(self) -> None:
        self.once: dict[str, str] = {}
        self.sources: list[Reference] = []
        self.adapters: list[Reference] = []
        self.draft: Reference | None = None
        self.options = Options()
        self.messages: list[Message] = []
        self.licenses: list[str] = []


def parse_modelfile(text: str, where: str = "Modelfile") -> Modelfile:
    """The Modelfile in `text`; `where` names it in errors. INVALID_REQUEST with line and column at fault."""
    draft = _Draft()
    if len(text) > _LONGEST:
        raise LlmrunError(
            INVALID_REQUEST,
            f"{where} has {len(text)} characters, and {_LONGEST} are the most",
            hint="shorten its texts",
        )
    for statement in statements(text, where):
        _take(statement, draft)
    once = draft.once
    if "FROM" not in once:
        raise LlmrunError(INVALID_REQUEST, f"{where}: there is no FROM line", hint="start it with FROM MODEL")
    if len(draft.sources) > 1 and "SHA256" not in once:
        raise LlmrunError(
            INVALID_REQUEST,
            f"{where}: SOURCE promises the same bytes, so it needs a SHA256 line",
            hint="mend the Modelfile",
        )
    return Modelfile(
        sources=tuple(draft.sources),
        sha256=once["SHA256"].lower() if "SHA256" in once else None,
        size=int(once["SIZE"]) if "SIZE" in once else None,
        options=draft.options,
        template=once.get("TEMPLATE"),
        system=once.get("SYSTEM"),
        messages=tuple(draft.messages),
        license="\n\n".join(draft.licenses),
        adapters=tuple(draft.adapters),
        draft=draft.draft,
        requires=once.get("REQUIRES"),
        default="DEFAULT" in once,
    )


def format_modelfile(modelfile: Modelfile) -> str:
    """`modelfile` as text that parses back to it. INVALID_REQUEST where a text has no form in the syntax."""
    lines = [f"FROM {modelfile.sources[0]}", *(f"SOURCE {source}" for source in modelfile.sources[1:])]
    if modelfile.sha256:
        lines.append(f"SHA256 {modelfile.sha256}")
    if modelfile.size is not None:
        lines.append(f"SIZE {modelfile.size}")
    lines += [f"ADAPTER {adapter}" for adapter in modelfile.adapters]
    if modelfile.draft:
        lines.append(f"DRAFT {modelfile.draft}")
    if modelfile.requires:
        lines.append(f"REQUIRES {modelfile.requires}")
    lines += _option_lines(modelfile.options)
    for name in _TEXTS:
        if (text := getattr(modelfile, name.lower())) is not None:
            lines.append(f"{name} {format_value(text)}")
    lines += [f"MESSAGE {one.role} {format_value(one.content)}" for one in modelfile.messages]
    if modelfile.license:
        lines.append(f"LICENSE {format_value(modelfile.license)}")
    if modelfile.default:
        lines.append("DEFAULT")
    return "\n".join(lines) + "\n"


def _option_lines(options: Options) -> list[str]:
    set_here = {name: value for name in OPTION_NAMES if (value := getattr(options, name)) is not None}
    stops = [f"PARAMETER stop {format_value(stop)}" for stop in set_here.pop("stop")]
    others = [f"PARAMETER {name} {format_value(option_spelling(value))}" for name, value in set_here.items()]
    return others + stops


def _take(statement: Statement, draft: _Draft) -> None:
    """Note one statement. INVALID_REQUEST where it is unknown, there twice, or its value is no good."""
    instruction, name, given, at, value_at = statement
    if instruction in _FOREIGN:
        raise at.error(f"{instruction} cannot be used", _FOREIGN[instruction])
    if instruction not in _INSTRUCTIONS:
        raise at.error(f"{instruction!r} is not an instruction", _nearest(instruction, _INSTRUCTIONS))
    if instruction == "DEFAULT" and given is not None:
        raise value_at.error("DEFAULT stands alone")
    if instruction in draft.once or (instruction == "DRAFT" and draft.draft):
        raise at.error(f"{instruction} is there twice")
    value = given or ""
    if not value and instruction != "DEFAULT" and (given is None or instruction not in _TEXTS):
        raise at.error(f"{instruction} has no value")
    match instruction:
        case "FROM":
            draft.once[instruction] = value
            draft.sources.insert(0, _reference(value, value_at))
        case "SOURCE":
            draft.sources.append(_reference(value, value_at))
        case "ADAPTER":
            draft.adapters.append(_reference(value, value_at))
        case "DRAFT":
            draft.draft = _reference(value, value_at)
        case "PARAMETER":
            _parameter(name, value, value_at, draft)
        case "MESSAGE":
            draft.messages.append(_message(name, value, value_at))
        case "LICENSE":
            draft.licenses.append(value)
        case _:
            draft.once[instruction] = _checked(instruction, value, value_at)


def _parameter(name: str, text: str, place: Place, draft: _Draft) -> None:
    if name in _ELSEWHERE:
        raise place.error(f"the parameter {name} cannot be used", _ELSEWHERE[name])
    option = _ALIASES.get(name, name)
    if option not in OPTION_NAMES:
        raise place.error(f"{name!r} is not a parameter", _nearest(name, [*OPTION_NAMES, *_ALIASES]))
    if name == "num_predict" and text.strip() in ("-1", "-2"):
        return  # "until the context is full": what holds where nothing is set
    try:
        draft.options = Options(**{option: option_value(option, text)}).over(draft.options)
    except ValueError:
        raise place.error(f"{name} is {text!r}, which is not {option_form(option)}") from None


def _message(role: str, text: str, place: Place) -> Message:
    known: tuple[Role, ...] = get_args(Role)
    for one in known:
        if role == one != "tool":
            return Message(role=one, content=text)
    raise place.error(f"the role {role!r} is not system, user or assistant")


def _reference(value: str, place: Place) -> Reference:
    try:
        return parse_reference(value)
    except LlmrunError as error:
        raise place.error(error.message, error.hint) from None


def _checked(instruction: str, value: str, place: Place) -> str:
    """The value of an instruction that stands once."""
    if instruction == "SHA256" and not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise place.error(f"SHA256 is {value!r}, which is not 64 hexadecimal digits")
    if instruction == "SIZE" and not re.fullmatch(r"[0-9]{1,19}", value):
        raise place.error(f"SIZE is {value!r}, which is not a count of bytes")
    if instruction == "REQUIRES" and not re.fullmatch(r"v?\d+(\.\d+)*\S*", value):
        raise place.error(f"REQUIRES is {value!r}, which is not a version")
    if instruction == "TEMPLATE" and looks_go(value):
        try:
            return to_jinja(value)
        except Untranslatable as problem:
            raise place.error(
                f"the template is written for Go and has no twin in Jinja: {problem}",
                "write it in Jinja, or leave TEMPLATE out to use the model's own",
            ) from None
    return value


def _nearest(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word[:100], known, n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
