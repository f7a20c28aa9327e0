"""How an answer looks on a terminal: thoughts dim, then Markdown, both as they come."""

from __future__ import annotations

from llmrun.cli.answering import Wrapped, arriving, show
from llmrun.cli.markdown import MarkdownStream
from llmrun.cli.output import Output, visible
from llmrun.client.answer import Answer
from llmrun.types import Reasoning


def show_answer(out: Output, answer: Answer, *, thoughts: bool) -> None:
    """Stream it to the end. Without styles, and in a pipe, the text is exactly the model's."""
    if not out.styled:
        show(out, answer, thoughts=thoughts and out.on_terminal)
        return
    markdown, plain = MarkdownStream(out.drawn, out.width or 80), Wrapped(out)
    thinking = begun = False
    try:
        for part in arriving(out, answer, thoughts=thoughts):
            if isinstance(part, Reasoning):
                plain.thought(part.text)
                thinking = True
                continue
            if thinking:
                plain.close()
                out.drawn("\n\n")
            thinking, begun = False, True
            markdown.feed(visible(part.text))
    finally:
        if begun:
            markdown.close()
        elif answer.reasoning and thoughts:
            plain.close()
            out.drawn("\n")
    if answer.reasoning and not thoughts:
        out.note(f"(thought first, {len(answer.reasoning.split())} words; /think show unfolds it)")
