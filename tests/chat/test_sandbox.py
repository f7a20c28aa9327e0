"""Marks must not be seen: a marked rendering, cleaned, is the rendering without marks.

`LLMRUN_TEST_TEMPLATES` names a folder of `*.jinja` files to go through as well.
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

from llmrun.chat.control import ControlTokens
from llmrun.chat.mark import Mark
from llmrun.chat.template import ChatTemplate, variables
from llmrun.errors import LlmrunError
from tests.chat import templates
from tests.chat.vocabs import CharVocab

ENV = "LLMRUN_TEST_TEMPLATES"
FILES = sorted(Path(os.environ[ENV]).glob("*.jinja")) if ENV in os.environ else []
EACH = "{{% for m in messages %}}{}{{% endfor %}}"
USES = {
    "equality": "{% if m.content == '<think>' or m.content != '</s>' %}x{% endif %}",
    "membership": "{{ '<think>' in m.content }}{{ m.content not in ['<think>', '</s>', ''] }}",
    "key membership": "{{ '<think>' in {m.content: 1} }}",
    "equality tests": "{{ m.content is eq('<think>') }}{{ m.content is in(['</s>']) }}",
    "selection": "{{ messages | selectattr('content', 'equalto', '<think>') | list | length }}",
    "rejection": "{{ messages | rejectattr('content', 'in', ['</s>', '<think>']) | list | length }}",
    "splitting": "{{ m.content.split('</think>')[-1] }}{{ m.content.rsplit('<', 1)[0] }}",
    "splitting at a variable": "{% set end = '</think>' %}{{ m.content.split(end)[0] }}",
    "splitting what is mixed": "{% set c = '<think>' ~ m.content %}{{ c.split('<think>') | join('|') }}",
    "edges": "{{ m.content.startswith('<think>') }}{{ m.content.endswith(('</s>', '>')) }}",
    "stripping": "{{ m.content.strip('<') }}{{ m.content | trim }}",
    "replacing": "{{ m.content.replace('<think>', '') }}{{ m.content | replace('<think>', '-') }}",
    "json": "{{ m | tojson }}{{ m.content | tojson(ensure_ascii=True) }}",
    "json in a block": "{% block b scoped %}{{ m.content | tojson(ensure_ascii=True) }}{% endblock %}",
    "repr": "{{ [m.content] }}{{ {'x': m.content} | string }}",
    "case": "{{ m.content | upper }}{{ m.content.title() }}",
    "keys": "{% for k, v in {m.content: 1} | dictsort %}{{ k }}{{ v }}{% endfor %}",
    "macro": "{% macro f(t) %}{{ t == '<think>' }}{{ t }}{% endmacro %}{{ f(m.content) }}",
    "words around": "{{ '<' ~ m.content ~ '>' }}{{ '<|' + m.role + '|>' }}",
    "refusal": "{% if '</s>' in m.content %}{{ raise_exception('not ' + m.content) }}{% endif %}",
    "failure": "{{ {}[m.content].x }}",
}
SOURCES = {name: EACH.format(use) for name, use in USES.items()}
SOURCES |= {name: value for name, value in vars(templates).items() if name.isupper()}
SOURCES |= {file.stem: file.read_text("utf-8") for file in FILES}


def outcome(template: ChatTemplate, given: dict[str, Any], mark: Mark | None) -> str:
    edges = {"bos_token": "<s>", "eos_token": "</s>"}
    try:
        text = template.render({**given, **edges}, mark)
    except LlmrunError as error:
        return f"failed: {error.message}"
    return mark.clean(text) if mark else text


def conversations(words: list[str]) -> list[list[dict[str, Any]]]:
    draw = random.Random(1)

    def text() -> str:
        return "".join(draw.choices(words, k=draw.randint(0, 6)))

    found = [[{"role": "user", "content": word}] for word in words]
    for _ in range(40):
        turns = [{"role": "system", "content": text()}] if draw.random() < 0.5 else []
        for _ in range(draw.randint(1, 3)):
            thought = f"<think>\n{text()}\n</think>\n\n" if draw.random() < 0.3 else ""
            turns += [{"role": "user", "content": text()}, {"role": "assistant", "content": thought + text()}]
        found.append([*turns, {"role": "user", "content": text()}])
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_marks_make_no_difference_to_what_a_template_does(name: str) -> None:
    template = ChatTemplate(SOURCES[name])
    written = re.findall(r"<[^<>\s]{1,40}>|\[[A-Z_/]{2,30}\]", "\0".join(template.literals))
    spellings = sorted({"<s>", "</s>", "<think>", "</think>", "<|im_end|>", *written})
    control = ControlTokens(CharVocab({text: i for i, text in enumerate(spellings)}), template.literals)
    others = ["hello", " ", "\n", "<b>x</b>", "[1, 2]", "a<b", "é🦙", '"', "/think", ">", "|>", "s", "'"]
    for messages in conversations(spellings + others):
        given = variables(messages)
        mark = Mark(control, given, template.names)
        marked = {key: mark.outside(value) for key, value in given.items()}
        assert outcome(template, marked, mark) == outcome(template, given, None), messages
