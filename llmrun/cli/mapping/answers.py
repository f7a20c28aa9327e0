"""A line to its result: ask the daemon, again where that helps; a line's own fault is not the run's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llmrun.cli.mapping.lines import Line, asked
from llmrun.cli.mapping.results import Result, answered, failed
from llmrun.cli.prompt_template import PromptTemplate
from llmrun.client.client import Client
from llmrun.client.wire import Completion
from llmrun.errors import (
    CANCELLED,
    CONTEXT_TOO_LARGE,
    DAEMON_UNREACHABLE,
    FORBIDDEN,
    MODEL_LOAD,
    NO_MEMORY,
    NO_TEMPLATE,
    OVERLOADED,
    RUNNER_DIED,
    SHUTTING_DOWN,
    UNAUTHORIZED,
    UNKNOWN_MODEL,
    LlmrunError,
)
from llmrun.types import Message, Options, OutputFormat

PRIORITY = 10  # behind whoever waits for an answer
_PAUSE = 1.0  # seconds
# No other line would fare better: these end the run.
_FATAL = {
    *(DAEMON_UNREACHABLE, SHUTTING_DOWN, UNAUTHORIZED, FORBIDDEN, UNKNOWN_MODEL),
    *(MODEL_LOAD, NO_MEMORY, CONTEXT_TOO_LARGE, NO_TEMPLATE, CANCELLED),
}
# How often a line is asked again: a full queue empties, and a runner's death may be a neighbour's fault.
_AGAIN = {OVERLOADED: 600, RUNNER_DIED: 2}


@dataclass(frozen=True)
class Answerer:
    """Answers one line at a time, in any thread."""

    client: Client
    model: str
    template: PromptTemplate
    system: str | None
    options: Options
    output: OutputFormat | None
    think: bool | None = None
    sleep: Callable[[float], None] = time.sleep

    def __call__(self, line: Line) -> Result:
        """LlmrunError for a fault that is not the line's own."""
        given = asked(line, self.template)
        if given.prompt is None:
            assert given.problem is not None
            return Result(failed(line.index, given.input, given.problem), line.end)
        try:
            reply = self._ask(self._turns(given.prompt))
        except LlmrunError as error:
            if error.kind in _FATAL:
                raise
            return Result(failed(line.index, given.input, error), line.end)
        record = answered(line.index, given.input, reply, as_value=self.output is not None)
        return Result(record, line.end, reply.usage.completion_tokens if reply.usage else 0)

    def _turns(self, prompt: str) -> list[Message]:
        system = [] if self.system is None else [Message(role="system", content=self.system)]
        return [*system, Message(role="user", content=prompt)]

    def _ask(self, turns: Sequence[Message]) -> Completion:
        tries = dict(_AGAIN)
        while True:
            try:
                return self.client.chat_whole(
                    self.model, turns, self.options, self.output, think=self.think, priority=PRIORITY
                )
            except LlmrunError as error:
                if not tries.get(error.kind):
                    raise
                tries[error.kind] -= 1
            self.sleep(_PAUSE)
