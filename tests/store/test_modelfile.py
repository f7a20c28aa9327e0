from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.store.modelfile import Modelfile, format_modelfile, parse_modelfile
from llmrun.store.reference import FileRef, HubRef, NameRef, PypiRef
from llmrun.types import Options

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
    ("text", "line", "what"),
    [
        ("PARAMETER temperature 1", None, "no FROM"),
        ("FROM x\nFROM y", 2, "FROM is there twice"),
        ("FROM x\n\nFORM y", 3, "'FORM' is not an instruction"),
        ("FROM", 1, "FROM has no value"),
        ("FROM UPPER", 1, "not a model reference"),
        ("FROM x\nPARAMETER temperature hot", 2, "'hot'"),
        ("FROM x\nPARAMETER temperature nan", 2, "'nan'"),
        ("FROM x\nPARAMETER top_p 1.5", 2, "from 0 to 1"),
        ("FROM x\nPARAMETER top_k 2.5", 2, "'2.5'"),
        ("FROM x\nPARAMETER tempereture 1", 2, "'tempereture' is not a parameter"),
        ('FROM x\nPARAMETER stop ""', 2, "no value"),
        ('FROM x\nSYSTEM """a\nb', 2, "never closed"),
        ('FROM x\nSYSTEM """a\nb""" c', 3, "after the closing quotes"),
        ("FROM x\nADAPTER ./lora.gguf", 2, "ADAPTER is not built yet"),
        ("FROM x\nTEMPLATE {{ .System }} {{ if .Prompt }}", 2, "written for Go"),
        ("FROM x\nTEMPLATE {{- range $i, $_ := .Messages }}", 2, "written for Go"),
        ("FROM x\nSHA256 abc", 2, "64 hexadecimal"),
        ("FROM x\nSIZE many", 2, "count of bytes"),
        ("FROM x\nDEFAULT yes", 2, "stands alone"),
        ("FROM x\nSOURCE y", None, "needs a SHA256"),
    ],
)
def test_parse_modelfile_fault_names_its_line(text: str, line: int | None, what: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        parse_modelfile(text, "My Modelfile")
    assert caught.value.kind is INVALID_REQUEST
    assert what in caught.value.message
    assert caught.value.message.startswith(f"My Modelfile, line {line}: " if line else "My Modelfile: ")


def test_parse_modelfile_misspelt_parameter_names_the_nearest() -> None:
    with pytest.raises(LlmrunError) as caught:
        parse_modelfile("FROM x\nPARAMETER temprature 1")
    assert "temperature" in caught.value.hint


def test_parse_modelfile_jinja_template_is_not_taken_for_go() -> None:
    template = "{%- if tools %}{{- tools }}{%- endif %}{{ messages[0].content }}{{ ranges }}{{ enddate }}"
    assert parse_modelfile(f"FROM x\nTEMPLATE {template}").template == template


_texts = st.text(min_size=1, max_size=40).filter(
    lambda text: '"' not in text and "\r" not in text and "\x00" not in text and text.strip()
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
        system=st.none() | _texts,
        license=st.just("") | _texts,
        default=st.booleans(),
    )
)
def test_format_modelfile_parses_back_to_the_same(modelfile: Modelfile) -> None:
    assert parse_modelfile(format_modelfile(modelfile)) == modelfile
