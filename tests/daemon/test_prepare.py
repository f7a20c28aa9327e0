from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from llmrun.config import Settings
from llmrun.daemon.prepare import content_version, prepare
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.store import StoredModel
from llmrun.store.model import Beside
from llmrun.types import (
    DetokenizeRequest,
    EmbedRequest,
    GenerateRequest,
    Message,
    Options,
    RankRequest,
    RenderRequest,
    TokenizeRequest,
)
from tests.daemon.fakes import request, stored


def chat(*messages: Message) -> GenerateRequest:
    return GenerateRequest(id="r", model="A", messages=messages)


USER = Message(role="user", content="hi")


def test_prepare_puts_the_system_prompt_in_front() -> None:
    prepared, _ = prepare(chat(USER), model(system="be brief"), "1", Settings())
    assert prepared.messages == (Message(role="system", content="be brief"), USER)


@pytest.mark.parametrize("at", [0, 1])
def test_prepare_leaves_a_conversation_with_a_system_message(at: int) -> None:
    messages = [USER, USER]
    messages.insert(at, Message(role="system", content="mine"))
    prepared, _ = prepare(chat(*messages), model(system="be brief"), "1", Settings())
    assert prepared.messages == tuple(messages)


def test_prepare_puts_the_turns_of_a_modelfile_after_the_system_prompt() -> None:
    turns = (Message(role="user", content="1+1"), Message(role="assistant", content="2"))
    described = model(system="be brief", messages=turns)
    brief, mine = (Message(role="system", content=text) for text in ("be brief", "mine"))
    assert prepare(chat(USER), described, "1", Settings())[0].messages == (brief, *turns, USER)
    assert prepare(chat(mine, USER), described, "1", Settings())[0].messages == (mine, *turns, USER)


def test_prepare_leaves_a_raw_prompt() -> None:
    raw = request("text")
    prepared, _ = prepare(raw, model(system="be brief"), "1", Settings())
    assert prepared == msgspec.structs.replace(raw, model="a")


def test_prepare_asks_for_what_settings_and_model_say() -> None:
    attention = {"kv_layout": "separate", "flash_attention": "off"}
    settings = Settings(parallel=3, ctx=512, kv_type="q8_0", gpu_layers=4, threads=2, **attention)
    prepared, load = prepare(chat(USER), model(template="{{ x }}"), "1", settings)
    assert prepared.model == load.name == "a"
    assert (load.path, load.template) == ("/models/a.gguf", "{{ x }}")
    assert {name: getattr(load, name) for name in attention} == attention
    assert (load.ctx, load.parallel, load.kv_type, load.gpu_layers, load.threads) == (512, 3, "q8_0", 4, 2)


def test_prepare_names_the_files_that_belong_to_the_model() -> None:
    adapters = tuple(Beside(Path(f"/models/{name}.gguf"), "", 1) for name in "xy")
    draft = Beside(Path("/models/d.gguf"), "", 1)
    _, wanted = prepare(chat(USER), model(adapters=adapters, draft=draft), "1", Settings())
    assert wanted.adapters == ("/models/x.gguf", "/models/y.gguf")
    assert wanted.draft == "/models/d.gguf"
    assert prepare(chat(USER), model(), "1", Settings())[1].draft is None


@pytest.mark.parametrize(
    ("requested", "models", "used"), [(None, None, 100), (None, 200, 200), (300, 200, 300)]
)
def test_prepare_takes_the_context_of_the_nearest(
    requested: int | None, models: int | None, used: int
) -> None:
    asked = msgspec.structs.replace(chat(USER), options=Options(ctx=requested))
    assert prepare(asked, model(options=Options(ctx=models)), "1", Settings(ctx=100))[1].ctx == used


def test_content_version_is_the_digest() -> None:
    assert content_version(model(sha256="abc")) == "abc"


def test_content_version_changes_with_a_file_beside_the_weights(tmp_path: Path) -> None:
    adapter = tmp_path / "lora.gguf"
    adapter.write_bytes(b"GGUF")
    adapted = model(files=(Path("/models/a.gguf"), adapter), sha256="abc")
    before = content_version(adapted)
    os.utime(adapter, (1, 1))
    assert content_version(adapted) != before


def test_content_version_without_a_digest_changes_with_the_file(tmp_path: Path) -> None:
    shards = (tmp_path / "1.gguf", tmp_path / "2.gguf")
    for shard in shards:
        shard.write_bytes(b"GGUF")
    in_place = stored(shards[0], files=shards, sha256=None)
    before = content_version(in_place)
    assert content_version(in_place) == before
    os.utime(shards[1], (1, 1))
    assert content_version(in_place) != before


@pytest.mark.parametrize("kind", ["embedding", "reranker"])
def test_prepare_refuses_to_let_a_model_without_words_write(kind: str) -> None:
    with pytest.raises(LlmrunError, match=kind) as caught:
        prepare(chat(USER), model(kind=kind), "1", Settings())
    assert caught.value.kind is INVALID_REQUEST
    assert caught.value.field == "model"


@pytest.mark.parametrize("kind", ["embedding", "reranker", "chat", "completion"])
def test_prepare_vectors_and_ranks_are_the_runners_to_refuse(kind: str) -> None:
    described = model(kind=kind, options=Options(ctx=64))
    embed, wanted = prepare(EmbedRequest(id="r", model="m", inputs=("x",)), described, "1", Settings())
    assert (embed.model, embed.options.ctx, wanted.ctx) == (described.name, 64, 64)
    ask = RankRequest(id="r", model="m", query="x", documents=("y",), options=Options(ctx=32))
    rank, wanted = prepare(ask, described, "1", Settings())
    assert (rank.model, rank.documents, wanted.ctx) == (described.name, ("y",), 32)


def model(**values: Any) -> StoredModel:
    return stored(Path("/models/a.gguf"), **values)


def test_prepare_inner_prompt_is_completed_like_a_generation() -> None:
    described = model(system="be brief", options=Options(ctx=64, top_k=3))
    inner, wanted = prepare(chat(USER), described, "1", Settings())
    for kind in (TokenizeRequest, RenderRequest):
        request = kind(id="r", model="m", prompt=chat(USER), keep_alive=7)
        prepared, same = prepare(request, described, "1", Settings())
        assert prepared.prompt == inner
        assert (same, prepared.keep_alive) == (wanted, 7)


def test_prepare_detokenize_wants_the_model_as_a_generation_does() -> None:
    described = model(options=Options(ctx=64))
    prepared, wanted = prepare(
        DetokenizeRequest(id="r", model="short", tokens=(1,)), described, "1", Settings()
    )
    assert (prepared.model, wanted.ctx) == (described.name, 64)


def test_prepare_embedding_model_has_tokens() -> None:
    prepare(TokenizeRequest(id="r", model="m", text="x"), model(kind="embedding"), "1", Settings())


@pytest.mark.parametrize(
    ("asked", "setting", "given"),
    [(None, math.inf, None), (5.0, math.inf, 5.0), (None, 60.0, 60.0), (5.0, 60.0, 5.0), (90.0, 60.0, 60.0)],
)
def test_prepare_time_limit_is_the_requests_within_the_settings(
    asked: float | None, setting: float, given: float | None
) -> None:
    request = msgspec.structs.replace(chat(USER), options=Options(time_limit=asked))
    prepared, _ = prepare(request, model(), "1", Settings(time_limit=setting))
    assert prepared.options.time_limit == given
