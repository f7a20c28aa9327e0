"""How one prompt is made of words, files and standard input, in this order, a blank line between.

`assemble` is pure; `StandardInput` decides whether to read stdin and does it at most once.
"""

from __future__ import annotations

import re
import select
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from llmrun.cli.output import is_terminal
from llmrun.errors import UNSUPPORTED_FIELD, USAGE, LlmrunError

STDIN = "-"
PATIENCE = 3.0  # seconds of a silent pipe before the person is told what is being waited for


# How files of images begin that a person may hand over for text.
_IMAGES = re.compile(rb"\x89PNG|\xff\xd8\xff|GIF8[79]a|RIFF....WEBP|....ftyp(?:avif|hei)", re.DOTALL)


def no_images(where: str) -> LlmrunError:
    """Why an image at `where`, an option or a file, is not taken."""
    return LlmrunError(
        UNSUPPORTED_FIELD,
        f"{where}: images cannot be read yet, for no model that sees can be run",
        hint="give text, with --file or /file",
    )


def decode(data: bytes, where: str) -> str:
    """Text of `data`; LlmrunError USAGE where it is not UTF-8, UNSUPPORTED_FIELD where it is an image."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if _IMAGES.match(data):
            raise no_images(where) from None
        raise LlmrunError(
            USAGE,
            f"{where} is not UTF-8 text (byte {error.start})",
            hint="convert it, for example with iconv",
        ) from None


class StandardInput:
    """Stdin as part of a prompt. A terminal is read only where `-` asks for it; a closed stdin is empty."""

    def __init__(self, stream: TextIO | None, note: Callable[[str], None]) -> None:
        self._stream = stream
        self._note = note
        self.on_terminal = is_terminal(stream)

    def piped(self) -> bool:
        """Whether something other than a person is connected."""
        return self._stream is not None and not self.on_terminal

    def read(self) -> str:
        """All of it, up to its end. Blocks for as long as the other side keeps it open."""
        if self._stream is None:
            return ""
        if self.on_terminal:
            self._note("reading the prompt from the terminal; Ctrl-D ends it")
        elif not select.select([self._stream], [], [], PATIENCE)[0]:
            self._note("waiting for the end of stdin (with nothing to pipe in, add: < /dev/null)")
        return decode(self._stream.buffer.read(), "stdin")


def assemble(parts: Sequence[str]) -> str:
    """The parts that hold text, a blank line between; each without its one final newline, which is the
    file's and not the text's."""
    return "\n\n".join(part.removesuffix("\n").removesuffix("\r") for part in parts if part.strip())


def gather(words: Sequence[str], files: Sequence[str], stdin: StandardInput) -> str:
    """The prompt. `-` among the words or files puts stdin there or insists on it; else a piped stdin
    comes last. Empty where nothing was given. LlmrunError USAGE for a file that cannot be read."""
    wants_stdin = STDIN in words or STDIN in files or stdin.piped()
    stdin_in_files = STDIN in files
    for word in words:
        if not _encodable(word):
            raise LlmrunError(
                USAGE, "the prompt is not valid text in this locale", hint="pipe it in as UTF-8"
            )
    parts = [" ".join(word for word in words if word != STDIN)]
    parts += [stdin.read() if name == STDIN else read_text(Path(name)) for name in files]
    if wants_stdin and not stdin_in_files:
        parts.append(stdin.read())
    return assemble(parts)


def given(prompt: str) -> str:
    """The prompt; LlmrunError USAGE where there is none."""
    if not prompt:
        raise LlmrunError(USAGE, "there is no prompt", hint="write it after the model, or pipe it in")
    return prompt


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def read_text(path: Path) -> str:
    """A text file. LlmrunError USAGE where it cannot be read."""
    try:
        data = path.expanduser().read_bytes()
    except OSError as error:
        raise LlmrunError(USAGE, f"cannot read {path}: {error.strerror}", hint="check the path") from None
    return decode(data, str(path))
