"""Routes of the dialects that are not built, and what each asks for: their clients have methods for them."""

from __future__ import annotations

NOT_BUILT = {
    "/api/push": "a model to be pushed to a registry",
    "/v1/stream": "an answer that goes on when its reader has left",
    "/v1/streams": "an answer that goes on when its reader has left",
    "/v1/chat/completions/control": "reasoning to be ended from outside",
    "/tools": "tools that the server runs",
    "/cors-proxy": "requests to other servers",
    "/v1/messages/batches": "requests in a batch",
    "/v1/batches": "requests in a batch",
    "/v1/files": "files that the server keeps",
    "/v1/uploads": "files that the server keeps",
    "/v1/vector_stores": "files that the server keeps",
    "/v1/conversations": "a conversation that the server keeps",
    "/v1/threads": "a conversation that the server keeps",
    "/v1/assistants": "an assistant that the server keeps",
    "/v1/images": "image output",
    "/v1/videos": "video output",
    "/v1/audio": "speech",
    "/audio": "speech",
    "/v1/realtime": "speech",
    "/v1/moderations": "moderation",
    "/v1/fine_tuning": "training",
    "/v1/evals": "an evaluation",
}
"""By the beginning of the path."""


def asks_for(path: str) -> str | None:
    """What `path` asks for; None where no dialect has such a route."""
    for begin, what in NOT_BUILT.items():
        if path == begin or path.startswith(f"{begin}/"):
            return what
    return None
