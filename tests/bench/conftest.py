"""The programs under scripts/bench import each other by their bare names, as when they are run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts" / "bench"))
