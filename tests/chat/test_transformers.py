"""Our rendering against transformers' own: the machinery nobody here wrote.

Runs where transformers is installed (no torch is needed). `LLMRUN_TEST_TEMPLATES` names a folder of
`*.jinja` files to compare beside the templates written in these tests; llama.cpp's source has such a
folder, `models/templates`.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

from llmrun.chat.template import render
from llmrun.errors import LlmrunError
from tests.chat import templates

if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed: pip install transformers", allow_module_level=True)

ENV = "LLMRUN_TEST_TEMPLATES"
FILES = sorted(Path(os.environ[ENV]).glob("*.jinja")) if ENV in os.environ else []
SOURCES = {name: value for name, value in vars(templates).items() if name.isupper()} | {
    file.stem: file.read_text("utf-8") for file in FILES
}

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get <b>weather</b>, é",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "City"},
                    "unit": {"type": "string", "enum": ["c", "f"]},
                },
                "required": ["city"],
            },
        },
    }
]
CALL = {
    "id": "call12345",
    "type": "function",
    "function": {"name": "get_weather", "arguments": {"city": "Paris", "unit": "c"}},
}


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **fields}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


RESULT = {"role": "tool", "tool_call_id": "call12345", "name": "get_weather", "content": '{"t": 20}'}
CONVERSATIONS: dict[str, dict[str, Any]] = {
    "system and user": {"messages": [system("You are helpful."), user("Hello")]},
    "white space": {"messages": [user("Hello\n\n  world  ")]},
    "turns": {"messages": [user("Hi"), assistant("Hello!"), user("Bye")]},
    "unicode": {"messages": [system("日本語 😀"), user('naïve <b>& "q" \'')]},
    "empty system": {"messages": [system(""), user("x")]},
    "no generation prompt": {"messages": [user("Hi"), assistant("Ho")], "add_generation_prompt": False},
    "two user turns": {"messages": [user("Hi"), user("again")]},
    "thought": {"messages": [user("Hi"), assistant("<think>\nhm <b>\n</think>\n\nHello!"), user("Bye")]},
    "reasoning": {"messages": [user("Hi"), assistant("Ho", reasoning_content="because"), user("Bye")]},
    "tools": {"messages": [user("Weather?")], "tools": TOOLS},
    "tool call": {"messages": [user("W?"), assistant("", tool_calls=[CALL]), RESULT], "tools": TOOLS},
    "null content": {"messages": [user("W?"), assistant(None, tool_calls=[CALL]), RESULT], "tools": TOOLS},
    "parts": {"messages": [user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])]},
    "variables": {"messages": [user("q")], "enable_thinking": False, "reasoning_effort": "low"},
    "no messages": {"messages": []},
}


def reference(source: str, messages: list[dict[str, Any]], variables: dict[str, Any]) -> str | None:
    """The text that transformers renders; None where it fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers.utils import chat_template_utils as theirs

    given = [{key: value for key, value in message.items() if value is not None} for message in messages]
    try:
        texts, _ = theirs.render_jinja_template([given], chat_template=source, **variables)
    except Exception:  # it raises whatever jinja2 and the template do; ours must refuse then too
        return None
    return str(texts[0])


@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("template", SOURCES)
def test_render_equals_transformers(template: str, conversation: str) -> None:
    variables = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True}
    variables |= CONVERSATIONS[conversation]
    messages = variables.pop("messages")
    try:
        ours = render(SOURCES[template], messages, **variables)
    except LlmrunError:
        ours = None
    assert ours == reference(SOURCES[template], messages, variables)
