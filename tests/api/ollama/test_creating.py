from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmrun.api.ollama.creating import to_modelfile
from llmrun.api.ollama.model_bodies import CreateBody
from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_FIELD, LlmrunError
from llmrun.store import Modelfile, parse_reference
from llmrun.store.reference import FileRef
from llmrun.types import Message, Options

BLOB = Path("/models/blobs/sha256-00.gguf")


def made(**fields: Any) -> Modelfile:
    body = CreateBody.parse({"model": "mine", **fields})
    return to_modelfile(body, BLOB if body.files else None)


def refused(**fields: Any) -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        CreateBody.parse({"model": "mine", **fields})
    return caught.value


def test_every_field_reaches_the_modelfile() -> None:
    assert made(
        **{"from": "smollm2:135m"},
        template="{{ messages[0].content }}",
        system="Be brief.",
        parameters={"temperature": 0.5, "num_ctx": 64, "stop": ["x"], "num_predict": -1},
        messages=[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes."}],
        license=["One", "Two"],
    ) == Modelfile(
        sources=(parse_reference("smollm2:135m"),),
        options=Options(temperature=0.5, ctx=64, stop=("x",)),
        template="{{ messages[0].content }}",
        system="Be brief.",
        messages=(Message(role="user", content="Hi"), Message(role="assistant", content="Yes.")),
        license="One\n\nTwo",
    )


def test_adapters_are_blobs_over_what_it_is_made_of() -> None:
    body = CreateBody.parse({"model": "m", "from": "a", "adapters": {"l.gguf": "sha256:00"}})
    lora = Path("/blobs/lora.gguf")
    assert to_modelfile(body, None, [lora]).adapters == (FileRef(str(lora)),)


def test_files_are_the_blob() -> None:
    assert made(files={"x.gguf": "sha256:00"}) == Modelfile(sources=(FileRef(str(BLOB)),))


def test_modelfile_is_read_whole() -> None:
    described = made(modelfile="FROM smollm2:135m\nSYSTEM Be brief.\nTEMPLATE {{ .Prompt }}")
    assert described.system == "Be brief."
    assert "{{ .Prompt }}" not in (described.template or "")


def test_silence_leaves_everything_to_the_base() -> None:
    described = made(**{"from": "smollm2:135m"})
    assert (described.system, described.template, described.options) == (None, None, Options())


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "from"),
        ({"from": "a", "files": {"x.gguf": "sha256:00"}}, "files"),
        ({"from": "a", "modelfile": "FROM a"}, "modelfile"),
        ({"modelfile": "FROM a", "system": "x"}, "system"),
        ({"files": {"a.gguf": "x", "b.gguf": "y"}}, "files"),
        ({"from_": "a"}, "from_"),
        ({"from": "a", "messages": [{"role": "robot"}]}, "messages.0.role"),
        ({"from": "a", "parameters": {"temperature": -1}}, "parameters.temperature"),
    ],
)
def test_what_cannot_be_made_is_named(fields: dict[str, Any], field: str) -> None:
    error = refused(**fields)
    assert (error.kind, error.field) == (INVALID_REQUEST, field)


@pytest.mark.parametrize("field", ["path"])
def test_fields_not_built_are_refused_by_name(field: str) -> None:
    error = refused(**{"from": "a", field: {"x": "y"}})
    assert (error.kind, error.field) == (UNSUPPORTED_FIELD, field)
