from __future__ import annotations

from llmrun.chat.syntax import Block, JsonArguments, Slot, Syntax, derive
from llmrun.chat.template import ChatTemplate
from tests.chat.templates import CHATML

HERMES = """\
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.reasoning_content %}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{{- m.content }}
{%- for call in m.tool_calls or [] %}
{%- if not loop.first or m.content %}{{- '\\n' }}{% endif %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""


def test_derive_template_without_tools_has_no_calls() -> None:
    assert derive(ChatTemplate(CHATML)) == Syntax(end="<|im_end|>")


def test_derive_hermes_shape_gives_every_literal() -> None:
    found = derive(ChatTemplate(HERMES))
    assert found.reasoning == Block("<think>\n", "\n</think>\n\n")
    assert (found.after_content, found.end) == ("\n", "<|im_end|>")
    assert found.calls
    assert found.calls.call == (
        '<tool_call>\n{"name": "',
        Slot.NAME,
        '", "arguments": ',
        Slot.ARGUMENTS,
        "}\n</tool_call>",
    )
    assert (found.calls.separator, found.calls.arguments) == ("\n", JsonArguments())
