"""A chat template: Jinja source and messages in, the prompt's text out. No vocabulary, no model.

The text is the one that transformers renders from the same template, variables and messages. A
template is foreign code: it runs in a sandbox, and whatever goes wrong in it is an LlmrunError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from llmrun.chat.mark import Mark
from llmrun.errors import TEMPLATE, LlmrunError

MAX_SOURCE = 256 * 1024  # characters; the longest in use have a fifth, and compiling takes 20 µs for each
_MAX_REASON = 500  # characters; Jinja quotes whole messages
_REASONING = ("reasoning_content", "thinking", "reasoning")


class ChatTemplate:
    """A template compiled once. Safe to render from several threads.

    literals  every text the template itself holds
    names     every attribute and key it names
    inputs    every variable it may read from outside
    """

    def __init__(self, source: str) -> None:
        """LlmrunError TEMPLATE where `source` is no Jinja template."""
        import jinja2

        from llmrun.chat import sandbox

        if len(source) > MAX_SOURCE:
            raise LlmrunError(
                TEMPLATE, f"the chat template has {len(source)} characters, and {MAX_SOURCE} are the most"
            )
        environment = sandbox.ChatSandbox()
        try:
            tree = environment.read(source)
            self.literals = sandbox.literals(tree)
            self.names = sandbox.names(tree)
            self.inputs = sandbox.inputs(tree)
            self._compiled = environment.from_string(tree)
        except jinja2.TemplateSyntaxError as error:
            raise LlmrunError(
                TEMPLATE, f"the chat template is wrong in line {error.lineno}: {error.message}"
            ) from None
        except Exception as error:  # Python's own words too, on code nested too deeply or numbers too long
            reason = str(error) or "it needs too much memory"
            raise LlmrunError(TEMPLATE, f"the chat template cannot be read: {reason}") from None

    def render(self, variables: Mapping[str, Any], mark: Mark | None = None) -> str:
        """The text for `variables`; `mark` says how they are marked, and the text then is too.

        LlmrunError TEMPLATE carries the template's own words where it refuses the messages.
        """
        from llmrun.chat.render_context import new_context

        pieces: list[str] = []
        try:
            context = new_context(self._compiled, variables, mark)
            room = context.room
            for piece in self._compiled.root_render_func(context):
                pieces.append(piece)
                room -= len(piece)
                if room < 0:
                    raise OverflowError(f"it writes more than {context.room} characters")
        except LlmrunError:
            raise
        except Exception as error:  # foreign code: anything may come out of it
            raise self._failure(error, mark) from None
        return "".join(pieces)

    def _failure(self, error: Exception, mark: Mark | None) -> LlmrunError:
        line = self._line(error.__traceback__)
        where = f" in line {line}" if line else ""
        what = str(error)[:_MAX_REASON] or "it needs too much memory"
        if isinstance(error, KeyError):
            what = f"there is no key {what}"
        elif isinstance(error, RecursionError):
            what = "it calls itself without end"
        return LlmrunError(TEMPLATE, f"the chat template fails{where}: {mark.clean(what) if mark else what}")

    def _line(self, trace: TracebackType | None) -> int | None:
        found = None
        while trace:
            if trace.tb_frame.f_code.co_filename == "<template>":
                found = self._compiled.get_corresponding_lineno(trace.tb_lineno)
            trace = trace.tb_next
        return found


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as templates expect it: no keys without a value, reasoning under both of its names."""
    fields = {key: value for key, value in message.items() if value is not None}
    for name in _REASONING:
        if name in fields:
            return {"thinking": fields[name], **fields, "reasoning_content": fields[name]}
    return fields


def variables(
    messages: Sequence[Mapping[str, Any]],
    /,
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    documents: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = True,
    **kwargs: Any,
) -> dict[str, Any]:
    """What a template is given: the names that transformers uses, and any others in `kwargs`."""
    return {
        "messages": [_plain(message) for message in messages],
        "tools": tools,
        "documents": documents,
        "add_generation_prompt": add_generation_prompt,
        **kwargs,
    }


def render(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    /,
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    documents: Sequence[Mapping[str, Any]] | None = None,
    bos_token: str = "",
    eos_token: str = "",
    add_generation_prompt: bool = True,
    **kwargs: Any,
) -> str:
    """The prompt that Jinja source `template` makes of `messages`; `kwargs` are further variables.

    LlmrunError TEMPLATE where the template cannot be read, fails or refuses the messages.
    """
    given = variables(
        messages, tools=tools, documents=documents, add_generation_prompt=add_generation_prompt, **kwargs
    )
    return ChatTemplate(template).render({**given, "bos_token": bos_token, "eos_token": eos_token})
