"""What a request's key permits, at the daemon's door: which models, how many tokens, and whether to change
what there is.

The key goes along with the request's task, like the asker's name: no dialect has a say in it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from llmrun.access.gate import Gate
from llmrun.access.key import ApiKey
from llmrun.api import guests
from llmrun.api.billing import Bill
from llmrun.api.guests import within
from llmrun.api.ports import Service
from llmrun.errors import FORBIDDEN, LlmrunError
from llmrun.store import parse_reference
from llmrun.store.reference import FileRef
from llmrun.types import AnyRequest, Event, Finished, GenerateRequest

if TYPE_CHECKING:
    from llmrun.daemon.pool import LoadedModel
    from llmrun.store import Modelfile, PullProgress, Removed, StoredModel

R = TypeVar("R", bound=AnyRequest)

_key: ContextVar[ApiKey | None] = ContextVar("key", default=None)


def note_permit(key: ApiKey | None) -> None:
    """Remember for this task whose request it is; None: one that may do everything."""
    _key.set(key)


def asking_key() -> str:
    """The id of the request's key; "" where it has none."""
    key = _key.get()
    return key.id if key else ""


def require_all_models() -> None:
    """LlmrunError FORBIDDEN where the request's key may use some models only, and so not learn of others."""
    key = _key.get()
    if key is not None and key.models and not key.admin:
        raise LlmrunError(
            FORBIDDEN, f"the key {key.name} is for some models, and this tells of all", hint="use another key"
        )


def require_admin(deed: str = "change what is here") -> None:
    """LlmrunError FORBIDDEN where the request's key may only use models; `deed` is what it tries."""
    key = _key.get()
    if key is not None and not key.admin:
        raise LlmrunError(
            FORBIDDEN,
            f"the key {key.name} may use models, not {deed}",
            hint="use the daemon's own key, or one made with: llmrun keys create NAME --admin",
        )


class PermittedService:
    """A service that does for each request what its key permits, and counts what that used. See `Service`."""

    def __init__(self, service: Service, gate: Gate) -> None:
        self._service = service
        self._gate = gate
        self.counters = service.counters

    @property
    def waiting(self) -> int:
        return self._service.waiting

    def observe(self, observer: Callable[[str, Finished], None]) -> None:
        self._service.observe(observer)

    async def ask(self, request: AnyRequest) -> AsyncGenerator[Event, None]:
        key = _key.get()
        if key is not None:
            _refuse_template(request)
            request = _as_permitted(request)
            model = await self.model(request.model)
            left = self._gate.tokens_left(key)
            if left is not None and isinstance(request, GenerateRequest):
                request = within(request, left, request.options.over(model.options).max_tokens)
        async with aclosing(self._service.ask(request)) as events:
            if key is None:
                async for event in events:
                    yield event
                return
            bill = Bill(request.n if isinstance(request, GenerateRequest) else 0, time.monotonic())
            async for event in events:
                prompt, completion = bill.note(event, time.monotonic())
                self._gate.count(key, prompt=prompt, completion=completion)
                yield event
                if not bill.over and self._gate.is_overdrawn(key):  # with its prompt, or with others
                    for last in bill.cut(time.monotonic()):
                        yield last
                    return

    async def models(self) -> Sequence[StoredModel]:
        return [model for model in await self._service.models() if _allows(model.name)]

    async def model(self, name: str) -> StoredModel:
        if _key.get() is not None and isinstance(parse_reference(name), FileRef):
            require_admin("files by their paths")
        model = await self._service.model(name)
        if not _allows(model.name, name):
            raise LlmrunError(
                FORBIDDEN, f"this key may not use the model {name!r}", hint="see: GET /v1/models"
            )
        return model

    def loaded(self) -> Sequence[LoadedModel]:
        return [model for model in self._service.loaded() if _allows(model.name)]

    async def load(self, request: AnyRequest) -> None:
        await self.model(request.model)
        await self._service.load(_as_permitted(request))

    async def let_go(self, name: str) -> None:
        require_admin("unload them")
        await self._service.let_go(name)

    def pull(self, reference: str) -> AsyncGenerator[PullProgress, None]:
        require_admin()
        return self._service.pull(reference)

    def create(self, name: str, modelfile: Modelfile, kind: str | None) -> AsyncGenerator[PullProgress, None]:
        require_admin()
        return self._service.create(name, modelfile, kind)

    async def blob(self, digest: str) -> Path | None:
        require_admin()
        return await self._service.blob(digest)

    async def receive_blob(self, digest: str, size: int | None, pieces: AsyncIterator[bytes]) -> bool:
        require_admin()
        return await self._service.receive_blob(digest, size, pieces)

    async def copy(self, source: str, destination: str) -> StoredModel:
        require_admin()
        return await self._service.copy(source, destination)

    async def remove(self, name: str) -> Removed:
        require_admin()
        return await self._service.remove(name)

    async def stop(self, name: str | None) -> Sequence[str]:
        require_admin()
        return await self._service.stop(name)


def _allows(*names: str) -> bool:
    key = _key.get()
    return key is None or key.allows(*names)


def _as_permitted(request: R) -> R:
    key = _key.get()
    return request if key is None or key.admin else guests.as_guests(request, key.id)


def _refuse_template(request: AnyRequest) -> None:
    """A template is a program that runs beside everybody's answers, and may be slow: no guest brings one."""
    if guests.template_of(request) is not None:
        require_admin("bring templates")
