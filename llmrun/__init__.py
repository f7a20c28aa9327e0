"""llmrun: run quantised language models on your own machine.

model = llmrun.load("smollm2:135m")     # in this process
client = llmrun.Client()                # the daemon
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llmrun.client.python import Client
    from llmrun.embedded import load

__version__ = "0.1.0"
__all__ = ["Client", "__version__", "load"]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Both names load what they need only when used: the command line starts without them."""
    if name == "Client":
        from llmrun.client.python import Client

        return Client
    if name == "load":
        from llmrun.embedded import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
