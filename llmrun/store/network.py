"""Whether anything may be fetched: decided here, asked by every way out.

`LLMRUN_OFFLINE` and `offline` in config.toml forbid it; the command line's `--offline` sets the former, so
that a daemon it starts keeps to it too.
"""

from __future__ import annotations

from llmrun.config import Paths, load_settings
from llmrun.errors import DOWNLOAD, LlmrunError

WHY = "llmrun is offline"
HINT = "leave --offline out, or unset LLMRUN_OFFLINE (and offline in config.toml)"


def is_offline() -> bool:
    """Whether nothing may go out. Looked up anew each time, which is little beside a request."""
    return load_settings(Paths.find()).offline


def require(refusal: str) -> None:
    """LlmrunError DOWNLOAD where nothing may go out; `refusal` says what is then not done."""
    if is_offline():
        raise LlmrunError(DOWNLOAD, f"{WHY}, so {refusal}", hint=HINT)
