from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from llmrun.cli.repl.completion import SlashCompleter


def offered(text: str) -> list[str]:
    """What Tab makes of the text."""
    names = {"set": lambda: ["top_k", "top_p"], "save": list, "file": list}
    completer = SlashCompleter(names)
    return [
        text[: len(text) + each.start_position] + each.text
        for each in completer.get_completions(Document(text), CompleteEvent())
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/s", ["/set", "/save"]),
        ("/set top", ["/set top_k", "/set top_p"]),
        ("/set top_k ", []),
        ("/nothing x", []),
        ("a /s", []),
        ("", []),
    ],
)
def test_tab_offers_commands_and_their_names(text: str, wanted: list[str]) -> None:
    assert offered(text) == wanted


def test_tab_offers_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    assert offered(f"/file {tmp_path}/no") == [f"/file {tmp_path}/notes.txt"]
