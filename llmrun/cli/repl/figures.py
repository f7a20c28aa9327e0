"""Commands that show figures: how full the context is, and what answers cost."""

from __future__ import annotations

from llmrun.cli.answering import figures
from llmrun.cli.repl.chatting import Chat
from llmrun.cli.waiting import waiting_for

WIDTH = 40
MIN_WIDTH = 10


def context(chat: Chat, _argument: str) -> None:
    """The conversation is counted by the model that would read it, so it is loaded where it was not."""
    talk = chat.conversation
    messages = talk.messages()
    if not talk.turns:
        chat.out.note("nothing has been said yet")
        return
    model = chat.obtain(talk.model)
    with chat.connect() as client, waiting_for(chat.out, client, model):
        used = client.count_tokens(model, messages)
        windows = {each.name: each.info.ctx for each in client.loaded() if each.info}
    window = windows.get(model)
    if window is None:
        chat.out.words(f"{used:,} tokens; {talk.model} is not loaded, so its context is not known")
        return
    said = f"{used:,} of {window:,} tokens ({used / window:.0%})"
    room = (chat.out.width or WIDTH * 2) - len(f"[] {said}")
    chat.out.words(f"{bar(used, window, max(MIN_WIDTH, min(WIDTH, room)))} {said}")
    if used >= window:
        chat.out.note("it is full: /undo, /clear, or /set ctx for a longer one")


def bar(used: int, window: int, width: int = WIDTH) -> str:
    """`used` of `window` as a bar; anything at all shows, and only what is full fills it."""
    filled = min(width, used * width // window)
    if used and not filled:
        filled = 1
    return f"[{'█' * filled}{'░' * (width - filled)}]"


def stats(chat: Chat, _argument: str) -> None:
    if chat.answer is None:
        chat.out.note("nothing has been answered yet")
        return
    for line in figures(chat.answer):
        chat.out.words(line)
    answers = f"{chat.answers} answer{'' if chat.answers == 1 else 's'}"
    chat.out.result(f"chat     {answers}, {chat.tokens:,} tokens")
