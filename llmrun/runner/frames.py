"""What crosses the pipes between daemon and runner, and how: length-prefixed msgpack.

Down (the runner's stdin):  Load, then any number of Submit, Cancel and Ping, then Shutdown or end of file.
Up   (the runner's stdout): LoadProgress…, then Ready or LoadFailed; then Events, Stats and Pong.

A runner that reads end of file ends itself at once, so it never outlives its daemon. The runner's
stderr is its log: one line a record, and what native code prints before it aborts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from llmrun.store.facts import ModelKind
from llmrun.types import AnyRequest, ErrorInfo, Event, Stats

MAX_FRAME = 256 * 1024 * 1024
_PREFIX = struct.Struct("<I")
PREFIX_SIZE = _PREFIX.size


class Load(msgspec.Struct, frozen=True, kw_only=True, tag="load"):
    """The first frame. `None` means auto. `content` names the model's bytes; `kv_folder` is where KV
    prefixes of any model are kept on disk, None: nowhere. `template` is a Jinja template in place of the
    GGUF's own; `adapters` are LoRA files for it, `draft` the file of a model that drafts for it.
    `kv_layout`, `flash_attention` and `drafting` are each one of those in `llmrun.config`."""

    name: str
    path: str
    ctx: int | None = None
    parallel: int | None = None
    kv_type: str = "f16"
    kv_layout: str = "unified"
    flash_attention: str = "auto"
    gpu_layers: int | None = None
    threads: int | None = None
    cache_ram: int | None = None
    cache_disk: int | None = None
    kv_folder: str | None = None
    content: str = ""
    template: str | None = None
    adapters: tuple[str, ...] = ()
    draft: str | None = None
    drafting: str = "auto"


class Submit(msgspec.Struct, frozen=True, tag="submit"):
    request: AnyRequest


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """The client is gone. The request still ends in one event (`Failed` with code `cancelled`)."""

    id: str


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    """Say that you are alive. Answered at once, whatever is being computed."""


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown"):
    """Close the model and exit 0. Requests still running end as failed."""


class LoadProgress(msgspec.Struct, frozen=True, tag="load_progress"):
    fraction: float


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A loaded model as it really is: contexts in tokens, sizes in bytes, `adapters` a count, `kind` what it
    is for."""

    ctx: int
    ctx_train: int
    parallel: int
    vocab: int
    params: int
    size: int
    kv_bytes: int
    device: str
    description: str
    adapters: int = 0
    kind: ModelKind = "chat"


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    info: ModelInfo


class LoadFailed(msgspec.Struct, frozen=True, tag="load_failed"):
    error: ErrorInfo


class Events(msgspec.Struct, frozen=True, tag="events"):
    """Events of one engine step, in order, each with its request's id."""

    items: list[tuple[str, Event]]


class Pong(msgspec.Struct, frozen=True, tag="pong"):
    """The answer to a Ping; Stats follow."""


Down = Load | Submit | Cancel | Ping | Shutdown
Up = LoadProgress | Ready | LoadFailed | Events | Stats | Pong

_encoder = msgspec.msgpack.Encoder()
_down = msgspec.msgpack.Decoder(Down)
_up = msgspec.msgpack.Decoder(Up)


def encode(frame: Down | Up) -> bytes:
    """The frame with its length in front. Thread-safe."""
    body = _encoder.encode(frame)
    return _PREFIX.pack(len(body)) + body


def decode_down(body: bytes) -> Down:
    """A frame for the runner; raises msgspec.DecodeError where it is none."""
    return _down.decode(body)


def decode_up(body: bytes) -> Up:
    """A frame from the runner; raises msgspec.DecodeError where it is none."""
    return _up.decode(body)


def frame_length(prefix: bytes) -> int:
    """The length that a frame's first `PREFIX_SIZE` bytes announce; ValueError past `MAX_FRAME`."""
    (length,) = _PREFIX.unpack(prefix)
    if length > MAX_FRAME:
        raise ValueError(f"a frame of {length} bytes is longer than {MAX_FRAME}")
    return int(length)


class FrameSplitter:
    """Cuts what comes through a pipe into frame bodies, however it is delivered. Not thread-safe."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies that `data` completes, in order. ValueError where a length is no frame's."""
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) - start >= PREFIX_SIZE:
                body = start + PREFIX_SIZE
                end = body + frame_length(bytes(self._buffer[start:body]))
                if end > len(self._buffer):
                    return
                start = end
                yield bytes(self._buffer[body:end])
        finally:
            del self._buffer[:start]
