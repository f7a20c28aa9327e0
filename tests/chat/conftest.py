from __future__ import annotations

from tests.engine.conftest import grammars, model

__all__ = ["grammars", "model"]
