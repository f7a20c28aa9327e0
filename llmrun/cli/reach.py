"""From the name a person typed to a daemon that can answer with that model.

A model that is not here yet is pulled first, its progress on stderr. Then a daemon is found, started,
or, with `--local`, kept for this command alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from llmrun.cli.session import Session
from llmrun.client.client import Client
from llmrun.client.connection import Connector
from llmrun.errors import UNKNOWN_MODEL, LlmrunError


def obtain(session: Session, name: str) -> str:
    """The name to send for `name`, pulled if the catalogue or its source can supply it. A file used in
    place is sent as its absolute path. LlmrunError UNKNOWN_MODEL with the nearest names."""
    from llmrun.cli.download import pull
    from llmrun.store import Store

    store = Store(session.paths)
    try:
        model = store.resolve(name)
    except LlmrunError as error:
        if error.kind is not UNKNOWN_MODEL or not store.can_pull(name):
            raise
        session.out.note(f"{name} is not here yet; pulling it")
        model = pull(session.out, store, name)
    return daemon_name(name) if is_path(name) else model.name


def is_path(name: str) -> bool:
    """Whether `name` is that of a file on disk."""
    from llmrun.store.reference import FileRef, parse_reference

    return isinstance(parse_reference(name), FileRef)


def daemon_name(name: str) -> str:
    """`name` for a daemon that runs in another folder: a path made absolute."""
    return str(Path(name).expanduser().absolute()) if is_path(name) else name


def connector(session: Session) -> Connector:
    """Where this session's daemon is to be found."""
    return Connector(session.paths, session.settings, session.out.note, session.out.warn)


@dataclass(frozen=True)
class Reached:
    """A daemon that can answer. `model` is the name it knows; `client` connects, anew each time, so that
    a chat outlives a daemon that was restarted."""

    model: str
    client: Callable[[], AbstractContextManager[Client]]


@contextmanager
def reach(session: Session, name: str, *, local: bool) -> Iterator[Reached]:
    """Everything ready to ask model `name`. A private daemon ends on leaving."""
    where = connector(session)
    model = obtain(session, name) if local or where.shares_store else name
    if not local:
        yield Reached(model, where.connect)
        return
    from llmrun.client.local import private_daemon

    with ExitStack() as stack:
        with session.out.waiting("starting a daemon for this command"):
            client = stack.enter_context(private_daemon())
        yield Reached(model, lambda: nullcontext(client))
