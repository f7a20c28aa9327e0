"""What the API needs of the daemon, and nothing more of it: `llmrun.daemon.service.Service` in short."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from llmrun.types import AnyRequest, Event, Finished

if TYPE_CHECKING:
    from llmrun.daemon.counters import Counters
    from llmrun.daemon.pool import LoadedModel
    from llmrun.store import Modelfile, PullProgress, Removed, StoredModel


class Service(Protocol):
    """The daemon's front, used from its event loop alone."""

    counters: Counters

    @property
    def waiting(self) -> int:
        """Requests that wait for a runner."""

    def observe(self, observer: Callable[[str, Finished], None]) -> None:
        """Have `observer` called, with the model's name, for every generation that ends well."""

    def ask(self, request: AnyRequest) -> AsyncGenerator[Event, None]:
        """The events of one request. Ends in exactly one `Finished` or `Failed`, or raises LlmrunError.

        Closing the generator cancels the request, also while it is queued or its model is loading.
        """

    async def models(self) -> Sequence[StoredModel]:
        """All models on disk."""

    async def model(self, name: str) -> StoredModel:
        """The model that `name` means. LlmrunError UNKNOWN_MODEL."""

    def loaded(self) -> Sequence[LoadedModel]:
        """The models in memory now."""

    async def load(self, request: AnyRequest) -> None:
        """Have the model of `request` in memory, as the request wants it."""

    async def let_go(self, name: str) -> None:
        """Unload a model once its requests have ended."""

    def pull(self, reference: str) -> AsyncGenerator[PullProgress, None]:
        """Bring a model here; closing the generator stops it."""

    def create(self, name: str, modelfile: Modelfile, kind: str | None) -> AsyncGenerator[PullProgress, None]:
        """Make a model, its weights in the number type `kind`; closing the generator stops it."""

    async def blob(self, digest: str) -> Path | None:
        """The file of these bytes. LlmrunError INVALID_REQUEST."""

    async def receive_blob(self, digest: str, size: int | None, pieces: AsyncIterator[bytes]) -> bool:
        """Keep a file that a client sends; False where it is here already."""

    async def copy(self, source: str, destination: str) -> StoredModel:
        """Give a model a further name. LlmrunError UNKNOWN_MODEL, CONFLICT."""

    async def remove(self, name: str) -> Removed:
        """Forget a model. LlmrunError UNKNOWN_MODEL."""

    async def stop(self, name: str | None) -> Sequence[str]:
        """Unload a model (None: all). Returns the names that were unloaded."""
