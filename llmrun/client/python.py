"""The daemon from Python code: `llmrun.Client()`. Found where it runs, started where it does not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal, overload

from llmrun.asking import Conversation, as_messages, as_options, as_texts
from llmrun.client.answer import Answer
from llmrun.client.client import Client as HttpClient
from llmrun.client.connection import Connector
from llmrun.config import Paths, load_settings
from llmrun.reply import Events, Reply, ReplyStream
from llmrun.types import Finished, Stopped

_log = logging.getLogger(__name__)


class Client:
    """A context manager. Not thread-safe; errors are LlmrunError."""

    def __init__(self) -> None:
        """LlmrunError DAEMON_UNREACHABLE where no daemon runs and none can be started."""
        paths = Paths.find()
        connector = Connector(paths, load_settings(paths), note=_log.info, warn=_log.warning)
        self._http: HttpClient = connector.connect()

    @overload
    def chat(
        self,
        model: str,
        messages: Conversation,
        *,
        stream: Literal[False] = ...,
        think: bool | None = ...,
        **options: Any,
    ) -> Reply: ...
    @overload
    def chat(
        self,
        model: str,
        messages: Conversation,
        *,
        stream: Literal[True],
        think: bool | None = ...,
        **options: Any,
    ) -> ReplyStream: ...
    def chat(
        self,
        model: str,
        messages: Conversation,
        *,
        stream: bool = False,
        think: bool | None = None,
        **options: Any,
    ) -> Reply | ReplyStream:
        """The next turn of a conversation, whole or piece by piece. `options` as in `llmrun.types`; `think`:
        reasoning, which the reply has beside its text, on or off, or as the model has it."""
        return _said(self._http.chat(model, as_messages(messages), as_options(options), None, think), stream)

    @overload
    def complete(self, model: str, prompt: str, *, stream: Literal[False] = ..., **options: Any) -> Reply: ...
    @overload
    def complete(self, model: str, prompt: str, *, stream: Literal[True], **options: Any) -> ReplyStream: ...
    def complete(
        self, model: str, prompt: str, *, stream: bool = False, **options: Any
    ) -> Reply | ReplyStream:
        """The continuation of a raw prompt, whole or piece by piece."""
        return _said(self._http.complete(model, prompt, as_options(options)), stream)

    def embed(
        self, model: str, texts: str | Sequence[str], *, dimensions: int | None = None
    ) -> list[list[float]]:
        """A vector of length 1 for each text, of `dimensions` numbers, or as many as the model has.
        LlmrunError where a text is longer than the context."""
        return self._http.embed(model, as_texts(texts), dimensions=dimensions).vectors()

    def close(self) -> None:
        """Close the connection; the daemon goes on."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _said(answer: Answer, stream: bool) -> Reply | ReplyStream:
    reply = ReplyStream(_events(answer))
    return reply if stream else reply.whole()


def _events(answer: Answer) -> Events:
    with answer:
        yield from answer.parts()
    if answer.finish_reason is not None:
        yield Stopped(0, answer.finish_reason)
    if answer.usage and answer.timings:
        yield Finished(answer.usage, answer.timings)
