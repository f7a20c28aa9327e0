from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.cli.markdown.inline import LIMIT, Inline


def told(text: str) -> str:
    """Runs of a whole line, styles written in angle brackets."""
    line = Inline()
    runs = [*line.feed(text), *line.close()]
    return "".join(f"<{'+'.join(sorted(run.style))}:{run.text}>" if run.style else run.text for run in runs)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("**bold** on", "<bold:bold> on"),
        ("*em* and _em_", "<italic:em> and <italic:em>"),
        ("***both***", "<bold+italic:both>"),
        ("**a *b* c**", "<bold:a ><bold+italic:b><bold: c>"),
        ("~~gone~~", "<strike:gone>"),
        ("about ~5 and ~6", "about ~5 and ~6"),
        ("snake_case_name", "snake_case_name"),
        ("f(*args, **kwargs)", "f(*args, **kwargs)"),
        ("2 * 3 * 4 ** 5", "2 * 3 * 4 ** 5"),
        ("`*code*`", "<code:*code*>"),
        ("`` a`b ``", "<code:a`b>"),
        ("**`x`**", "<bold+code:x>"),
        ("`open", "`open"),
        ("**open", "**open"),
        (r"\*no\* C:\dir", r"*no* C:\dir"),
        ("[text](http://x.y)", "<underline:text><dim: (http://x.y)>"),
        ("[http://x.y](http://x.y)", "<underline:http://x.y>"),
        ("see [1] and a[0](x", "see [1] and a[0](x"),
        ("a <b> &amp; c", "a <b> &amp; c"),
    ],
)
def test_inline_marks_are_those_of_commonmark(text: str, shown: str) -> None:
    assert told(text) == shown


def test_feed_gives_plain_text_at_once_and_holds_what_may_be_a_mark() -> None:
    line = Inline()
    assert [run.text for run in line.feed("so ")] == ["so "]
    assert line.feed("**bo") == []
    assert line.feed("ld**") == []  # a third star may follow
    assert [(run.text, run.style) for run in line.feed(" x")] == [("bold", {"bold"}), (" x", frozenset())]


def test_mark_whose_end_does_not_come_is_not_held_for_ever() -> None:
    line = Inline()
    assert line.feed("**" + "a" * LIMIT)[0].text == "**"


LINES = st.text(alphabet="ab *_`~[]()\\.é", max_size=30)


@given(LINES, st.data())
def test_feed_in_any_pieces_tells_the_same(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(text)))
    line = Inline()
    runs = [*line.feed(text[:cut]), *line.feed(text[cut:]), *line.close()]
    assert [(c, run.style) for run in runs for c in run.text] == _characters(text)


def _characters(text: str) -> list[tuple[str, frozenset[str]]]:
    line = Inline()
    runs = [run for character in text for run in line.feed(character)]
    return [(c, run.style) for run in [*runs, *line.close()] for c in run.text]


@given(LINES.filter(lambda text: "](" not in text))  # an address that is its link's text is shown once
def test_no_letter_is_ever_lost(text: str) -> None:
    shown = "".join(character for character, _ in _characters(text))
    assert [c for c in shown if c in "abé."] == [c for c in text if c in "abé."]
