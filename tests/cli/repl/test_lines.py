from __future__ import annotations

import pytest

from llmrun.cli.repl.lines import is_open, message


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        ("hello", False, "hello"),
        ("  hello  ", False, "hello"),
        ("", False, ""),
        ("a\\", True, "a"),
        ("a\\\nb", False, "a\nb"),
        ("a\\\nb\\", True, "a\nb"),
        ('"""', True, ""),
        ('"""one', True, "one"),
        ('"""one\ntwo', True, "one\ntwo"),
        ('"""one\ntwo"""', False, "one\ntwo"),
        ('"""\n  one\n\ntwo\n"""', False, "  one\n\ntwo"),
        ('"""one"""', False, "one"),
        ('"""one""" and', False, "one and"),
        ('say """hi', False, 'say """hi'),
        ("one\ntwo", False, "one\ntwo"),
    ],
)
def test_message_and_whether_it_goes_on(text: str, more: bool, says: str) -> None:
    assert is_open(text) is more
    assert message(text) == says
