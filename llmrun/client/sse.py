"""Server-sent events, as far as an answer's stream uses them. Bytes in, the data of each event out.

Pure. https://html.spec.whatwg.org/multipage/server-sent-events.html: an event ends at a blank line, a
line that starts with a colon is a comment (servers send them to keep a quiet stream alive), several
`data` lines are one text with newlines between. Event names, ids and bare carriage returns as line
ends are not used by the daemon. Lines are split on the bytes: U+2028 and its kin belong to the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from llmrun.errors import INTERNAL, LlmrunError

MAX_EVENT = 64 * 1024 * 1024  # bytes; an answer's logprobs take some hundred kilobytes


def split_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Complete lines without their ends, however the network cut them. LlmrunError for one without end."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_EVENT:
            raise _endless()
        for line in lines:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")


def event_data(chunks: Iterable[bytes]) -> Iterator[str]:
    """The data of every complete event; one that the stream's end cuts off is dropped, as specified.
    LlmrunError for one without end."""
    data: list[str] = []
    size = 0
    for line in split_lines(chunks):
        if not line:
            if data:
                yield "\n".join(data)
                data, size = [], 0
            continue
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
            size += len(value)
            if size > MAX_EVENT:
                raise _endless()


def _endless() -> LlmrunError:
    return LlmrunError(INTERNAL, f"the daemon sent an event of more than {MAX_EVENT} bytes")
