"""What comes out of a line, as one line of JSON; and the file of such lines that a later run goes on from."""

from __future__ import annotations

import errno
import json
import os
import zlib
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmrun.client.wire import Completion
from llmrun.errors import USAGE, LlmrunError

_BEGIN = b'{"index": '


@dataclass(frozen=True)
class Result:
    """The record of a line, and how far the input is read once it is out. tokens: of the answer."""

    record: dict[str, Any]
    end: int
    tokens: int = 0

    @property
    def failed(self) -> bool:
        return "error" in self.record

    def text(self) -> str:
        text = json.dumps(self.record, ensure_ascii=False)
        try:
            text.encode()
        except UnicodeEncodeError:  # half a surrogate pair, which JSON can hold and UTF-8 cannot
            return json.dumps(self.record)
        return text


def answered(index: int, given: Any, reply: Completion, *, as_value: bool) -> dict[str, Any]:
    """The record of a line with its answer. `as_value`: the answer is JSON and stands there as its value; one
    that was cut off is an error."""
    usage = reply.usage.usage() if reply.usage else None
    record: dict[str, Any] = {"index": index, "input": given, "output": reply.text}
    record["finish_reason"] = reply.finish_reason
    if usage:
        record["usage"] = {
            "prompt": usage.prompt,
            "completion": usage.completion,
            "cached": usage.cached,
        }
    if as_value:
        try:
            record["output"] = json.loads(reply.text)
        except (ValueError, RecursionError):
            record["error"] = {
                "code": "not_json",
                "message": f"the answer ended before its JSON did ({reply.finish_reason})",
            }
    return record


def failed(index: int, given: Any, error: LlmrunError) -> dict[str, Any]:
    """The record of a line that has no answer."""
    return {
        "index": index,
        "input": given,
        "output": None,
        "error": {"code": error.kind.code, "message": str(error)},
    }


class Done:
    """Which lines a file of results has; 8 bytes of memory for each line. They are compared by checksum, so
    that results of another input are found out."""

    def __init__(self) -> None:
        self._marks = array("Q")

    def add(self, index: int, given: Any) -> None:
        missing = index + 1 - len(self._marks)
        if missing > 0:
            self._marks.extend([0] * missing)
        self._marks[index] = _mark(given)

    def has(self, index: int, given: Any) -> bool:
        """LlmrunError USAGE where the line is there with another input."""
        if index >= len(self._marks) or not self._marks[index]:
            return False
        if self._marks[index] != _mark(given):
            raise LlmrunError(
                USAGE,
                f"line {index + 1} of stdin is not the one that the results have",
                hint="give the input of the interrupted run, or another file for the results",
            )
        return True


def _foreign(path: Path) -> LlmrunError:
    return LlmrunError(
        USAGE, f"{path} holds a line that is no result of `llmrun map`", hint="name another file"
    )


def _mark(given: Any) -> int:
    return zlib.crc32(json.dumps(given, ensure_ascii=False).encode("utf-8", "surrogatepass")) + 1


class ResultsFile:
    """Results appended to a file, each line in one write; a last line that was not whole is cut off first.

    One process may have it open; LlmrunError USAGE for a file that holds something else.
    """

    def __init__(self, path: Path) -> None:
        self.done = Done()
        self.count = 0
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            self._read(path)
        except BaseException:
            self.close()
            raise

    def _read(self, path: Path) -> None:
        whole = 0
        with os.fdopen(os.dup(self._file), "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    if line[: len(_BEGIN)] != _BEGIN[: len(line)]:
                        raise _foreign(path)
                    break
                self._take(path, line)
                whole += len(line)
        os.ftruncate(self._file, whole)

    def _take(self, path: Path, line: bytes) -> None:
        try:
            record = json.loads(line)
            index, given = int(record["index"]), record["input"]
            self.done.add(index, given)
        except (ValueError, TypeError, KeyError, IndexError, RecursionError):
            raise _foreign(path) from None
        self.count += 1

    def write(self, text: str) -> None:
        """One more line. OSError where the disk has no room for it; the next run cuts off what came of it."""
        data = f"{text}\n".encode()
        if os.write(self._file, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        os.close(self._file)
