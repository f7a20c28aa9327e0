"""Shows one answer of the daemon as it arrives, and what it cost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llmrun.cli.markdown import Words
from llmrun.cli.output import Output, visible
from llmrun.cli.reach import reach
from llmrun.cli.session import Session
from llmrun.cli.waiting import waiting_for
from llmrun.client.answer import Answer
from llmrun.client.client import Client
from llmrun.errors import LlmrunError
from llmrun.types import Limit, Message, Options, OutputFormat, Progress, Reasoning, Text

Prompt = str | Sequence[Message]


def ask(
    client: Client,
    model: str,
    prompt: Prompt,
    options: Options,
    output: OutputFormat | None = None,
    think: bool | None = None,
) -> Answer:
    """Send a conversation, or a raw prompt, of which `think` says nothing."""
    if isinstance(prompt, str):
        return client.complete(model, prompt, options, output)
    return client.chat(model, prompt, options, output, think)


def arriving(out: Output, answer: Answer, *, thoughts: bool) -> Iterator[Text | Reasoning]:
    """The parts to show, with the thoughts where `thoughts`; until the first a spinner says what is done."""
    parts = answer.parts()
    first: list[Text | Reasoning] = []
    with out.waiting("waiting for the answer") as tell:
        for part in parts:
            if isinstance(part, Progress):
                tell(f"reading the prompt: {part.processed:,} of {part.total:,} tokens")
            elif isinstance(part, Reasoning) and not thoughts:
                tell("thinking")
            else:
                first = [part]
                break
    for part in itertools.chain(first, parts):
        if isinstance(part, Text) or (isinstance(part, Reasoning) and thoughts):
            yield part


class Wrapped:
    """Writes what a model says and thinks as `Output` does, with lines broken between words. For a terminal.
    `close` writes the word that is held."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._thinks = False
        self._words = Words(self._write, out.width or 80)

    def piece(self, text: str) -> None:
        self._say(text, thinks=False)

    def thought(self, text: str) -> None:
        self._say(text, thinks=True)

    def close(self) -> None:
        self._words.close()

    def _say(self, text: str, *, thinks: bool) -> None:
        if thinks != self._thinks:
            self._words.close()
            self._thinks = thinks
        self._words.feed(visible(text))

    def _write(self, text: str) -> None:
        if self._thinks and not text.isspace():
            self._out.thought(text)
        else:
            self._out.piece(text)


def show(out: Output, answer: Answer, *, thoughts: bool, wrapped: bool = False) -> None:
    """Stream the text to stdout and end it with one newline, also where it is cut short on a terminal.
    Thoughts that are shown stand before it, a blank line between. `wrapped`: break lines between words."""
    writer = Wrapped(out) if wrapped else out
    thinking = False
    try:
        for part in arriving(out, answer, thoughts=thoughts):
            if isinstance(part, Reasoning):
                writer.thought(part.text)
            else:
                writer.piece(f"\n\n{part.text}" if thinking else part.text)
            thinking = isinstance(part, Reasoning)
    except BaseException:
        if out.on_terminal and (answer.text or answer.reasoning):
            writer.close()
            out.result("")
        raise
    writer.close()
    out.result("")


def answer_once(
    session: Session,
    model: str,
    prompt: Prompt,
    options: Options,
    output: OutputFormat | None,
    *,
    think: bool | None,
    thoughts: bool | None,
    local: bool,
    verbose: bool,
) -> None:
    """`llmrun run` once its arguments are read. `thoughts`: show them; None: where a person reads."""
    out = session.out
    with reach(session, model, local=local) as there, there.client() as client, _naming_the_schema():
        with waiting_for(out, client, there.model):
            answer = ask(client, there.model, prompt, options, output, think)
        with answer:
            if out.mode == "json":
                for _ in answer:
                    pass
                out.json({"model": model, **answer.result()})
            else:
                # JSON and raw text are there to be copied.
                wrapped = out.styled and output is None and not isinstance(prompt, str)
                thoughts = out.on_terminal if thoughts is None else thoughts
                show(out, answer, thoughts=thoughts, wrapped=wrapped)
        asked = answer.limit == "tokens" and options.max_tokens is not None
        if (why := _CUT.get(answer.limit)) and not asked:
            out.note(f"the answer was cut off: {why}")
        if verbose:
            for line in figures(answer):
                out.note(line)


_CUT: dict[Limit | None, str] = {
    "tokens": "the model's own max_tokens is reached",
    "context": "the context is full",
    "time": "its time is up",
}


@contextmanager
def _naming_the_schema() -> Iterator[None]:
    """An error of a schema names the option that a person wrote, not the field that it became."""
    try:
        yield
    except LlmrunError as error:
        if not (error.field and error.field.startswith("response_format")):
            raise
        said = error.message.removeprefix(f"{error.field}: ")
        raise LlmrunError(error.kind, f"--schema: {said}", hint="mend the schema") from error


def figures(answer: Answer) -> list[str]:
    """Tokens, speed and waiting times of a finished answer, one line each."""
    lines = []
    if usage := answer.usage:
        cut = f", {usage.truncated} more left out" if usage.truncated else ""
        lines.append(f"prompt   {usage.prompt} tokens, {usage.cached} of them cached{cut}")
        thought = f", {usage.reasoning} of them reasoning" if usage.reasoning else ""
        guessed = f", {usage.accepted} of {usage.drafted} guesses right" if usage.drafted else ""
        lines.append(f"answer   {usage.completion} tokens{thought}{guessed}")
    lines.append(f"ended    {answer.finish_reason or 'early'}")
    if timings := answer.timings:
        lines.append(f"queue    {timings.queue_ms:.0f} ms")
        lines.append(f"prefill  {timings.prefill_ms:.0f} ms{_rate(answer)}")
        lines.append(f"decode   {timings.decode_ms:.0f} ms{_speed(timings.itl_ms)}")
        lines.append(f"ttft     {timings.ttft_ms:.0f} ms")
        lines.append(
            f"itl      {timings.itl_ms:.1f} ms, half within {timings.itl_p50_ms:.1f},"
            f" 95 % within {timings.itl_p95_ms:.1f}, longest {timings.itl_max_ms:.1f}"
        )
    return lines


def _rate(answer: Answer) -> str:
    usage, timings = answer.usage, answer.timings
    if not usage or not timings or timings.prefill_ms <= 0:
        return ""
    return f", {(usage.prompt - usage.cached) / timings.prefill_ms * 1000:.0f} tokens/s"


def _speed(itl_ms: float) -> str:
    return f", {1000 / itl_ms:.0f} tokens/s" if itl_ms > 0 else ""
