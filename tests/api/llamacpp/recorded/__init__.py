"""What clients of llama-server send, as they send it, and which fields of the replies they read.

Each `.json` holds one client's requests; `MODEL` stands for a name that its user sets. A field to read is
a path in the reply, or in some part of a stream; in a step `~1` is a slash.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Recorded:
    """One request of a client."""

    client: str
    what: str
    path: str
    body: dict[str, Any]
    reads: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.client}: {self.what}"

    def body_for(self, model: str) -> dict[str, Any]:
        """The body, where `model` is what the client's user set."""
        named = {"model": model} if self.body.get("model") == "MODEL" else {}
        return {**self.body, **named}


def recorded() -> list[Recorded]:
    """All of them."""
    return [
        Recorded(file.stem, each["what"], each["path"], each["body"], tuple(each["reads"]))
        for file in sorted(Path(__file__).parent.glob("*.json"))
        for each in json.loads(file.read_text())["requests"]
    ]


def parts(reply: str) -> list[Any]:
    """The JSON values of a reply: of a stream's events or lines, or the one that it is."""
    lines = [line.removeprefix("data: ") for line in reply.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def has(value: Any, path: str) -> bool:
    """Whether a field is there."""
    for step in path.split("/"):
        step = step.replace("~1", "/")
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return False
    return True
