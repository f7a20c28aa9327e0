from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.store.modelfile import Modelfile, format_modelfile, parse_modelfile
from llmrun.store.reference import FileRef, HubRef, NameRef, PypiRef
from llmrun.types import Message, Options

DIGEST = "ab" * 32


def test_parse_modelfile_every_instruction_is_read() -> None:
    parsed = parse_modelfile(
        f'''# a comment
FROM hf.co/org/repo:Q4_K_M
source pypi://package==1.0
SHA256 {DIGEST.upper()}
SIZE 123
PARAMETER temperature 0.5
PARAMETER num_ctx 4096
PARAMETER num_predict 7
PARAMETER top_k 40
PARAMETER stop "<|end|>"
PARAMETER stop   User:
TEMPLATE """{{% for m in messages %}}
{{{{ m.content }}}}{{% endfor %}}"""
SYSTEM You are "brief".
LICENSE apache-2.0
DEFAULT
'''
    )
    assert parsed == Modelfile(
        sources=(HubRef("org/repo", "Q4_K_M"), PypiRef("package", "1.0")),
        sha256=DIGEST,
        size=123,
        options=Options(temperature=0.5, ctx=4096, max_tokens=7, top_k=40, stop=("<|end|>", "User:")),
        template="{% for m in messages %}\n{{ m.content }}{% endfor %}",
        system='You are "brief".',
        license="apache-2.0",
        default=True,
    )


def test_parse_modelfile_triple_quotes_keep_lines_comments_and_spaces() -> None:
    parsed = parse_modelfile('FROM x\nSYSTEM """\n# no comment\n  two  \n"""\nPARAMETER stop """a\n\nb"""\n')
    assert parsed.system == "\n# no comment\n  two  \n"
    assert parsed.options.stop == ("a\n\nb",)


def test_parse_modelfile_windows_lines_and_byte_order_mark_are_taken() -> None:
    parsed = parse_modelfile("\ufeffFROM ./x.gguf\r\nSYSTEM hi\r\n")
    assert parsed.sources == (FileRef("./x.gguf"),)
    assert parsed.system == "hi"


@pytest.mark.parametrize("value", ["-1", "-2"])
def test_parse_modelfile_unlimited_num_predict_leaves_the_limit_open(value: str) -> None:
    assert parse_modelfile(f"FROM x\nPARAMETER num_predict {value}").options.max_tokens is None


@pytest.mark.parametrize(
    ("text", "at", "what"),
    [
        ("PARAMETER temperature 1", None, "no FROM"),
        ("FROM x\nFROM y", (2, 1), "FROM is there twice"),
        ("FROM x\n\n  FORM y", (3, 3), "'FORM' is not an instruction"),
        ("FROM", (1, 1), "FROM has no value"),
        ("FROM  UPPER", (1, 7), "not a model reference"),
        ("FROM x\nPARAMETER temperature hot", (2, 11), "'hot'"),
        ("FROM x\nPARAMETER temperature nan", (2, 11), "'nan'"),
        ("FROM x\nPARAMETER top_p 1.5", (2, 11), "from 0 to 1"),
        ("FROM x\nPARAMETER top_k 2.5", (2, 11), "'2.5'"),
        ("FROM x\nPARAMETER tempereture 1", (2, 11), "'tempereture' is not a parameter"),
        ("FROM x\nPARAMETER num_gpu 1", (2, 11), "num_gpu cannot be used"),
        ('FROM x\nPARAMETER stop ""', (2, 1), "no value"),
        ("FROM x\nPARAMETER stop", (2, 1), "no value"),
        ('FROM x\nSYSTEM """a\nb', (2, 8), "never closed"),
        ('FROM x\nSYSTEM """a\nb""" c', (2, 8), "never closed"),
        ('FROM x\nSYSTEM "a\nb', (2, 8), "never closed"),
        ("FROM x\nSYSTEM", (2, 1), "SYSTEM has no value"),
        ("FROM x\nMESSAGE robot beep", (2, 9), "'robot' is not system"),
        ("FROM x\nMESSAGE user", (2, 1), "MESSAGE has no value"),
        ("FROM x\nREQUIRES soon", (2, 10), "not a version"),
        ("FROM x\nRENDERER qwen3", (2, 1), "RENDERER cannot be used"),
        ("FROM x\nDRAFT a\nDRAFT b", (3, 1), "DRAFT is there twice"),
        ("FROM x\nTEMPLATE {{ .System }} {{ if .Prompt }}", (2, 10), "written for Go"),
        ("FROM x\nTEMPLATE {{ range .Messages }}{{ .Images }}{{ end }}", (2, 10), "it uses .Images"),
        ("FROM x\nSHA256 abc", (2, 8), "64 hexadecimal"),
        ("FROM x\nSIZE many", (2, 6), "count of bytes"),
        ("FROM x\nDEFAULT yes", (2, 9), "stands alone"),
        ("FROM x\nSOURCE y", None, "needs a SHA256"),
    ],
)
def test_parse_modelfile_fault_names_line_and_column(
    text: str, at: tuple[int, int] | None, what: str
) -> None:
    with pytest.raises(LlmrunError) as caught:
        parse_modelfile(text, "My Modelfile")
    assert caught.value.kind is INVALID_REQUEST
    assert what in caught.value.message
    place = f"My Modelfile, line {at[0]}, column {at[1]}: " if at else "My Modelfile: "
    assert caught.value.message.startswith(place)


def test_parse_modelfile_quotes_may_stand_in_values_and_span_lines() -> None:
    parsed = parse_modelfile('FROM x\nSYSTEM "say "hi" then\nor not"\nPARAMETER stop """a""" b"""  \n')
    assert parsed.system == 'say "hi" then\nor not'
    assert parsed.options.stop == ('a""" b',)


def test_parse_modelfile_empty_quotes_take_a_text_away() -> None:
    parsed = parse_modelfile('FROM x\nSYSTEM ""\nTEMPLATE """"""\n')
    assert (parsed.system, parsed.template) == ("", "")


def test_parse_modelfile_licenses_and_messages_are_repeatable() -> None:
    parsed = parse_modelfile(
        'FROM x\nLICENSE one\nLICENSE two\nMESSAGE user hi\nmessage assistant """a\nb"""\nREQUIRES 0.5.1\n'
    )
    assert parsed.license == "one\n\ntwo"
    assert parsed.messages == (Message(role="user", content="hi"), Message(role="assistant", content="a\nb"))
    assert parsed.requires == "0.5.1"


def test_parse_modelfile_go_template_becomes_its_jinja_twin() -> None:
    parsed = parse_modelfile('FROM x\nTEMPLATE """{{ range .Messages }}{{ .Content }}{{ end }}"""')
    assert parsed.template
    assert "{%- for item0 in messages" in parsed.template


def test_below_anchors_relative_paths_only(tmp_path: Path) -> None:
    parsed = parse_modelfile(f"FROM ./a.gguf\nADAPTER {tmp_path}/b.gguf\nDRAFT small").below(tmp_path / "sub")
    assert parsed.sources == (FileRef(str(tmp_path / "sub" / "a.gguf")),)
    assert parsed.adapters == (FileRef(f"{tmp_path}/b.gguf"),)
    assert parsed.draft == NameRef("small")


def test_parse_modelfile_misspelt_parameter_names_the_nearest() -> None:
    with pytest.raises(LlmrunError) as caught:
        parse_modelfile("FROM x\nPARAMETER temprature 1")
    assert "temperature" in caught.value.hint


def test_parse_modelfile_jinja_template_is_not_taken_for_go() -> None:
    template = "{%- if tools %}{{- tools }}{%- endif %}{{ messages[0].content }}{{ ranges }}{{ enddate }}"
    assert parse_modelfile(f"FROM x\nTEMPLATE {template}").template == template


_texts = st.text(min_size=1, max_size=40).filter(
    # What closes the quotes at the end of a line has no form; a carriage return is part of the line's end.
    lambda text: '"""' not in text and "\r" not in text and not text.endswith('"')
)


@given(
    st.builds(
        Modelfile,
        sources=st.sampled_from([(NameRef("a", "b"),), (HubRef("o/r", "Q4_0"), PypiRef("p"))]),
        sha256=st.just(DIGEST),
        size=st.none() | st.integers(0, 1 << 40),
        options=st.builds(
            Options,
            temperature=st.none() | st.floats(0, 100),
            top_k=st.none() | st.integers(0, 1000),
            seed=st.none() | st.integers(0, 1 << 32),
            stop=st.lists(_texts, max_size=3, unique=True).map(tuple),
        ),
        system=st.none() | st.just("") | _texts,
        messages=st.lists(
            st.builds(Message, role=st.sampled_from(["user", "assistant"]), content=_texts), max_size=2
        ).map(tuple),
        license=st.just("") | _texts,
        adapters=st.sampled_from([(), (FileRef("/a b.gguf"),)]),
        draft=st.sampled_from([None, NameRef("small")]),
        requires=st.sampled_from([None, "0.14"]),
        default=st.booleans(),
    )
)
def test_format_modelfile_parses_back_to_the_same(modelfile: Modelfile) -> None:
    assert parse_modelfile(format_modelfile(modelfile)) == modelfile


def test_format_modelfile_text_without_a_form_is_refused() -> None:
    with pytest.raises(LlmrunError, match="lines that end in quotes"):
        format_modelfile(Modelfile(sources=(NameRef("x"),), system='a"""\nb'))


INSTRUCTIONS = [
    "FROM",
    "SOURCE",
    "SHA256",
    "SIZE",
    "PARAMETER",
    "TEMPLATE",
    "SYSTEM",
    "MESSAGE",
    "ADAPTER",
    "DRAFT",
    "LICENSE",
]
VALUES = ["x", "num_ctx", "stop", "-1", "1e999", "nan", "user", "../x", "https://h/x.gguf"]
MARKS = [
    " ",
    "\n",
    "\r",
    "\t",
    '"""',
    '"',
    "'",
    "#",
    "\\",
    "\x00",
    "\u2028",
    "{{ .Prompt }}",
    "{{ range .Messages }}",
]
WORDS = st.sampled_from([*INSTRUCTIONS, *VALUES, *MARKS, "{{ end }}", "0" * 64])


@given(st.lists(st.one_of(WORDS, st.text(max_size=6)), max_size=30).map("".join))
def test_parse_modelfile_any_text_is_understood_or_refused_in_words(text: str) -> None:
    with contextlib.suppress(LlmrunError):
        parse_modelfile(text)


@pytest.mark.parametrize(
    "text",
    [
        'FROM x\nTEMPLATE """' + "{{ if .A }}" * 20_000,
        "FROM x\nTEMPLATE {{ .Prompt " + "(" * 20_000,
        '"' * 100_000,
        "\n" * 300_000,
    ],
    ids=["blocks", "parentheses", "quotes", "lines"],
)
def test_parse_modelfile_of_bottomless_or_endless_text_is_refused(text: str) -> None:
    with pytest.raises(LlmrunError):
        parse_modelfile(text)


HOSTILE = {
    "a size of many digits": "FROM x\nSIZE " + "9" * 5000,
    "a quote never closed, over many lines": 'FROM x\nSYSTEM """' + "\n" * 1_000_000,
    "an instruction without end": "X" * 1_000_000 + " y",
    "a parameter without end": "FROM x\nPARAMETER " + "x" * 1_000_000 + " 1",
    "a number of many digits": "FROM x\nPARAMETER seed " + "9" * 5000,
    "a role without end": "FROM x\nMESSAGE " + "r" * 1_000_000 + " hi",
    "more text than is read": "FROM x\n" + "#" * 5_000_000,
    "ifs in ifs": 'FROM x\nTEMPLATE """{{ .Prompt }}'
    + "{{ if .System }}" * 5000
    + "{{ end }}" * 5000
    + '"""',
    "elses on elses": 'FROM x\nTEMPLATE """{{ if .System }}'
    + "{{ else if .Prompt }}" * 5000
    + '{{ end }}"""',
    "parentheses": 'FROM x\nTEMPLATE """{{ if '
    + "(" * 9999
    + ".System"
    + ")" * 9999
    + ' }}{{ .Prompt }}{{ end }}"""',
    "comparisons that double": 'FROM x\nTEMPLATE """{{ .Prompt }}{{ if '
    + "(eq " * 60
    + ".System"
    + ' "x" "y")' * 60
    + ' }}{{ end }}"""',
    "a template without end": 'FROM x\nTEMPLATE """{{ .Prompt }}' + "x" * 300_000 + '"""',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_parse_modelfile_that_would_take_for_ever_is_refused_soon_and_briefly(name: str) -> None:
    began = time.thread_time()
    with pytest.raises(LlmrunError) as refused:
        parse_modelfile(HOSTILE[name])
    assert refused.value.kind is INVALID_REQUEST
    assert len(str(refused.value)) < 5000
    assert time.thread_time() - began < 2


def test_parse_modelfile_go_template_that_opens_without_end_is_read_soon() -> None:
    began = time.thread_time()
    parse_modelfile('FROM x\nTEMPLATE """{{ .Prompt }}' + "{{" * 100_000 + '"""')
    assert time.thread_time() - began < 2
