"""The states of a runner."""

from __future__ import annotations

import enum


class State(enum.Enum):
    """LOADING from its start on, READY for requests, STOPPING (asked to, or at fault), DEAD once reaped."""

    LOADING = "loading"
    READY = "ready"
    STOPPING = "stopping"
    DEAD = "dead"
