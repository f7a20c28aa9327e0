"""What reads foreign bytes, each as a target."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import msgspec

from llmrun.api.body import decode_object
from llmrun.chat.bounds import bounded
from llmrun.chat.control import ControlTokens
from llmrun.chat.mark import Mark
from llmrun.chat.template import ChatTemplate, variables
from llmrun.client.sse import event_data
from llmrun.runner.frames import (
    FrameSplitter,
    LoadProgress,
    Pong,
    Shutdown,
    Submit,
    decode_down,
    decode_up,
    encode,
)
from llmrun.store.gguf import parse_header
from llmrun.store.go_syntax import Untranslatable
from llmrun.store.go_template import to_jinja
from llmrun.store.modelfile import format_modelfile, parse_modelfile
from llmrun.store.reference import parse_reference
from llmrun.types import GenerateRequest, Message
from tests.chat import templates
from tests.chat.vocabs import CharVocab
from tests.fuzz.fuzzing import Target
from tests.support.tiny import write_llama

_TALK = variables(
    [
        {"role": "system", "content": "Be <b>brief</b>."},
        {"role": "user", "content": "Hi <s>"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Bye"},
    ]
)
_CONTROL = ControlTokens(CharVocab({"<s>": 0, "</s>": 1}), ())


def _gguf(data: bytes) -> None:
    parse_header(io.BytesIO(data), len(data), "x.gguf")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _modelfile(data: bytes) -> None:
    written = format_modelfile(parse_modelfile(_text(data)))
    assert format_modelfile(parse_modelfile(written)) == written


def _reference(data: bytes) -> None:
    written = str(parse_reference(_text(data)))
    assert str(parse_reference(written)) == written


def _template(data: bytes) -> None:
    with bounded():
        template = ChatTemplate(_text(data))
        mark = Mark(_CONTROL, _TALK, template.names)
        given = {name: mark.outside(value) for name, value in _TALK.items()}
        template.render({**given, "bos_token": "<s>", "eos_token": "</s>"}, mark)


def _go(data: bytes) -> None:
    ChatTemplate(to_jinja(_text(data)))


def _sse(data: bytes) -> None:
    whole = list(event_data([data]))
    assert list(event_data(data[at : at + 7] for at in range(0, len(data), 7))) == whole


def _frames(data: bytes) -> None:
    for decode in (decode_down, decode_up):
        splitter = FrameSplitter()
        for at in range(0, len(data), 31):
            for body in splitter.feed(data[at : at + 31]):
                decode(body)
        assert splitter.pending <= len(data)


def _model() -> bytes:
    with tempfile.TemporaryDirectory() as place:
        return write_llama(Path(place) / "x.gguf").read_bytes()


def targets() -> dict[str, Target]:
    """All of them by name."""
    request = GenerateRequest(id="a", model="m", messages=(Message(role="user", content="hi"),))
    jinja = [text.encode() for name, text in vars(templates).items() if name.isupper()]
    weights = _model()
    return {
        "gguf": Target(_gguf, [weights[:8192], weights], [b"GGUF", b"general.alignment", b"\x08" * 8]),
        "modelfile": Target(
            _modelfile,
            [
                b'FROM smollm2:135m\nPARAMETER temperature 0.5\nSYSTEM """a\nb"""\nMESSAGE user hi\n',
                b"# x\nFROM hf.co/org/repo:Q4_K_M\nSOURCE pypi://p==1.0\nSHA256 " + b"ab" * 32 + b"\nSIZE 5",
                b'FROM ./x.gguf\nADAPTER ./y.gguf\nTEMPLATE """{{ .System }} {{ .Prompt }}"""\nLICENSE MIT',
            ],
            [b"FROM ", b"PARAMETER ", b'"""', b'"', b"\n", b"stop ", b"{{ range .Messages }}", b"{{ end }}"],
        ),
        "reference": Target(
            _reference,
            [
                *(
                    b"smollm2:135m",
                    b"hf.co/Org/Repo:Q4_K_M",
                    b"hf://Org/Repo",
                    b"Org/Repo/x.gguf",
                    b"./x.gguf",
                ),
                *(
                    b"ms://Org/Repo",
                    b"ollama://h.example:80/a/b:c",
                    b"pypi://p==1.0",
                    b"https://h/x.gguf?a=b",
                ),
            ],
            [b"://", b"..", b"/", b":", b"%2e", b"@", b"\0", b"~", b".gguf"],
        ),
        "template": Target(
            _template,
            jinja,
            [
                *(b"{{ ", b" }}", b"{% for m in messages %}", b"{% endfor %}", b"{% if ", b"{% endif %}"),
                *(b" | tojson", b" | list", b" | map('upper')", b" * 99999", b"[-1]", b".__class__"),
                *(
                    b"{% set x = [x, x] %}",
                    b"{% set ns = namespace(a=1) %}",
                    b" in ",
                    b" == ",
                    b" ~ ",
                    b"range(",
                ),
            ],
        ),
        "go template": Target(
            _go,
            [
                b"{{ if .System }}{{ .System }}\n{{ end }}{{ .Prompt }} {{ .Response }}",
                b'{{- range $i, $m := .Messages }}{{ if eq .Role "user" }}{{ .Content }}{{ end }}{{- end }}',
            ],
            [b"{{", b"}}", b"{{ end }}", b"{{ else if ", b"(", b")", b"|", b"`", b"$x := ", b"eq ", b" json"],
            (Untranslatable,),
        ),
        "events": Target(
            _sse,
            [b": ping\n\nevent: x\nid: 3\ndata: one\n\ndata:two\r\ndata: three\n\n"],
            [b"data: ", b"\n", b"\r\n", b"\n\n", b":", b"\xe2\x80\xa8", b"\xff"],
        ),
        "frames": Target(
            _frames,
            [
                encode(Submit(request)) + encode(Shutdown()),
                encode(LoadProgress(0.5)) + encode(Pong()),
            ],
            [encode(Shutdown()), b"\xdd\xff\xff\xff\xff", b"\xdf\x7f\xff\xff\xff", b"\x91" * 2000],
            (ValueError, msgspec.DecodeError),
        ),
        "body": Target(
            lambda data: decode_object(data),
            [b'{"model": "m", "messages": [{"role": "user", "content": "h\\u00e9"}], "n": 1e3, "x": null}'],
            [b"[" * 2000, b'{"a":' * 900, b"\\ud800", b"1e999", b"NaN", b'"', b"\xff"],
        ),
    }
