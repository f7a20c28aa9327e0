"""What Tab offers in a shell, beside what Typer does by itself: the values of some options, and names with a
colon in them in bash.

Bash takes a colon for the end of a word. Where `tiny:1m` is to be completed it tells of three words, and puts
what is offered in the place of the last; so the words are joined, and what stands before the colon is left
out of the offer.
"""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

VARIABLE = "_LLMRUN_COMPLETE"


def offer(command: Any, args: Sequence[str], program: str) -> None:
    """Answer the shell that asks through the environment; ends the process."""
    if os.environ[VARIABLE] != "complete_bash":
        command.main(list(args), prog_name=program)
    words, at = joined(_words(os.environ["COMP_WORDS"]), int(os.environ["COMP_CWORD"]))
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = shlex.join(words), str(at)
    begun = words[at] if at < len(words) else ""
    said = io.StringIO()
    try:
        with redirect_stdout(said):
            command.main(list(args), prog_name=program)
    finally:
        print("\n".join(behind_the_colon(begun, said.getvalue().splitlines())))


def _words(text: str) -> list[str]:
    """The words that bash tells of, a line each."""
    return text.split("\n") if "\n" in text else shlex.split(text)


def joined(words: Sequence[str], at: int) -> tuple[list[str], int]:
    """The words as a person sees them, those around a colon being one, and which of them is number `at`."""
    found: list[str] = []
    place = at
    glued = False
    for number, word in enumerate(words):
        if found and (glued or word.startswith(":")):
            found[-1] += word
        else:
            found.append(word)
        glued = word.endswith(":")
        if number == at:
            place = len(found) - 1
    return found, place if at < len(words) else len(found)


def behind_the_colon(begun: str, offered: Sequence[str]) -> list[str]:
    """What of each offer goes in the place of the last word that bash sees in `begun`."""
    there = begun[: begun.rfind(":") + 1]
    return [text.removeprefix(there) for text in offered]


def options(incomplete: str) -> list[str]:
    """Names for `-o KEY=VALUE`."""
    from llmrun.types.option_text import OPTION_NAMES

    return [f"{name}=" for name in OPTION_NAMES if name.startswith(incomplete)]


def sessions(incomplete: str) -> list[str]:
    """Chats that are kept."""
    from llmrun.cli.repl.sessions import Sessions
    from llmrun.config import Paths

    kept = Sessions(Paths.find().state / "chats").all()
    return [each.name for each in kept if each.name.startswith(incomplete)]


def keys(incomplete: str) -> list[str]:
    """Names of keys that are in use."""
    from llmrun.access.keyring import Keyring
    from llmrun.config import Paths
    from llmrun.errors import LlmrunError

    try:
        entries = Keyring.of(Paths.find()).entries()
    except (LlmrunError, OSError):
        return []  # a shell completion has nobody to tell
    return [key.name for key in entries if key.name.startswith(incomplete) and not key.revoked]


def types(incomplete: str) -> list[str]:
    """Number types to quantise to."""
    from llmrun.store.quantizing import type_names

    return [name for name in type_names() if name.startswith(incomplete)]


def formats(incomplete: str) -> list[str]:
    """Formats of an answer."""
    return [name for name in ("json",) if name.startswith(incomplete)]
