"""How the store speaks HTTP: whom it trusts, through which proxy, and what refusals mean in words.

Proxies are those of `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`. Trusted are the certificates of
this machine, those that come with the HTTP library, and those that `SSL_CERT_FILE`, `SSL_CERT_DIR`,
`REQUESTS_CA_BUNDLE` or `CURL_CA_BUNDLE` name.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from llmrun import __version__
from llmrun.errors import DOWNLOAD, NOT_FOUND, LlmrunError
from llmrun.store import network
from llmrun.store.reference import LOOPBACK
from llmrun.store.wanted import DENIED

if TYPE_CHECKING:
    import httpx

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds
CONNECT_TIMEOUT, READ_TIMEOUT = 10.0, 60.0  # seconds
_TRIES = 3  # of a small document
LONGEST_ANSWER = 16 << 20  # bytes of a listing or a manifest
CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})")
USER_AGENT = {"User-Agent": f"llmrun/{__version__}"}


class Again(Exception):
    """A transient failure: worth another try after `pause` seconds (None: the usual). `fresh`: from byte 0;
    `plain`: and without ranges; `busy`: the server has too much to do."""

    def __init__(
        self,
        why: str,
        *,
        pause: float | None = None,
        fresh: bool = False,
        plain: bool = False,
        busy: bool = False,
    ) -> None:
        super().__init__(why)
        self.pause, self.fresh, self.plain, self.busy = pause, fresh, plain, busy


def trust() -> ssl.SSLContext:
    import httpx

    context = httpx.create_ssl_context()
    context.load_default_certs()
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        if path := os.environ.get(variable):
            try:
                folder = Path(path).is_dir()
                context.load_verify_locations(*((None, path) if folder else (path, None)))
            except (OSError, ssl.SSLError) as error:
                raise LlmrunError(
                    DOWNLOAD,
                    f"{variable} names {path}, which holds no certificates ({error})",
                    hint="mend it",
                ) from error
    return context


async def _no_step_down(response: httpx.Response) -> None:
    """Refuse, before it is followed, a redirect that leaves TLS or HTTP."""
    if not response.has_redirect_location:
        return
    target = response.url.join(response.headers["Location"])
    if target.scheme != "https" and (target.scheme != "http" or response.url.scheme == "https"):
        raise LlmrunError(
            DOWNLOAD,
            f"{shown(str(response.url))} leads to {shown(str(target))}, which is not followed",
            hint="use the address that has the file",
        )


def client(connections: int = 1) -> httpx.AsyncClient:
    """What all requests of the store are sent with. LlmrunError where nothing may be."""
    import httpx

    network.require("no request is sent")
    try:
        return httpx.AsyncClient(
            verify=trust(),
            follow_redirects=True,
            timeout=httpx.Timeout(READ_TIMEOUT, connect=CONNECT_TIMEOUT),
            limits=httpx.Limits(max_connections=connections),
            event_hooks={"response": [_no_step_down]},
        )
    except (ImportError, ValueError, httpx.InvalidURL) as error:  # a proxy of an unknown kind
        raise LlmrunError(
            DOWNLOAD, f"the proxy of this environment cannot be used: {error}", hint="check HTTPS_PROXY"
        ) from error


@contextmanager
def wording(url: str) -> Iterator[None]:
    """httpx's errors made ours: transient ones become `Again`."""
    import httpx

    try:
        yield
    except httpx.TimeoutException as error:
        raise Again(f"no answer within {READ_TIMEOUT:.0f} s") from error
    except httpx.UnsupportedProtocol as error:
        raise LlmrunError(DOWNLOAD, f"{shown(url)} leads to an address that is not HTTP") from error
    except httpx.ProxyError as error:
        raise Again(f"the proxy refuses: {error}") from error
    except httpx.TransportError as error:
        raise Again(str(error) or type(error).__name__) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise LlmrunError(DOWNLOAD, f"{shown(url)} could not be fetched: {error}") from error


def base_url(host: str) -> str:
    """The URL of `host`, which may carry a port: plain HTTP is for this machine only."""
    scheme = "http" if host.partition(":")[0] in LOOPBACK else "https"
    return f"{scheme}://{host}"


def same_origin(one: str, other: str) -> bool:
    """Whether two URLs have scheme, host and port in common, so that one's headers may go to the other."""
    a, b = urlsplit(one), urlsplit(other)
    return (a.scheme, a.netloc.lower()) == (b.scheme, b.netloc.lower())


def shown(url: str) -> str:
    """`url` without its query, which may hold a signature."""
    return url.partition("?")[0]


def refusal(response: httpx.Response, url: str, denied: str = DENIED) -> Exception:
    """What an answer that is no success means: `Again` where it may pass."""
    status = response.status_code
    said = f"HTTP {status} {response.reason_phrase}".rstrip()
    if status in (401, 403):
        return LlmrunError(DOWNLOAD, f"{shown(url)} may not be fetched ({said})", hint=denied)
    if status in (404, 410):
        return LlmrunError(NOT_FOUND, f"{shown(url)} does not exist ({said})", hint="check the name")
    if status in (408, 425, 429) or status >= 500:
        pause = _retry_after(response.headers.get("Retry-After", ""))
        if pause is None or pause <= LONGEST_PAUSE:
            return Again(said, pause=pause, busy=status in (429, 503))
        return LlmrunError(
            DOWNLOAD, f"{shown(url)} is refused for now ({said})", hint=f"pull again in {pause:.0f} seconds"
        )
    return LlmrunError(DOWNLOAD, f"{shown(url)} could not be fetched ({said})", hint="check the link")


def _retry_after(text: str) -> float | None:
    """Seconds in a `Retry-After` header: a count or a date (RFC 9110, 10.2.3)."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment - datetime.now(timezone.utc)).total_seconds()) if moment.tzinfo else None


def gave_up(url: str, failure: Again, hint: str) -> LlmrunError:
    """The error after the last try; `hint` is what to do where the failure itself says no better."""
    why = str(failure)
    if "CERTIFICATE_VERIFY_FAILED" in why:
        hint = "set SSL_CERT_FILE to your network's certificate file"
    elif "proxy" in why.lower():
        hint = "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
    elif failure.busy:
        hint += "; the server asks for fewer requests, so wait a little, or log in if it knows logins"
    return LlmrunError(DOWNLOAD, f"{shown(url)} could not be fetched: {why}", hint=hint)


def read(
    url: str,
    headers: Mapping[str, str],
    *,
    denied: str = DENIED,
    limit: int = LONGEST_ANSWER,
    span: tuple[int, int] | None = None,
) -> bytes:
    """The small document at `url`, or its bytes `span[0]` to `span[1]` (not included), fewer where it ends
    before; blocks. DOWNLOAD or NOT_FOUND where it cannot be had, also where it is longer than `limit` bytes.
    Headers are not sent on to another host."""

    async def take(response: httpx.Response) -> bytes:
        if response.status_code != (206 if span else 200):
            raise _in_whole(url) if response.status_code == 200 else refusal(response, url, denied)
        return await _body(response, span, limit, url)

    return asyncio.run(_ask(url, {**headers, **_range(span)}, take))


def length(url: str, headers: Mapping[str, str], *, denied: str = DENIED) -> int | None:
    """How long the file at `url` is, None where the server does not say; blocks. Errors as `read`."""

    async def take(response: httpx.Response) -> int | None:
        if response.status_code not in (200, 206):
            raise refusal(response, url, denied)
        return total_of(response)

    return asyncio.run(_ask(url, {**headers, **_range((0, 1))}, take))


def total_of(response: httpx.Response) -> int | None:
    """The whole file's length, from an answer that holds it or a range of it."""
    if match := CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "")):
        return int(match[3])
    said = response.headers.get("Content-Length", "")
    return int(said) if said.isascii() and said.isdigit() else None


def _range(span: tuple[int, int] | None) -> dict[str, str]:
    """A range of a coded body would be none of the file."""
    return {"Range": f"bytes={span[0]}-{span[1] - 1}", "Accept-Encoding": "identity"} if span else {}


def _in_whole(url: str) -> LlmrunError:
    return LlmrunError(DOWNLOAD, f"{shown(url)} cannot be read in parts", hint="pull it")


_T = TypeVar("_T")


async def _ask(url: str, headers: Mapping[str, str], take: Callable[[httpx.Response], Awaitable[_T]]) -> _T:
    """What `take` makes of the answer, asked for again where the failure may pass."""
    tried = 0
    async with client() as connection:
        while True:
            answer = await _answer(connection, url, headers, take)
            if not isinstance(answer, Again):
                return answer
            tried += 1
            if tried == _TRIES:
                hint = "check the connection, then try again"
                raise gave_up(url, answer, hint) from answer.__cause__
            await asyncio.sleep(FIRST_PAUSE * 2**tried if answer.pause is None else answer.pause)


async def _answer(
    connection: httpx.AsyncClient,
    url: str,
    headers: Mapping[str, str],
    take: Callable[[httpx.Response], Awaitable[_T]],
) -> _T | Again:
    try:
        with wording(url):
            async with connection.stream("GET", url, headers={**USER_AGENT, **headers}) as response:
                return await take(response)
    except Again as failure:
        return failure


async def _body(response: httpx.Response, span: tuple[int, int] | None, limit: int, url: str) -> bytes:
    body = bytearray()
    async for block in response.aiter_bytes():
        body += block
        if len(body) > (span[1] - span[0] if span else limit):
            raise LlmrunError(DOWNLOAD, f"{shown(url)} sends more than was asked for", hint="check the link")
    if span and len(body) < min(span[1], total_of(response) or span[1]) - span[0]:
        raise Again(f"the body ended at {len(body)} bytes")
    return bytes(body)
