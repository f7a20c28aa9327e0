"""The chat page's files, read once and served from memory.

The page is whole in itself: its policy lets a browser run only these files and speak only to this daemon,
so text that a model wrote can run nothing and ask for nothing, even where the page had a fault.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from llmrun.errors import NOT_FOUND, LlmrunError

FOLDER = Path(__file__).parent.parent / "web"
INDEX = "index.html"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect")),
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # Markup made of text is an error in this page, whatever the text.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    # Kept, and asked about each time: a new version of llmrun is never mixed with an old one's files.
    "cache-control": "no-cache",
}


@dataclass(frozen=True)
class WebFile:
    """One file; `etag` names its bytes."""

    body: bytes
    media_type: str
    etag: str


def web_files(folder: Path = FOLDER) -> dict[str, WebFile]:
    """Every file of the page by its name."""
    return {
        path.name: WebFile(body := path.read_bytes(), _TYPES[path.suffix], _etag(body))
        for path in sorted(folder.iterdir())
        if path.suffix in _TYPES
    }


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def web_routes() -> APIRouter:
    """`/`, and the files it names."""
    router = APIRouter(tags=["pages"])
    files = web_files()

    @router.get("/")
    @router.head("/", include_in_schema=False)
    async def front(request: Request) -> Response:
        """The chat page."""
        return _response(files[INDEX], request)

    @router.get("/web/{name}", include_in_schema=False)
    @router.head("/web/{name}", include_in_schema=False)
    async def part(name: str, request: Request) -> Response:
        if name not in files:
            raise LlmrunError(NOT_FOUND, f"the page has no file {name[:100]!r}", hint="the page is at /")
        return _response(files[name], request)

    return router


def _response(file: WebFile, request: Request) -> Response:
    headers = {**_HEADERS, "etag": file.etag}
    known = request.headers.get("if-none-match", "")
    if known == "*" or file.etag in (tag.strip().removeprefix("W/") for tag in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(file.body, headers=headers, media_type=file.media_type)
