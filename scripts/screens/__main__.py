"""Makes the pictures and transcripts under docs/screens from the real program.

Run it with `.venv/bin/python scripts/screens [PART…]`; without a name it makes all parts. The default model
is fetched where it is not here yet. They show one machine on one day; another's differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import terminal  # noqa: E402 (the path is set above)

FOLDER = ROOT / "docs" / "screens"
# Each makes its files in a folder and returns their names.
PARTS: dict[str, Callable[[Path], list[str]]] = {"terminal": terminal.make}


def main(names: list[str]) -> int:
    if unknown := sorted({*names} - {*PARTS}):
        print(f"error: no part {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or PARTS:
        for made in PARTS[name](FOLDER):
            print(f"docs/screens/{made}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
