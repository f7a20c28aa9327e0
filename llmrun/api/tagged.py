"""Objects that say in `type` what they are: which of them a field takes, and what is said of the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import BeforeValidator

from llmrun.api.schema import unsupported, wrong


def tagged(known: Collection[str], refused: Mapping[str, str]) -> BeforeValidator:
    """Checks `type` before the fields: one of `known`, or else an error that names it.

    refused  types of the dialect that are not built, and what each asks for, to follow "asks for"
    """

    def check(value: object) -> object:
        if not isinstance(value, dict):
            raise wrong("should be an object")
        kind = value.get("type")
        if isinstance(kind, str) and kind in refused:
            raise unsupported(refused[kind], "type", hint="leave it out")
        if not isinstance(kind, str) or kind not in known:
            given = "missing" if kind is None else repr(kind)[:40]
            raise wrong(f"is {given}; it should be one of: {', '.join(sorted(known))}", "type")
        return value

    return BeforeValidator(check)
