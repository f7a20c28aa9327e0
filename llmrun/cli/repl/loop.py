"""The chat itself: read a message, do it or ask it, show the answer, again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime

from llmrun.cli.output import is_terminal
from llmrun.cli.prompt import assemble
from llmrun.cli.reach import obtain, reach
from llmrun.cli.repl import slash
from llmrun.cli.repl.chatting import Bye, Chat
from llmrun.cli.repl.conversation import Conversation
from llmrun.cli.repl.keeping import resumed
from llmrun.cli.repl.readers import PipeReader, Reader, TerminalReader, unechoed
from llmrun.cli.repl.screen import show_answer
from llmrun.cli.repl.sessions import Sessions
from llmrun.cli.session import Session
from llmrun.cli.waiting import waiting_for
from llmrun.client.answer import Answer
from llmrun.config import DEFAULT_MODEL
from llmrun.errors import NOT_FOUND, LlmrunError
from llmrun.types import Options
from llmrun.types.option_text import OPTION_NAMES


@dataclass(frozen=True)
class Wanted:
    """How a chat is to begin. What is None is as the resumed conversation has it, or as it always is.

    resume   go on with the last session        name  the session to go on with, or to begin
    """

    model: str | None = None
    system: str | None = None
    options: Options = field(default_factory=Options)
    think: bool | None = None
    resume: bool = False
    name: str | None = None


def chat(session: Session, wanted: Wanted, *, local: bool) -> None:
    """Talk until the person leaves or the pipe ends. A person's conversation is kept; a pipe's, where it has
    a name."""
    out = session.out
    interactive = is_terminal(sys.stdin) and out.on_terminal
    sessions = Sessions(session.paths.state / "chats")
    name, conversation = _begin(sessions, wanted, interactive=interactive)
    if name:
        sessions.hold(name)
    try:
        with reach(session, conversation.model, local=local) as there:
            with there.client():
                pass  # a daemon that cannot be had is reported before anything is typed
            known = {conversation.model: there.model}
            talk = Chat(
                conversation,
                out,
                sessions,
                there.client,
                _obtainer(session, known),
                _defaults(session),
                interactive,
                name,
                thoughts=interactive,
            )
            reader: Reader = PipeReader(sys.stdin)
            if interactive:
                reader = TerminalReader(session.paths.state / "chat_history", _names(session, sessions))
                out.note(f"{conversation.model}. /help shows what you can type, Ctrl-D leaves.")
                if conversation.turns or conversation.unanswered:
                    out.note(resumed(str(name), conversation))
            Loop(talk, reader).run()
    finally:
        sessions.let_go()


def _begin(sessions: Sessions, wanted: Wanted, *, interactive: bool) -> tuple[str | None, Conversation]:
    """The session to keep it as, if any, and the conversation so far."""
    name = wanted.name
    if wanted.resume:
        latest = next(iter(sessions.all()), None)
        if latest is None:
            raise LlmrunError(NOT_FOUND, "there is no chat to go on with", hint="begin one: llmrun chat")
        name = latest.name
    if name and sessions.exists(name):
        conversation = sessions.load(name)
    else:
        conversation = Conversation(wanted.model or DEFAULT_MODEL)
        name = name or (sessions.new_name(datetime.now()) if interactive else None)
    conversation.model = wanted.model or conversation.model
    conversation.system = conversation.system if wanted.system is None else wanted.system
    conversation.think = conversation.think if wanted.think is None else wanted.think
    conversation.set(wanted.options)
    return name, conversation


def _obtainer(session: Session, known: dict[str, str]) -> Callable[[str], str]:
    """The daemon's name of a model, pulled where it is not here; each is looked up once."""

    def known_as(name: str) -> str:
        if name not in known:
            known[name] = obtain(session, name)
        return known[name]

    return known_as


def _defaults(session: Session) -> Callable[[str], Options | None]:
    """The options of a model in this machine's store; None of one that only the daemon has."""
    from llmrun.store import Store

    def of_model(name: str) -> Options | None:
        try:
            return Store(session.paths).resolve(name).options
        except LlmrunError:
            return None

    return of_model


def _names(session: Session, sessions: Sessions) -> Mapping[str, Callable[[], list[str]]]:
    """What the argument of each command may be, for completion."""
    from llmrun.store import Store

    def models() -> list[str]:
        return [model.name for model in Store(session.paths).list()]

    def kept() -> list[str]:
        return [listed.name for listed in sessions.all()]

    special = {
        "set": lambda: [*OPTION_NAMES],
        "model": models,
        "load": kept,
        "think": lambda: ["on", "off", "default", "show", "hide"],
    }
    return {command: special.get(command, list) for command in slash.COMMANDS}


class Loop:
    """One chat. A person is told of an error or a Ctrl-C and goes on; a pipe ends there."""

    def __init__(self, chat: Chat, reader: Reader) -> None:
        self._chat = chat
        self._out = chat.out
        self._reader = reader

    def run(self) -> None:
        """Until the end of input or /bye."""
        while self._step():
            pass

    def _step(self) -> bool:
        chat = self._chat
        try:
            draft, chat.draft = chat.draft, ""
            text = self._reader.read(draft)
            if text is None:
                return False
            if command := slash.parse(text):
                with self._unechoed():
                    slash.execute(chat, *command)
                text, chat.ask = chat.ask or "", None
            if text.strip():
                self._ask(text)
        except Bye:
            return False
        except KeyboardInterrupt:
            if not self._chat.interactive:
                raise
            self._out.note("(Ctrl-D or /bye leaves)")
        except LlmrunError as error:
            if not self._chat.interactive:
                raise
            self._out.error(error)
        return True

    def _unechoed(self) -> AbstractContextManager[None]:
        """What a person types while something is done, also Ctrl-D, waits for the prompt."""
        return unechoed(sys.stdin) if self._chat.interactive else nullcontext()

    def _ask(self, text: str) -> None:
        talk = self._chat.conversation
        question = assemble([text, *talk.attached]) if talk.attached else text
        talk.attached.clear()
        talk.unanswered = question
        self._chat.keep()
        try:
            with self._unechoed():
                self._answer(question)
        except KeyboardInterrupt:
            if not self._chat.interactive:
                raise
            self._out.note("(stopped)")
        except LlmrunError as error:
            if not self._chat.interactive:
                raise
            self._out.error(error)
            if error.field == "think":
                self._chat.conversation.think = None
                self._out.note("(reasoning is again as the model has it)")
            self._out.note("(your message is kept: /retry asks it again, /edit changes it)")

    def _answer(self, question: str) -> None:
        """Show the answer. What was said of one that the person stopped counts as said; of one that failed,
        it does not."""
        chat, talk = self._chat, self._chat.conversation
        model = chat.obtain(talk.model)
        with chat.connect() as client:
            with waiting_for(self._out, client, model):
                answer = client.chat(model, talk.asking(question), talk.options, think=talk.think)
            with answer:
                try:
                    show_answer(self._out, answer, thoughts=chat.thoughts)
                except KeyboardInterrupt:
                    self._record(question, answer)
                    raise
                self._record(question, answer)

    def _record(self, question: str, answer: Answer) -> None:
        chat = self._chat
        chat.answer = answer
        chat.answers += 1
        chat.tokens += answer.usage.completion if answer.usage else 0
        chat.conversation.record(question, answer.text, answer.reasoning)
        chat.keep()
