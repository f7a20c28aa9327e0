"""Requests to a running daemon. Calls in, text and records out, every failure an LlmrunError.

It does not find or start the daemon (`connection` does) and knows no terminal.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import httpx
import msgspec

from llmrun.client.answer import Answer
from llmrun.client.tracing import RenderedPrompt, Step, steps, traced_body
from llmrun.client.wire import (
    Completion,
    EmbeddingsReply,
    LoadedModel,
    TokenCount,
    Tokens,
    chat_body,
    completion_body,
    error_of,
    turns,
    whole_chat_body,
)
from llmrun.errors import CONFIG, DAEMON_UNREACHABLE, INTERNAL, LlmrunError
from llmrun.hosts import base_url
from llmrun.log import fields
from llmrun.types import Message, Options, OutputFormat

log = logging.getLogger(__name__)

T = TypeVar("T")

CONNECT_TIMEOUT = 5.0
CONTROL_TIMEOUT = 60.0  # stopping a model waits for its process to end
# The daemon says something every few seconds while it works on an answer, even in a long prefill.
SILENCE_TIMEOUT = 120.0
_PATIENT = httpx.Timeout(None, connect=CONNECT_TIMEOUT)


def _trust(file: str | None) -> ssl.SSLContext:
    """What decides whether a daemon's certificate is good. LlmrunError CONFIG."""
    context = ssl.create_default_context()
    if file is not None:
        try:
            context.load_verify_locations(file)
        except OSError as error:  # ssl.SSLError is one
            raise LlmrunError(
                CONFIG, f"the certificate {file} cannot be read: {error}", hint="mend LLMRUN_TLS_CERT"
            ) from None
    return context


def _tell(response: httpx.Response) -> None:
    """Log what was asked and how it was answered, under the id that the daemon gave the request."""
    asked, status = f"{response.request.method} {response.request.url.path}", response.status_code
    about = {"request": response.headers.get("x-request-id", ""), **fields(asked=asked, status=status)}
    log.debug("%s: %d", asked, status, extra=about)


class Client:
    """One daemon's client; a context manager. Its calls are thread-safe; an Answer is one thread's."""

    def __init__(
        self,
        host: str,
        port: int,
        api_key: str | None = None,
        *,
        tls: bool = False,
        trusts: str | None = None,
    ) -> None:
        """tls     the daemon speaks HTTPS: its certificate must be good for `host`
        trusts  a certificate file (PEM) to trust beside those that the system does"""
        self.url = base_url(host, port, tls)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        # A daemon is never behind a proxy: the environment's are not wanted. Certificates are slow to load,
        # so plain HTTP does without.
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(SILENCE_TIMEOUT, connect=CONNECT_TIMEOUT),
            limits=httpx.Limits(max_connections=None),  # as many as there are calls at once
            trust_env=False,
            verify=_trust(trusts) if tls else False,
            event_hooks={"response": [_tell]},
        )

    def chat(
        self,
        model: str,
        messages: Sequence[Message],
        options: Options,
        output: OutputFormat | None = None,
        think: bool | None = None,
    ) -> Answer:
        """Ask for the next turn of a conversation. Returns when the answer begins. `think`: reasoning on or
        off; None leaves it as the model has it."""
        return self._stream("/v1/chat/completions", chat_body(model, messages, options, output, think))

    def complete(
        self, model: str, prompt: str | Sequence[int], options: Options, output: OutputFormat | None = None
    ) -> Answer:
        """Ask for the continuation of a raw prompt, text or token ids. Returns when the answer begins."""
        return self._stream("/v1/completions", completion_body(model, prompt, options, output))

    def chat_whole(
        self,
        model: str,
        messages: Sequence[Message],
        options: Options,
        output: OutputFormat | None = None,
        *,
        think: bool | None = None,
        priority: int = 0,
    ) -> Completion:
        """The next turn of a conversation at once, however long that takes. A higher `priority` waits behind
        lower ones, whoever asks."""
        body = whole_chat_body(model, messages, options, output, think) | {"priority": priority}
        return self._read("POST", "/v1/chat/completions", Completion, body, _PATIENT)

    def load(self, model: str, options: Options) -> LoadedModel | None:
        """Have the model loaded with the context that `options` name. None where it is gone already."""
        only = Options(ctx=options.ctx, max_tokens=0)
        with self.complete(model, ".", only) as answer:
            for _ in answer:
                pass
        return next((loaded for loaded in self.loaded() if loaded.name == model), None)

    def tokenize(self, model: str, text: str) -> list[int]:
        """The token ids of a text, in which no control token parses."""
        body = {"model": model, "content": text, "parse_special": False}
        return self._read("POST", "/tokenize", Tokens, body).tokens

    def render(self, model: str, messages: Sequence[Message]) -> RenderedPrompt:
        """What the model's chat template makes of a conversation, as text and as tokens."""
        body = {"model": model, "messages": turns(messages), "with_tokens": True}
        return self._read("POST", "/apply-template", RenderedPrompt, body)

    def trace(self, model: str, tokens: Sequence[int], options: Options, candidates: int) -> Iterator[Step]:
        """The continuation of token ids, step by step, each with its likeliest `candidates`."""
        response = self._open("/completion", traced_body(model, tokens, options, candidates))
        try:
            yield from steps(response.iter_bytes())
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        finally:
            response.close()

    def embed(
        self, model: str, texts: Sequence[str], *, dimensions: int | None = None, truncate: bool = False
    ) -> EmbeddingsReply:
        """The vectors of `texts`, however long that takes."""
        body = {"model": model, "input": list(texts), "dimensions": dimensions, "truncate": truncate}
        return self._read("POST", "/v1/embeddings", EmbeddingsReply, body, _PATIENT)

    def count_tokens(self, model: str, messages: Sequence[Message]) -> int:
        """The tokens of the prompt that a conversation makes, by the model's own template and vocabulary."""
        system = "\n\n".join(message.content for message in messages if message.role == "system")
        turns = [{"role": m.role, "content": m.content} for m in messages if m.role != "system"]
        body = {"model": model, "messages": turns, **({"system": system} if system else {})}
        return self._read("POST", "/v1/messages/count_tokens", TokenCount, body).input_tokens

    def is_healthy(self, timeout: float = 2.0) -> bool:
        """Whether a daemon answers there at all."""
        try:
            return self._http.get("/health", timeout=timeout).status_code == 200
        except httpx.HTTPError:
            return False

    def loaded(self) -> list[LoadedModel]:
        """The models in memory."""
        return self._read("GET", "/llmrun/ps", list[LoadedModel])

    def stop(self, model: str | None = None) -> list[str]:
        """Unload one model, or all; the names of those unloaded."""
        return self._read("POST", "/llmrun/stop", list[str], {"model": model})

    def shutdown(self) -> None:
        """End the daemon. Returns when it has agreed to."""
        self._call("POST", "/llmrun/shutdown", {})

    def _read(
        self,
        method: str,
        path: str,
        shape: type[T],
        body: dict[str, Any] | None = None,
        timeout: httpx.Timeout | float = CONTROL_TIMEOUT,
    ) -> T:
        response = self._call(method, path, body, timeout)
        try:
            return msgspec.json.decode(response.content, type=shape)
        except msgspec.DecodeError as error:
            raise LlmrunError(INTERNAL, f"the daemon's answer to {path} cannot be read: {error}") from None

    def _call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        timeout: httpx.Timeout | float = CONTROL_TIMEOUT,
    ) -> httpx.Response:
        try:
            response = self._http.request(method, path, json=body, timeout=timeout)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if response.is_error:
            raise error_of(response.status_code, response.content)
        return response

    def _stream(self, path: str, body: dict[str, Any]) -> Answer:
        return Answer(self._open(path, body))

    def _open(self, path: str, body: dict[str, Any]) -> httpx.Response:
        try:
            response = self._http.send(self._http.build_request("POST", path, json=body), stream=True)
            if response.is_error:
                raise error_of(response.status_code, response.read())
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        return response

    def _unreachable(self, error: httpx.HTTPError) -> LlmrunError:
        what = "does not answer in time" if isinstance(error, httpx.TimeoutException) else str(error)
        return LlmrunError(DAEMON_UNREACHABLE, f"no daemon can be reached at {self.url} ({what})")

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
