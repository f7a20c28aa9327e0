from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.text import TextStream


def _feed(stream: TextStream, pieces: list[bytes]) -> list[str]:
    said = []
    for piece in pieces:
        said.append(stream.push(piece))
        if stream.stopped is not None:
            return said
    return [*said, stream.flush()]


def test_push_half_a_character_waits_for_the_rest() -> None:
    emoji = "🦙".encode()
    assert _feed(TextStream(()), [emoji[:2], emoji[2:]]) == ["", "🦙", ""]


def test_flush_after_half_a_character_drops_it() -> None:
    assert "".join(_feed(TextStream(()), [b"ok", "é".encode()[:1]])) == "ok"


def test_push_invalid_bytes_says_so_once_each_and_goes_on() -> None:
    assert "".join(_feed(TextStream(()), [b"a\xff", b"b"])) == "a\N{REPLACEMENT CHARACTER}b"


def test_push_stop_inside_a_token_ends_before_it() -> None:
    stream = TextStream(("\n",))
    assert _feed(stream, [b"one", b" two\nthree"]) == ["one", " two"]
    assert stream.stopped == "\n"


def test_push_stop_over_three_tokens_never_shows_any_of_it() -> None:
    stream = TextStream(("</end>",))
    assert "".join(_feed(stream, [b"text</", b"en", b"d>more"])) == "text"
    assert stream.stopped == "</end>"


def test_flush_begun_stop_that_never_completes_is_delivered() -> None:
    stream = TextStream(("STOP NOW",))
    assert "".join(_feed(stream, [b"please STOP"])) == "please STOP"
    assert stream.stopped is None


def test_push_two_stops_takes_the_earlier_then_the_longer() -> None:
    stream = TextStream(("b", "bc", "d"))
    assert "".join(_feed(stream, [b"abcd"])) == "a"
    assert stream.stopped == "bc"


_STOPS = st.lists(st.text("abc🦙", min_size=1, max_size=4), max_size=3).map(tuple)


@given(st.text("abc🦙", max_size=24), _STOPS, st.data())
def test_stream_in_any_pieces_says_the_text_up_to_its_first_stop(
    text: str, stops: tuple[str, ...], data: st.DataObject
) -> None:
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    stream = TextStream(stops)
    said = "".join(_feed(stream, pieces))
    # A stop ends the text as soon as its last byte is there, so the first to be complete counts.
    ends = [(text.index(stop) + len(stop), stop) for stop in stops if stop in text]
    if not ends:
        assert (said, stream.stopped) == (text, None)
    else:
        assert stream.stopped is not None
        assert text.startswith(said + stream.stopped)
        assert not any(stop in said for stop in stops)
