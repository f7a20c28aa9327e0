"""GGUF repositories on the Hugging Face Hub, through the `huggingface_hub` client.

The client names the files, their sizes and digests, finds the user's token (`HF_TOKEN` or a login) and the
endpoint (`HF_ENDPOINT`), and keeps the shared cache (`HF_HUB_CACHE`, `HF_HOME`). A file that is already in
that cache is used there. Other bytes are fetched by our own downloader into our own store, because the
client throws a partial file away when its process ends (since its version 1), and large pulls must resume.
`HF_HUB_OFFLINE`, `LLMRUN_OFFLINE`, or a Hub that cannot be reached, leaves what the cache holds. The client
is told to say nothing of this machine: its user agent would name Python and the libraries here.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from llmrun.errors import DOWNLOAD, NOT_FOUND, LlmrunError
from llmrun.store import network, web
from llmrun.store.reference import HubRef
from llmrun.store.transports.base import Offer
from llmrun.store.transports.repository import Listed, offer_from
from llmrun.store.wanted import Wanted

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # before the client is imported

_SHA256 = re.compile(r"[0-9a-f]{64}")


class _Unreachable(Exception):
    """The Hub gave no answer; what is in its cache may still do."""


def offer(reference: HubRef) -> Offer:
    repo = reference.repo
    try:
        return offer_from(reference, _on_hub(repo), _pattern(repo))
    except _Unreachable as problem:
        cached = _in_cache(repo)
        if not cached:
            hint = "check the connection (HF_ENDPOINT names a mirror), then pull again"
            raise LlmrunError(
                DOWNLOAD,
                f"{problem}, and its cache does not hold {repo}",
                hint=network.HINT if network.is_offline() else hint,
            ) from problem.__cause__
        return offer_from(reference, cached, _pattern(repo), f"{problem}, so its cache is used: ")


def _on_hub(repo: str) -> dict[str, Listed]:
    """The repository's files as the Hub lists them."""
    info = _ask(repo)
    files = {}
    for sibling in info.siblings or []:
        size = sibling.lfs.size if sibling.lfs else sibling.size
        sha256 = sibling.lfs.sha256 if sibling.lfs else None
        here = _cached(repo, sibling.rfilename, info.sha, size, sha256)
        files[sibling.rfilename] = Listed(_url(repo, sibling.rfilename), size, sha256, here)
    return files


def _ask(repo: str, tries: int = 2) -> ModelInfo:
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    if network.is_offline():
        raise _Unreachable("the Hub is not asked, for llmrun is offline")
    if constants.HF_HUB_OFFLINE:
        raise _Unreachable("the Hub is not asked (HF_HUB_OFFLINE)")
    try:
        return HfApi(endpoint=_endpoint()).model_info(repo, files_metadata=True, timeout=web.CONNECT_TIMEOUT)
    except GatedRepoError as error:
        raise LlmrunError(
            DOWNLOAD, f"{repo} is gated: its makers ask for consent first", hint=_terms(repo)
        ) from error
    except RepositoryNotFoundError as error:
        raise LlmrunError(
            NOT_FOUND,
            f"the Hub shows no repository {repo}",
            hint="check the spelling; a private one needs HF_TOKEN",
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status not in (408, 429) and status < 500:
            raise LlmrunError(
                DOWNLOAD, f"the Hub refuses to list {repo} (HTTP {status})", hint="check HF_TOKEN"
            ) from error
        if tries == 1:
            raise _Unreachable(f"the Hub answers HTTP {status}") from error
        time.sleep(web.FIRST_PAUSE)
        return _ask(repo, tries - 1)
    except Exception as error:
        # What else comes up are the errors of the client's HTTP library, which is requests, httpx or httpx2,
        # depending on its version. Not tried again: there may be a cache, or a further source.
        raise _Unreachable(f"the Hub cannot be reached ({error or type(error).__name__})") from error


def _cached(repo: str, path: str, commit: str | None, size: int | None, sha256: str | None) -> Path | None:
    """Where the Hub's cache holds the very file that the Hub has now."""
    from huggingface_hub import try_to_load_from_cache

    if not path.lower().endswith(".gguf"):
        return None
    for revision in (commit, None):
        found = try_to_load_from_cache(repo, path, revision=revision)
        if isinstance(found, str):
            file = Path(found)
            if file.stat().st_size == size and file.resolve().name == sha256:
                return file
    return None


def _in_cache(repo: str) -> dict[str, Listed]:
    """The repository's GGUF files that the cache holds, of the revision it saw last."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type="model")
    head = folder / "refs" / "main"
    if not head.is_file():
        return {}
    snapshot = folder / "snapshots" / head.read_text().strip()
    files = {}
    for path in sorted(snapshot.rglob("*.gguf")):
        if path.is_file():
            blob = path.resolve().name  # blobs of weights are named by their SHA-256
            sha256 = blob if _SHA256.fullmatch(blob) else None
            files[path.relative_to(snapshot).as_posix()] = Listed("", path.stat().st_size, sha256, path)
    return files


def _pattern(repo: str) -> Wanted:
    from huggingface_hub import constants, get_token

    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Wanted("", headers=headers, denied=_terms(repo))


def _url(repo: str, path: str) -> str:
    from huggingface_hub import hf_hub_url

    return hf_hub_url(repo, path, endpoint=_endpoint())


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None


def _terms(repo: str) -> str:
    return f"open https://hf.co/{repo}, accept its terms, then set HF_TOKEN to a token of yours"
