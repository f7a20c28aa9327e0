"""GGUF repositories on ModelScope, through its HTTP interface.

`MODELSCOPE_DOMAIN` names another site than www.modelscope.cn, `MODELSCOPE_API_TOKEN` logs in, as they do for
ModelScope's own client. The listing is `/api/v1/models/ORG/REPO/repo/files`, a file
`/models/ORG/REPO/resolve/master/PATH`; the token goes as the cookie `m_session_id`.
"""

from __future__ import annotations

import os
import re
from urllib.parse import quote

import msgspec

from llmrun.errors import DOWNLOAD, LlmrunError
from llmrun.store import web
from llmrun.store.reference import ModelScopeRef
from llmrun.store.transports.base import Offer
from llmrun.store.transports.repository import Listed, offer_from
from llmrun.store.wanted import Wanted

_SITE = "www.modelscope.cn"
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


class _File(msgspec.Struct, rename="pascal"):
    path: str
    type: str = "blob"
    size: int | None = None
    sha256: str | None = None


class _Files(msgspec.Struct, rename="pascal"):
    files: list[_File] | None = None


class _Listing(msgspec.Struct, rename="pascal"):
    data: _Files | None = None
    message: str = ""


def offer(reference: ModelScopeRef) -> Offer:
    site = web.base_url(os.environ.get("MODELSCOPE_DOMAIN", "").strip("/ ") or _SITE)
    repo = reference.repo
    token = os.environ.get("MODELSCOPE_API_TOKEN")
    pattern = Wanted(
        "",
        headers={"Cookie": f"m_session_id={token}"} if token else {},
        denied=f"open {site}/models/{repo}, ask for access, then set MODELSCOPE_API_TOKEN to your token",
    )
    url = f"{site}/api/v1/models/{repo}/repo/files?Revision=master&Recursive=True"
    answer = web.read(url, pattern.headers, denied=pattern.denied)
    try:
        listing = msgspec.json.decode(answer, type=_Listing)
    except msgspec.DecodeError as error:
        raise LlmrunError(
            DOWNLOAD,
            f"{site} lists {repo} in a form that is not known ({error})",
            hint="check MODELSCOPE_DOMAIN",
        ) from error
    if listing.data is None:
        raise LlmrunError(
            DOWNLOAD,
            f"{site} does not list {repo}: {listing.message or 'it gives no reason'}",
            hint=pattern.denied,
        )
    files = {
        file.path: Listed(
            f"{site}/models/{repo}/resolve/master/{quote(file.path)}",
            file.size,
            file.sha256.lower() if file.sha256 and _SHA256.fullmatch(file.sha256) else None,
        )
        for file in listing.data.files or []
        if file.type != "tree"
    }
    return offer_from(reference, files, pattern)
