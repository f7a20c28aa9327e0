"""`llmrun template`: chat templates, without running a model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from llmrun.cli.args import complete_model, new_app
from llmrun.cli.prompt import STDIN, StandardInput, read_text
from llmrun.cli.session import Session, session_of
from llmrun.errors import NO_TEMPLATE, USAGE, LlmrunError
from llmrun.types import Tool

app = new_app()

_KEYS = ("messages", "tools", "documents", "chat_template_kwargs", "bos_token", "eos_token")


@app.callback()
def template() -> None:
    """Work with chat templates."""


@app.command()
def render(
    context: typer.Context,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL] [FILE]",
            help="Whose template, and a JSON file of messages; without FILE they come from stdin.",
            autocompletion=complete_model,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--template", metavar="FILE", help="A Jinja file in place of a model's template."),
    ] = None,
    no_generation_prompt: Annotated[
        bool, typer.Option("--no-generation-prompt", help="Do not open the assistant's turn.")
    ] = False,
) -> None:
    """Print exactly the prompt that a chat template makes of messages.

    The messages are a JSON list, or an object with messages, and tools, documents,
    chat_template_kwargs, bos_token and eos_token where wanted.

    \b
    Examples:
      echo '[{"role": "user", "content": "Hi"}]' | llmrun template render smollm2:135m
      llmrun template render --template chat.jinja messages.json
    """
    session = session_of(context)
    model, messages_file = split(arguments or [], file is not None)
    request = request_of(_read(session, messages_file), "stdin" if messages_file == STDIN else messages_file)
    source, tokens = _of_model(session, model) if model is not None else ("", {})
    if file:
        source = read_text(file)
    tokens |= {name: request[name] for name in ("bos_token", "eos_token") if name in request}

    from llmrun.chat.template import render as render_template

    text = render_template(
        source,
        request["messages"],
        **{
            "tools": request.get("tools"),
            "documents": request.get("documents"),
            "add_generation_prompt": not no_generation_prompt,
            **tokens,
            **request.get("chat_template_kwargs", {}),
        },
    )
    session.out.piece(text)
    if session.out.on_terminal:
        session.out.result("")


@app.command()
def parse(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="Whose template.", autocompletion=complete_model),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--template", metavar="FILE", help="A Jinja file in place of a model's template."),
    ] = None,
    tools_file: Annotated[
        Path | None,
        typer.Option(
            "--tools", metavar="FILE", help="The tools in JSON: their schemas give bare arguments types."
        ),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Take the text one character at a time, as a model's comes.")
    ] = False,
) -> None:
    """Print the message that a model's raw text on stdin means.

    The markers of reasoning and tool calls are read off the chat template; special tokens stand in the
    text as they are spelt. Prints JSON: content, reasoning_content and tool_calls.

    \b
    Examples:
      llmrun template parse smollm2:135m < answer.txt
      llmrun template parse --template chat.jinja --tools tools.json --stream < answer.txt
    """
    session = session_of(context)
    if model is None and file is None:
        raise LlmrunError(USAGE, "there is no template", hint="name a model, or give --template FILE")
    source, tokens = _of_model(session, model) if model is not None else ("", {})
    if file:
        source = read_text(file)
    tools = tools_of(read_text(tools_file), str(tools_file)) if tools_file else ()

    from llmrun.cli.parsed import parsed

    session.out.json(parsed(_read(session, STDIN), source, tokens, tools, stream=stream))


def split(arguments: list[str], has_template: bool) -> tuple[str | None, str]:
    """(model, messages file). With `--template` a single argument is the file."""
    if len(arguments) > 2:
        raise LlmrunError(USAGE, "there are too many arguments", hint="write MODEL and FILE")
    if len(arguments) == 2:
        return arguments[0], arguments[1]
    if has_template:
        return None, arguments[0] if arguments else STDIN
    if not arguments:
        raise LlmrunError(USAGE, "there is no template", hint="name a model, or give --template FILE")
    if arguments[0].endswith(".json"):
        raise LlmrunError(
            USAGE, f"{arguments[0]} has no model before it", hint="write MODEL and FILE, or --template FILE"
        )
    return arguments[0], STDIN


def request_of(text: str, where: str) -> dict[str, Any]:
    """The request in JSON `text`, a bare list made one. LlmrunError USAGE, naming `where` it comes from,
    where it is neither."""
    if not text.strip():
        raise LlmrunError(USAGE, f"{where} is empty", hint="it should hold the messages in JSON")
    try:
        value = json.loads(text)
    except ValueError as error:
        raise LlmrunError(USAGE, f"the messages in {where} are not JSON: {error}") from None
    request = {"messages": value} if isinstance(value, list) else value
    if not isinstance(request, dict) or not isinstance(request.get("messages"), list):
        raise LlmrunError(USAGE, "the messages are neither a list nor an object with messages")
    for name, item in request.items():
        if name not in _KEYS:
            raise LlmrunError(USAGE, f"{name!r} is not known here", hint=f"known are {', '.join(_KEYS)}")
        wanted = {"chat_template_kwargs": dict, "bos_token": str, "eos_token": str}.get(name, list)
        if item is not None and not isinstance(item, wanted):
            raise LlmrunError(USAGE, f"{name} is {json.dumps(item)[:80]}, which has the wrong type")
    if not all(isinstance(message, dict) for message in request["messages"]):
        raise LlmrunError(USAGE, "a message is not an object", hint='write {"role": …, "content": …}')
    return {name: item for name, item in request.items() if item is not None}


def tools_of(text: str, where: str) -> tuple[Tool, ...]:
    """The tools in JSON `text`: a list of OpenAI's, or of bare functions, or an object with `tools`."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise LlmrunError(USAGE, f"the tools in {where} are not JSON: {error}") from None
    listed = value.get("tools") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        raise LlmrunError(USAGE, f"the tools in {where} are neither a list nor an object with tools")
    functions = [item.get("function", item) if isinstance(item, dict) else item for item in listed]
    for function in functions:
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise LlmrunError(
                USAGE,
                f"a tool in {where} has no name: {json.dumps(function)[:80]}",
                hint='write {"name": …, "parameters": …}',
            )
    return tuple(Tool(name=item["name"], parameters=item.get("parameters") or {}) for item in functions)


def _read(session: Session, name: str) -> str:
    if name == STDIN:
        return StandardInput(sys.stdin, session.out.note).read()
    return read_text(Path(name))


def _of_model(session: Session, name: str) -> tuple[str, dict[str, str]]:
    """A model's template and special tokens. LlmrunError NO_TEMPLATE where it has none."""
    from llmrun.store import Store, read_header, special_tokens

    model = Store(session.paths).resolve(name)
    header = read_header(model.path)
    source = model.template or header.text("tokenizer.chat_template")
    if source is None:
        raise LlmrunError(NO_TEMPLATE, f"{name} has no chat template", hint="give one: --template FILE")
    return source, special_tokens(model.path, header)
