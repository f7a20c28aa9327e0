"""What Tab offers in a shell, beside what Typer does by itself: the values of some options, commands behind
`help`, apostrophes in zsh, and names with a colon in them in bash.

Bash takes a colon for the end of a word. Where `tiny:1m` is to be completed it tells of three words, and puts
what is offered in the place of the last; so the words are joined, and what stands before the colon is left
out of the offer.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import shlex
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from llmrun.errors import LlmrunError

VARIABLE = "_LLMRUN_COMPLETE"
_LINE = "_TYPER_COMPLETE_ARGS"
HELP = "help"  # `llmrun help COMMAND` is completed as `llmrun COMMAND`

# zsh runs the installed script at the first Tab, and only to learn what is to be called at the next ones.
_FIRST_TAB = """
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  %(complete_func)s "$@"
fi
"""


def mend_scripts() -> None:
    """Have the first Tab in zsh complete something too. Nothing where Typer keeps its scripts elsewhere."""
    scripts = getattr(importlib.import_module("typer._completion_shared"), "_completion_scripts", {})
    if _FIRST_TAB not in scripts.get("zsh", _FIRST_TAB):
        scripts["zsh"] += _FIRST_TAB


def offer(command: Any, args: Sequence[str], program: str) -> None:
    """Answer the shell that asks through the environment; ends the process."""
    asked = os.environ[VARIABLE]
    begun = _read_bash() if asked == "complete_bash" else _read_line()
    said = io.StringIO()
    try:
        with redirect_stdout(said):
            command.main(list(args), prog_name=program)
    except LlmrunError:  # behind a command that does not exist: whoever presses Tab asked for no error
        raise SystemExit(1) from None
    finally:
        offered = said.getvalue()
        if asked == "complete_bash":
            offered = "\n".join(behind_the_colon(begun, offered.splitlines())) + "\n"
        elif asked == "complete_zsh":
            offered = offered.replace("''", r"'\''")  # Typer's way to quote an apostrophe leaves it out
        print(offered, end="")


def _read_bash() -> str:
    """Has the words of bash joined for Typer; the one that is to be completed."""
    words, at = joined(_words(os.environ["COMP_WORDS"]), int(os.environ["COMP_CWORD"]))
    if at > 1 and words[1] == HELP:
        del words[1]
        at -= 1
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = shlex.join(words), str(at)
    return words[at] if at < len(words) else ""


def _read_line() -> str:
    """The same for the other shells, which tell of a line."""
    line = os.environ.get(_LINE, "")
    os.environ[_LINE] = re.sub(rf"^(\s*\S+\s+){HELP}\s+", r"\1", line)
    return ""


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
