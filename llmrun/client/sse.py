"""Server-sent events, as far as an answer's stream uses them. Bytes in, the data of each event out.

Pure. https://html.spec.whatwg.org/multipage/server-sent-events.html: an event ends at a blank line, a
line that starts with a colon is a comment (servers send them to keep a quiet stream alive), several
`data` lines are one text with newlines between. Event names, ids and bare carriage returns as line
ends are not used by the daemon. Lines are split on the bytes: U+2028 and its kin belong to the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def split_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Complete lines without their ends, however the network cut them."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")


def event_data(chunks: Iterable[bytes]) -> Iterator[str]:
    """The data of every complete event; one that the stream's end cuts off is dropped, as specified."""
    data: list[str] = []
    for line in split_lines(chunks):
        if not line:
            if data:
                yield "\n".join(data)
                data = []
            continue
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
