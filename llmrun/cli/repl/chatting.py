"""What the commands of a chat act upon."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from llmrun.cli.output import Output
from llmrun.cli.repl.conversation import Conversation
from llmrun.cli.repl.sessions import Sessions
from llmrun.client.answer import Answer
from llmrun.client.client import Client
from llmrun.types import Options


class Bye(Exception):
    """The person wants to leave."""


@dataclass
class Chat:
    """One chat under way.

    connect   a client of the daemon, anew each time, so that a chat outlives a daemon that died
    obtain    the name that the daemon knows a model by; it is pulled first where it is not here
    defaults  the options that a model brings itself; None where they are not known
    interactive  whether a person types
    name      the session that the conversation is kept as; None: it is not kept
    thoughts  whether reasoning is shown
    answer    the last one
    tokens    of all answers so far
    ask       a question that is to be asked at once
    draft     what the next message is to begin with, for the person to change
    """

    conversation: Conversation
    out: Output
    sessions: Sessions
    connect: Callable[[], AbstractContextManager[Client]]
    obtain: Callable[[str], str]
    defaults: Callable[[str], Options | None]
    interactive: bool = False
    name: str | None = None
    thoughts: bool = True
    answer: Answer | None = None
    answers: int = 0
    tokens: int = 0
    ask: str | None = None
    draft: str = ""

    def keep(self) -> None:
        """Save the conversation where it is kept."""
        if self.name:
            self.sessions.save(self.name, self.conversation)
