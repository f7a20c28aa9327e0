"""The `prompt` of a completion: every shape that llama-server takes, as a tuple of prompts.

A prompt is text, token ids, texts and ids in turn, or an object `{"prompt_string": …}`; a list that holds
no ids of its own is a list of prompts.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema

from llmrun.api.bounds import INT32
from llmrun.api.schema import unsupported, wrong

MAX_PROMPTS = 2048

Prompt = str | tuple[int | str, ...]


def _is_token(value: object) -> bool:
    return type(value) is int and 0 <= value <= INT32


def prompts_of(value: object) -> tuple[Prompt, ...]:
    """The prompts in `value`, at least one."""
    if not isinstance(value, list):
        return (_prompt(value, ""),)
    if any(isinstance(item, int) for item in value):
        return (_prompt(value, ""),)
    if not 1 <= len(value) <= MAX_PROMPTS:
        raise wrong(f"should hold 1 to {MAX_PROMPTS} prompts, not {len(value)}")
    return tuple(_prompt(item, str(number)) for number, item in enumerate(value))


def _prompt(value: object, where: str) -> Prompt:
    """One prompt; `where` is its place in a list of them."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _object(value, where)
    if not isinstance(value, list) or not value:
        raise wrong("should be text, token ids, or texts and ids in turn", where)
    for number, item in enumerate(value):
        if not (isinstance(item, str) or _is_token(item)):
            raise wrong("should be text, or a token id from 0", f"{where}.{number}".lstrip("."))
    return tuple(value)


def _object(value: dict[str, object], where: str) -> Prompt:
    if value.get("multimodal_data"):
        raise unsupported("image or audio input", f"{where}.multimodal_data".lstrip("."))
    for name in value:
        if name not in ("prompt_string", "multimodal_data"):
            raise wrong("is not a known field", f"{where}.{name[:40]}".lstrip("."))
    text = value.get("prompt_string")
    if not isinstance(text, str):
        raise wrong("should be text", f"{where}.prompt_string".lstrip("."))
    return text


Prompts = Annotated[
    tuple[Prompt, ...],
    PlainValidator(prompts_of),
    WithJsonSchema({"type": ["string", "array", "object"]}),
]
