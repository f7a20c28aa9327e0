"""A model in this process, without a daemon: `llmrun.load("smollm2:135m")`.

A crash of llama.cpp is then a crash of this process; `llmrun.Client()` has the daemon between.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, overload

from llmrun.asking import Conversation, as_messages, as_options, as_texts
from llmrun.config import Paths, Settings, load_settings
from llmrun.daemon.prepare import content_version, prepare
from llmrun.errors import SHUTTING_DOWN, UNKNOWN_MODEL, LlmrunError
from llmrun.reply import Events, Reply, ReplyStream
from llmrun.runner.answers import Answers
from llmrun.runner.desk import Desk
from llmrun.runner.loading import load as load_model
from llmrun.store import Store, StoredModel
from llmrun.types import (
    AnyRequest,
    Embedded,
    EmbedRequest,
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Thinking,
)


def load(name: str, **settings: Any) -> EmbeddedModel:
    """Load a model into this process; it is pulled first where it is not here yet.

    `settings` are those of `llmrun.config.Settings` (`ctx=4096`, `parallel=4`, …) and win over the
    environment and config.toml. LlmrunError where the model is unknown or cannot be loaded.
    """
    paths = Paths.find()
    store = Store(paths)
    try:
        stored = store.resolve(name)
    except LlmrunError as error:
        if error.kind is not UNKNOWN_MODEL or not store.can_pull(name):
            raise
        stored = store.pull(name)
    return EmbeddedModel(stored, load_settings(paths, flags=settings), paths.kv)


class EmbeddedModel:
    """A loaded model; a context manager. Any thread may ask, and answers are decoded together."""

    def __init__(self, stored: StoredModel, settings: Settings, kv_folder: Path | None = None) -> None:
        self._stored = stored
        self._settings = settings
        self._version = content_version(stored)
        self._replies: dict[str, SimpleQueue[Event]] = {}
        self._preparing = threading.Lock()
        nothing = EmbedRequest(id="", model=stored.name, inputs=())
        _, wanted = prepare(nothing, stored, self._version, settings, kv_folder)
        self._loaded = load_model(wanted, self._emit, lambda _fraction: None)
        self._answers = Answers()
        self._desk = Desk(self._loaded, self._answers, self._say, time.monotonic)
        self._threads = [threading.Thread(target=each.run, daemon=True) for each in self._loaded.workers]
        for thread in self._threads:
            thread.start()

    @property
    def ctx(self) -> int:
        """Tokens of context it was loaded with."""
        return self._loaded.info.ctx

    @overload
    def chat(
        self,
        messages: Conversation,
        *,
        stream: Literal[False] = ...,
        think: bool | None = ...,
        **options: Any,
    ) -> Reply: ...
    @overload
    def chat(
        self, messages: Conversation, *, stream: Literal[True], think: bool | None = ..., **options: Any
    ) -> ReplyStream: ...
    def chat(
        self, messages: Conversation, *, stream: bool = False, think: bool | None = None, **options: Any
    ) -> Reply | ReplyStream:
        """The next turn of a conversation, whole or piece by piece. `options` as in `llmrun.types`; `think`:
        reasoning, which the reply has beside its text, on or off, or as the model has it."""
        thinking = None if think is None else Thinking(enabled=think, field="think")
        asked = {"messages": as_messages(messages), "options": as_options(options)}
        return self._answer(stream, **asked, thinking=thinking)

    @overload
    def complete(self, prompt: str, *, stream: Literal[False] = ..., **options: Any) -> Reply: ...
    @overload
    def complete(self, prompt: str, *, stream: Literal[True], **options: Any) -> ReplyStream: ...
    def complete(self, prompt: str, *, stream: bool = False, **options: Any) -> Reply | ReplyStream:
        """The continuation of a raw prompt, whole or piece by piece."""
        return self._answer(stream, prompt=prompt, options=as_options(options))

    def embed(self, texts: str | Sequence[str], *, dimensions: int | None = None) -> list[list[float]]:
        """A vector of length 1 for each text, of `dimensions` numbers, or as many as the model has.
        LlmrunError where a text is longer than the context."""
        asked = EmbedRequest(
            id=uuid.uuid4().hex, model=self._stored.name, inputs=as_texts(texts), dimensions=dimensions
        )
        request, _ = prepare(asked, self._stored, self._version, self._settings)
        return [event.numbers() for event in self._events(request) if isinstance(event, Embedded)]

    def close(self) -> None:
        """End open answers and free the memory. Harmless when called again."""
        if self._threads:
            for worker in self._loaded.workers:
                worker.stop()
            for thread in self._threads:
                thread.join()
            self._threads.clear()
            self._loaded.close()

    def __enter__(self) -> EmbeddedModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, **asked: Any) -> GenerateRequest:
        return GenerateRequest(id=uuid.uuid4().hex, model=self._stored.name, **asked)

    def _answer(self, stream: bool, **asked: Any) -> Reply | ReplyStream:
        request, _ = prepare(self._request(**asked), self._stored, self._version, self._settings)
        reply = ReplyStream(self._events(request))
        return reply if stream else reply.whole()

    def _events(self, request: AnyRequest) -> Events:
        if not self._threads:
            raise LlmrunError(SHUTTING_DOWN, f"{self._stored.name} is closed", hint="load it again")
        reply: SimpleQueue[Event] = SimpleQueue()
        self._replies[request.id] = reply
        self._desk.expect(request.id)
        try:
            with self._preparing:
                self._desk.prepare(request)
            while True:
                for _, event in self._answers.read([(request.id, reply.get())]):
                    if isinstance(event, Failed):
                        raise LlmrunError.from_info(event.error)
                    yield event
                    if isinstance(event, Finished):
                        return
        finally:
            del self._replies[request.id]
            self._answers.forget(request.id)
            self._desk.cancel(request.id)

    def _say(self, request_id: str, event: Event) -> None:
        if reply := self._replies.get(request_id):
            reply.put(event)

    def _emit(self, events: list[tuple[str, Event]]) -> None:
        for request_id, event in events:
            self._say(request_id, event)
