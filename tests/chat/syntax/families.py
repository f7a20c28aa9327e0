"""Small templates that write calls and reasoning as the known families of models do."""

from __future__ import annotations

_TURNS = """\
{%- for m in messages %}
{%- if m.role == 'user' %}{{- '<|user|>' + m.content + '<|end|>' }}{% else %}
{{- '<|assistant|>' }}
{%- if m.reasoning_content %}{{- THINK_OPEN + m.reasoning_content + THINK_CLOSE }}{% endif %}
{{- m.content or '' }}
{%- if m.tool_calls %}
CALLS
{%- endif %}
{{- '<|end|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{% endif %}
"""


def _template(
    call: str,
    *,
    open: str = "''",
    between: str = "''",
    close: str = "''",
    think: tuple[str, str] = ("<think>\\n", "\\n</think>\\n\\n"),
) -> str:
    """Jinja of a template whose calls `call` writes; it sees `name`, `arguments`, `loop` and `c`."""
    calls = f"""\
{{{{- {open} }}}}
{{%- for c in m.tool_calls %}}{{%- set name, arguments = c.function.name, c.function.arguments %}}
{{%- if not loop.first %}}{{{{- {between} }}}}{{% endif %}}
{call}
{{%- endfor %}}
{{{{- {close} }}}}"""
    text = _TURNS.replace("CALLS", calls)
    return text.replace("THINK_OPEN", f"'{think[0]}'").replace("THINK_CLOSE", f"'{think[1]}'")


def _tagged(open: str, key: str, between: str, value: str, close: str, end: str) -> str:
    """A call whose arguments stand between tags; each parameter is a Jinja expression."""
    return f"""\
{{{{- {open} }}}}
{{%- for key, value in arguments.items() %}}
{{{{- {key} + key + {between} + ({value}) + {close} }}}}
{{%- endfor %}}
{{{{- {end} }}}}"""


_JSON_OR_TEXT = "value if value is string else value | tojson"
_OBJECT = """{{- '{"name": "' + name + '", "arguments": ' + arguments | tojson + '}' }}"""

FAMILIES = {
    "hermes": _template(
        "{{- '<tool_call>\\n' }}" + _OBJECT + "{{- '\\n</tool_call>' }}",
        open="'\\n' if m.content else ''",
        between="'\\n'",
    ),
    "mistral list with ids": _template(
        """{{- '{"name": "' + name + '", "arguments": ' + arguments | tojson }}"""
        """{{- ', "id": "' + c.id + '"}' }}""",
        open="'[TOOL_CALLS] ['",
        between="', '",
        close="']'",
        think=("[THINK]", "[/THINK]"),
    ),
    "mistral name and arguments": _template(
        "{{- '[TOOL_CALLS]' + name + '[CALL_ID]' + c.id + '[ARGS]' + arguments | tojson }}"
    ),
    "llama bare object": _template(
        """{{- '{"name": "' + name + '", "parameters": ' + arguments | tojson + '}' }}"""
    ),
    "deepseek": _template(
        "{{- '<｜call▁begin｜>function<｜sep｜>' + name + '\\n```json\\n' + arguments | tojson"
        " + '\\n```<｜call▁end｜>' }}",
        open="'<｜calls▁begin｜>'",
        between="'\\n'",
        close="'<｜calls▁end｜>'",
        think=("<think>", "</think>"),
    ),
    "functionary": _template("{{- '<function=' + name + '>' + arguments | tojson + '</function>' }}"),
    "qwen coder": _template(
        _tagged(
            "'<tool_call>\\n<function=' + name + '>\\n'",
            "'<parameter='",
            "'>\\n'",
            _JSON_OR_TEXT,
            "'\\n</parameter>\\n'",
            "'</function>\\n</tool_call>'",
        ),
        open="'\\n\\n' if m.content else ''",
        between="'\\n'",
    ),
    "seed": _template(
        _tagged(
            "'<seed:tool_call>\\n<function=' + name + '>\\n'",
            "'<parameter='",
            "'>'",
            "value | string",
            "'</parameter>\\n'",
            "'</function>\\n</seed:tool_call>'",
        ),
        think=("<seed:think>", "</seed:think>\\n"),
    ),
    "glm": _template(
        _tagged(
            "'\\n<tool_call>' + name",
            "'\\n<arg_key>'",
            "'</arg_key>\\n<arg_value>'",
            _JSON_OR_TEXT,
            "'</arg_value>'",
            "'\\n</tool_call>'",
        )
    ),
    "deepseek typed tags": _template(
        _tagged(
            "'\\n<｜DSML｜invoke name=\"' + name + '\">\\n'",
            "'<｜DSML｜parameter name=\"'",
            "'\" string=\"' + ('true' if value is string else 'false') + '\">'",
            _JSON_OR_TEXT,
            "'</｜DSML｜parameter>\\n'",
            "'</｜DSML｜invoke>'",
        ),
        open="'\\n\\n<｜DSML｜calls>'",
        close="'\\n</｜DSML｜calls>'",
    ),
    "command r": _template(
        """{{- '\\n    {"tool_call_id": "' + loop.index0 | string + '", "tool_name": "' + name"""
        """ + '", "parameters": ' + arguments | tojson + '}' }}""",
        open="'<|START_ACTION|>['",
        between="','",
        close="'\\n]<|END_ACTION|>'",
        think=("<|START_THINKING|>", "<|END_THINKING|>"),
    ),
    "kimi": _template(
        "{{- '<|call_begin|>functions.' + name + ':' + loop.index0 | string + '<|args_begin|>'"
        " + arguments | tojson + '<|call_end|>' }}",
        open="'<|calls_begin|>'",
        close="'<|calls_end|>'",
    ),
    "kimi tags": _template(
        _tagged(
            "'<|open|>call tool=\"' + name + '\" index=\"' + loop.index | string + '\"<|sep|>'",
            "'<|open|>argument key=\"'",
            "'\" type=\"' + ('string' if value is string else 'other') + '\"<|sep|>'",
            _JSON_OR_TEXT,
            "'<|close|>argument<|sep|>'",
            "'<|close|>call<|sep|>'",
        ),
        open="'<|open|>tools<|sep|>'",
        close="'<|close|>tools<|sep|>'",
        think=("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ),
    "apertus": _template(
        """{{- '{"' + name + '": ' + arguments | tojson + '}' }}""",
        open="'<|tools_prefix|>['",
        between="', '",
        close="']<|tools_suffix|>'",
        think=("<|inner_prefix|>", "<|inner_suffix|>"),
    ),
    "solar": _template(
        "{{- '<|call:begin|>' + c.id + '<|call:name|>' + name + '<|call:args|>' + arguments | tojson"
        " + '<|call:end|>' }}",
        open="'<|calls|>'",
    ),
    "pythonic": _template(
        "{{- name + '(' }}{%- for key, value in arguments.items() %}"
        "{{- (', ' if not loop.first else '') + key + '=' }}"
        """{{- "'" + value + "'" if value is string else value | string }}{%- endfor %}{{- ')' }}""",
        open="'<|tool_call_start|>['",
        between="', '",
        close="']<|tool_call_end|>'",
    ),
    "gemma": """\
{%- macro write(value) %}
{%- if value is string %}{{- '<|"|>' + value + '<|"|>' }}
{%- elif value is boolean %}{{- 'true' if value else 'false' }}
{%- elif value is mapping %}{{- '{' }}
{%- for key, item in value.items() %}
{{- (',' if not loop.first else '') + key + ':' + write(item) }}{%- endfor %}
{{- '}' }}
{%- elif value is sequence %}{{- '[' }}
{%- for item in value %}{{- (',' if not loop.first else '') + write(item) }}{%- endfor %}{{- ']' }}
{%- else %}{{- value }}{%- endif %}
{%- endmacro %}
"""
    + _template("{{- '<|tool_call>call:' + name + write(arguments) + '<tool_call|>' }}"),
    "minimax": """\
{%- macro write(value, at) %}
{%- if value is mapping %}
{%- for key, item in value.items() %}
{{- at + '<' + key + '>' + write(item, at) + at + '</' + key + '>' }}{%- endfor %}
{%- elif value is sequence and value is not string %}
{%- for item in value %}{{- at + '<item>' + write(item, at) + at + '</item>' }}{%- endfor %}
{%- elif value is boolean %}{{- value | tojson }}
{%- elif value is not none %}{{- value }}{%- endif %}
{%- endmacro %}
"""
    + _template(
        "{{- ']~[<invoke name=\"' + name + '\">' + write(arguments, ']~[') + ']~[</invoke>\\n' }}",
        open="']~[<tool_call>\\n'",
        close="']~[</tool_call>'",
    ),
}
"""By what they look like; each lets one turn hold several calls, though a bare object cannot."""

HARMONY = """\
{%- for m in messages %}
{%- if m.role == 'user' %}{{- '<|start|>user<|message|>' + m.content + '<|end|>' }}{% else %}
{%- if m.reasoning_content %}
{{- '<|start|>assistant<|channel|>analysis<|message|>' + m.reasoning_content + '<|end|>' }}
{%- endif %}
{{- '<|start|>assistant' }}
{%- if m.tool_calls %}
{%- set f = m.tool_calls[0].function %}
{{- ' to=functions.' + f.name + '<|channel|>commentary json<|message|>' + f.arguments | tojson + '<|call|>' }}
{%- else %}{{- '<|channel|>final<|message|>' + m.content + '<|return|>' }}{%- endif %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{% endif %}
"""
