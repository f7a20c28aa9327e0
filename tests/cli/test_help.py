from __future__ import annotations

import shlex

from llmrun.cli.help import fitted

PAGE = """Usage: x

  Examples:
    llmrun run m "a prompt of several words" --format json | jq .name
    llmrun run m"""


def test_fitted_continues_long_examples_as_a_shell_takes_them() -> None:
    page = fitted(PAGE, 32)
    assert page.splitlines()[3:] == [
        "    llmrun run m \\",
        '      "a prompt of several words" \\',
        "      --format json | jq .name",
        "    llmrun run m",
    ]
    joined = page.replace("\\\n", "")
    assert [shlex.split(line) for line in joined.splitlines()] == [
        shlex.split(line) for line in PAGE.splitlines()
    ]


def test_fitted_leaves_what_fits_and_what_is_read_by_no_person() -> None:
    assert fitted(PAGE, 80) == fitted(PAGE, None) == PAGE
