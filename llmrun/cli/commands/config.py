"""`llmrun config`: the settings in force, and config.toml."""

from __future__ import annotations

import difflib
import json
import re
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from llmrun.cli.args import AsJson, new_app
from llmrun.cli.session import session_of
from llmrun.config import SETTINGS, parse_setting
from llmrun.errors import CONFIG, USAGE, LlmrunError
from llmrun.hosts import base_url, host_port
from llmrun.store.disk import write_atomic, writing

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

app = new_app()


def _complete(incomplete: str) -> list[str]:
    return [name for name in SETTINGS if name.startswith(incomplete)]


_SETTING = typer.Argument(metavar="NAME", help="A setting.", autocompletion=_complete, show_default=False)


@app.callback()
def config() -> None:
    """Show and change settings."""


@app.command()
def get(
    context: typer.Context,
    name: Annotated[str | None, _SETTING] = None,
    as_json: AsJson = False,
) -> None:
    """Print the settings in force: flag, then environment, then config.toml, then default.

    \b
    Examples:
      llmrun config get
      llmrun config get keep_alive
    """
    session = session_of(context, as_json=as_json)
    values = asdict(session.settings)
    if name is not None:
        values = {name: values[known(name)]}
    if values.get("api_key"):
        values["api_key"] = "(set)"  # a terminal's scroll-back is no place for a key
    if as_json:
        session.out.json({key: shown(key, value) for key, value in values.items()})
    elif name is not None:
        session.out.result(shown(name, values[name]))
    else:
        session.out.fields([(key, shown(key, value)) for key, value in values.items()])


@app.command("set")
def set_(
    context: typer.Context,
    name: Annotated[str, _SETTING],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Its value.", show_default=False)],
) -> None:
    """Write a setting into config.toml. A running daemon keeps what it started with.

    \b
    Examples:
      llmrun config set keep_alive 1h
      llmrun config set ctx 8192
    """
    session = session_of(context)
    parse_setting(known(name), value, name)
    path = session.paths.config_file
    before = path.read_text("utf-8") if path.exists() else ""
    after = with_setting(before, name, value)
    if not changes_only(before, after, name, value):
        raise LlmrunError(CONFIG, f"{path} cannot be changed safely", hint=f"write {name} into it by hand")
    with writing(path.parent):
        write_atomic(path, after.encode())
    session.out.note(f"{name} is {value} in {path}")


@app.command()
def path(context: typer.Context) -> None:
    """Print where config.toml lies, or would.

    \b
    Example:
      $EDITOR "$(llmrun config path)"
    """
    session = session_of(context)
    session.out.result(str(session.paths.config_file))


def known(name: str) -> str:
    """`name` if it is a setting; LlmrunError USAGE with the nearest if not."""
    if name not in SETTINGS:
        near = difflib.get_close_matches(name, SETTINGS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "see: llmrun config get"
        raise LlmrunError(USAGE, f"there is no setting {name!r}", hint=hint)
    return name


def shown(name: str, value: Any) -> str:
    """A setting's value as one would write it."""
    if value is None:
        return "auto" if "auto" in SETTINGS[name].metadata["form"] else ""
    if name == "host":
        host, port, tls = value
        return base_url(host, port, tls) if tls else host_port(host, port)
    if name == "keep_alive":
        return "-1" if value == float("inf") else f"{value:g}"
    if isinstance(value, bool):
        return str(int(value))
    return ",".join(value) if isinstance(value, tuple) else str(value)


def with_setting(text: str, name: str, value: str) -> str:
    """TOML `text` in which `name` has this value; every other line stays as it is."""
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}"
    pattern = re.compile(rf"^[ \t]*{name}[ \t]*=.*$", re.MULTILINE)
    if pattern.search(text):
        return pattern.sub(lambda _: line, text, count=1)
    gap = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{gap}{line}\n"


def changes_only(before: str, after: str, name: str, value: str) -> bool:
    """Whether both texts are TOML and differ in nothing but `name`, which is `value`."""
    try:
        return tomllib.loads(after) == {**tomllib.loads(before), name: value}
    except tomllib.TOMLDecodeError:
        return False
